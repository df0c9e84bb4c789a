"""Normalise uint8 images to mean 0 and variance 1: per channel, per dimension as in the paper, or whitened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from neuralbayes.data.images import ImageSource, as_source
from neuralbayes.training.progress import late_bar

Per = Literal["channel", "dimension", "whiten"]

BATCH = 512  # images in memory
PATCH = 9  # side length in pixels of the patches for whitening
WHITENING_FLOOR = 0.1  # variances of patches, relative to that of a pixel, below which they count as noise
WHITENING_IMAGES = 5000  # evenly spaced


@dataclass(frozen=True, eq=False)
class Normalization:
    r"""The map :math:`x \mapsto (x / 255 - \mu) / \sigma` with the mean and standard deviation of training images.

    Call it on a batch. Create it with :meth:`fit`, and save it with :meth:`to_dict` and :meth:`to_arrays`.

    With "whiten", neighbouring pixels and channels are then decorrelated: each pixel becomes the centre of its patch
    times :math:`(\Sigma + \epsilon)^{-1/2}`, which is a convolution. Edges and textures remain, while slow changes of
    brightness and colour are removed. This gives much better features of photographs.

    Parameters
    ----------
    per : {"channel", "dimension", "whiten"}
        One mean and standard deviation per channel, or per pixel and channel ("dimension-wise 0 mean and unit
        variance", section 5 of the paper), or per channel with whitening.
    mean, std : ndarray of float32 and shape (C, 1, 1) or (C, H, W)
        Mean and standard deviation of intensities in [0, 1]. `std` is 1 for constant pixels.
    whitening : ndarray of float32 and shape (C, C, k, k), k odd, optional
        Kernel of the convolution; only with "whiten".

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
    whitening: NDArray[np.float32] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.per not in ("channel", "dimension", "whiten"):
            raise ValueError(f"`per` must be 'channel', 'dimension' or 'whiten', got {self.per!r}")
        mean, std = (np.ascontiguousarray(values, np.float32) for values in (self.mean, self.std))
        if mean.ndim != 3 or mean.shape != std.shape or (self.per != "dimension" and mean.shape[1:] != (1, 1)):
            raise ValueError(f"`mean` and `std` must both be (C, 1, 1) or (C, H, W), got {mean.shape} and {std.shape}")
        if not (np.isfinite(mean).all() and np.isfinite(std).all() and (std > 0).all()):
            raise ValueError("`mean` must be finite and `std` finite and positive")
        if (self.whitening is None) == (self.per == "whiten"):
            raise ValueError("`whitening` must be given with per='whiten', and only then")
        if self.whitening is not None:
            kernel = np.ascontiguousarray(self.whitening, np.float32)
            size = kernel.shape[-1]
            if kernel.shape != (len(mean), len(mean), size, size) or size % 2 == 0 or not np.isfinite(kernel).all():
                raise ValueError(f"`whitening` must be finite of shape (C, C, k, k) with k odd, got {kernel.shape}")
            object.__setattr__(self, "whitening", kernel)
        object.__setattr__(self, "mean", mean)
        object.__setattr__(self, "std", std)

    @classmethod
    def fit(
        cls, images: ImageSource | NDArray[np.generic], per: Per = "channel", *, progress: bool = True
    ) -> Normalization:
        """Compute mean and standard deviation of `images` in one pass.

        Sums are computed with integers, so the result is exact and does not depend on the order of the images. A
        progress bar appears if it takes longer than two seconds.
        """
        source = as_source(images)
        if len(source) == 0:
            raise ValueError("`images` must not be empty")
        sums = np.zeros((2, *source.shape), np.uint64)  # sums of the values and of their squares
        with late_bar("mean and deviation", len(source), enabled=progress) as advance:
            for start in range(0, len(source), BATCH):
                batch = source.read(np.arange(start, min(start + BATCH, len(source))))
                sums[0] += batch.sum(axis=0, dtype=np.uint32)  # 65,536 times 255 squared fits into 32 bits
                wide = batch.astype(np.uint16)
                sums[1] += np.multiply(wide, wide, out=wide).sum(axis=0, dtype=np.uint32)
                advance(len(batch))
        n = len(source)
        if per != "dimension":
            n *= source.shape[0] * source.shape[1]
            sums = sums.sum(axis=(1, 2), keepdims=True)
        # Python's integers do not overflow: n * squares may need more than 64 bits.
        total, squares = sums.astype(object)
        variance = (n * squares - total * total).astype(np.float64) / float(n) ** 2
        std = np.sqrt(variance) / 255
        std[variance == 0] = 1.0  # constant: the difference from the mean is already 0
        mean, std = (values.astype(np.float32).transpose(2, 0, 1) for values in (sums[0] / n / 255, std))
        if per != "whiten":
            return cls(per, mean, std)
        return cls(per, mean, std, _whitening_kernel(source, cls("channel", mean, std)))

    def __call__(self, batch: NDArray[np.uint8] | Tensor) -> Tensor:
        """Normalise a batch, uint8 (m, H, W, C) to float32 (m, C, H, W); a tensor stays on its device."""
        if isinstance(batch, Tensor):
            pixels = batch
        else:  # torch warns about read-only memory, such as a mapped file; a copy is cheap
            pixels = torch.from_numpy(np.ascontiguousarray(batch) if batch.flags.writeable else batch.copy())
        channels, *size = self.mean.shape
        wanted = (*(size if self.per == "dimension" else pixels.shape[1:3]), channels)
        if pixels.dtype != torch.uint8 or pixels.ndim != 4 or tuple(pixels.shape[1:]) != wanted:
            sides = f"{size[0]}, {size[1]}" if self.per == "dimension" else "H, W"
            raise ValueError(
                f"`batch` must be uint8 of shape (m, {sides}, {channels}), got {pixels.dtype} of {tuple(pixels.shape)}"
            )
        # x / (255 std) - mean / std in one pass over the batch; three passes take several times as long.
        std = self.std.astype(np.float64)
        scale, offset = (
            torch.from_numpy(values.astype(np.float32)).to(pixels.device)
            for values in (1 / (255 * std), -self.mean / std)
        )
        x = torch.addcmul(offset, pixels.permute(0, 3, 1, 2).contiguous().to(torch.float32), scale)
        return x if self.whitening is None else whitened(x, torch.from_numpy(self.whitening).to(x.device))

    def to_dict(self) -> dict[str, Any]:
        return {"per": self.per, "shape": list(self.mean.shape)}

    def to_arrays(self) -> dict[str, NDArray[np.float32]]:
        """The arrays "mean", "std" and, with whitening, "whitening", to be saved with :meth:`to_dict`."""
        arrays = {"mean": self.mean, "std": self.std}
        return arrays if self.whitening is None else arrays | {"whitening": self.whitening}

    @classmethod
    def from_dict(cls, settings: Mapping[str, Any], arrays: Mapping[str, Any]) -> Normalization:
        """The inverse of :meth:`to_dict` and :meth:`to_arrays`; `arrays` may contain tensors."""
        try:
            per, shape = settings["per"], tuple(settings["shape"])
            mean, std = (np.asarray(arrays[name], np.float32) for name in ("mean", "std"))
            kernel = np.asarray(arrays["whitening"], np.float32) if per == "whiten" else None
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"a normalisation must have per, shape, mean and std ({error!r})") from error
        if mean.shape != shape:
            raise ValueError(f"`mean` must have the shape {shape} that was saved with it, got {mean.shape}")
        return cls(per, mean, std, kernel)


