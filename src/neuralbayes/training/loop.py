"""The training loop: any network, any step, one process or many."""

from __future__ import annotations

import math
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from neuralbayes.distributed import (
    Processes,
    agreed_metrics,
    check_fabric,
    default_fabric,
    gather,
    lost_peers_explained,
)
from neuralbayes.training.batches import Batches, check_integer
from neuralbayes.training.callbacks import Callback, TrainingState
from neuralbayes.training.progress import progress
from neuralbayes.training.run_folder import Run, Stateful

if TYPE_CHECKING:
    from lightning_fabric import Fabric

Network = TypeVar("Network", bound=nn.Module)
Batch = TypeVar("Batch")
Metrics = Mapping[str, float | Tensor]
Schedule = Callable[[float], float]


def cosine(*, warmup: float = 0.0, final: float = 0.0) -> Schedule:
    r"""Linear warm-up from 0 to 1 over the fraction `warmup` of the run, then cosine decay to `final`.

    .. math:: f(t) = \mathrm{final} + (1 - \mathrm{final}) \,
              \tfrac{1}{2}\Bigl(1 + \cos \pi \frac{t - \mathrm{warmup}}{1 - \mathrm{warmup}}\Bigr)
              \quad (t \ge \mathrm{warmup})

    `warmup` and `final` lie in [0, 1], as do progress and factor.

    Examples
    --------
    >>> factor = cosine(warmup=0.2, final=0.1)
    >>> [round(factor(t), 3) for t in (0.0, 0.1, 0.2, 0.6, 1.0)]
    [0.0, 0.5, 1.0, 0.55, 0.1]
    """
    for name, value in (("warmup", warmup), ("final", final)):
        if not 0 <= value <= 1:
            raise ValueError(f"`{name}` must be a number in [0, 1], got {value!r}")

    def factor(progress: float) -> float:
        if progress < warmup or warmup == 1.0:
            return progress / warmup
        turned = (progress - warmup) / (1.0 - warmup)
        return final + (1.0 - final) * 0.5 * (1.0 + math.cos(math.pi * turned))

    return factor


