"""A trained network on many samples: in blocks, in evaluation mode, with progress."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import DTypeLike, NDArray
from torch import Tensor, nn

from neuralbayes.training.progress import progress


@torch.no_grad()
def in_blocks(
    function: Callable[[NDArray[np.int64]], Tensor | NDArray[Any]],
    n_samples: int,
    *,
    block: int,
    description: str = "block",
    verbose: bool = False,
    dtype: DTypeLike | None = None,
    even: bool = False,
) -> NDArray[Any]:
    """What `function` gives for all samples, computed a block at a time without gradients.

    Parameters
    ----------
    function : callable
        From the indices of some samples, (m,), to a result for each, (m, ...): a tensor on any device, or an array.
    n_samples : int
    block : int
        Samples at a time.
    description : str, default="block"
        What the progress calls a block.
    verbose : bool, default=False
        Show progress.
    dtype : dtype, optional
        Of the result; by default that of the first block.
    even : bool, default=False
        Take blocks that differ by one sample at most, rather than full ones and a smaller rest.

    Returns
    -------
    ndarray of shape (n_samples, ...)

    Examples
    --------
    >>> x = torch.arange(5.0)
    >>> in_blocks(lambda rows: 2 * x[rows], len(x), block=2)
    array([0., 2., 4., 6., 8.], dtype=float32)
    """
    results = np.empty(0)
    n_blocks = max(1, -(-n_samples // block))  # no samples are one empty block, which shows the shape
    blocks = np.array_split(np.arange(n_samples), n_blocks if even else np.arange(1, n_blocks) * block)
    with progress(n_blocks, description=description, enabled=verbose) as display:
        for number, rows in enumerate(blocks):
            found = function(rows)
            part = found.cpu().numpy() if isinstance(found, Tensor) else found
            if number == 0:
                results = np.empty((n_samples, *part.shape[1:]), dtype=dtype or part.dtype)
            results[rows] = part
            display.advance(samples=len(rows))
    return results


@contextmanager
def evaluation_mode(network: nn.Module) -> Iterator[None]:
    """Put `network` into evaluation mode inside, and back into the mode it was in."""
    was_training = network.training
    network.eval()
    try:
        yield
    finally:
        network.train(was_training)
