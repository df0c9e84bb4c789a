"""The state of a run, for callbacks and as the result of training."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import nn
from torch.optim import Optimizer


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
        Number of updates. A step is also a position in the data; see `Batches`.
    stop_reason : str or None
        Why a callback stopped the run before `total_steps`.
    history : list of dict
        The lines of metrics.jsonl, including those before a resumption.

    Examples
    --------
    >>> import torch
    >>> network = torch.nn.Linear(2, 3)
    >>> optimizer = torch.optim.SGD(network.parameters())
    >>> state = TrainingState(network, optimizer, steps_per_epoch=10, total_steps=50, step=25)
    >>> state.epoch, state.finished
    (2, False)
    >>> state.stop("good enough")
    >>> state.finished
    True
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
