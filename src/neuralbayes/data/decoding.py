"""Limit the memory of threads that decode pictures: large pictures wait for each other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition

from PIL import Image

DECODING_BYTES = 2**29
"""Maximum memory of all pictures being decoded. A picture that needs more is decoded alone."""

WHOLE_FRAMES = ("WEBP", "AVIF", "HEIF", "TIFF", "GIF")
"""Formats whose decoders unpack the whole picture, in addition to the copy of Pillow."""


def decoding_bytes(picture: Image.Image, n_stored: int) -> int:
    """Estimate how many bytes it takes to decode an open picture, from its header.

    Parameters
    ----------
    picture : Image
        If it is a JPEG, after ``picture.draft``, which sets the size at which it is decoded.
    n_stored : int
        Number of pixels in the file.

    Examples
    --------
    >>> decoding_bytes(Image.new("RGB", (4000, 3000)), 12_000_000) // 10**6
    96
    """
    n_pixels = picture.width * picture.height
    if picture.format == "JPEG":
        # A progressive JPEG keeps the coefficients of all its scans, two bytes each, at any decoded size.
        return 8 * n_pixels + (6 * n_stored if picture.info.get("progressive") else 0)
    return (16 if picture.format in WHOLE_FRAMES else 8) * n_pixels


class Budget:
    """Memory budget that threads share.

    Parameters
    ----------
    total : int
        Number of bytes.
    """

    def __init__(self, total: int) -> None:
        self.total = total
        self._taken = 0
        self._changed = Condition()

    @contextmanager
    def take(self, n_bytes: int) -> Iterator[None]:
        """Wait until `n_bytes` are free and hold them; a larger number than the total takes the whole budget."""
        n_bytes = min(n_bytes, self.total)
        with self._changed:
            self._changed.wait_for(lambda: self._taken + n_bytes <= self.total)
            self._taken += n_bytes
        try:
            yield
        finally:
            with self._changed:
                self._taken -= n_bytes
                self._changed.notify_all()


DECODING = Budget(DECODING_BYTES)
"""Budget of all pictures decoded in this process."""