def train(
    network: Network,
    step: Callable[[Network, Batch], Metrics],
    batches: Batches,
    *,
    fetch: Callable[[Tensor], Batch],
    optimizer: Optimizer,
    schedule: Schedule | None = None,
    max_epochs: int | None = None,
    max_steps: int | None = None,
    clip_norm: float | None = None,
    callbacks: Sequence[Callback] = (),
    stateful: Mapping[str, Stateful] | None = None,
    run_dir: str | Path | None = None,
    log_every: int | None = None,
    checkpoint_every: int | None = None,
    verbose: bool = False,
    description: str = "step",
    fabric: Fabric | None = None,
) -> TrainingState:
    """Train `network` in place.

    Each step calls ``metrics = step(network, fetch(indices))``, which computes the gradients, and then updates with
    `optimizer`.

    Parameters
    ----------
    network : nn.Module
        All trained modules. They are moved to the device of `fabric`.
    step : callable
        ``step(network, batch)`` performs the forward and backward pass, for example with `neuralbayes.backward`, and
        returns metrics: numbers or scalar tensors by name.
    batches : Batches
        The samples of each step.
    fetch : callable
        ``fetch(indices)`` reads the samples at indices of shape (n_in_share,), int64 on the CPU, and may augment them.
        Tensors, also in containers, are then moved to the device.
    optimizer : Optimizer
        Optimiser of the parameters of `network`.
    schedule, max_epochs, max_steps, clip_norm, callbacks, log_every, verbose
        As in :func:`neuralbayes.fit`.
    stateful : mapping of str to objects with state_dict and load_state_dict, optional
        Other objects that the step changes, such as an objective with a running prior; checkpoints contain them.
    run_dir : path, optional
        Folder for metrics.jsonl and checkpoints. If it contains a checkpoint, training continues from there.
    checkpoint_every : int, optional
        Number of steps between checkpoints; by default one epoch. A checkpoint is always written at the end.
    description : str, default="step"
        Name of a step in the progress.
    fabric : lightning_fabric.Fabric, optional
        A launched Fabric with precision "32-true" or "bf16-mixed". Its loggers get every line of metrics. By default,
        all processes started by torchrun, `fabric run` or Slurm, or one on the best device available.

    Returns
    -------
    TrainingState
        Contains the history of the metrics.

    Raises
    ------
    KeyboardInterrupt, SystemExit
        After SIGINT or SIGTERM, once the current step is done and saved. A second signal ends at once.
    Exception
        Any exception of `fetch`, `step` or a callback, with a note about the step. Before the update, a checkpoint of
        the last complete step is written first (with several processes, only for `on_gradients`, where all fail alike).
        After a FloatingPointError or ValueError, bad-batch-RANK.safetensors keeps the indices and samples.

    Notes
    -----
    **Several processes.** Each process takes its share of every batch, which may be empty. `step` must compute the
    gradient of the *global* batch on every process, as `neuralbayes.backward` does: gradients are not averaged. All
    processes start from the weights of rank 0 and use its order of the samples. Metrics are averaged, weighted by the
    shares. Random generators are not seeded: seed each rank differently. If a process ends, the others raise
    ConnectionError as soon as they need it.

    **Resuming.** A run that was interrupted, at any step and any number of times, ends with the same weights and
    metrics.jsonl as an uninterrupted one, bit for bit, on the CPU and with the same number of processes. Learning
    rates, schedule and end come from the arguments, so you can extend a finished run, or continue a diverged one with a
    smaller learning rate.

    Examples
    --------
    >>> x = torch.linspace(-1, 1, 64).reshape(64, 1)
    >>> def step(network, batch):
    ...     loss = (network(batch) - 3 * batch).square().mean()
    ...     loss.backward()
    ...     return {"loss": loss}
    >>> network = nn.Linear(1, 1)
    >>> state = train(
    ...     network, step, Batches(64, 16), fetch=lambda indices: x[indices],
    ...     optimizer=torch.optim.SGD(network.parameters(), lr=0.3), max_epochs=50,
    ... )
    >>> state.step, round(network.weight.item(), 3)
    (200, 3.0)
    """
    if not isinstance(batches, Batches):
        raise TypeError(f"`batches` must be a Batches, got {type(batches).__name__}")
    total_steps = _total_steps(max_epochs, max_steps, len(batches))
    log_every = None if log_every is None else check_integer("log_every", log_every, 1)
    checkpoint_every = check_integer(
        "checkpoint_every", len(batches) if checkpoint_every is None else checkpoint_every, 1
    )
    if clip_norm is not None and not 0 < clip_norm < math.inf:
        raise ValueError(f"`clip_norm` must be a positive number, got {clip_norm!r}")
    parameters = _parameters(network, optimizer)
    fabric = default_fabric() if fabric is None else fabric
    check_fabric(fabric)
    fabric.to_device(network)
    of_ranks = gather(fabric, batches)
    if len({replace(of_rank, seed=0) for of_rank in of_ranks}) > 1:
        raise ValueError(f"`batches` must be the same on every process except for their seed, got {of_ranks}")
    batches = of_ranks[0]
    processes = Processes(None)
    state = TrainingState(network, optimizer, len(batches), total_steps)
    run = Run(state, batches, callbacks, stateful or {}, None if run_dir is None else Path(run_dir), fabric)
    with closing(run), _rates_restored(optimizer) as rates:
        run.resume()
        shown = verbose and fabric.is_global_zero
        with (
            lost_peers_explained(fabric),
            deferred_signals() as received,
            progress(total_steps, description=description, completed=state.step, enabled=shown) as display,
        ):
            asked_to_end = 0  # agreed by all processes, since a signal may reach only one of them
            while not state.finished and not asked_to_end:
                # In the middle of a step, so that neither the first nor the last has rate 0.
                factor = 1.0 if schedule is None else schedule((state.step + 0.5) / total_steps)
                for group, rate in zip(optimizer.param_groups, rates, strict=True):
                    group["lr"] = rate * factor
                indices = batches.indices(state.step)
                part = indices[fabric.global_rank :: fabric.world_size]  # of this process
                before = run.before_step()
                network.train()
                optimizer.zero_grad()
                agreed = fabric.world_size == 1
                batch: Any = None
                try:
                    batch = fabric.to_device(fetch(part))
                    with fabric.autocast():
                        local_metrics = _numbers(step(network, batch), "`step`")
                    metrics = agreed_metrics(fabric, local_metrics, len(part))
                    agreed = True
                    for callback in callbacks:
                        callback.on_gradients(state, metrics)
                except Exception as error:
                    error.add_note(f"in training step {state.step + 1}")
                    if isinstance(error, FloatingPointError | ValueError):
                        run.keep_batch(part, batch)
                    if agreed:  # a single failing process would wait for the others
                        run.save(before)
                    raise
                if clip_norm is not None:
                    torch.nn.utils.clip_grad_norm_(parameters, clip_norm)
                optimizer.step()

                state.step += 1
                run.interval.add(metrics)
                run.epoch.add(metrics)
                for callback in callbacks:
                    callback.on_step_end(state, metrics)
                epoch_ended = state.step % len(batches) == 0
                extra = _end_epoch(run, callbacks, fabric) if epoch_ended else {}
                if epoch_ended or state.finished or (log_every and state.step % log_every == 0):
                    run.log(extra)
                asked_to_end = processes.largest(max(received, default=0), fabric.device)
                if state.finished or asked_to_end or state.step % checkpoint_every == 0:
                    run.save()
                display.advance(samples=len(indices), metrics=metrics)
            if asked_to_end and not received:
                received.append(asked_to_end)
    return state


