"""Unsupervised image features: an objective on all hidden states of an encoder (section 3, appendix B)."""

from __future__ import annotations

import copy
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from neuralbayes.bayes import mutual_information, posterior, prior
from neuralbayes.data.images import as_source
from neuralbayes.data.normalize import Normalization, Per
from neuralbayes.distributed import default_fabric, noise_of_rank, rank_zero_result, seeded_globally
from neuralbayes.features.encoder import STATES, WIDTHS, ImageEncoder, is_dead, state_use
from neuralbayes.gradients.exact import Marginal, backward
from neuralbayes.networks.hidden import HiddenStates
from neuralbayes.objectives import MIM, Objective, Smoothness, WeightedSum
from neuralbayes.objectives.base import described
from neuralbayes.system.files import write_json
from neuralbayes.training.batches import batches_for, check_integer
from neuralbayes.training.callbacks import Callback, StopOnNaN, TrainingState, WarnOnCollapse
from neuralbayes.training.loop import cosine, train
from neuralbayes.training.run_folder import open_run

if TYPE_CHECKING:
    from lightning_fabric import Fabric

WATCHED = 256  # images for measuring information and dead states during training
ADVICE = "Try a larger alpha, a smaller beta or a smaller learning rate, and check that the images differ."

CHOICES: dict[str, tuple[Any, ...]] = {
    "encoder": tuple(WIDTHS),
    "version": (1, 2),
    "marginal": ("minibatch", "running", "exact"),
    "schedule": ("constant", "cosine"),
    "normalize": ("dimension", "channel", "whiten"),
}


@dataclass(frozen=True)
class PretrainConfig:
    """Settings of a run. The defaults are those of the final table of the paper (section 5.1.2).

    Attributes
    ----------
    encoder : {"paper", "small", "tiny"}
    alpha : float
        Weight of the prior term of MIM; not used with another objective.
    beta : float
        Weight of R_c.
    version : {1, 2}
        Version of MIM; not used with another objective.
    scales : tuple of int
        Average pooling sizes of the hidden states.
    smooth_fraction : float
        Share of each micro-batch on which R_c is computed.
    batch_size, microbatch_size : int
        Images per update, and per pass through the network, over all processes.
    marginal : {"minibatch", "running", "exact"}
        How p(z) is computed; the paper uses "minibatch".
    recompute : bool
        Use less memory and more time; see :func:`neuralbayes.backward`.
    epochs : int
    learning_rate, weight_decay : float
        Settings of Adam.
    schedule : {"constant", "cosine"}
    normalize : {"dimension", "channel", "whiten"}
        The paper uses "dimension"; see ``neuralbayes.data.normalize.Normalization``.
    augment : bool
        Flip images at random and shift them by up to an eighth of the width. The paper does not.
    seed : int
    """

    encoder: str = "paper"
    alpha: float = 2.0
    beta: float = 4.0
    version: Literal[1, 2] = 2
    scales: tuple[int, ...] = (1, 2)
    smooth_fraction: float = 1.0
    batch_size: int = 4000
    microbatch_size: int = 500
    marginal: Marginal = "minibatch"
    recompute: bool = True
    epochs: int = 100
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    schedule: Literal["constant", "cosine"] = "constant"
    normalize: Per = "dimension"
    augment: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        for name, known in CHOICES.items():
            if getattr(self, name) not in known:
                raise ValueError(f"`{name}` must be one of {', '.join(map(str, known))}, got {getattr(self, name)!r}")
        for name in ("batch_size", "microbatch_size", "epochs"):
            check_integer(name, getattr(self, name), 1)
        if not self.learning_rate > 0:
            raise ValueError(f"`learning_rate` must be positive, got {self.learning_rate!r}")
        object.__setattr__(self, "scales", tuple(self.scales))


PRESETS = {
    "paper": PretrainConfig(),
    # Selected on held-out training images of CIFAR-10, with one short run per setting: whitening made a large
    # difference, the learning rate a small one, a running p(z) hardly any. docs/images.md lists all settings.
    "laptop": PretrainConfig(
        encoder="small",
        normalize="whiten",
        beta=0.5,
        smooth_fraction=0.25,
        batch_size=100,
        microbatch_size=100,
        marginal="running",
        recompute=False,
        epochs=12,
        learning_rate=1e-2,
        schedule="cosine",
    ),
}


