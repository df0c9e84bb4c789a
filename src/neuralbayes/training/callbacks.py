"""Callbacks of the training loop, with two guards: `StopOnNaN` and `EarlyStopping`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import torch

from neuralbayes.training.checks import check_integer, check_number
from neuralbayes.training.state import TrainingState


class Callback:
    """Hooks of the training loop. Override the ones that you need.

    Every process calls them with the same numbers (metrics are averaged over processes), so their decisions must not
    depend on anything else. State that a callback keeps between steps belongs in its `state_dict`; otherwise a resumed
    run differs from an uninterrupted one.

    Examples
    --------
    >>> from neuralbayes.training import Batches, train
    >>> class StopBelow(Callback):
    ...     def on_epoch_end(self, state, metrics):
    ...         if metrics["loss"] < 0.01:
    ...             state.stop("good enough")
    >>> network = torch.nn.Linear(1, 1)
    >>> def step(network, batch):
    ...     loss = (network(batch) - 3 * batch).square().mean()
    ...     loss.backward()
    ...     return {"loss": loss}
    >>> state = train(
    ...     network, step, Batches(64, 16), fetch=lambda indices: indices[:, None] / 64, max_epochs=99,
    ...     optimizer=torch.optim.SGD(network.parameters(), lr=0.3), callbacks=[StopBelow()],
    ... )
    >>> state.stop_reason, state.history[-1]["loss"] < 0.01
    ('good enough', True)
    """

    def on_gradients(self, state: TrainingState, metrics: Mapping[str, float]) -> None:
        """Called after the backward pass, before clipping and the update. An exception here cancels the step."""

    def on_step_end(self, state: TrainingState, metrics: Mapping[str, float]) -> None:
        """Called after the update, which `state.step` already counts, with the metrics of this step."""

    def on_epoch_end(self, state: TrainingState, metrics: Mapping[str, float]) -> Mapping[str, float] | None:
        """Called after the last step of an epoch, with the means of its metrics.

        The returned metrics, such as a validation score, are passed to later callbacks and written to metrics.jsonl.
        With several processes, those of rank 0 count.
        """
        return None

    def on_log(self, state: TrainingState, line: Mapping[str, float]) -> None:
        """Called after a line of metrics was written, which is also the last one in `state.history`; only on rank 0."""

    def state_dict(self) -> Mapping[str, Any]:
        """State for a checkpoint: numbers, strings, tensors and containers of them."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the result of `state_dict`; called only if it was not empty."""


class StopOnNaN(Callback):
    """Raise FloatingPointError at the first metric or gradient that is not finite.

    It checks before the update, so the weights are still valid, and a run with a folder gets a checkpoint of the last
    valid step.

    Examples
    --------
    >>> network = torch.nn.Linear(2, 3)
    >>> optimizer = torch.optim.SGD(network.parameters())
    >>> state = TrainingState(network, optimizer, steps_per_epoch=10, total_steps=50)
    >>> StopOnNaN().on_gradients(state, {"loss": math.nan})
    Traceback (most recent call last):
    ...
    FloatingPointError: metric 'loss' is nan at step 1; the weights are those of step 0. ...
    """

    def on_gradients(self, state: TrainingState, metrics: Mapping[str, float]) -> None:
        bad = [f"metric {name!r} is {value}" for name, value in metrics.items() if not math.isfinite(value)]
        if not bad:
            bad = self._bad_gradients(state)
        if bad:
            raise FloatingPointError(
                f"{bad[0]} at step {state.step + 1}; the weights are those of step {state.step}. "
                "A smaller learning rate or `clip_norm` may help"
            )

    @staticmethod
    def _bad_gradients(state: TrainingState) -> list[str]:
        gradients = {n: p.grad for n, p in state.network.named_parameters() if p.grad is not None}
        # First one number for all parameters: checking each would wait for the device each time.
        if torch.nn.utils.get_total_norm(gradients.values()).isfinite():
            return []
        names = [name for name, gradient in gradients.items() if not gradient.isfinite().all()]
        return [f"the gradient of {name!r} is not finite" for name in names] or ["the gradient norm is infinite"]


class EarlyStopping(Callback):
    """Stop when a metric has not improved for `patience` epochs in a row.

    Parameters
    ----------
    monitor : str, default="loss"
        Name of the metric, as the mean over an epoch or as returned by an earlier callback.
    patience : int, default=5
        Number of epochs without improvement after which to stop.
    min_delta : float, default=0.0
        Minimum improvement over the best value so far.
    mode : {"min", "max"}, default="min"
        Whether smaller or larger is better. NaN is never an improvement.

    Attributes
    ----------
    best : float or None
        The best value so far.
    n_bad_epochs : int
        Epochs since the best value.

    Examples
    --------
    >>> network = torch.nn.Linear(2, 3)
    >>> optimizer = torch.optim.SGD(network.parameters())
    >>> state = TrainingState(network, optimizer, steps_per_epoch=10, total_steps=50)
    >>> stopping = EarlyStopping(patience=2)
    >>> for loss in (3.0, 2.0, 2.5, 2.1):
    ...     stopping.on_epoch_end(state, {"loss": loss})
    >>> state.stop_reason
    'loss did not improve on 2.0 in 2 epochs'
    """

    def __init__(
        self,
        monitor: str = "loss",
        *,
        patience: int = 5,
        min_delta: float = 0.0,
        mode: Literal["min", "max"] = "min",
    ) -> None:
        if mode not in ("min", "max"):
            raise ValueError(f"`mode` must be 'min' or 'max', got {mode!r}")
        self.monitor = monitor
        self.patience = check_integer("patience", patience, 1)
        self.min_delta = check_number("min_delta", min_delta, low=0)
        self.mode = mode
        self.best: float | None = None
        self.n_bad_epochs = 0

    def on_epoch_end(self, state: TrainingState, metrics: Mapping[str, float]) -> None:
        if self.monitor not in metrics:
            raise ValueError(f"`monitor` must be one of the metrics {sorted(metrics)}, got {self.monitor!r}")
        value = metrics[self.monitor]
        if self._improves(value):
            self.best, self.n_bad_epochs = value, 0
            return
        self.n_bad_epochs += 1
        if self.n_bad_epochs >= self.patience:
            state.stop(f"{self.monitor} did not improve on {self.best} in {self.patience} epochs")

    def _improves(self, value: float) -> bool:
        if self.best is None:
            return not math.isnan(value)
        gain = self.best - value if self.mode == "min" else value - self.best
        return gain > self.min_delta

    def state_dict(self) -> Mapping[str, Any]:
        return {"best": self.best, "n_bad_epochs": self.n_bad_epochs}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.best, self.n_bad_epochs = state["best"], state["n_bad_epochs"]
