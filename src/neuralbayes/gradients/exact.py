r"""The gradient of an objective in p(z|x) and p(z) over a batch of any size, with the memory of a micro-batch.

Every objective has the form :math:`J = \operatorname{mean}_i \varphi(L_i, E) + \psi(E)` with :math:`E =
\operatorname{mean}_i L_i`. Only E couples the samples, so

.. math:: \nabla J = \nabla \Big[ \operatorname{mean}_i \varphi(L_i, \langle E \rangle)
    + \big\langle \langle G \rangle, \operatorname{mean}_i L_i \big\rangle \Big],
    \qquad G = \frac{\partial J}{\partial E} = \psi'(E) + \operatorname{mean}_i \frac{\partial \varphi}{\partial E}

where :math:`\langle\cdot\rangle` is held fixed. Given E and G, the bracket is a sum over samples, to which
micro-batches and processes contribute. The three ways to estimate p(z) differ only in where E and G come from. (Gao et
al. 2021, arXiv:2101.06983, introduced the idea of two passes for contrastive losses.)
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Literal

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from neuralbayes.bayes import weighted_sum
from neuralbayes.distributed import Processes
from neuralbayes.gradients.batch_statistics import Statistics, given_statistics, recorded_statistics, shared_statistics
from neuralbayes.gradients.passes import (
    BufferState,
    Microbatch,
    Passed,
    Term,
    frozen_buffers,
    microbatches,
    sample_slope,
    seeded,
    slope,
)
from neuralbayes.objectives.base import Objective, Outputs, RunningPrior, WeightedSum, as_list, interior_posterior
from neuralbayes.objectives.smoothness import Smoothness
from neuralbayes.system.devices import within_autocast, without_autocast

Marginal = Literal["minibatch", "running", "exact"]

KEPT_BYTES = 2**26  # of posteriors between passes; larger ones are recomputed


def backward(
    objective: Objective | WeightedSum,
    network: nn.Module,
    batch: Tensor,
    *,
    microbatch_size: int | None = None,
    marginal: Marginal | RunningPrior = "exact",
    smoothness: Smoothness | None = None,
    sample_weight: Tensor | None = None,
    monitor: Callable[[Sequence[Tensor]], None] | None = None,
    process_group: dist.ProcessGroup | None = None,
    recompute: bool = False,
) -> Tensor:
    r"""Add the gradient of ``objective(network(batch))`` to the parameters' ``.grad``, in micro-batches.

    Parameters
    ----------
    objective : Objective or WeightedSum
        An `Objective` is averaged over the outputs of a network that has several.
    network : nn.Module
        Returns logits of shape (n_samples, n_states, *spatial), or a sequence or mapping of such tensors.
    batch : Tensor of shape (n_samples, *features)
    microbatch_size : int, optional
        Samples that pass through the network at once, on each process. By default the whole batch. Memory grows with
        it. The result of ``marginal="exact"`` does not depend on it, except for networks with batch normalisation in
        training mode.
    marginal : {"exact", "running", "minibatch"} or RunningPrior, default="exact"
        How p(z) is computed.

        - "exact": over the whole batch. With more than one micro-batch, this takes an extra forward pass without
          gradient, and a second one if `sample_term` depends on p(z) and the posteriors are too large to keep.
        - "minibatch": over each micro-batch, as in the gradient accumulation of the paper.
        - "running": as an exponential average over the micro-batches of this and earlier calls, stored in
          ``objective.running_prior`` or in the `RunningPrior` that you pass.
    smoothness : Smoothness, optional
        Added as beta * R_c, on each micro-batch, reusing its forward pass.
    sample_weight : Tensor of shape (n_samples,), optional
        Non-negative weights. Every mean over samples becomes a weighted mean.
    monitor : callable, optional
        Called with the posteriors of each micro-batch, without gradient: one tensor per output.
    process_group : torch.distributed.ProcessGroup, optional
        Processes that hold shards of one global batch; shards may differ in size. By default all processes, if
        `torch.distributed` is initialised. Every process ends with the gradient of the global batch. The network may be
        wrapped by DistributedDataParallel over the same processes.
    recompute : bool, default=False
        Save memory without changing the gradient: posteriors and the perturbed pass of R_c are computed again when they
        are needed, with ``torch.utils.checkpoint``. With R_c, this takes a third to a half less memory and 10 to
        20 % more time.

    Returns
    -------
    Scalar tensor without gradient: the value of the objective, with beta * R_c, over the (global) batch.

    Notes
    -----
    *Where exact ends.* Batch normalisation in training mode uses the statistics of its micro-batch, over all processes.
    The gradient is then that of the whole batch with each micro-batch normalised by itself, which is not the gradient
    with the statistics of the whole batch. In evaluation mode, and for every other network, it is exact.

    All passes over a micro-batch use the same dropout masks, and running statistics are updated once. With
    ``smoothness.fraction < 1``, the perturbed samples are normalised with the statistics of the whole micro-batch, and
    networks that draw random numbers, as dropout does, are not supported. Dropout and the directions of R_c are drawn
    on each process from its own generator, so seed the processes differently.

    If a call fails or is interrupted, gradients, buffers and running averages are left unchanged.

    Inside `torch.autocast`, only the network runs in half precision. p(z), the terms of the objective and R_c are
    computed in float32.

    Examples
    --------
    >>> import neuralbayes as nb
    >>> _ = torch.manual_seed(0)
    >>> network = nn.Linear(5, 3).double()
    >>> x = torch.randn(100, 5, dtype=torch.float64)
    >>> loss = nb.backward(nb.DML(), network, x, microbatch_size=7)
    >>> exact = network.weight.grad.clone(); network.zero_grad()
    >>> nb.DML()(network(x)).backward()
    >>> torch.allclose(exact, network.weight.grad, atol=1e-12)
    True
    """
    if not torch.is_grad_enabled():
        raise ValueError("`backward` must run with gradients; call it outside of torch.no_grad() and inference_mode()")
    if not isinstance(objective, Objective | WeightedSum):
        raise TypeError(f"`objective` must be an Objective or a WeightedSum, got {type(objective).__name__}")
    if any(p.requires_grad for p in objective.parameters()):
        raise ValueError("`objective` must have no parameters of its own to train: p(z) would hide their gradient")
    weighted = objective if isinstance(objective, WeightedSum) else WeightedSum(objective)
    if isinstance(network, nn.parallel.DistributedDataParallel):
        network = network.module  # replaced by the sum over processes below
    if not isinstance(smoothness, Smoothness | None):
        raise TypeError(f"`smoothness` must be a Smoothness, got {type(smoothness).__name__}")
    running = _running_prior(objective, marginal)
    processes = Processes(process_group)
    chunks = microbatches(network, batch, microbatch_size, sample_weight, processes)
    call = within_autocast(network, batch.device)
    last_state = getattr(network, "last_state", None)
    last = call if last_state is None else within_autocast(last_state, batch.device)
    penalty = smoothness if smoothness is not None and smoothness.beta != 0 else None
    run = _Run(weighted, network, call, last, penalty, monitor, processes, recompute)
    exact = marginal == "exact" and len(chunks) > 1  # a single micro-batch is the whole batch
    with without_autocast(batch.device), run.all_or_nothing(running), _dtypes_explained(network, batch):
        return run.two_passes(chunks) if exact else run.one_pass(chunks, running)


@dataclass
class _Run:
    """One call of :func:`backward`."""

    objective: WeightedSum
    network: nn.Module
    call: Callable[[Tensor], Outputs]  # the network, in the autocast of the caller
    last: Callable[[Tensor], Outputs]  # the same, or only its last output if that is less work
    smoothness: Smoothness | None
    monitor: Callable[[Sequence[Tensor]], None] | None
    processes: Processes
    recompute: bool

    def one_pass(self, chunks: list[Microbatch], running: RunningPrior | None) -> Tensor:
        """Use E and G of the micro-batch over all processes, or E of a running average."""
        loss = chunks[0].weight.new_zeros(())
        for chunk in chunks:
            passed = self.forward(chunk)
            total = self.processes.sum(chunk.weight.sum())
            if float(total) == 0.0:
                continue
            share = chunk.weight / total
            priors = self.processes.sum_all([term.prior(share) for term in passed.terms])
            for i, (term, p_z) in enumerate(zip(passed.terms, priors, strict=True)):
                term.p_z = p_z = p_z if running is None else running.update(i, p_z)
                value, term.slope = slope(term.objective.of_prior, p_z)
                loss = loss + total * term.factor * value / self.processes.size
            coupled = [term for term in passed.terms if _depends_on_prior(term.objective, term.p_z)]
            slopes = self.processes.sum_all([term.sample_slope(share, term.p_z) for term in coupled])
            for term, samples in zip(coupled, slopes, strict=True):
                term.slope = term.slope + samples
            loss = loss + passed.backward()
        return self.processes.sum(loss)

    def two_passes(self, chunks: list[Microbatch]) -> Tensor:
        """Compute E and G over all micro-batches and processes, then the gradient of each micro-batch."""
        priors, kept = self.exact_priors(chunks)
        slopes, loss = self.exact_slopes(chunks, priors, kept)
        kept.clear()
        for chunk in chunks:
            passed = self.forward(chunk)
            for term, p_z, gradient in zip(passed.terms, priors, slopes, strict=True):
                term.p_z, term.slope = p_z, gradient
            loss = loss + passed.backward()
        return self.processes.sum(loss)

    def exact_priors(self, chunks: list[Microbatch]) -> tuple[list[Tensor], list[list[Tensor]]]:
        """E of each output over all samples, and the posteriors of each micro-batch if needed again and small."""
        priors: list[Tensor] = []
        kept: list[list[Tensor]] = []
        for chunk, posteriors in self.posteriors(chunks):
            sums = [weighted_sum(chunk.weight, p_zx) for p_zx in posteriors]
            priors = [a + b for a, b in zip(priors, sums, strict=True)] if priors else sums
            n_bytes = sum(p.nbytes for p in posteriors) * len(chunks)
            small = n_bytes <= KEPT_BYTES and not self.recompute
            kept.append(posteriors if small and self.coupled(priors) else [])
        return self.processes.sum_all(priors), kept

    def exact_slopes(
        self, chunks: list[Microbatch], priors: list[Tensor], kept: list[list[Tensor]]
    ) -> tuple[list[Tensor], Tensor]:
        """G of each output over all samples, and the prior term of the objective."""
        terms = self.objective.terms(len(priors))
        loss = chunks[0].weight.new_zeros(())
        slopes = []
        for (w, objective), p_z in zip(terms, priors, strict=True):
            value, gradient = slope(objective.of_prior, p_z)
            loss = loss + w * value / self.processes.size
            slopes.append(gradient)
        if self.coupled(priors):
            sums = [torch.zeros_like(own) for own in slopes]
            source = zip(chunks, kept, strict=True) if all(kept) else self.posteriors(chunks)
            for chunk, posteriors in source:
                for total, (_, objective), p_zx, p_z in zip(sums, terms, posteriors, priors, strict=True):
                    total += sample_slope(objective, p_zx, p_z, chunk.weight)
            slopes = [own + total for own, total in zip(slopes, self.processes.sum_all(sums), strict=True)]
        return slopes, loss

    def coupled(self, priors: list[Tensor]) -> bool:
        """Whether the `sample_term` of any objective depends on p(z)."""
        return any(_depends_on_prior(o, p) for (_, o), p in zip(self.objective.terms(len(priors)), priors, strict=True))

    def posteriors(self, chunks: list[Microbatch]) -> Iterator[tuple[Microbatch, list[Tensor]]]:
        """The posteriors of each micro-batch, without side effects on the network."""
        # Restore buffers after the pass, not after each piece, so that the next pass updates them in the same way.
        with frozen_buffers(self.network):
            for chunk in chunks:
                with torch.no_grad(), seeded(chunk.seed, chunk.x.device), self.shared(chunk):
                    outputs = as_list(self.call(chunk.x), len(chunk.x))
                    self.terms(outputs)
                    posteriors = [interior_posterior(x) for x in outputs]
                yield chunk, posteriors

    def forward(self, chunk: Microbatch) -> Passed:
        """Run the network on a micro-batch and, for R_c, on a perturbed one."""
        smoothness = self.smoothness
        partly = smoothness is not None and smoothness.fraction < 1.0
        before = None if smoothness is None else BufferState(self.network)
        with (
            recorded_statistics(self.network, partly and self.processes.size == 1) as own,
            self.shared(chunk) as shared,
            seeded(chunk.seed, chunk.x.device) as drawn,
        ):
            outputs = self.call(chunk.x)
            random = partly and drawn()
        statistics = (own or shared) if partly else {}
        tensors = as_list(outputs, len(chunk.x))
        if self.monitor is not None:
            self.monitor([interior_posterior(x.detach()) for x in tensors])
        terms = zip(self.terms(tensors), tensors, strict=True)
        passed = Passed(tensors, [Term(w, objective, x, chunk.weight) for (w, objective), x in terms])
        # With several processes, others may wait for the statistics of a micro-batch without weight.
        idle = self.processes.size == 1 and float(chunk.weight.sum()) == 0.0
        if smoothness is None or idle:
            return passed
        if random:
            # A part of the batch would get different masks, and the difference would come from these.
            raise ValueError(
                "`smoothness.fraction` must be 1 for a network that draws random numbers, as dropout does, "
                f"got {smoothness.fraction}"
            )

        def perturbed(x: Tensor) -> Outputs:
            # Start from the buffers of the clean pass; otherwise their update would be part of the difference.
            with (
                frozen_buffers(self.network, before),
                seeded(chunk.seed, x.device),
                given_statistics(statistics) if statistics else self.shared(chunk),
            ):
                return self.call(x) if callable(smoothness.of) else self.last(x)

        function = perturbed
        if self.recompute:
            function = functools.partial(checkpoint, perturbed, use_reentrant=False, preserve_rng_state=False)
        passed.add_smoothness(smoothness, outputs, function, chunk, linked=bool(statistics))
        return passed

    def terms(self, outputs: list[Tensor]) -> list[tuple[float, Objective]]:
        """Weight and objective of each output; each objective is checked before its first use."""
        terms = self.objective.terms(len(outputs))
        for (_, objective), output in zip(terms, outputs, strict=True):
            objective.check_logits(output)
            objective.check_independence(output)
        return terms

    def shared(self, chunk: Microbatch) -> AbstractContextManager[Statistics]:
        """With several processes, batch normalisation uses the micro-batches of all of them."""
        return shared_statistics(self.network, self.processes.sum if self.processes.size > 1 else None, chunk.present)

    @contextmanager
    def all_or_nothing(self, running: RunningPrior | None) -> Iterator[None]:
        """Add the gradients computed inside the block to the existing ones; after an error, restore everything."""
        parameters = [p for p in self.network.parameters() if p.requires_grad]
        before = [p.grad for p in parameters]
        buffers = BufferState(self.network, *([] if running is None else [running]))
        try:
            for p in parameters:
                p.grad = None
            yield
            made = self.processes.summed_gradients(parameters)
        except BaseException:
            buffers.restore()
            raise
        finally:
            for p, old in zip(parameters, before, strict=True):
                p.grad = old
        for p, old, new in zip(parameters, before, made, strict=True):
            if old is None:
                p.grad = new
            elif new is not None:
                old.detach().add_(new)  # in place: an optimiser may hold a reference


def _depends_on_prior(objective: Objective, p_z: Tensor) -> bool:
    """Whether `sample_term` depends on p(z). If not, as in MIM, the pass for its slope is skipped."""
    leaf = p_z.detach().requires_grad_()
    with torch.enable_grad():
        return bool(objective.per_sample(p_z.detach()[None], leaf).requires_grad)


@contextmanager
def _dtypes_explained(network: nn.Module, batch: Tensor) -> Iterator[None]:
    """Explain torch's error about an input of another precision; a network that converts its input never raises it."""
    try:
        yield
    except RuntimeError as error:
        dtypes = {p.dtype for p in network.parameters() if p.is_floating_point()}
        if not batch.is_floating_point() or batch.dtype in dtypes or len(dtypes) != 1 or "type" not in str(error):
            raise
        (dtype,) = dtypes
        raise TypeError(
            f"`batch` must have the dtype of the parameters of `network`, {dtype}, got {batch.dtype}; "
            f"convert it with batch.to({dtype})"
        ) from error


def _running_prior(objective: Objective | WeightedSum, marginal: Marginal | RunningPrior) -> RunningPrior | None:
    if isinstance(marginal, RunningPrior):
        return marginal
    if marginal not in ("minibatch", "running", "exact"):
        raise ValueError(f'`marginal` must be "minibatch", "running", "exact" or a RunningPrior, got {marginal!r}')
    return objective.running_prior if marginal == "running" else None