def whitened(x: Tensor, kernel: Tensor) -> Tensor:
    """The convolution of :class:`Normalization` with repeated edges: (n, C, H, W) -> (n, C, H, W)."""
    reach = kernel.shape[-1] // 2
    return nn.functional.conv2d(nn.functional.pad(x, [reach] * 4, mode="replicate"), kernel)


def _whitening_kernel(source: ImageSource, normalization: Normalization) -> NDArray[np.float32]:
    """The rows of the inverse square root of the patch covariance for the centre pixel, scaled to variance 1."""
    height, width, channels = source.shape
    side = min(PATCH, height, width)
    side -= 1 - side % 2
    n = min(WHITENING_IMAGES, len(source))
    chosen = np.linspace(0, len(source) - 1, n).round().astype(np.int64)
    size = channels * side**2
    second, first, count = torch.zeros(size, size, dtype=torch.float64), torch.zeros(size, dtype=torch.float64), 0
    for indices in np.array_split(chosen, -(-n // 250)):
        x = normalization(source.read(indices))
        patches = nn.functional.unfold(x, side, stride=max(1, side // 3)).transpose(1, 2).reshape(-1, size)
        first += patches.sum(dim=0, dtype=torch.float64)
        second += patches.T @ patches
        count += len(patches)
    mean = first / count
    variance, directions = torch.linalg.eigh(second / count - torch.outer(mean, mean))
    inverse = (variance.clamp_min(0.0) + WHITENING_FLOOR).rsqrt()
    kernel = ((directions * inverse) @ directions.T).reshape(channels, side, side, size)[:, side // 2, side // 2]
    # Variance of the output: kernel Sigma kernel^T.
    given = float(((kernel @ directions).square() @ variance.clamp_min(0.0)).mean())
    scaled = kernel / given**0.5 if given > 0 else kernel
    return np.asarray(scaled.reshape(channels, channels, side, side).float())
