"""Training an image encoder by any method: settings that all share, one run folder, going on where a run stopped."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from neuralbayes.data.normalize import Normalization, Per
from neuralbayes.data.sources import Images, ImageSource, as_source
from neuralbayes.distributed.processes import default_fabric, placed, rank_zero_result, share_weights, sum_over_ranks
from neuralbayes.distributed.sharding import any_sharded, gathered
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
    """What every training of an image encoder is told.

    Attributes
    ----------
    encoder : {"paper", "small", "tiny"}
    normalize : {"dimension", "channel", "whiten"}
        The paper's is "dimension"; see :class:`neuralbayes.data.normalize.Normalization`.
    augment : bool
        Random mirror images and shifts by up to an eighth of the width. The paper uses none.
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
    recorded: Mapping[str, Any] | None = None,
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
    recorded : mapping, optional
        What config.json holds beside `config`; a run that goes on must have the same.
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
