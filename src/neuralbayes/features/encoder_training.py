"""Training an image encoder by any method: settings that all share, one run folder, going on where a run stopped."""

from __future__ import annotations

import copy
import json
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from neuralbayes.data.normalize import Normalization, Per
from neuralbayes.data.sources import Images, ImageSource, as_source
from neuralbayes.distributed.processes import default_fabric, placed, rank_zero_result, share_weights, sum_over_ranks
from neuralbayes.distributed.sharding import any_sharded, gathered
from neuralbayes.features.encoder import WIDTHS, ImageEncoder
from neuralbayes.system.files import read_json, write_json
from neuralbayes.system.limits import peak_memory
from neuralbayes.training import Batches, Callback, EarlyStopping, StopOnNaN, cosine, train
from neuralbayes.training.checks import check_integer
from neuralbayes.training.run_folder import Stateful
from neuralbayes.training.schedule import constant

if TYPE_CHECKING:
    from lightning_fabric import Fabric

Encoder = TypeVar("Encoder", bound=ImageEncoder)
Step = Callable[[nn.Module, Any], Mapping[str, float | Tensor]]


@dataclass(frozen=True)
class TrainingConfig:
    """What every training is told.

    Attributes
    ----------
    batch_size : int
        Samples in an update.
    epochs : int
    patience : int, optional
        End the run after so many epochs without a new best value of what `monitor` names.
    learning_rate, weight_decay : float
        Of Adam.
    schedule : {"constant", "cosine"}
    seed : int
    """

    method: ClassVar[str]
    """The name of what is done with these settings, kept with them in config.json."""
    monitor: ClassVar[tuple[str, Literal["min", "max"]]] = ("loss", "min")
    """The metric of an epoch that tells whether a run still gets better, and whether smaller or larger is better."""

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


@dataclass(frozen=True)
class EncoderConfig(TrainingConfig):
    """What every training of an image encoder is told.

    Attributes
    ----------
    encoder : {"paper", "small", "tiny"}
    normalize : {"dimension", "channel", "whiten"}
        The paper's is "dimension"; see :class:`neuralbayes.data.normalize.Normalization`.
    augment : bool
        Random mirror images and shifts by up to an eighth of the width. The paper uses none.
    batch_size, epochs, patience, learning_rate, weight_decay, schedule, seed
        As in :class:`TrainingConfig`.
    """

    encoder: str = "paper"
    normalize: Per = "dimension"
    augment: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(self, "encoder", tuple(WIDTHS))
        check_choice(self, "normalize", ("dimension", "channel", "whiten"))


def check_choice(config: Any, name: str, known: tuple[Any, ...]) -> None:
    """Raise unless the setting `name` is one of those that are `known`."""
    if getattr(config, name) not in known:
        raise ValueError(f"`{name}` must be one of {', '.join(map(str, known))}, got {getattr(config, name)!r}")


@dataclass
class Learner(Generic[Encoder]):
    """What a method brings to the training of an encoder.

    Attributes
    ----------
    encoder : ImageEncoder
        What is saved and returned.
    network : nn.Module
        All that is trained, the network of the encoder in it.
    step : callable
        As :func:`neuralbayes.training.train` takes it. A batch is the prepared images, (n, C, H, W), or a tuple of
        them and of what `per_image` has for them.
    per_image : Tensor of shape (n_images, ...), optional
        What the step wants to know of each image, such as its label.
    callbacks : sequence of Callback
    stateful : mapping
        What else the step changes.
    finish : callable
        Called on rank 0 with the trained encoder and the folder of the run, or None, before the encoder is saved; what
        it returns joins result.json.
    """

    encoder: Encoder
    network: nn.Module
    step: Step
    per_image: Tensor | None = None
    callbacks: Sequence[Callback] = ()
    stateful: Mapping[str, Stateful] = field(default_factory=dict)
    finish: Callable[[Encoder, Path | None], dict[str, Any]] = lambda encoder, folder: {}


def train_encoder(
    images: Images | ImageSource | NDArray[np.uint8],
    config: EncoderConfig,
    make_learner: Callable[[ImageSource, Normalization], Learner[Encoder]],
    *,
    out: str | Path | None = None,
    callbacks: Sequence[Callback] = (),
    verbose: bool = False,
    fabric: Fabric | None = None,
) -> Encoder:
    """Train an encoder in the way of a method.

    Parameters
    ----------
    images : Images, ImageSource or ndarray of shape (n, H, W, C), uint8
    config : EncoderConfig
    make_learner : callable
        From the images and their normalisation to a :class:`Learner`. It is called with the seed of `config` set, and
        is to make the encoder first: then every method starts from the same weights.
    out : str or Path, optional
        Folder of the run: config.json, metrics.jsonl, checkpoints, result.json and the encoder. A run that was
        interrupted goes on where it was, with the same weights at the end as if it had not been.
    callbacks : sequence of Callback
    verbose : bool, default=False
    fabric : lightning_fabric.Fabric, optional
        Launched; by default all processes that a launcher has started, or one.

    Returns
    -------
    ImageEncoder
        In evaluation mode.
    """
    source = as_source(images)
    folder = None if out is None else Path(out)
    fabric = default_fabric() if fabric is None else fabric
    with seeded_globally(config.seed):
        learner = make_learner(source, _normalization(source, config.normalize, fabric, verbose))
        whole = copy.deepcopy(learner.encoder)
        learner.network = placed(fabric, learner.network)
        if fabric.world_size > 1:
            _seed(int(np.random.SeedSequence([config.seed, fabric.global_rank]).generate_state(1)[0]))

        def fetch(indices: Tensor) -> Tensor | tuple[Tensor, Tensor]:
            batch = source.read(indices.numpy())
            x = learner.encoder.prepare(_augmented(batch) if config.augment else batch)
            return x if learner.per_image is None else (x, learner.per_image[indices])

        result = train_in_folder(
            learner.network,
            learner.step,
            fetch,
            len(source),
            config,
            folder,
            callbacks=(*learner.callbacks, *callbacks),
            stateful=learner.stateful,
            verbose=verbose,
            fabric=fabric,
        )
        encoder = learner.encoder
        if any_sharded(encoder):
            whole.load_state_dict(gathered(encoder.state_dict()))
            encoder = whole
        encoder.eval()
        result |= rank_zero_result(fabric, lambda: learner.finish(encoder, folder))
        share_weights(fabric, encoder)  # `finish` may have chosen others than those of the last step
    if folder is not None and fabric.is_global_zero:
        encoder.save(folder)
        write_json(folder / "result.json", result)
    return encoder


