"""The state of a run, the hooks of the training loop, and three guards: NaN, no improvement, collapse."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import nn
from torch.optim import Optimizer

from neuralbayes.training.batches import check_integer


@dataclass
class TrainingState:
    """The state of a run.

    Attributes
    ----------
    network : nn.Module
    optimizer : Optimizer
    steps_per_epoch, total_steps : int
        Planned numbers; a callback may stop the run earlier.
    step : int
        Number of updates.
    stop_reason : str or None
        Why a callback stopped the run before `total_steps`.
    history : list of dict
        The lines of metrics.jsonl, including those before a resumption.
    """

    network: nn.Module
    optimizer: Optimizer
    steps_per_epoch: int
    total_steps: int
    step: int = 0
    stop_reason: str | None = None
    history: list[dict[str, float]] = field(default_factory=list)

    @property
    def epoch(self) -> int:
        """Number of completed epochs."""
        return self.step // self.steps_per_epoch

    @property
    def finished(self) -> bool:
        """Whether all steps are done."""
        return self.step >= self.total_steps or self.stop_reason is not None

    def stop(self, reason: str) -> None:
        """Stop the run after the current step. A stopped run does not resume."""
        self.stop_reason = reason


class Callback:
    """Hooks of the training loop. Override the ones that you need.

    Every process calls them with the same numbers (metrics are averaged over processes), so their decisions must not
    depend on anything else. State that a callback keeps between steps belongs in its `state_dict`; otherwise a resumed
    run differs from an uninterrupted one.

    Examples
    --------
    >>> class StopBelow(Callback):
    ...     def on_epoch_end(self, state, metrics):
    ...         if metrics["loss"] < 0.01:
    ...             state.stop("good enough")
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

    def state_dict(self) -> Mapping[str, Any]:
        """State for a checkpoint: numbers, strings, tensors and containers of them."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the result of `state_dict`; called only if it was not empty."""


class StopOnNaN(Callback):
    """Raise FloatingPointError at the first metric or gradient that is not finite.

    It checks before the update, so the weights are still valid, and a run with a folder gets a checkpoint of the last
    valid step.
    """

    def on_gradients(self, state: TrainingState, metrics: Mapping[str, float]) -> None:
        bad = [f"metric {name!r} is {value}" for name, value in metrics.items() if not math.isfinite(value)]
        gradients = {n: p.grad for n, p in state.network.named_parameters() if p.grad is not None}
        # First one number for all parameters: checking each would wait for the device each time.
        if not bad and not torch.nn.utils.get_total_norm(gradients.values()).isfinite():
            names = [name for name, gradient in gradients.items() if not gradient.isfinite().all()]
            bad = [f"the gradient of {name!r} is not finite" for name in names] or ["the gradient norm is infinite"]
        if bad:
            raise FloatingPointError(
                f"{bad[0]} at step {state.step + 1}; the weights are those of step {state.step}. "
                "A smaller learning rate or `clip_norm` may help"
            )


class EarlyStopping(Callback):
    """Stop when a metric has not improved for `patience` epochs in a row.

    Parameters
    ----------
    monitor : str, default="loss"
        Name of the metric, as the mean over an epoch or as returned by an earlier callback.
    patience : int, default=5
        Number of epochs without improvement after which to stop.
    mode : {"min", "max"}, default="min"
        Whether smaller or larger is better. NaN is never an improvement.
    """

    def __init__(self, monitor: str = "loss", *, patience: int = 5, mode: Literal["min", "max"] = "min") -> None:
        if mode not in ("min", "max"):
            raise ValueError(f"`mode` must be 'min' or 'max', got {mode!r}")
        self.monitor = monitor
        self.patience = check_integer("patience", patience, 1)
        self.mode = mode
        self.best = math.nan
        self.n_bad_epochs = 0

    def on_epoch_end(self, state: TrainingState, metrics: Mapping[str, float]) -> None:
        if self.monitor not in metrics:
            raise ValueError(f"`monitor` must be one of the metrics {sorted(metrics)}, got {self.monitor!r}")
        value = metrics[self.monitor]
        improves = value < self.best if self.mode == "min" else value > self.best
        if improves or (math.isnan(self.best) and not math.isnan(value)):
            self.best, self.n_bad_epochs = value, 0
            return
        self.n_bad_epochs += 1
        if self.n_bad_epochs >= self.patience:
            state.stop(f"{self.monitor} did not improve on {self.best} in {self.patience} epochs")

    def state_dict(self) -> Mapping[str, Any]:
        return {"best": self.best, "n_bad_epochs": self.n_bad_epochs}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.best, self.n_bad_epochs = state["best"], state["n_bad_epochs"]


class WarnOnCollapse(Callback):
    """Warn once per layer if a layer has collapsed and does not recover.

    It uses two metrics: ``mi/LAYER``, the mutual information in nats, and ``dead/LAYER``, the fraction of states with
    almost no mass. A layer has collapsed below 0.01 nats or above a fraction of 0.9.

    Parameters
    ----------
    advice : str, default=""
        Last sentence of the warning, with suggestions.
    steps : int, default=100
        Number of consecutive steps after which a collapsed layer is reported. Many layers are collapsed at the start.

    Attributes
    ----------
    messages : dict of str to str
        The warnings so far, by layer.
    """

    MIN_INFORMATION = 0.01
    MAX_DEAD = 0.9

    def __init__(self, advice: str = "", *, steps: int = 100) -> None:
        self.advice = advice
        self.steps = check_integer("steps", steps, 1)
        self.messages: dict[str, str] = {}
        self._bad_steps: dict[str, int] = {}  # consecutive steps, by metric

    def on_step_end(self, state: TrainingState, metrics: Mapping[str, float]) -> None:
        for name, value in metrics.items():
            kind, _, layer = name.partition("/")
            if kind == "mi" and value < self.MIN_INFORMATION:
                found = f"{layer} has carried less than {self.MIN_INFORMATION:g} nats about its input"
            elif kind == "dead" and value > self.MAX_DEAD:
                found = f"more than {self.MAX_DEAD:.0%} of the states of {layer} have been dead"
            else:
                self._bad_steps.pop(name, None)
                continue
            self._bad_steps[name] = self._bad_steps.get(name, 0) + 1
            if self._bad_steps[name] >= self.steps and layer not in self.messages:
                message = f"{found} for {self.steps} steps, up to step {state.step}: it has collapsed. {self.advice}"
                self.messages[layer] = message.strip()
                warnings.warn(self.messages[layer], stacklevel=2)

    def state_dict(self) -> Mapping[str, Any]:
        return {"messages": dict(self.messages), "bad_steps": dict(self._bad_steps)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.messages, self._bad_steps = dict(state["messages"]), dict(state["bad_steps"])
