"""One objective for all outputs of a network, or one for each."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

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
        One for all outputs, or one for each.
    weights : sequence of float, optional
        One for each output; by default 1 / n_outputs, the mean of the paper.

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
        """The sum on one batch, p(z) being that of the batch."""
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


def as_list(outputs: Outputs) -> list[Tensor]:
    """What a network returned, as a list of tensors."""
    if isinstance(outputs, Tensor):
        return [outputs]
    values = outputs.values() if isinstance(outputs, Mapping) else outputs
    tensors = list(values) if isinstance(values, Iterable) else []
    if not tensors or not all(isinstance(t, Tensor) for t in tensors):
        raise TypeError(
            f"`network` must return a tensor of logits, or a sequence or mapping of them, got {type(outputs).__name__}"
        )
    return tensors
