"""From uint8 images to tensors of mean 0 and variance 1, per channel or, as in the paper, per dimension."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from neuralbayes.data.progress import late_bar
from neuralbayes.data.sources import ImageSource, as_source

Per = Literal["channel", "dimension"]


@dataclass(frozen=True, eq=False)
class Normalization:
    r"""The map :math:`x \mapsto (x / 255 - \mu) / \sigma` with the mean and standard deviation of training images.

    Call it on a batch. Make it by :meth:`fit`; keep it with a model by :meth:`to_dict` and :meth:`to_arrays`.

    Parameters
    ----------
    per : {"channel", "dimension"}
        One mean and deviation for each channel, or for each pixel of each channel ("dimension-wise 0 mean and unit
        variance", section 5 of the paper).
    mean, std : ndarray of float32 and shape (C, 1, 1) or (C, H, W)
        Of intensities in [0, 1]. `std` is 1 where the images are constant.

    Examples
    --------
    >>> images = np.array([0, 255], np.uint8).reshape(2, 1, 1, 1)
    >>> normalization = Normalization.fit(images)
    >>> normalization(images).ravel()
    tensor([-1.0000,  1.0000])
    """

    per: Per
    mean: NDArray[np.float32] = field(repr=False)
    std: NDArray[np.float32] = field(repr=False)

    def __post_init__(self) -> None:
        if self.per not in ("channel", "dimension"):
            raise ValueError(f"`per` must be 'channel' or 'dimension', got {self.per!r}")
        mean, std = (np.ascontiguousarray(values, np.float32) for values in (self.mean, self.std))
        if mean.ndim != 3 or mean.shape != std.shape or (self.per == "channel" and mean.shape[1:] != (1, 1)):
            wanted = "(C, 1, 1)" if self.per == "channel" else "(C, H, W)"
            raise ValueError(f"`mean` and `std` must both have shape {wanted}, got {mean.shape} and {std.shape}")
        if not (np.isfinite(mean).all() and np.isfinite(std).all() and (std > 0).all()):
            raise ValueError("`mean` must be finite and `std` finite and positive")
        object.__setattr__(self, "mean", mean)
        object.__setattr__(self, "std", std)

    @classmethod
    def fit(
        cls,
        images: ImageSource | NDArray[np.generic],
        per: Per = "channel",
        *,
        batch_size: int = 512,
        progress: bool = True,
    ) -> Normalization:
        """Mean and deviation of `images`, in one pass that holds `batch_size` of them in memory.

        Sums and sums of squares of bytes are integers, and are added as such: the result is exact, and does not
        depend on `batch_size` or on the order of the images.

        Parameters
        ----------
        images : ImageSource, or ndarray of shape (n, H, W), (n, H, W, C) or (n, C, H, W)
        per : {"channel", "dimension"}, default="channel"
        batch_size : int, default=512
        progress : bool, default=True
            Show a bar when it takes longer than two seconds.
        """
        source = as_source(images)
        if len(source) == 0:
            raise ValueError("`images` must not be empty")
        if not 1 <= batch_size <= 65_536:
            raise ValueError(f"`batch_size` must be from 1 to 65536, got {batch_size}")
        total = np.zeros(source.shape, np.uint64)
        squares = np.zeros(source.shape, np.uint64)
        with late_bar("mean and deviation", len(source), enabled=progress) as advance:
            for start in range(0, len(source), batch_size):
                batch = source.read(np.arange(start, min(start + batch_size, len(source))))
                total += batch.sum(axis=0, dtype=np.uint32)  # 65,536 times 255 squared fits into 32 bits
                wide = batch.astype(np.uint16)
                squares += np.multiply(wide, wide, out=wide).sum(axis=0, dtype=np.uint32)
                advance(len(batch))
        n = len(source)
        if per == "channel":
            n *= source.shape[0] * source.shape[1]
            total, squares = (values.sum(axis=(0, 1), keepdims=True) for values in (total, squares))
        mean, std = _moments(n, total, squares)
        return cls(per, mean.transpose(2, 0, 1), std.transpose(2, 0, 1))

    def __call__(self, batch: NDArray[np.uint8] | Tensor) -> Tensor:
        """Normalise a batch.

        Parameters
        ----------
        batch : ndarray or Tensor of uint8 and shape (m, H, W, C)
            A tensor stays on its device.

        Returns
        -------
        Tensor of float32 and shape (m, C, H, W).
        """
        pixels = batch if isinstance(batch, Tensor) else torch.from_numpy(_writable(batch))
        if pixels.dtype != torch.uint8 or pixels.ndim != 4 or not self._fits(pixels.shape):
            wanted = (
                "(m, H, W, {})" if self.per == "channel" else f"(m, {self.mean.shape[1]}, {self.mean.shape[2]}, {{}})"
            )
            raise ValueError(
                f"`batch` must be uint8 of shape {wanted.format(self.mean.shape[0])}, "
                f"got {pixels.dtype} of shape {tuple(pixels.shape)}"
            )
        # x / (255 std) - mean / std in one pass over the batch; three passes take several times as long.
        std = self.std.astype(np.float64)
        scale, offset = (
            torch.from_numpy(values.astype(np.float32)).to(pixels.device)
            for values in (1 / (255 * std), -self.mean / std)
        )
        return torch.addcmul(offset, pixels.permute(0, 3, 1, 2).contiguous().to(torch.float32), scale)

    def _fits(self, shape: torch.Size) -> bool:
        channels, height, width = self.mean.shape
        return shape[3] == channels and (self.per == "channel" or tuple(shape[1:3]) == (height, width))

    def to_dict(self) -> dict[str, Any]:
        """What JSON can hold: the kind and the shape."""
        return {"per": self.per, "shape": list(self.mean.shape)}

    def to_arrays(self) -> dict[str, NDArray[np.float32]]:
        """The arrays "mean" and "std", to be kept beside :meth:`to_dict`."""
        return {"mean": self.mean, "std": self.std}

    @classmethod
    def from_dict(cls, settings: Mapping[str, Any], arrays: Mapping[str, Any]) -> Normalization:
        """The inverse of :meth:`to_dict` and :meth:`to_arrays`; `arrays` may hold tensors."""
        try:
            per, shape = settings["per"], tuple(settings["shape"])
            mean, std = (np.asarray(arrays[name], np.float32) for name in ("mean", "std"))
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"a normalisation must have per, shape, mean and std ({error!r})") from error
        if mean.shape != shape:
            raise ValueError(f"`mean` must have the shape {shape} that was saved with it, got {mean.shape}")
        return cls(per, mean, std)


def _moments(
    n: int, total: NDArray[np.uint64], squares: NDArray[np.uint64]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    # Python's integers do not overflow: n * squares may need more than 64 bits.
    sums, sums_of_squares = total.astype(object), squares.astype(object)
    variance = (n * sums_of_squares - sums * sums).astype(np.float64) / float(n) ** 2
    std = np.sqrt(variance) / 255
    std[variance == 0] = 1.0  # constant: the difference to the mean is 0 already
    return (total / n / 255).astype(np.float32), std.astype(np.float32)


def _writable(batch: NDArray[np.uint8]) -> NDArray[np.uint8]:
    # torch warns of memory that must not be written, such as a mapped file. Nothing is written here; a copy is cheap.
    return np.ascontiguousarray(batch) if batch.flags.writeable else batch.copy()
