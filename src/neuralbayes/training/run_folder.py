"""The folder of a run: resume, log and save.

Content of a run folder, in the order of writing, with the module that writes it:

==================================== ========================================================= =======================
config.json                          method and settings; a run with others is refused         here
data.json                            which images `neuralbayes pretrain` read                  cli/runs.py
.lock                                held by the process that trains in the folder             here
metrics.jsonl                        a line of metrics for every epoch, or more often          here
checkpoints/step-N-DIGEST.pt         the last two, from which a run goes on                    training/checkpoint.py
bad-batch-RANK.safetensors           the samples at which a step failed                        here
encoder.json, encoder.safetensors    the trained encoder; `ImageEncoder.load` reads them       features/encoder.py
result.json                          how it went: settings, time, memory, versions, warnings   features/pretraining.py
features/, probe-*.json              features of `neuralbayes probe`, and its results          cli/probe.py
report.html                          the page of `neuralbayes report`                          report/run.py
==================================== ========================================================= =======================

:func:`neuralbayes.fit` writes config.json, metrics.jsonl and checkpoints alone.
"""

from __future__ import annotations

import copy
import errno
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from filelock import FileLock, Timeout
from torch import Tensor, nn
from torch.utils._pytree import keystr, tree_flatten_with_path

from neuralbayes.distributed import gather, rank_zero_result, share_weights
from neuralbayes.system.files import (
    atomic_write,
    inside,
    named_errors,
    read_bounded,
    read_json,
    remove_temporaries,
    write_json,
    write_tensors,
)
from neuralbayes.training.batches import Batches
from neuralbayes.training.callbacks import Callback, TrainingState
from neuralbayes.training.checkpoint import FOLDER, get_rng_state, load_checkpoint, save_checkpoint, set_rng_state

if TYPE_CHECKING:
    from lightning_fabric import Fabric

METRICS_FILE = "metrics.jsonl"
LOCK_FILE = ".lock"
RESERVED = ("step", "epoch", "lr")


class Means(dict[str, tuple[float, int]]):
    """Sums and counts of metrics by name. A metric need not be present in every step."""

    def add(self, metrics: Mapping[str, float]) -> None:
        for name, value in metrics.items():
            total, count = self.get(name, (0.0, 0))
            self[name] = (total + value, count + 1)

    def compute(self) -> dict[str, float]:
        return {name: total / count for name, (total, count) in self.items()}


class Stateful(Protocol):
    """Any object with `state_dict` and `load_state_dict`."""

    def state_dict(self) -> Mapping[str, Any]: ...

    def load_state_dict(self, state_dict: Mapping[str, Any], /) -> Any: ...


