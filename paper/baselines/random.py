"""A random encoder, with or without batch normalisation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

from neuralbayes.data.normalize import Normalization, Per
from neuralbayes.data.sources import as_source
from neuralbayes.features.encoder import ImageEncoder, random_encoder
from neuralbayes.training import Callback
from neuralbayes.training.run_folder import open_run
from paper.baselines.training import check_settings, save


@dataclass(frozen=True)
class RandomConfig:
    """Settings of a random encoder.

    Attributes
    ----------
    batch_norm : bool
        Whether the encoder has batch normalisation, with statistics of the first `n_images` ("identical architecture"
        in the paper). The authors' code has none.
    encoder, normalize, seed
        As in :class:`neuralbayes.PretrainConfig`.
    """

    method: ClassVar[str] = "random"

    encoder: str = "paper"
    batch_norm: bool = True
    normalize: Per = "dimension"
    n_images: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        check_settings(self, at_least={"n_images": 1})


def random(
    images: Any,
    config: RandomConfig,
    *,
    out: str | Path | None = None,
    callbacks: Sequence[Callback] = (),
    verbose: bool = False,
) -> ImageEncoder:
    """Create a random encoder: the initial weights of the other methods with this seed.

    Parameters are those of :func:`neuralbayes.pretrain`; `callbacks` are not called, because nothing is trained.
    """
    source = as_source(images)
    normalization = Normalization.fit(source, per=config.normalize, progress=verbose)
    like = ImageEncoder(config.encoder, source.shape, normalization, config.batch_norm)
    encoder = random_encoder(like, source, config.seed, n_images=config.n_images)
    if out is not None:
        open_run(Path(out), config.method, asdict(config))
    save(out, {"method": config.method, "config": asdict(config), "samples": len(source)}, encoder)
    return encoder
