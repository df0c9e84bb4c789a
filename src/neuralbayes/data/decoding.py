"""Bytes that pictures may take while threads decode them: large ones wait for each other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition

from PIL import Image

DECODING_BYTES = 2**29
"""Of all pictures that are being decoded. One that takes more is decoded while no other is."""

WHOLE_FRAMES = ("WEBP", "AVIF", "HEIF", "TIFF", "GIF")
"""Formats whose decoders unpack the whole picture, beside what Pillow keeps."""


def decoding_bytes(picture: Image.Image, n_stored: int) -> int:
    """About how many bytes it takes to decode a picture that was opened, from its header.

    Parameters
    ----------
    picture : Image
        A JPEG of the size that ``picture.draft`` has chosen.
    n_stored : int
        Pixels of the file.

    Examples
    --------
    >>> decoding_bytes(Image.new("RGB", (4000, 3000)), 12_000_000) // 10**6
    96
    """
    n_pixels = picture.width * picture.height
    if picture.format == "JPEG":
        # A progressive one keeps the coefficients of all its scans, two bytes each, whatever size it is decoded at.
        return 8 * n_pixels + (6 * n_stored if picture.info.get("progressive") else 0)
    return (16 if picture.format in WHOLE_FRAMES else 8) * n_pixels


class Budget:
    """A number of bytes that threads share.

    Parameters
    ----------
    total : int
    """

    def __init__(self, total: int) -> None:
        self.total = total
        self._taken = 0
        self._changed = Condition()

    @contextmanager
    def take(self, n_bytes: int) -> Iterator[None]:
        """Wait until there is room for so many bytes, and hold them; more than there are: until all others are back."""
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
"""Shared by all that decodes in this process."""