class Run:
    """One run of training. Every process calls every method; only rank 0 accesses the folder."""

    def __init__(
        self,
        state: TrainingState,
        batches: Batches,
        callbacks: Sequence[Callback],
        stateful: Mapping[str, Stateful],
        folder: Path | None,
        fabric: Fabric,
    ) -> None:
        self.state = state
        self.interval = Means()  # since the last line of metrics
        self.epoch = Means()  # since the last epoch's end
        self._batches = asdict(batches)
        self._callbacks = _named(callbacks)
        self._stateful = stateful
        self._folder = folder
        self._lock: FileLock | None = None
        self._fabric = fabric

    def close(self) -> None:
        """Release the lock of the folder."""
        if self._lock is not None:
            self._lock.release()

    def resume(self) -> None:
        """Resume from the newest checkpoint of the folder; without one, all processes start from the same network."""
        saved: dict[str, Any] | None = None
        if self._folder is not None:
            saved, self.state.history = rank_zero_result(self._fabric, self._open_folder)
        if saved is None:
            share_weights(self._fabric, self.state.network)
        else:
            self._load(saved)
        for item in self._stateful.values():
            if isinstance(item, nn.Module):  # after loading, which may create buffers on the CPU
                self._fabric.to_device(item)

    def log(self, extra: Mapping[str, float]) -> None:
        """Write a line: the means since the last one, and `extra`."""
        state = self.state
        metrics = self.interval.compute() | dict(extra)
        for name in RESERVED:
            if name in metrics:
                raise ValueError(f"a metric must not be named {name!r}: each line of {METRICS_FILE} has one")
        lr = float(state.optimizer.param_groups[0]["lr"])
        record = {"step": state.step, "epoch": state.epoch, "lr": lr} | metrics
        state.history.append(record)
        self.interval.clear()
        if self._folder is not None and self._fabric.is_global_zero:
            write_metrics(self._folder / METRICS_FILE, record)
        if self._fabric.loggers:
            self._fabric.log_dict(record, step=state.step)

    def before_step(self) -> dict[str, Any] | None:
        """A copy of all that a forward pass changes, for a checkpoint without the step; None without a folder."""
        return None if self._folder is None else copy.deepcopy(self._changed_by_forward())

    def save(self, before_step: Mapping[str, Any] | None = None) -> None:
        """Write a checkpoint; with the result of `before_step`, one without the unfinished step."""
        if self._folder is None:
            return
        now = before_step or self._changed_by_forward()
        rng = gather(self._fabric, now["rng"])
        state = self.state
        if not self._fabric.is_global_zero:
            return
        metrics = inside(self._folder, METRICS_FILE)
        with named_errors(metrics), open(metrics, "a", encoding="utf-8") as file:
            os.fsync(file.fileno())  # before the checkpoint that relies on its lines
        content = {
            "step": state.step,
            "stop_reason": state.stop_reason,
            "batches": self._batches,
            "network": state.network.state_dict() | now["network"],
            "optimizer": state.optimizer.state_dict(),
            "stateful": now["stateful"],
            "callbacks": {name: callback.state_dict() for name, callback in self._callbacks.items()},
            "interval": dict(self.interval),
            "epoch": dict(self.epoch),
            "rng": rng,
        }
        save_checkpoint(self._folder, state.step, content)

    def keep_batch(self, indices: Tensor, batch: Any) -> None:
        """Write the samples of a failed step for inspection; each process writes its own."""
        if self._folder is None:
            return
        leaves, _ = tree_flatten_with_path(batch)
        tensors = {f"batch{keystr(path)}": leaf for path, leaf in leaves if isinstance(leaf, Tensor)}
        path = self._folder / f"bad-batch-{self._fabric.global_rank}.safetensors"
        write_tensors(path, {"indices": indices} | tensors, {"step": str(self.state.step + 1)})

    def _open_folder(self) -> tuple[dict[str, Any] | None, list[dict[str, float]]]:
        """On rank 0: read the newest checkpoint and the metrics up to it, and check that the folder is writable."""
        folder = self._folder or Path()
        checkpoints, lock, metrics = (inside(folder, name) for name in (FOLDER, LOCK_FILE, METRICS_FILE))
        try:
            checkpoints.mkdir(parents=True, exist_ok=True)
            self._lock = FileLock(lock, timeout=0)  # the system releases it if the process dies
            self._lock.acquire()
            for place in (folder, checkpoints):
                remove_temporaries(place)
            saved = load_checkpoint(folder)
            if saved is not None and type(saved.get("step")) is not int:
                raise ValueError(f"the checkpoint in {folder} does not hold the state of a run")
            # Without a checkpoint, the run and its metrics start again.
            return saved, cut_metrics(metrics, saved["step"] if saved else 0)
        except Timeout as error:
            raise BlockingIOError(
                f"`run_dir` must be a folder that no other process trains in, got {folder}, where one does right now: "
                "wait until it ends, or choose another folder"
            ) from error
        except OSError as error:
            if error.errno == errno.ELOOP:  # which names the link
                raise
            reason = f"`run_dir` must be a folder that can be written, but it cannot ({error.strerror or error})"
            raise OSError(error.errno, reason, str(folder)) from error

    def _load(self, saved: Mapping[str, Any]) -> None:
        state = self.state
        if saved.get("batches") != self._batches:
            raise ValueError(
                f"`batches` must be the same as at the start of the run in {self._folder}, {saved.get('batches')}, "
                f"got {self._batches}; another run needs another `run_dir`"
            )
        try:
            for name, _ in state.network.named_parameters(remove_duplicate=False):
                if name in saved["network"] and saved["network"][name].isnan().any():
                    raise ValueError(f"the weights {name!r} hold NaN")
            state.network.load_state_dict(saved["network"])
            state.optimizer.load_state_dict(saved["optimizer"])
            for name, item in self._stateful.items():
                item.load_state_dict(saved["stateful"][name])
            for name, callback in self._callbacks.items():
                if saved["callbacks"].get(name):  # new callbacks start afresh
                    callback.load_state_dict(saved["callbacks"][name])
            state.step, state.stop_reason = saved["step"], saved["stop_reason"]
            self.interval.update(saved["interval"])
            self.epoch.update(saved["epoch"])
            if self._fabric.global_rank < len(saved["rng"]):  # an additional process keeps its own
                set_rng_state(saved["rng"][self._fabric.global_rank], self._fabric.device)
        except (RuntimeError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(
                f"the checkpoint in {self._folder} does not fit `network`, `optimizer`, `stateful` or `callbacks`: "
                f"{error}; another run needs another `run_dir`"
            ) from error

    def _changed_by_forward(self) -> dict[str, Any]:
        """Buffers of the network, stateful objects and random states: everything that the optimiser does not change."""
        weights = dict(self.state.network.named_parameters(remove_duplicate=False))
        return {
            "network": {k: v for k, v in self.state.network.state_dict().items() if k not in weights},
            "stateful": {name: item.state_dict() for name, item in self._stateful.items()},
            "rng": get_rng_state(self._fabric.device),
        }


def _named(callbacks: Sequence[Callback]) -> dict[str, Callback]:
    """Callbacks by class name, numbered if there are several of one class."""
    named: dict[str, Callback] = {}
    for callback in callbacks:
        name = type(callback).__name__
        same = sum(type(other).__name__ == name for other in named.values())
        named[f"{name}-{same}" if same else name] = callback
    return named


def open_run(folder: Path, method: str, settings: Mapping[str, Any]) -> None:
    """Write config.json, or raise if the folder contains a run with another method or other settings."""
    path = folder / "config.json"
    wanted = json.loads(json.dumps({"method": method} | dict(settings)))
    if not path.is_file():
        write_json(path, wanted)
        return
    there = read_json(path)
    if there != wanted:
        known = there if isinstance(there, dict) else {}
        changed = sorted(k for k in wanted | known if known.get(k) != wanted.get(k))
        raise ValueError(
            f"`out` holds a run with another config (different: {', '.join(changed)}); choose another folder"
        )


def write_metrics(path: Path, record: Mapping[str, float]) -> None:
    """Append a line: ``step`` (updates), ``epoch`` (completed epochs), ``lr`` and the metrics.

    Values that are not finite are written as null, because JSON has no NaN.
    """
    with named_errors(path), open(inside(path.parent, path.name), "a", encoding="utf-8") as file:
        file.write(_line(record))


def cut_metrics(path: Path, step: int) -> list[dict[str, float]]:
    """Drop the lines written after `step`, and return the remaining ones."""
    records = [record for record in read_metrics(path) if record["step"] <= step]
    with atomic_write(inside(path.parent, path.name)) as temporary:
        temporary.write_text("".join(map(_line, records)), encoding="utf-8")
    return records


def read_metrics(path: str | Path) -> list[dict[str, float]]:
    """Read a metrics.jsonl: one dictionary per line, with null as NaN.

    A last line that a crash has truncated is ignored. Any other damaged line raises a ValueError that names it, as does
    a file larger than 64 MB. A missing file has no lines.

    Examples
    --------
    >>> with open("metrics.jsonl", "w") as file:
    ...     print('{"step": 20, "loss": 3.5}', '{"step": 40, "loss": null}', sep="\\n", file=file)
    >>> read_metrics("metrics.jsonl")
    [{'step': 20, 'loss': 3.5}, {'step': 40, 'loss': nan}]
    """
    path = Path(path)
    if not path.exists():
        return []
    lines = read_bounded(path).decode("utf-8", errors="replace").splitlines()
    records: list[dict[str, float]] = []
    for number, line in enumerate(lines, start=1):
        try:
            values = json.loads(line)
            if not isinstance(values, dict) or not isinstance(values.get("step"), int):
                raise ValueError("not an object with a step")
            for value in values.values():
                if not isinstance(value, float | None) and not (isinstance(value, int) and abs(value) < 2**63):
                    raise ValueError("a value that is not a number")
        except (ValueError, RecursionError) as error:
            if number == len(lines):
                break
            raise ValueError(f"{path}, line {number} is not a line of metrics ({error})") from error
        records.append({name: math.nan if value is None else value for name, value in values.items()})
    return records


def _line(record: Mapping[str, float]) -> str:
    return json.dumps({name: value if math.isfinite(value) else None for name, value in record.items()}) + "\n"
