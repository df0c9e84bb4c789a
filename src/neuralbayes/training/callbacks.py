"""What a user hangs into the loop, and two guards: against NaN, and against training for nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import torch

from neuralbayes.distributed.sharding import gathered
from neuralbayes.training.checks import check_integer, check_number
from neuralbayes.training.state import TrainingState


class Callback:
    """Hooks of the training loop; override those you need.

    Every process calls them with the same numbers (metrics are averaged over processes), so what they decide
    must depend on nothing else. What a callback remembers from step to step belongs into its `state_dict`, or a
    resumed run will differ from an unbroken one.

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
        """After the backward pass, before clipping and the update; an exception here leaves the step undone."""

    def on_step_end(self, state: TrainingState, metrics: Mapping[str, float]) -> None:
        """After the update; `state.step` counts it already, `metrics` are those of this step."""

    def on_epoch_end(self, state: TrainingState, metrics: Mapping[str, float]) -> Mapping[str, float] | None:
        """After the last step of an epoch, with the means of its metrics.

        What is returned, such as a validation score, joins the metrics that later callbacks see and the line in
        metrics.jsonl; over several processes, that of rank 0.
        """
        return None

    def on_log(self, state: TrainingState, line: Mapping[str, float]) -> None:
        """After a line of metrics was written, which is also the last of `state.history`; on rank 0 alone."""

    def state_dict(self) -> Mapping[str, Any]:
        """What to keep in a checkpoint: numbers, strings, tensors and containers of them."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take back what `state_dict` returned; called only where that was not empty."""


class StopOnNaN(Callback):
    """Raise FloatingPointError at the first metric or gradient that is not finite.

    It looks before the update, so the weights are still good, and a run with a folder gets a checkpoint of the last
    good step.

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
        # One number for all parameters first: looking at each would wait for the device each time.
        if gathered(torch.nn.utils.get_total_norm(gradients.values())).isfinite():
            return []
        names = [name for name, gradient in gradients.items() if not gathered(gradient).isfinite().all()]
        return [f"the gradient of {name!r} is not finite" for name in names] or ["the gradient norm is infinite"]


class EarlyStopping(Callback):
    """Stop when a metric has not improved for `patience` epochs in a row.

    Parameters
    ----------
    monitor : str, default="loss"
        Name of the metric, as the mean over an epoch or as returned by an earlier callback.
    patience : int, default=5
        Epochs without improvement that end the run.
    min_delta : float, default=0.0
        How much better than the best value so far counts as an improvement.
    mode : {"min", "max"}, default="min"
        Whether smaller or larger is better. NaN is never an improvement.

    Attributes
    ----------
    best : float or None
        The best value so far.
    n_bad_epochs : int
        Epochs since then.

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
