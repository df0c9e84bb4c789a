"""Image features without labels: MIM on all hidden states of an encoder, at several scales (section 3, appendix B)."""

from __future__ import annotations

import json
import random
import resource
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from neuralbayes.bayes import mutual_information, posterior, prior
from neuralbayes.data.images import Images
from neuralbayes.data.normalize import Normalization
from neuralbayes.data.sources import ImageSource, as_source
from neuralbayes.encoder import STATES, WIDTHS, ImageEncoder, is_dead, state_use
from neuralbayes.files import read_json, write_json, write_tensors
from neuralbayes.gradients import Marginal, backward
from neuralbayes.networks.hidden import HiddenStates
from neuralbayes.objectives import MIM, Smoothness
from neuralbayes.training import Batches, Callback, StopOnNaN, cosine, train
from neuralbayes.training.schedule import constant

WATCHED = 256
"""Images on which information and dead states are measured while training."""

CHOICES: dict[str, tuple[Any, ...]] = {
    "encoder": tuple(WIDTHS),
    "version": (1, 2),
    "marginal": ("minibatch", "running", "exact"),
    "schedule": ("constant", "cosine"),
    "normalize": ("dimension", "channel"),
}
"""What the settings that are names may be."""


@dataclass(frozen=True)
class PretrainConfig:
    """What a run does. The defaults are the paper's for its final table (section 5.1.2).

    Attributes
    ----------
    encoder : {"paper", "small", "tiny"}
    alpha, beta : float
        Weights of the prior term and of R_c.
    version : {1, 2}
        Of MIM.
    scales : tuple of int
        Average pooling of the hidden states.
    noise_scale : float
        Standard deviation of R_c's step length.
    smooth_fraction : float
        Share of each micro-batch on which R_c is taken.
    batch_size, microbatch_size : int
        Images in an update, and in a pass through the network.
    marginal : {"minibatch", "running", "exact"}
        Which p(z) the objective sees; the paper's is "minibatch".
    epochs : int
    learning_rate, weight_decay : float
        Of Adam.
    schedule : {"constant", "cosine"}
    normalize : {"dimension", "channel"}
    augment : bool
        Random mirror images and shifts by up to an eighth of the width. The paper uses none.
    seed : int
    """

    encoder: str = "paper"
    alpha: float = 2.0
    beta: float = 4.0
    version: Literal[1, 2] = 2
    scales: tuple[int, ...] = (1, 2)
    noise_scale: float = 0.1
    smooth_fraction: float = 1.0
    batch_size: int = 4000
    microbatch_size: int = 500
    marginal: Marginal = "minibatch"
    epochs: int = 100
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    schedule: Literal["constant", "cosine"] = "constant"
    normalize: Literal["dimension", "channel"] = "dimension"
    augment: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("batch_size", "microbatch_size", "epochs"):
            if getattr(self, name) < 1:
                raise ValueError(f"`{name}` must be at least 1, got {getattr(self, name)!r}")
        if not self.learning_rate > 0:
            raise ValueError(f"`learning_rate` must be positive, got {self.learning_rate!r}")
        for name, known in CHOICES.items():
            if getattr(self, name) not in known:
                choices = ", ".join(map(str, known))
                raise ValueError(f"`{name}` must be one of {choices}, got {getattr(self, name)!r}")


PRESETS = {
    "paper": PretrainConfig(),
    # The paper's beta of 4 is too much for a quarter of its width: in the first steps features get worse, not better.
    "laptop": PretrainConfig(
        encoder="small",
        beta=0.5,
        batch_size=100,
        microbatch_size=100,
        smooth_fraction=0.25,
        epochs=12,
        schedule="cosine",
    ),
}


def pretrain(
    images: Images | ImageSource | NDArray[np.uint8],
    config: PretrainConfig | str = "laptop",
    *,
    out: str | Path | None = None,
    callbacks: Sequence[Callback] = (),
    verbose: bool = False,
) -> ImageEncoder:
    """Learn features of unlabelled images by maximising I(x; z) on every hidden state of an encoder.

    Parameters
    ----------
    images : Images, ImageSource or ndarray of shape (n, H, W, C), uint8
    config : PretrainConfig or {"laptop", "paper"}, default="laptop"
    out : str or Path, optional
        Folder of the run: config.json, metrics.jsonl, checkpoints, result.json and the encoder. A run that was
        interrupted goes on where it was, with the same weights at the end as if it had not been.
    callbacks : sequence of Callback
    verbose : bool, default=False

    Returns
    -------
    ImageEncoder

    Notes
    -----
    The metrics have, for each hidden state, the mutual information in nats on images set aside for watching
    (``mi/relu1``) and the share of its states that have less than a tenth of their share of the mass (``dead/relu1``).
    """
    config = _config(config)
    source = images.source if isinstance(images, Images) else as_source(images)
    folder = None if out is None else Path(out)
    with _seeded_globally(config.seed):
        return _run(source, config, folder, callbacks, verbose)


