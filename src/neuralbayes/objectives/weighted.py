"""Objectives for networks with several outputs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from neuralbayes.objectives.base import Objective
from neuralbayes.objectives.running import RunningPrior

Outputs = Tensor | Sequence[Tensor] | Mapping[str, Tensor]


class WeightedSum(nn.Module):
    """A weighted sum of objectives over several outputs, such as hidden states at several scales (appendix B).

    Parameters
    ----------
    objectives : Objective or sequence of Objective
        One for all outputs, or one per output.
    weights : sequence of float, optional
        One per output. The default, 1 / n_outputs, gives the mean of the paper.

    Examples
    --------
    >>> from neuralbayes.objectives import MIM
    >>> both = WeightedSum(MIM(), weights=[0.25, 0.75])
    >>> both([torch.zeros(8, 4, 5, 5), torch.zeros(8, 4)])
    tensor(8.1343)
    """

    def __init__(self, objectives: Objective | Sequence[Objective], weights: Sequence[float] | None = None) -> None:
        super().__init__()
        self._shared = isinstance(objectives, Objective)
        self.objectives = nn.ModuleList([objectives] if isinstance(objectives, Objective) else objectives)
        self.weights = None if weights is None else [float(w) for w in weights]
        self.running_prior = RunningPrior()
        if not self.objectives or not all(isinstance(o, Objective) for o in self.objectives):
            raise TypeError("`objectives` must be an Objective or a non-empty sequence of them")
        if self.weights is not None and not all(math.isfinite(w) and w >= 0 for w in self.weights):
            raise ValueError(f"`weights` must be finite and non-negative, got {self.weights}")

    def forward(self, outputs: Outputs, sample_weight: Tensor | None = None) -> Tensor:
        """The weighted sum on one batch, with p(z) of that batch."""
        tensors = as_list(outputs)
        terms = zip(self.terms(len(tensors)), tensors, strict=True)
        return torch.stack([w * objective(x, sample_weight) for (w, objective), x in terms]).sum()

    def terms(self, n_outputs: int) -> list[tuple[float, Objective]]:
        """Weight and objective of each of `n_outputs` outputs."""
        objectives = list(self.objectives) * (n_outputs if self._shared else 1)
        weights = self.weights if self.weights is not None else [1.0 / n_outputs] * n_outputs
        for name, values in (("objectives", objectives), ("weights", weights)):
            if len(values) != n_outputs:
                raise ValueError(
                    f"`{name}` must have one entry for each of the network's {n_outputs} outputs, got {len(values)}"
                )
        return [(w, o) for w, o in zip(weights, objectives, strict=True) if isinstance(o, Objective)]


def as_list(outputs: Outputs, n_samples: int | None = None) -> list[Tensor]:
    """The outputs of a network as a list of tensors. Each must have `n_samples` samples, by default as many as the
    first."""
    tensors = _members(outputs)
    tensors_only = bool(tensors) and all(isinstance(t, Tensor) for t in tensors)
    if tensors_only and n_samples is None and tensors[0].ndim > 0:
        n_samples = len(tensors[0])
    if not tensors_only or any(t.shape[:1] != (n_samples,) for t in tensors):
        number = "" if n_samples is None else f" with n_samples = {n_samples}"
        raise (ValueError if tensors_only else TypeError)(
            "`network` must return a tensor of logits, or a sequence or mapping of them, each of shape (n_samples, "
            f"n_states, *spatial){number}, got {_described(outputs)}; wrap it in a module that only returns logits"
        )
    return tensors


def _members(outputs: Any) -> list[Any]:
    if isinstance(outputs, Tensor):
        return [outputs]
    values = outputs.values() if isinstance(outputs, Mapping) else outputs
    return list(values) if isinstance(values, Iterable) else []


def _described(outputs: Any) -> str:
    """The type of a network's output and the shapes of its tensors, for messages."""
    kind = type(outputs).__name__
    if isinstance(outputs, Tensor):
        return f"{kind} of {tuple(outputs.shape)}"
    if not isinstance(outputs, Mapping | list | tuple) or not outputs:
        return kind
    shapes = (str(tuple(x.shape)) if isinstance(x, Tensor) else _described(x) for x in _members(outputs))
    return f"{kind} of {', '.join(shapes)}"
