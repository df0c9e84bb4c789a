"""The forward and backward pass of a micro-batch: their order, and which activations are kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial, reduce
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

from neuralbayes.bayes import weighted_sum
from neuralbayes.gradients.microbatches import Microbatch
from neuralbayes.objectives.base import Objective, interior_posterior
from neuralbayes.objectives.smoothness import Smoothness
from neuralbayes.objectives.weighted import Outputs, as_list

EXPENSIVE = 256
"""Multiplications per output element above which activations are kept instead of recomputed."""


PART_BYTES = 2**22
"""Size of the pieces for evaluating the terms of an output."""


class Term:
    """The objective on one output of a network for a micro-batch: given E and G, a function of that output alone.

    Attributes
    ----------
    factor : float
        Weight of this output in the objective.
    objective : Objective
    output : Tensor of shape (n_samples, n_states, *spatial)
        Detached from its graph.
    weight : Tensor of shape (n_samples,)
        Weights of the samples in the whole batch.
    p_z, slope : Tensor of shape (n_states, *spatial)
        E and G = dJ/dE, set before the backward pass.
    """

    p_z: Tensor
    slope: Tensor

    def __init__(self, factor: float, objective: Objective, output: Tensor, weight: Tensor) -> None:
        self.factor = factor
        self.objective = objective
        self.output = output.detach()
        self.weight = weight

    def prior(self, weight: Tensor) -> Tensor:
        """Weighted sum of p(z|x) over the samples."""
        return self._sum(weight, lambda p_zx, w: weighted_sum(w, p_zx))

    def sample_slope(self, weight: Tensor, p_z: Tensor) -> Tensor:
        """Sum over samples of d phi / d E: (n_states, *spatial); 0 if phi does not depend on E."""
        return self._sum(weight, lambda p_zx, w: sample_slope(self.objective, p_zx, p_z, w))

    def gradient(self) -> tuple[Tensor, Tensor]:
        """The value of the sample terms, and the gradient of the objective with respect to the output."""
        gradient = torch.empty_like(self.output)
        values = []
        size = self._part()
        parts = zip(*(torch.split(t, size) for t in (self.output, self.weight, gradient)), strict=True)
        with torch.enable_grad():
            for output, weight, result in parts:
                leaf = output.detach().requires_grad_()
                p_zx = interior_posterior(leaf)
                samples = (weight * self.objective.per_sample(p_zx, self.p_z)).sum()
                local = samples + (self.slope * weighted_sum(weight, p_zx)).sum()
                result.copy_(*torch.autograd.grad(self.factor * local, leaf))
                values.append(samples.detach())
        return self.factor * torch.stack(values).sum(), gradient

    def _sum(self, weight: Tensor, function: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
        size = self._part()
        parts = zip(torch.split(self.output, size), torch.split(weight, size), strict=True)
        return reduce(torch.add, (function(interior_posterior(output), w) for output, w in parts))

    def _part(self) -> int:
        """Number of samples per piece. Samples are independent, and a small piece stays in the processor's cache."""
        return max(1, PART_BYTES // max(1, self.output[0].nbytes))


class Passed:
    """A micro-batch after the clean and the perturbed forward pass, before its backward pass.

    Parameters
    ----------
    outputs : list of Tensor
        Outputs of the clean pass.
    terms : list of Term
        The objective on each output.
    """

    def __init__(self, outputs: list[Tensor], terms: list[Term]) -> None:
        self.terms = terms
        self.penalty = terms[0].weight.new_zeros(())
        self.linked = False
        self._clean: list[tuple[Tensor, Tensor | None]] = [(output, None) for output in outputs]
        self._perturbed: list[tuple[Tensor, Tensor]] = []

    def add_smoothness(
        self,
        smoothness: Smoothness,
        outputs: Outputs,
        perturbed: Callable[[Tensor], Outputs],
        chunk: Microbatch,
        linked: bool,
    ) -> None:
        """Evaluate beta * R_c and its gradient with respect to the outputs of both passes.

        `linked` says that the perturbed pass depends on the clean one, as it does through batch statistics.
        """
        results: list[Tensor] = []
        leaves: list[Tensor] = []

        def function(x: Tensor) -> Outputs:
            outputs = perturbed(x)
            cut = _cut(outputs)
            results.extend(as_list(outputs))
            leaves.extend(as_list(cut))
            return cut

        clean = _cut(outputs)
        share = chunk.weight.sum()
        penalty = share * smoothness(function, chunk.x, clean, chunk.weight if float(share) > 0 else None)
        slopes = torch.autograd.grad(penalty, [*as_list(clean), *leaves], allow_unused=True)
        self.penalty = penalty.detach()
        self.linked = linked
        n = len(self._clean)
        self._clean = [(output, slope) for (output, _), slope in zip(self._clean, slopes[:n], strict=True)]
        self._perturbed = [
            (result, slope)
            for result, slope in zip(results, slopes[n:], strict=True)
            if slope is not None and result.requires_grad
        ]

    def backward(self, lazy: bool) -> Tensor:
        """Add the gradient to the parameters, and return the value of the sample terms and of the penalty.

        The gradient of an output is computed at once or, if `lazy`, when the backward pass reaches it. The clean pass
        runs first if possible, so that its activations are freed before the perturbed pass recomputes its own.
        """
        values = [self.penalty]

        def with_term(term: Term, slope: Tensor) -> Tensor:
            value, gradient = term.gradient()
            values.append(value)
            return gradient.add_(slope)

        roots: list[tuple[Tensor, Tensor]] = []
        while self.terms:
            term, (output, slope) = self.terms.pop(), self._clean.pop()
            if slope is None:  # an expanded 0, so that nothing of the size of the output is kept
                slope = output.new_zeros(()).expand_as(output)
            if lazy and output.grad_fn is not None:
                output.register_hook(partial(with_term, term))  # type: ignore[no-untyped-call]
            else:
                slope = with_term(term, slope)
            if output.requires_grad:
                roots.append((output, slope))
        if not roots:
            raise ValueError("`network` must have parameters that require a gradient, got outputs without any")
        passes = [roots + self._perturbed] if self.linked else [self._perturbed, roots]
        del roots, term, output, slope  # free the activations after the pass
        while passes:
            tensors = passes.pop()
            torch.autograd.backward([t for t, _ in tensors], [g for _, g in tensors])
        return torch.stack(values).sum()


def sample_slope(objective: Objective, p_zx: Tensor, p_z: Tensor, weight: Tensor) -> Tensor:
    """Weighted sum over samples of d phi / d E: (K, *spatial); 0 if phi does not depend on E."""
    return slope(lambda leaf: (weight * objective.per_sample(p_zx, leaf)).sum(), p_z)[1]


def slope(function: Callable[[Tensor], Tensor], p_z: Tensor) -> tuple[Tensor, Tensor]:
    """A scalar function of p(z) and its gradient, which is 0 if the function does not depend on p(z)."""
    with torch.enable_grad():
        leaf = p_z.detach().requires_grad_()
        value = function(leaf)
        if not value.requires_grad:
            return value, torch.zeros_like(p_z)
        (gradient,) = torch.autograd.grad(value, leaf, materialize_grads=True)
    return value.detach(), gradient


def lean(function: Callable[[Tensor], Outputs]) -> Callable[[Tensor], Outputs]:
    """Wrap a function so that its backward pass keeps only expensive results and recomputes the rest."""

    def call(x: Tensor) -> Outputs:
        result: Outputs = checkpoint(
            function,
            x,
            use_reentrant=False,
            preserve_rng_state=False,
            context_fn=partial(create_selective_checkpoint_contexts, _policy),
        )
        return result

    return call


def _policy(_context: Any, operation: Any, *arguments: Any, **_options: Any) -> CheckpointPolicy:
    aten = torch.ops.aten
    if operation is aten.convolution.default:
        cost = arguments[1].shape[1:].numel()
    elif operation in (aten.mm.default, aten.bmm.default, aten.addmm.default):
        cost = arguments[-1].shape[-2]
    else:
        cost = 0
    return CheckpointPolicy.MUST_SAVE if cost >= EXPENSIVE else CheckpointPolicy.PREFER_RECOMPUTE


def _cut(outputs: Outputs) -> Outputs:
    """The same outputs as leaves of a new graph."""
    if isinstance(outputs, Tensor):
        return outputs.detach().requires_grad_()
    if isinstance(outputs, Mapping):
        return {name: x.detach().requires_grad_() for name, x in outputs.items()}
    return [x.detach().requires_grad_() for x in outputs]
