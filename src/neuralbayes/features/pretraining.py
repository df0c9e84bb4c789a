"""Unsupervised image features: an objective on all hidden states of an encoder (section 3, appendix B)."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor, nn

from neuralbayes.bayes import mutual_information, posterior, prior
from neuralbayes.data.normalize import Normalization
from neuralbayes.data.sources import ImageSource
from neuralbayes.distributed import default_fabric, rank_zero_result
from neuralbayes.features.encoder import STATES, ImageEncoder, is_dead, state_use
from neuralbayes.features.encoder_training import EncoderConfig, Learner, train_encoder
from neuralbayes.fitting import objective_step
from neuralbayes.gradients.exact import Marginal
from neuralbayes.networks.hidden import HiddenStates
from neuralbayes.objectives import MIM, Objective, Smoothness, WeightedSum
from neuralbayes.objectives.description import described
from neuralbayes.system.files import read_json, write_tensors
from neuralbayes.training import Callback, WarnOnCollapse
from neuralbayes.training.config import check_choice
from neuralbayes.training.inference import evaluation_mode
from neuralbayes.training.precision import InBfloat16, Precision, choose_precision

if TYPE_CHECKING:
    from lightning_fabric import Fabric

WATCHED = 256
"""Images for measuring information and dead states during training."""

ADVICE = "Try a larger alpha, a smaller beta or a smaller learning rate, and check that the images differ."
"""Hint for a collapsed layer."""


@dataclass(frozen=True)
class PretrainConfig(EncoderConfig):
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
    noise_scale : float
        Standard deviation of the step length of R_c.
    smooth_fraction : float
        Share of each micro-batch on which R_c is computed.
    batch_size, microbatch_size : int
        Images per update, and per pass through the network, over all processes.
    marginal : {"minibatch", "running", "exact"}
        How p(z) is computed; the paper uses "minibatch".
    recompute : bool
        Use less memory and a little more time; see :func:`neuralbayes.backward`.
    epochs : int
    patience : int, optional
        Stop after this many epochs without improvement of the loss, which includes R_c and is averaged over an epoch.
    learning_rate, weight_decay : float
        Settings of Adam.
    schedule : {"constant", "cosine"}
    normalize : {"dimension", "channel", "whiten"}
    augment : bool
        Flip images at random and shift them by up to an eighth of the width. The paper does not.
    precision : {"float32", "bfloat16", "auto"}
        Precision of the network; the objective always uses float32. "auto" uses bfloat16 if it works, is faster, and
        `beta` is 0. R_c is a small difference of two passes, which would be lost in bfloat16. A run keeps its
        precision when it is continued.
    seed : int

    Examples
    --------
    >>> import neuralbayes as nb
    >>> config = nb.PretrainConfig(encoder="small", beta=0.5, epochs=12)
    >>> config.batch_size, config.scales
    (4000, (1, 2))
    """

    method: ClassVar[str] = "mim"

    batch_size: int = 4000
    microbatch_size: int = 500
    alpha: float = 2.0
    beta: float = 4.0
    version: Literal[1, 2] = 2
    scales: tuple[int, ...] = (1, 2)
    noise_scale: float = 0.1
    smooth_fraction: float = 1.0
    marginal: Marginal = "minibatch"
    recompute: bool = True
    precision: Literal["float32", "bfloat16", "auto"] = "float32"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.microbatch_size < 1:
            raise ValueError(f"`microbatch_size` must be at least 1, got {self.microbatch_size!r}")
        check_choice(self, "version", (1, 2))
        check_choice(self, "marginal", ("minibatch", "running", "exact"))
        check_choice(self, "precision", ("float32", "bfloat16", "auto"))
        if self.precision == "bfloat16" and self.beta > 0:
            raise ValueError(
                f"`precision` must be 'float32' or 'auto' if beta is not 0, got 'bfloat16' with beta {self.beta!r}: "
                "R_c is a small difference of two passes, which bfloat16 rounds away"
            )


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
        A launched Fabric, in place of `device`. By default, all processes started by torchrun, `fabric run` or Slurm,
        or one. All processes call this function with the same arguments, and rank 0 writes the run folder.

    Returns
    -------
    ImageEncoder

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
    wanted = _config(config) if epochs is None else replace(_config(config), epochs=epochs)
    fabric = default_fabric(device=device) if fabric is None else fabric
    config = replace(wanted, precision=rank_zero_result(fabric, lambda: _precision(wanted, out)))
    recorded = {} if objective is None else {"objective": described(objective)}
    # Copy, so that a running p(z) does not leak into the next run.
    minimised = MIM(config.alpha, config.version) if objective is None else copy.deepcopy(objective)

    def learner(source: ImageSource, normalization: Normalization) -> Learner[ImageEncoder]:
        encoder = ImageEncoder(config.encoder, source.shape, normalization)
        states = HiddenStates(encoder.network, STATES, config.scales)
        gradients = objective_step(
            minimised,
            microbatch_size=config.microbatch_size,
            marginal=config.marginal,
            smoothness=Smoothness(config.beta, scale=config.noise_scale, fraction=config.smooth_fraction),
            recompute=config.recompute,
        )
        guard = WarnOnCollapse(ADVICE)
        watch = _Watch(states, encoder.prepare(source.read(np.arange(min(WATCHED, len(source))))))

        def step(network: nn.Module, batch: Tensor) -> Mapping[str, float | Tensor]:
            return {**gradients(network, batch), **watch.latest}

        def finish(encoder: ImageEncoder, folder: Path | None) -> dict[str, Any]:
            if folder is None:
                return {}
            use = state_use(encoder, source)
            write_tensors(folder / "states.safetensors", {name: layer.p_z for name, layer in use.items()}, {})
            return {
                "layers": {name: layer.to_dict() for name, layer in use.items()},
                "warnings": list(guard.messages.values()),
            }

        return Learner(
            encoder,
            InBfloat16(states) if config.precision == "bfloat16" else states,
            step,
            callbacks=(watch, guard),
            stateful={"objective": minimised},
            finish=finish,
        )

    return train_encoder(
        images, config, learner, out=out, recorded=recorded, callbacks=callbacks, verbose=verbose, fabric=fabric
    )


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
        self._images = self._images.to(next(self._states.parameters()).device)
        with evaluation_mode(self._states):
            outputs = self._states(self._images)
        for name in STATES:
            p_zx = posterior(outputs[name])
            self.latest[f"mi/{name}"] = float(mutual_information(p_zx))
            self.latest[f"dead/{name}"] = float(is_dead(prior(p_zx).mean(dim=(1, 2))).float().mean())


def _config(config: PretrainConfig | str) -> PretrainConfig:
    if isinstance(config, PretrainConfig):
        return replace(config, scales=tuple(config.scales))
    if config not in PRESETS:
        raise ValueError(f"`config` must be a PretrainConfig or one of {sorted(PRESETS)}, got {config!r}")
    return PRESETS[config]


def _precision(config: PretrainConfig, out: str | Path | None) -> Precision:
    """Resolve "auto": the precision of the run in `out`, or the best of this machine."""
    wanted = config.precision
    if wanted == "auto" and out is not None and (Path(out) / "config.json").is_file():
        there = read_json(Path(out) / "config.json")
        wanted = there.get("precision", wanted) if isinstance(there, dict) else wanted
    return "float32" if wanted == "auto" and config.beta > 0 else choose_precision(wanted)