def pretrain(
    images: Any,
    config: PretrainConfig | str = "laptop",
    *,
    epochs: int | None = None,
    objective: Objective | WeightedSum | None = None,
    out: str | Path | None = None,
    callbacks: Sequence[Callback] = (),
    verbose: bool = False,
    device: str = "auto",
    fabric: Fabric | None = None,
) -> ImageEncoder:
    """Learn features of unlabelled images with an objective on every hidden layer of an encoder.

    Parameters
    ----------
    images : folder, paths, array, tensor, data set or Images
        Anything that :func:`neuralbayes.load_images` accepts, PIL images, a data set of PyTorch or Hugging Face, or a
        loader. At least 22x22 pixels.
    config : PretrainConfig or {"laptop", "paper"}, default="laptop"
    epochs : int, optional
        Passes over the images, instead of those of `config`.
    objective : Objective or WeightedSum, optional
        Objective to minimise. By default MIM with the `alpha` and `version` of `config`, which maximises I(x; z). The
        objective is copied. config.json records its class and plain attributes, and a run cannot continue with another
        objective.
    out : str or Path, optional
        Run folder for config.json, metrics.jsonl, checkpoints, result.json and the encoder. An interrupted run
        continues from its last checkpoint and ends with the same weights as an uninterrupted one.
    callbacks : sequence of Callback
    verbose : bool, default=False
    device : str, default="auto"
        "cpu", "cuda", "cuda:1" or "mps". "auto" uses the best one available.
    fabric : lightning_fabric.Fabric, optional
        A launched Fabric, in place of `device`, for another precision or for loggers. With precision "bf16-mixed",
        `beta` must be 0. By default, all processes started by torchrun, `fabric run` or Slurm, or one. All processes
        call this function with the same arguments, and rank 0 writes the run folder.

    Returns
    -------
    ImageEncoder
        In evaluation mode.

    Notes
    -----
    The result does not depend on the number of processes, except for rounding and the random directions of R_c.

    For each hidden layer, the metrics contain the mutual information in nats on some images (``mi/relu1``) and the
    share of dead states (``dead/relu1``). Collapsed layers are reported by a warning and in result.json.

    Examples
    --------
    >>> import neuralbayes as nb
    >>> images = nb.datasets.load("digits").train.images[:40].repeat(3, axis=1).repeat(3, axis=2)  # of 24x24 pixels
    >>> config = nb.PretrainConfig(encoder="tiny", batch_size=20, microbatch_size=20)
    >>> encoder = nb.pretrain(images, config, epochs=1)  # for a real run: nb.pretrain("photos/", out="run")
    >>> encoder.features(images).shape
    (40, 80)
    """
    if isinstance(config, str):
        if config not in PRESETS:
            raise ValueError(f"`config` must be a PretrainConfig or one of {sorted(PRESETS)}, got {config!r}")
        config = PRESETS[config]
    config = config if epochs is None else replace(config, epochs=epochs)
    fabric = default_fabric(device=device) if fabric is None else fabric
    precision = str(fabric.strategy.precision.precision)
    if precision == "bf16-mixed" and config.beta > 0:
        raise ValueError(
            f"`fabric` must have precision '32-true' if beta is not 0, got 'bf16-mixed' with beta {config.beta!r}: R_c "
            "is a small difference of two passes, which bfloat16 rounds away"
        )
    if objective is not None and not isinstance(objective, Objective | WeightedSum):
        raise TypeError(f"`objective` must be an Objective or a WeightedSum, got {type(objective).__name__}")
    settings = asdict(config) | {"precision": precision}
    settings |= {} if objective is None else {"objective": described(objective)}
    # Copy, so that a running p(z) does not leak into the next run.
    objective = MIM(config.alpha, config.version) if objective is None else copy.deepcopy(objective)
    folder = None if out is None else Path(out)
    source = as_source(images)
    guard = WarnOnCollapse(ADVICE)

    with seeded_globally(config.seed):
        normalization = rank_zero_result(
            fabric, lambda: Normalization.fit(source, per=config.normalize, progress=verbose)
        )
        encoder = ImageEncoder(config.encoder, source.shape, normalization)
        states = HiddenStates(encoder.network, STATES, config.scales)
        fabric.to_device(states)
        watch = _Watch(states, encoder.prepare(source.read(np.arange(min(WATCHED, len(source))))))
        smoothness = Smoothness(config.beta, fraction=config.smooth_fraction)
        microbatch_size = -(-config.microbatch_size // fabric.world_size)

        def fetch(indices: Tensor) -> Tensor:
            batch = source.read(indices.numpy())
            return encoder.prepare(augmented(batch) if config.augment else batch)

        def step(network: nn.Module, batch: Tensor) -> Mapping[str, float | Tensor]:
            options: dict[str, Any] = {"marginal": config.marginal, "recompute": config.recompute}
            options |= {"microbatch_size": microbatch_size, "smoothness": smoothness}
            return {"loss": backward(objective, network, batch, **options), **watch.latest}

        if folder is not None:  # only after all settings and images have been checked
            rank_zero_result(fabric, lambda: open_run(folder, "mim", settings))
        with noise_of_rank(fabric, config.seed):
            state = train(
                states,
                step,
                batches_for(len(source), config.batch_size, seed=config.seed),
                fetch=fetch,
                optimizer=torch.optim.Adam(
                    states.parameters(), lr=config.learning_rate, weight_decay=config.weight_decay
                ),
                schedule=cosine(warmup=0.02) if config.schedule == "cosine" else None,
                max_epochs=config.epochs,
                callbacks=(StopOnNaN(), watch, guard, *callbacks),
                stateful={"objective": objective},
                run_dir=folder,
                log_every=20,
                verbose=verbose,
                fabric=fabric,
            )
        encoder.eval()
        if folder is not None and fabric.is_global_zero:
            use = state_use(encoder, source)
            encoder.save(folder)
            seen = state.epoch * len(source) + state.step % state.steps_per_epoch * config.batch_size
            result = {
                "method": "mim",
                "config": settings,
                **_peak_memory(),
                "versions": {"neuralbayes": version("neuralbayes"), "torch": torch.__version__},
                "images": len(source),
                "processes": fabric.world_size,
                "steps": state.step,
                "ended": "early stop" if state.step < state.total_steps else "epochs",
                "stop_reason": state.stop_reason,
                "seconds": round(watch.seconds, 1),
                "images_per_second": round(seen / max(watch.seconds, 1e-3), 1),
                "metrics": state.history[-1] if state.history else {},
                "layers": {name: layer.to_dict() for name, layer in use.items()},
                "warnings": list(guard.messages.values()),
            }
            write_json(folder / "result.json", result)
    return encoder


def _peak_memory() -> dict[str, int]:
    try:
        import resource
    except ImportError:  # Windows
        return {}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"peak_memory_mb": round(peak / (1024 if sys.platform == "linux" else 1024**2))}


