"""Training of image encoders by any method: common settings, the run folder, and resuming."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from neuralbayes.data.normalize import Normalization, Per
from neuralbayes.data.sources import Images, ImageSource, as_source
from neuralbayes.distributed import default_fabric, placed, rank_zero_result, share_weights, sum_over_ranks
from neuralbayes.features.encoder import WIDTHS, ImageEncoder
from neuralbayes.system.files import write_json
from neuralbayes.training import Callback
from neuralbayes.training.config import Step, TrainingConfig, check_choice, train_in_folder
from neuralbayes.training.rng import noise_of_each_rank, seeded_globally
from neuralbayes.training.run_folder import Stateful

if TYPE_CHECKING:
    from lightning_fabric import Fabric

Encoder = TypeVar("Encoder", bound=ImageEncoder)


@dataclass(frozen=True)
class EncoderConfig(TrainingConfig):
    """Settings of every training of an image encoder.

    Attributes
    ----------
    encoder : {"paper", "small", "tiny"}
    normalize : {"dimension", "channel", "whiten"}
        The paper uses "dimension"; see :class:`neuralbayes.data.normalize.Normalization`.
    augment : bool
        Flip images at random and shift them by up to an eighth of the width. The paper does not.
    batch_size, epochs, patience, learning_rate, weight_decay, schedule, seed
        As in :class:`neuralbayes.training.config.TrainingConfig`.
    """

    encoder: str = "paper"
    normalize: Per = "dimension"
    augment: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(self, "encoder", tuple(WIDTHS))
        check_choice(self, "normalize", ("dimension", "channel", "whiten"))


@dataclass
class Learner(Generic[Encoder]):
    """The parts of the training that depend on the method.

    Attributes
    ----------
    encoder : ImageEncoder
        The encoder to save and return.
    network : nn.Module
        All trained modules, including the network of the encoder.
    step : callable
        Step of :func:`neuralbayes.training.train`. A batch consists of the prepared images, (n, C, H, W), or of a tuple
        of them and the entries of `per_image`.
    per_image : Tensor of shape (n_images, ...), optional
        Additional data of each image, such as its label.
    callbacks : sequence of Callback
    stateful : mapping
        Other state that the step changes.
    finish : callable
        Called on rank 0 with the trained encoder and the folder of the run, or None, before the encoder is saved. Its
        result is added to result.json.
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
    recorded: Mapping[str, Any] | None = None,
    callbacks: Sequence[Callback] = (),
    verbose: bool = False,
    fabric: Fabric | None = None,
) -> Encoder:
    """Train an encoder with a method.

    Parameters
    ----------
    images : Images, ImageSource or ndarray of shape (n, H, W, C), uint8
    config : EncoderConfig
    make_learner : callable
        Creates a :class:`Learner` from the images and their normalisation. It is called with the seed of `config` and
        must create the encoder first, so that every method starts from the same weights.
    out : str or Path, optional
        Run folder for config.json, metrics.jsonl, checkpoints, result.json and the encoder. An interrupted run
        continues from its last checkpoint and ends with the same weights as an uninterrupted one.
    recorded : mapping, optional
        Additional entries of config.json. A resumed run must have the same.
    callbacks : sequence of Callback
    verbose : bool, default=False
    fabric : lightning_fabric.Fabric, optional
        A launched Fabric. By default, all processes started by a launcher, or one.

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
        learner.network = placed(fabric, learner.network)

        def fetch(indices: Tensor) -> Tensor | tuple[Tensor, Tensor]:
            batch = source.read(indices.numpy())
            x = learner.encoder.prepare(_augmented(batch) if config.augment else batch)
            return x if learner.per_image is None else (x, learner.per_image[indices])

        with noise_of_each_rank(fabric, config.seed):
            result = train_in_folder(
                learner.network,
                learner.step,
                fetch,
                len(source),
                config,
                folder,
                callbacks=(*learner.callbacks, *callbacks),
                stateful=learner.stateful,
                recorded=recorded,
                verbose=verbose,
                fabric=fabric,
            )
        encoder = learner.encoder.eval()
        result |= rank_zero_result(fabric, lambda: learner.finish(encoder, folder))
        share_weights(fabric, encoder)  # `finish` may have selected weights of an earlier step
    if folder is not None and fabric.is_global_zero:
        encoder.save(folder)
        write_json(folder / "result.json", result)
    return encoder


def _normalization(source: ImageSource, per: Per, fabric: Fabric, verbose: bool) -> Normalization:
    """Normalisation of all images; each process reads a share of them."""
    fitted = Normalization.fit(
        source,
        per=per,
        progress=verbose and fabric.is_global_zero,
        share=(fabric.global_rank, fabric.world_size),
        total=lambda sums: sum_over_ranks(fabric, sums),
    )
    return fabric.broadcast(fitted)  # bitwise equal on all processes


def _augmented(batch: NDArray[np.uint8]) -> NDArray[np.uint8]:
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