def _normalization(source: ImageSource, per: Per, fabric: Fabric, verbose: bool) -> Normalization:
    """That of all images, of which each process reads a share."""
    fitted = Normalization.fit(
        source,
        per=per,
        progress=verbose and fabric.is_global_zero,
        share=(fabric.global_rank, fabric.world_size),
        total=lambda sums: sum_over_ranks(fabric, sums),
    )
    return fabric.broadcast(fitted)  # one for all, to the last bit


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
    verbose: bool = False,
    samples: str = "images",
    fabric: Fabric | None = None,
) -> dict[str, Any]:
    """Train as `config` says, in the folder of a run that has no other config, and tell how it went.

    The parameters are those of :func:`neuralbayes.training.train`; `samples` is what they are called in the result.
    """
    fabric = default_fabric() if fabric is None else fabric
    if folder is not None:  # now that all settings and the samples have proved to be good
        rank_zero_result(fabric, lambda: open_run(folder, config))
    clock = _Clock()
    metric, mode = config.monitor
    stopping = () if config.patience is None else (EarlyStopping(metric, patience=config.patience, mode=mode),)
    size = config.batch_size
    state = train(
        network,
        step,
        # One sample alone has no statistics and no other to be told from.
        Batches(n_samples, size, seed=config.seed, drop_last=n_samples > size and n_samples % size == 1),
        fetch=fetch,
        optimizer=torch.optim.Adam(network.parameters(), lr=config.learning_rate, weight_decay=config.weight_decay),
        schedule=cosine(warmup=0.02) if config.schedule == "cosine" else constant,
        max_epochs=config.epochs,
        callbacks=(StopOnNaN(), clock, *callbacks, *stopping),
        stateful=stateful,
        run_dir=folder,
        log_every=20,
        verbose=verbose,
        fabric=fabric,
    )
    seen = state.epoch * n_samples + state.step % state.steps_per_epoch * size
    return {
        **description(config),
        samples: n_samples,
        "processes": fabric.world_size,
        "steps": state.step,
        "ended": "early stop" if state.step < state.total_steps else "epochs",
        "stop_reason": state.stop_reason,
        "seconds": round(clock.seconds, 1),
        f"{samples}_per_second": round(seen / max(clock.seconds, 1e-3), 1),
        "metrics": state.history[-1] if state.history else {},
    }


def description(config: Any) -> dict[str, Any]:
    """What result.json says of any run: its settings, the memory it took and the versions it ran with."""
    return {
        "method": config.method,
        "config": asdict(config),
        **peak_memory(),
        "versions": {"neuralbayes": version("neuralbayes"), "torch": torch.__version__},
    }


def open_run(folder: Path, config: Any) -> None:
    """Write config.json, or raise if the folder holds a run of another config."""
    path = folder / "config.json"
    wanted = json.loads(json.dumps({"method": config.method} | asdict(config)))
    if path.is_file():
        there = read_json(path)
        if there != wanted:
            known = there if isinstance(there, dict) else {}
            changed = sorted(k for k in wanted | known if known.get(k) != wanted.get(k))
            raise ValueError(
                f"`out` holds a run with another config (other: {', '.join(changed)}); take another folder"
            )
    else:
        write_json(path, wanted)


@contextmanager
def seeded_globally(seed: int) -> Iterator[None]:
    """Draw from `seed` inside, for what takes the global generators, and leave them as they were."""
    earlier = np.random.get_state(), random.getstate()  # noqa: NPY002
    with torch.random.fork_rng():
        _seed(seed)
        try:
            yield
        finally:
            np.random.set_state(earlier[0])  # noqa: NPY002
            random.setstate(earlier[1])  # resuming sets it


def _seed(seed: int) -> None:
    torch.manual_seed(seed)
    np.random.seed(seed)  # noqa: NPY002  augmentation draws from it; a checkpoint holds its state


class _Clock(Callback):
    """Seconds of training, over all sittings of a run that was interrupted."""

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


def _augmented(batch: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Mirror half of the images and shift each by up to an eighth of its width, edges repeated."""
    n, height, width, _ = batch.shape
    reach = width // 8
    padded = np.pad(batch, ((0, 0), (reach, reach), (reach, reach), (0, 0)), mode="edge")
    mirrored = np.random.randint(0, 2, (n,))  # noqa: NPY002
    shifts = np.random.randint(0, 2 * reach + 1, (n, 2))  # noqa: NPY002
    out = np.empty_like(batch)
    for i, (dy, dx) in enumerate(shifts.tolist()):
        image = padded[i, dy : dy + height, dx : dx + width]
        out[i] = image[:, ::-1] if mirrored[i] else image
    return out