class _Watch(Callback):
    """Seconds of training, and every 20 steps the information and dead states of each hidden state on a few images."""

    def __init__(self, states: HiddenStates, images: Tensor) -> None:
        self.latest: dict[str, float] = {}
        self.seconds = 0.0  # including those before an interruption
        self._last = time.perf_counter()
        self._states = states
        self._images = images

    @torch.no_grad()
    def on_step_end(self, state: TrainingState, metrics: Mapping[str, float]) -> None:
        now = time.perf_counter()
        self.seconds += now - self._last
        self._last = now
        if self.latest and state.step % 20 != 1:
            return
        self._images = self._images.to(next(self._states.parameters()).device)
        outputs = self._states.eval()(self._images)  # the loop puts it back into training mode
        for name in STATES:
            p_zx = posterior(outputs[name])
            self.latest[f"mi/{name}"] = float(mutual_information(p_zx))
            self.latest[f"dead/{name}"] = float(is_dead(prior(p_zx).mean(dim=(1, 2))).float().mean())

    def state_dict(self) -> dict[str, Any]:
        return {"latest": dict(self.latest), "seconds": self.seconds}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.latest, self.seconds = dict(state["latest"]), state["seconds"]
        self._last = time.perf_counter()


def augmented(batch: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Flip half of the images and shift each by up to an eighth of its width, repeating the edges."""
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