def _run(
    source: ImageSource, config: PretrainConfig, folder: Path | None, callbacks: Sequence[Callback], verbose: bool
) -> ImageEncoder:
    normalization = Normalization.fit(source, per=config.normalize, progress=verbose)
    encoder = ImageEncoder(config.encoder, source.shape, normalization)
    states = HiddenStates(encoder.network, STATES, config.scales)
    objective = MIM(config.alpha, config.version)
    smoothness = Smoothness(config.beta, scale=config.noise_scale, fraction=config.smooth_fraction)
    clock = _Clock()
    watch = _Watch(states, encoder.prepare(source.read(np.arange(min(WATCHED, len(source))))))

    def fetch(indices: Tensor) -> Tensor:
        batch = source.read(indices.numpy())
        return encoder.prepare(_augmented(batch) if config.augment else batch)

    def step(network: nn.Module, batch: Tensor) -> dict[str, float]:
        size = min(config.microbatch_size, len(batch))
        loss = backward(
            objective, network, batch, microbatch_size=size, marginal=config.marginal, smoothness=smoothness
        )
        return {"loss": float(loss), **watch.latest}

    if folder is not None:  # now that all settings and the images have proved to be good
        _open_run(folder, config)
    parameters = states.parameters()
    state = train(
        states,
        step,
        Batches(len(source), config.batch_size, seed=config.seed),
        fetch=fetch,
        optimizer=torch.optim.Adam(parameters, lr=config.learning_rate, weight_decay=config.weight_decay),
        schedule=cosine(warmup=0.02) if config.schedule == "cosine" else constant,
        max_epochs=config.epochs,
        callbacks=(StopOnNaN(), watch, clock, *callbacks),
        stateful={"objective": objective},
        run_dir=folder,
        log_every=20,
        verbose=verbose,
    )
    encoder.eval()
    if folder is not None:
        encoder.save(folder)
        use = state_use(encoder, source)
        write_tensors(folder / "states.safetensors", {name: layer.p_z for name, layer in use.items()}, {})
        seen = state.epoch * len(source) + state.step % state.steps_per_epoch * config.batch_size
        result = {
            "config": asdict(config),
            "images": len(source),
            "steps": state.step,
            "seconds": round(clock.seconds, 1),
            "images_per_second": round(seen / max(clock.seconds, 1e-3), 1),
            "layers": {name: layer.to_dict() for name, layer in use.items()},
            "peak_memory_mb": round(_peak_memory_mb()),
            "metrics": state.history[-1] if state.history else {},
            "versions": {"neuralbayes": version("neuralbayes"), "torch": torch.__version__},
        }
        write_json(folder / "result.json", result)
    return encoder


class _Watch(Callback):
    """Information and dead states of each hidden state on a few images, every 20 steps."""

    def __init__(self, states: HiddenStates, images: Tensor) -> None:
        self.latest: dict[str, float] = {}
        self._states = states
        self._images = images

    def on_step_end(self, state: Any, metrics: Any) -> None:
        if state.step % 20 == 1 or not self.latest:
            self.measure()

    def state_dict(self) -> dict[str, Any]:
        return dict(self.latest)

    def load_state_dict(self, state: Any) -> None:
        self.latest = dict(state)

    @torch.no_grad()
    def measure(self) -> None:
        training = self._states.training
        self._states.eval()
        self._images = self._images.to(next(self._states.parameters()).device)
        outputs = self._states(self._images)
        self._states.train(training)
        for name in STATES:
            p_zx = posterior(outputs[name])
            self.latest[f"mi/{name}"] = float(mutual_information(p_zx))
            self.latest[f"dead/{name}"] = float(is_dead(prior(p_zx).mean(dim=(1, 2))).float().mean())


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


@contextmanager
def _seeded_globally(seed: int) -> Iterator[None]:
    """Draw from `seed` inside, for what takes the global generators, and leave them as they were."""
    earlier = np.random.get_state(), random.getstate()  # noqa: NPY002
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        np.random.seed(seed)  # noqa: NPY002  augmentation draws from it; a checkpoint holds its state
        try:
            yield
        finally:
            np.random.set_state(earlier[0])  # noqa: NPY002
            random.setstate(earlier[1])  # resuming sets it


def _config(config: PretrainConfig | str) -> PretrainConfig:
    if isinstance(config, PretrainConfig):
        return replace(config, scales=tuple(config.scales))
    if config not in PRESETS:
        raise ValueError(f"`config` must be a PretrainConfig or one of {sorted(PRESETS)}, got {config!r}")
    return PRESETS[config]


def _open_run(folder: Path, config: PretrainConfig) -> None:
    """Write config.json, or raise if the folder holds a run of another config."""
    path = folder / "config.json"
    wanted = json.loads(json.dumps(asdict(config)))
    if path.is_file():
        there = read_json(path)
        if there != wanted:
            changed = sorted(k for k in wanted if not isinstance(there, dict) or there.get(k) != wanted[k])
            raise ValueError(
                f"`out` holds a run with another config (other: {', '.join(changed)}); take another folder"
            )
    else:
        write_json(path, wanted)


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


def _peak_memory_mb() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1024 if sys.platform == "linux" else peak / 1024**2
