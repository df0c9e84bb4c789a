"""`fit`: train any network with any objective, using the gradient of `backward` and the loop of `training`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.utils.data import Dataset

from neuralbayes.distributed import default_fabric, n_processes, noise_of_rank, rank_zero_result
from neuralbayes.gradients.exact import Marginal, backward
from neuralbayes.objectives.base import Objective, WeightedSum, described
from neuralbayes.objectives.smoothness import Smoothness
from neuralbayes.training.batches import batches_for
from neuralbayes.training.callbacks import Callback, StopOnNaN, TrainingState
from neuralbayes.training.loop import Schedule, train
from neuralbayes.training.run_folder import open_run

if TYPE_CHECKING:
    from lightning_fabric import Fabric

Data = Tensor | NDArray[Any] | Dataset[Any] | Callable[[Tensor], Tensor]


def fit(
    objective: Objective | WeightedSum,
    network: nn.Module,
    data: Data,
    *,
    max_epochs: int | None = None,
    max_steps: int | None = None,
    batch_size: int = 500,
    microbatch_size: int | None = None,
    marginal: Marginal = "exact",
    smoothness: Smoothness | None = None,
    recompute: bool = False,
    optimizer: Optimizer | Callable[[Iterable[nn.Parameter]], Optimizer] = torch.optim.Adam,
    schedule: Schedule | None = None,
    clip_norm: float | None = None,
    drop_last: bool = False,
    callbacks: Sequence[Callback] = (),
    out: str | Path | None = None,
    log_every: int | None = None,
    checkpoint_every: int | None = None,
    seed: int = 0,
    verbose: bool = False,
    device: str = "auto",
    fabric: Fabric | None = None,
) -> TrainingState:
    """Train `network` in place with an objective, using the gradient of :func:`neuralbayes.backward`.

    It is exact for batches of any size, except through batch normalisation in training mode.

    Parameters
    ----------
    objective : Objective or WeightedSum
        An `Objective` is averaged over the outputs of a network that has several.
    network : nn.Module
        Returns logits of shape (n_samples, n_states, *spatial), or a sequence or mapping of such tensors.
    data : Tensor or ndarray of shape (n_samples, *features), Dataset, or callable with a length
        Arrays are converted to the precision of the network one batch at a time, so they may be memory-mapped. The
        items of a Dataset are tensors, or tuples that begin with a tensor. A callable takes indices of shape (m,) and
        returns a tensor of shape (m, *features).
    max_epochs, max_steps : int, optional
        When to stop. Give at least one of them; training stops at whichever comes first.
    batch_size : int, default=500
        Samples per update, over all processes. A single sample left over at the end of an epoch is skipped.
    microbatch_size : int, optional
        Samples that pass through the network at once, over all processes. By default the whole batch.
    marginal, smoothness, recompute
        As in :func:`neuralbayes.backward`.
    optimizer : Optimizer or callable, default=torch.optim.Adam
        An optimiser of the parameters of the network, or a function that creates one from them.
    schedule : callable, optional
        Factor on the learning rate as a function of progress in [0, 1], such as ``neuralbayes.training.cosine()``.
    clip_norm : float, optional
        Largest norm of the gradient.
    drop_last : bool, default=False
        Skip the last batch of an epoch if it is smaller than the others.
    callbacks : sequence of Callback
        Callbacks. Training always stops at the first NaN.
    out : str or Path, optional
        Run folder for config.json, metrics.jsonl and checkpoints. An interrupted run continues from its last
        checkpoint. A run with another objective is an error.
    log_every, checkpoint_every : int, optional
        Number of steps between lines of metrics and between checkpoints. By default one epoch.
    seed : int, default=0
        Seed of the order of the samples. Dropout and the directions of R_c use torch's global generator: call
        ``torch.manual_seed`` for reproducible results. With several processes, each seeds it from `seed` and its rank.
    verbose : bool, default=False
        Show progress.
    device : str, default="auto"
        "cpu", "cuda", "cuda:1" or "mps". "auto" uses the best one available.
    fabric : lightning_fabric.Fabric, optional
        A launched Fabric, in place of `device`. By default, all processes started by torchrun, `fabric run` or Slurm.

    Returns
    -------
    TrainingState
        ``history`` holds the metrics. The network is left in evaluation mode, on its original device.

    See Also
    --------
    neuralbayes.backward : The same gradient for your own loop.
    neuralbayes.training.train : The same loop for your own step.

    Examples
    --------
    >>> import neuralbayes as nb
    >>> _ = torch.manual_seed(0)
    >>> x = torch.cat([torch.randn(200, 2) - 3, torch.randn(200, 2) + 3])
    >>> network = nn.Linear(2, 2)
    >>> optimizer = torch.optim.Adam(network.parameters(), lr=0.03)
    >>> state = nb.fit(nb.MIM(), network, x, max_epochs=50, batch_size=100, optimizer=optimizer)
    >>> state.step
    200
    >>> round(nb.mutual_information(network(x), from_logits=True).item(), 1)  # log 2 is 0.7
    0.7
    """
    if not isinstance(objective, Objective | WeightedSum):
        raise TypeError(f"`objective` must be an Objective or a WeightedSum, got {type(objective).__name__}")
    if not isinstance(network, nn.Module):
        raise TypeError(f"`network` must be a torch.nn.Module, got {type(network).__name__}")
    fetch = _fetcher(data, network)
    batches = batches_for(len(data), batch_size, seed=seed, drop_last=drop_last)  # type: ignore[arg-type]
    fabric = default_fabric(device=device) if fabric is None else fabric
    origin = next((parameter.device for parameter in network.parameters()), fabric.device)
    fabric.to_device(network)
    if out is not None:
        minimised = {"objective": described(objective), "marginal": marginal}
        minimised |= {} if smoothness is None else {"smoothness": described(smoothness)}
        rank_zero_result(fabric, lambda: open_run(Path(out), "fit", minimised))

    def step(network: nn.Module, batch: Tensor) -> dict[str, Tensor]:
        size = None if microbatch_size is None else -(-microbatch_size // n_processes())
        options: dict[str, Any] = {"marginal": marginal, "smoothness": smoothness, "recompute": recompute}
        return {"loss": backward(objective, network, batch, microbatch_size=size, **options)}

    with noise_of_rank(fabric, seed):
        state = train(
            network,
            step,
            batches,
            fetch=fetch,
            optimizer=optimizer if isinstance(optimizer, Optimizer) else optimizer(network.parameters()),
            schedule=schedule,
            max_epochs=max_epochs,
            max_steps=max_steps,
            clip_norm=clip_norm,
            callbacks=(StopOnNaN(), *callbacks),
            stateful={"objective": objective},
            run_dir=out,
            log_every=log_every,
            checkpoint_every=checkpoint_every,
            verbose=verbose,
            fabric=fabric,
        )
    network.eval().to(origin)
    return state


def _rows(array: NDArray[Any], dtype: torch.dtype, indices: Tensor) -> Tensor:
    """Rows of an array, in a floating dtype if they are of one."""
    batch = torch.from_numpy(array[indices.numpy()])
    return batch.to(dtype) if batch.is_floating_point() else batch


def _items(dataset: Any, indices: Tensor) -> Tensor:
    """Items of a Dataset, or the first parts of them."""
    found = [dataset[i] for i in indices.tolist() or [0]]  # the share of a process may be empty: one gives the shape
    tensors = [item[0] if isinstance(item, tuple | list) else item for item in found]
    if not all(isinstance(x, Tensor) for x in tensors):
        raise TypeError(f"`data` must hold tensors, got {type(tensors[0]).__name__}; give it a transform to tensors")
    return torch.stack(tensors)[: len(indices)]


def _fetcher(data: Any, network: nn.Module) -> Callable[[Tensor], Tensor]:
    """The function from indices to samples."""
    if isinstance(data, Tensor):
        return data.__getitem__
    if isinstance(data, np.ndarray):
        dtype = next((p.dtype for p in network.parameters() if p.is_floating_point()), torch.float32)
        return partial(_rows, data, dtype)
    if not hasattr(data, "__len__") or not (callable(data) or hasattr(data, "__getitem__")):
        raise TypeError(
            "`data` must be a tensor, an array, a Dataset with a length, or a callable with a length, "
            f"got {type(data).__name__}"
        )
    return data if callable(data) else partial(_items, data)