def _end_epoch(run: Run, callbacks: Sequence[Callback], fabric: Fabric) -> dict[str, float]:
    """Call the callbacks with the means of the epoch, and return the metrics that they add."""
    metrics = run.epoch.compute()
    extra: dict[str, float] = {}
    for callback in callbacks:
        # Use the values of rank 0, so that later callbacks decide the same everywhere.
        added = fabric.broadcast(callback.on_epoch_end(run.state, metrics | extra))
        extra |= {} if added is None else _numbers(added, f"`{type(callback).__name__}.on_epoch_end`")
    run.epoch.clear()
    return extra


def _numbers(metrics: Any, source: str) -> dict[str, float]:
    if not isinstance(metrics, Mapping):
        raise TypeError(f"{source} must return a mapping from names to numbers, got {type(metrics).__name__}")
    numbers: dict[str, float] = {}
    for name, value in metrics.items():
        try:
            numbers[name] = float(value.detach() if isinstance(value, Tensor) else value)
        except (TypeError, ValueError, RuntimeError) as error:
            raise TypeError(f"{source} must return numbers, got {name!r}: {value!r}") from error
    return numbers


def _total_steps(max_epochs: int | None, max_steps: int | None, steps_per_epoch: int) -> int:
    if max_epochs is None and max_steps is None:
        raise ValueError("`max_epochs` or `max_steps` must be given")
    from_epochs = sys.maxsize if max_epochs is None else check_integer("max_epochs", max_epochs, 1) * steps_per_epoch
    return min(from_epochs, sys.maxsize if max_steps is None else check_integer("max_steps", max_steps, 1))


def _parameters(network: nn.Module, optimizer: Optimizer) -> list[nn.Parameter]:
    """The parameters of `optimizer`, which must belong to `network`; others would not be moved or saved."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"`optimizer` must be a torch.optim.Optimizer, got {type(optimizer).__name__}")
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    if not {id(p) for p in parameters} <= {id(p) for p in network.parameters()}:
        raise ValueError("`optimizer` must hold parameters of `network` only, got others too")
    return parameters


@contextmanager
def _rates_restored(optimizer: Optimizer) -> Iterator[list[float]]:
    """Yield the learning rates of the parameter groups, and restore them at the end, so that a run can be extended."""
    rates = [group["lr"] for group in optimizer.param_groups]
    try:
        yield rates
    finally:
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            group["lr"] = rate


@contextmanager
def deferred_signals() -> Iterator[list[int]]:
    """Yield a list of received SIGINT and SIGTERM, and raise KeyboardInterrupt or SystemExit(143) after the block.

    The first signal restores the earlier handlers, so a second one acts at once. Nothing changes outside the main
    thread, where Python allows no handlers, and for signals that the process ignores.
    """
    received: list[int] = []
    earlier: dict[signal.Signals, Any] = {}

    def restore() -> None:
        for signum, handler in earlier.items():
            signal.signal(signum, handler)

    def note(signum: int, frame: FrameType | None) -> None:
        received.append(signum)
        restore()

    if threading.current_thread() is threading.main_thread():
        for signum in (signal.SIGINT, signal.SIGTERM):
            handler = signal.getsignal(signum)
            if handler not in (signal.SIG_IGN, None):  # None: not set by Python, so Python cannot restore it
                earlier[signum] = handler
                signal.signal(signum, note)
    try:
        yield received
    finally:
        restore()
    if signal.SIGINT in received:
        raise KeyboardInterrupt
    if received:
        raise SystemExit(128 + received[0])
