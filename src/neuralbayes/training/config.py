"""Settings of a training, as recorded in config.json, and training with them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from neuralbayes.distributed import default_fabric, rank_zero_result
from neuralbayes.system.files import read_json, write_json
from neuralbayes.system.limits import peak_memory
from neuralbayes.training.batches import batches_for
from neuralbayes.training.callbacks import Callback, EarlyStopping, StopOnNaN
from neuralbayes.training.checks import check_integer
from neuralbayes.training.loop import train
from neuralbayes.training.run_folder import Stateful
from neuralbayes.training.schedule import Schedule, constant, cosine

if TYPE_CHECKING:
    from lightning_fabric import Fabric

Step = Callable[[nn.Module, Any], Mapping[str, float | Tensor]]


@dataclass(frozen=True)
class TrainingConfig:
    """Settings of every training.

    Attributes
    ----------
    batch_size : int
        Samples per update.
    epochs : int
    patience : int, optional
        Stop after this many epochs without a new best value of `monitor`.
    learning_rate, weight_decay : float
        Settings of Adam.
    schedule : {"constant", "cosine"}
    seed : int
    """

    method: ClassVar[str]
    """Name of the method, recorded in config.json."""
    monitor: ClassVar[tuple[str, Literal["min", "max"]]] = ("loss", "min")
    """The metric for early stopping, and whether smaller or larger is better."""

    batch_size: int
    epochs: int = 100
    patience: int | None = None
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    schedule: Literal["constant", "cosine"] = "constant"
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("batch_size", "epochs"):
            if getattr(self, name) < 1:
                raise ValueError(f"`{name}` must be at least 1, got {getattr(self, name)!r}")
        if self.patience is not None:
            check_integer("patience", self.patience, 1)
        if not self.learning_rate > 0:
            raise ValueError(f"`learning_rate` must be positive, got {self.learning_rate!r}")
        check_choice(self, "schedule", ("constant", "cosine"))

    def make_optimizer(self, parameters: Iterable[nn.Parameter]) -> Optimizer:
        """Adam for these parameters."""
        return torch.optim.Adam(parameters, lr=self.learning_rate, weight_decay=self.weight_decay)

    def make_schedule(self) -> Schedule:
        """The schedule of the learning rate."""
        return cosine(warmup=0.02) if self.schedule == "cosine" else constant

    def make_stopping(self) -> list[Callback]:
        """Callbacks for early stopping, if `patience` is set."""
        metric, mode = self.monitor
        return [] if self.patience is None else [EarlyStopping(metric, patience=self.patience, mode=mode)]


def check_choice(config: Any, name: str, known: tuple[Any, ...]) -> None:
    """Raise unless the setting `name` has one of the `known` values."""
    if getattr(config, name) not in known:
        raise ValueError(f"`{name}` must be one of {', '.join(map(str, known))}, got {getattr(config, name)!r}")


def train_in_folder(
    network: nn.Module,
    step: Step,
    fetch: Callable[[Tensor], Any],
    n_samples: int,
    config: TrainingConfig,
    folder: Path | None,
    *,
    callbacks: Sequence[Callback] = (),
    stateful: Mapping[str, Stateful] | None = None,
    recorded: Mapping[str, Any] | None = None,
    verbose: bool = False,
    samples: str = "images",
    fabric: Fabric | None = None,
) -> dict[str, Any]:
    """Train with `config` and return the content of result.json. The run folder must not have another config.

    Parameters are those of :func:`neuralbayes.training.train`; `samples` is the name of the samples in the result, and
    `recorded` contains additional entries of config.json.
    """
    settings = asdict(config) | dict(recorded or {})
    fabric = default_fabric() if fabric is None else fabric
    if folder is not None:  # only after all settings and samples have been checked
        rank_zero_result(fabric, lambda: open_run(folder, config.method, settings))
    clock = _Clock()
    state = train(
        network,
        step,
        batches_for(n_samples, config.batch_size, seed=config.seed),
        fetch=fetch,
        optimizer=config.make_optimizer(network.parameters()),
        schedule=config.make_schedule(),
        max_epochs=config.epochs,
        callbacks=(StopOnNaN(), clock, *callbacks, *config.make_stopping()),
        stateful=stateful,
        run_dir=folder,
        log_every=20,
        verbose=verbose,
        fabric=fabric,
    )
    seen = state.epoch * n_samples + state.step % state.steps_per_epoch * config.batch_size
    return {
        **description(config.method, settings),
        samples: n_samples,
        "processes": fabric.world_size,
        "steps": state.step,
        "ended": "early stop" if state.step < state.total_steps else "epochs",
        "stop_reason": state.stop_reason,
        "seconds": round(clock.seconds, 1),
        f"{samples}_per_second": round(seen / max(clock.seconds, 1e-3), 1),
        "metrics": state.history[-1] if state.history else {},
    }


def description(method: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Common entries of result.json: settings, memory and versions."""
    return {
        "method": method,
        "config": dict(settings),
        **peak_memory(),
        "versions": {"neuralbayes": version("neuralbayes"), "torch": torch.__version__},
    }


def open_run(folder: Path, method: str, settings: Mapping[str, Any]) -> None:
    """Write config.json, or raise if the folder contains a run with another method or other settings."""
    path = folder / "config.json"
    wanted = json.loads(json.dumps({"method": method} | dict(settings)))
    if path.is_file():
        there = read_json(path)
        if there != wanted:
            known = there if isinstance(there, dict) else {}
            changed = sorted(k for k in wanted | known if known.get(k) != wanted.get(k))
            raise ValueError(
                f"`out` holds a run with another config (different: {', '.join(changed)}); choose another folder"
            )
    else:
        write_json(path, wanted)


class _Clock(Callback):
    """Seconds of training, including those before an interruption."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._last = time.perf_counter()

    def on_step_end(self, state: Any, metrics: Any) -> None:
        now = time.perf_counter()
        self.seconds += now - self._last
        self._last = now

    def state_dict(self) -> dict[str, Any]:
        return {"seconds": self.seconds}

    def load_state_dict(self, state: Any) -> None:
        self.seconds, self._last = state["seconds"], time.perf_counter()
