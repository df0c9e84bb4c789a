"""Where a run stands: what callbacks see and what training returns."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import nn
from torch.optim import Optimizer


@dataclass
class TrainingState:
    """Where a run stands.

    Attributes
    ----------
    network : nn.Module
    optimizer : Optimizer
    steps_per_epoch, total_steps : int
        Of the plan; a callback may end the run earlier.
    step : int
        Updates done. A step number is also a position in the data: see `Batches`.
    stop_reason : str or None
        Why a callback ended the run before `total_steps`.
    history : list of dict
        The lines of metrics.jsonl, those before a resumption included.

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
        """Epochs completed."""
        return self.step // self.steps_per_epoch

    @property
    def finished(self) -> bool:
        """Whether no step is left to do."""
        return self.step >= self.total_steps or self.stop_reason is not None

    def stop(self, reason: str) -> None:
        """End the run after the current step; resuming it will not go on."""
        self.stop_reason = reason
