"""A training step on the global batch: one set of batch statistics, one p(z), one gradient."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves, tree_map

from neuralbayes.distributed.batch_norm import shared_statistics
from neuralbayes.distributed.dealing import share
from neuralbayes.distributed.sums import Processes

Samples = TypeVar("Samples")


class GlobalBatch(Generic[Samples]):
    """The share of this process in the global batch; created by `global_batch`.

    Attributes
    ----------
    samples : Tensor or containers of tensors, each of shape (n, ...)
        Samples of this process. If it has none, a sample of zeros takes part in the sums: it has no weight in the
        methods below, and `share` is 0.
    n_samples : int
        Number of samples of all processes.
    n_processes : int
    share : float
        Number of samples of this process divided by `n_samples`: the weight of their mean in the mean over the batch.

    Examples
    --------
    With one process, the share is the whole:

    >>> x = torch.tensor([[1.0], [3.0]])
    >>> with global_batch(nn.Linear(1, 2), x) as batch:
    ...     batch.share, batch.mean(batch.samples.mean(0))
    (1.0, tensor([2.]))
    """

    def __init__(self, network: nn.Module, samples: Samples, processes: Processes) -> None:
        tensors: list[Tensor] = [leaf for leaf in tree_leaves(samples) if isinstance(leaf, Tensor)]
        if len({len(tensor) for tensor in tensors}) != 1:
            raise ValueError(
                "`samples` must be tensors with one length, that of the samples, "
                f"got shapes {[tuple(tensor.shape) for tensor in tensors]}"
            )
        n = len(tensors[0])
        self._n = n
        self._network = network
        self._processes = processes
        self._rank = dist.get_rank() if processes.size > 1 else 0
        self.n_processes = processes.size
        self.n_samples = int(processes.sum(torch.tensor(n, device=tensors[0].device)))
        if self.n_samples == 0:
            raise ValueError("`samples` must hold at least one sample on one of the processes, got none")
        self.share = n / self.n_samples
        self.samples: Samples = samples if n else tree_map(_one_of_zeros, samples)

    def __call__(self, x: Tensor) -> Tensor:
        """The output of the network for samples; a constant for placeholders."""
        outputs: Tensor = self._network(x)
        # Multiply, do not detach: the backward pass of every process has to reach the sums over processes.
        return outputs if self._n else 0.0 * outputs

    def mean(self, value: Tensor) -> Tensor:
        """The mean over the global batch from the mean over the samples of this process.

        Its gradient flows to the samples of all processes.
        """
        return self._sum(self.share * value)

    def gathered(self, x: Tensor) -> Tensor:
        """Gather a tensor of all samples of the batch in order, with gradient: (n, ...) -> (n_samples, ...)."""
        if self.n_processes == 1:
            return x
        own = share(torch.arange(self.n_samples, device=x.device), self._rank, self.n_processes)
        return self._sum(x.new_zeros(self.n_samples, *x.shape[1:]).index_copy(0, own, x[: self._n]))

    def noise(self, x: Tensor) -> Tensor:
        """Standard normal numbers in the shape of samples `x`.

        All processes draw numbers for the whole batch. With equal generators, a sample gets the same numbers on any
        process.
        """
        numbers = torch.randn(self.n_samples, *x.shape[1:], device=x.device, dtype=x.dtype)
        return share(numbers, self._rank, self.n_processes) if self._n else torch.zeros_like(x)

    def _sum(self, x: Tensor) -> Tensor:
        if self.n_processes == 1:
            return x
        total: Tensor = _Sum.apply(x, self._processes)  # type: ignore[no-untyped-call]
        return total


@contextmanager
def global_batch(network: nn.Module, samples: Samples) -> Iterator[GlobalBatch[Samples]]:
    r"""Run a training step on the global batch, of which each process has a share.

    Inside the block, batch normalisation uses the statistics of all processes. Afterwards, every process has the sum of
    all gradients. So each process should call backward on its part of the loss. For a mean over samples, this is
    ``batch.share`` times the mean over its own samples. For a value that is the same everywhere, such as a function of
    ``batch.mean(p_zx.mean(0))``, it is the value divided by ``batch.n_processes``. With one process, nothing changes.

    Parameters
    ----------
    network : nn.Module
        Without gradients, as in a step of :func:`neuralbayes.training.train`.
    samples : Tensor or containers of tensors
        Samples of this process, as divided by :func:`neuralbayes.distributed.dealing.share`; there may be none.

    Yields
    ------
    GlobalBatch
        With ``batch.samples`` to compute on, ``batch(x)`` to call the network, and ``share``, ``mean``, ``gathered``
        and ``noise``.

    Notes
    -----
    For an objective in p(z|x) and p(z), :func:`neuralbayes.backward` does all this, in micro-batches.

    Examples
    --------
    >>> network = nn.Linear(2, 3)
    >>> def step(network, samples):
    ...     with global_batch(network, samples) as batch:
    ...         x, labels = batch.samples
    ...         loss = nn.functional.cross_entropy(batch(x), labels)
    ...         (batch.share * loss).backward()
    ...     return {"loss": loss}
    >>> _ = step(network, (torch.randn(5, 2), torch.tensor([0, 1, 2, 0, 1])))
    >>> network.weight.grad.shape
    torch.Size([3, 2])
    """
    processes = Processes(None)
    batch = GlobalBatch(network, samples, processes)
    with shared_statistics(network, processes.sum if processes.size > 1 else None, present=batch.share > 0):
        yield batch
    parameters = [parameter for parameter in network.parameters() if parameter.requires_grad]
    for parameter, gradient in zip(parameters, processes.summed_gradients(parameters), strict=True):
        parameter.grad = gradient


class _Sum(torch.autograd.Function):
    """The sum over processes. Every process uses it, so its gradient is the sum of theirs."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, processes: Processes) -> Tensor:
        ctx.processes = processes
        return processes.sum(x.clone())

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return ctx.processes.sum(grad.clone()), None


def _one_of_zeros(leaf: Any) -> Any:
    return leaf.new_zeros(1, *leaf.shape[1:]) if isinstance(leaf, Tensor) else leaf
