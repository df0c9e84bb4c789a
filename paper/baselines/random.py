"""A random encoder, with or without batch normalisation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from neuralbayes.training.config import check_choice, description, open_run
from numpy.typing import NDArray

from neuralbayes.data.normalize import Normalization, Per
from neuralbayes.data.sources import Images, ImageSource, as_source
from neuralbayes.features.encoder import WIDTHS, ImageEncoder
from neuralbayes.probes import random_encoder
from neuralbayes.system.files import write_json
from neuralbayes.training import Callback


@dataclass(frozen=True)
class RandomConfig:
    """Settings of a random encoder.

    Attributes
    ----------
    encoder : {"paper", "small", "tiny"}
    batch_norm : bool
        Whether the encoder has batch normalisation, with statistics estimated on images ("identical architecture" in
        the paper). The authors' code has none.
    normalize : {"dimension", "channel", "whiten"}
    n_images : int
        Number of images, taken from the beginning, to estimate the statistics.
    seed : int

    Examples
    --------
    >>> import neuralbayes as nb
    >>> nb.baselines.RandomConfig(encoder="small", batch_norm=False).n_images
    1000
    """

    method: ClassVar[str] = "random"

    encoder: str = "paper"
    batch_norm: bool = True
    normalize: Per = "dimension"
    n_images: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        check_choice(self, "encoder", tuple(WIDTHS))
        check_choice(self, "normalize", ("dimension", "channel", "whiten"))
        if self.n_images < 1:
            raise ValueError(f"`n_images` must be at least 1, got {self.n_images!r}")


def random(
    images: Images | ImageSource | NDArray[np.uint8],
    config: RandomConfig,
    *,
    out: str | Path | None = None,
    callbacks: Sequence[Callback] = (),
    verbose: bool = False,
) -> ImageEncoder:
    """Create a random encoder: the initial weights of the other methods with this seed.

    Parameters
    ----------
    images : Images, ImageSource or ndarray of shape (n, H, W, C), uint8
        Images for the normalisation and the statistics of batch normalisation.
    config : RandomConfig
    out : str or Path, optional
        Run folder for config.json, result.json and the encoder.
    callbacks : sequence of Callback
        Not called, because nothing is trained.
    verbose : bool, default=False

    Returns
    -------
    ImageEncoder

    Examples
    --------
    >>> import neuralbayes as nb
    >>> images = nb.datasets.load("digits").train.images[:40].repeat(3, axis=1).repeat(3, axis=2)  # of 24x24 pixels
    >>> encoder = nb.baselines.random(images, nb.baselines.RandomConfig(encoder="tiny"))
    >>> encoder.features(images).shape
    (40, 80)
    """
    source = as_source(images)
    normalization = Normalization.fit(source, per=config.normalize, progress=verbose)
    shape = ImageEncoder(config.encoder, source.shape, normalization, config.batch_norm)
    encoder = random_encoder(shape, source, config.seed, n_images=config.n_images)
    if out is not None:
        folder = Path(out)
        open_run(folder, config.method, asdict(config))
        encoder.save(folder)
        write_json(folder / "result.json", description(config.method, asdict(config)) | {"images": len(source)})
    return encoder
