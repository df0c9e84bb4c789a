"""A micro-batch and the passes over it: how a batch is split, a pass repeated exactly, and a gradient computed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial, reduce
from numbers import Integral

import torch
from torch import Tensor, nn

from neuralbayes.bayes import weighted_sum
from neuralbayes.distributed import Processes
from neuralbayes.objectives.base import Objective, Outputs, as_list, interior_posterior, through_softmax
from neuralbayes.objectives.smoothness import Smoothness

PART_BYTES = 2**22  # of the pieces in which the terms of an output are evaluated


@dataclass
class Microbatch:
    x: Tensor
    weight: Tensor  # (n,), sums to 1 over all micro-batches of all processes
    seed: int
    present: bool  # whether it has samples, or only matches the micro-batches of other processes


def microbatches(
    network: nn.Module,
    batch: Tensor,
    microbatch_size: int | None,
    sample_weight: Tensor | None,
    processes: Processes,
) -> list[Microbatch]:
    """Split the batch into micro-batches with weights and seeds, as many on every process."""
    if not isinstance(network, nn.Module):
        raise TypeError(
            "`network` must be a torch.nn.Module, whose buffers and random numbers can be the same in every pass, "
            f"got {type(network).__name__}"
        )
    if not isinstance(batch, Tensor) or batch.ndim < 1:
        raise TypeError(f"`batch` must be a tensor of shape (n_samples, *features), got {type(batch).__name__}")
    largest = processes.largest(len(batch), batch.device)
    if largest == 0:
        raise ValueError(f"`batch` must have at least one sample, got shape {tuple(batch.shape)}")
    size = largest if microbatch_size is None else microbatch_size
    if isinstance(size, bool) or not isinstance(size, Integral) or size < 1:
        raise ValueError(f"`microbatch_size` must be an integer of at least 1, got {microbatch_size!r}")
    # float64 if the network or its input is, so that the gradient is exact in it
    double = batch.dtype == torch.float64 or any(p.dtype == torch.float64 for p in network.parameters())
    weight = torch.ones(len(batch), device=batch.device, dtype=torch.float64 if double else torch.float32)
    if sample_weight is not None:
        sample_weight = torch.as_tensor(sample_weight)
        if sample_weight.shape != weight.shape or not bool((sample_weight >= 0).all()):
            raise ValueError(
                f"`sample_weight` must hold {len(batch)} non-negative numbers, got shape {tuple(sample_weight.shape)}"
            )
        weight = sample_weight.to(weight)
    total = processes.sum(weight.sum())
    if not (bool(torch.isfinite(total)) and float(total) > 0):
        raise ValueError("`sample_weight` must be finite and have a positive sum")
    n_chunks = -(-largest // int(size))
    seeds = torch.randint(2**62, (n_chunks,)).tolist()
    n = len(batch)
    if n < n_chunks:
        # A process with fewer samples takes part in every sum with samples of weight 0, each in its own piece.
        missing = n_chunks - n
        batch = torch.cat([batch, batch.new_zeros(missing, *batch.shape[1:])])
        weight = torch.cat([weight, weight.new_zeros(missing)])
    pieces = zip(batch.tensor_split(n_chunks), (weight / total).tensor_split(n_chunks), seeds, strict=True)
    return [Microbatch(x, w, seed, present=i < n) for i, (x, w, seed) in enumerate(pieces)]


class BufferState:
    """A snapshot of the buffers of networks, such as the running statistics of batch normalisation."""

    def __init__(self, *networks: nn.Module) -> None:
        self._owners = [(module, dict(module._buffers)) for network in networks for module in network.modules()]
        self._values = [
            (tensor, tensor.detach().clone())
            for _, buffers in self._owners
            for tensor in buffers.values()
            if tensor is not None
        ]

    def restore(self) -> None:
        """Restore every buffer, including reassigned ones, and remove new ones."""
        for tensor, value in self._values:
            # Through `.data`: a graph before its backward pass must not see a new version.
            tensor.data.copy_(value)
        for module, buffers in self._owners:
            for name in module._buffers.keys() - buffers.keys():
                delattr(module, name)
            for name, buffer in buffers.items():
                setattr(module, name, buffer)


@contextmanager
def frozen_buffers(network: nn.Module, at: BufferState | None = None) -> Iterator[None]:
    """Undo the changes of forward passes inside the block to the buffers; start from those of `at`, if given."""
    before = BufferState(network)
    if at is not None:
        at.restore()
    try:
        yield
    finally:
        before.restore()


@contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[Callable[[], bool]]:
    """Draw from `seed`, restore the global generators, and yield a function that says whether any were drawn."""
    cuda = [device] if device.type == "cuda" else []

    def drawn() -> bool:
        states = [torch.get_rng_state(), *map(torch.cuda.get_rng_state, cuda)]
        fresh = [torch.Generator(d).manual_seed(seed).get_state() for d in (torch.device("cpu"), *cuda)]
        return not all(map(torch.equal, states, fresh))

    with torch.random.fork_rng(devices=cuda):
        torch.default_generator.manual_seed(seed)  # torch.manual_seed would query every backend
        if cuda:
            torch.cuda.manual_seed(seed)
        yield drawn


class Term:
    """The objective, times `factor`, on one output of a network: given E and G, a function of this output alone."""

    p_z: Tensor  # E (n_states, *spatial), set before the backward pass
    slope: Tensor  # G = dJ/dE (n_states, *spatial), too

    def __init__(self, factor: float, objective: Objective, output: Tensor, weight: Tensor) -> None:
        self.factor = factor
        self.objective = objective
        self.output = output.detach()
        self.weight = weight
        # Samples are independent, and a small piece stays in the processor's cache.
        self.part = max(1, PART_BYTES // max(1, self.output[0].nbytes))

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
        parts = (torch.split(t, self.part) for t in (self.output, self.factor * self.weight, gradient))
        for output, weight, result in zip(*parts, strict=True):
            p_zx = interior_posterior(output)
            value, of_p = slope(partial(self._samples, weight), p_zx)
            share = weight.to(p_zx).reshape(-1, *[1] * self.slope.ndim)
            result.copy_(through_softmax(p_zx, torch.addcmul(of_p, share, self.slope)))
            values.append(value)
        return torch.stack(values).sum(), gradient

    def _samples(self, weight: Tensor, p_zx: Tensor) -> Tensor:
        return (weight * self.objective.per_sample(p_zx, self.p_z)).sum()

    def _sum(self, weight: Tensor, function: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
        parts = zip(torch.split(self.output, self.part), torch.split(weight, self.part), strict=True)
        return reduce(torch.add, (function(interior_posterior(output), w) for output, w in parts))


class Passed:
    """A micro-batch after the clean and the perturbed forward pass, before its backward pass."""

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
        """Evaluate beta * R_c, and its slope in both passes, `linked` if batch statistics of one enter the other."""
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

    def backward(self) -> Tensor:
        """Add the gradient to the parameters, and return the value of the sample terms and of the penalty."""
        # The gradient of an output is computed when the backward pass reaches it, and the clean pass runs first if
        # possible: few gradients and activations are then in memory at a time.
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
            if output.grad_fn is not None:
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


def _cut(outputs: Outputs) -> Outputs:
    """The same outputs as leaves of a new graph."""
    if isinstance(outputs, Tensor):
        return outputs.detach().requires_grad_()
    if isinstance(outputs, Mapping):
        return {name: x.detach().requires_grad_() for name, x in outputs.items()}
    return [x.detach().requires_grad_() for x in outputs]
