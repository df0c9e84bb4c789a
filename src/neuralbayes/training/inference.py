"""Apply a trained network to many samples: in blocks, in evaluation mode, with progress."""

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
) -> NDArray[Any]:
    """Apply `function` to all samples, `block` of them at a time, without gradients: (n_samples, ...).

    `function` maps the indices of some samples (m,) to their results (m, ...), a tensor on any device or an array. The
    result has the `dtype` of the first block unless given.

    Examples
    --------
    >>> x = torch.arange(5.0)
    >>> in_blocks(lambda rows: 2 * x[rows], len(x), block=2)
    array([0., 2., 4., 6., 8.], dtype=float32)
    """
    results = np.empty(0)
    n_blocks = max(1, -(-n_samples // block))  # no samples: one empty block gives the shape
    blocks = np.array_split(np.arange(n_samples), np.arange(1, n_blocks) * block)
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
    """Put `network` into evaluation mode inside the block, and restore its mode."""
    was_training = network.training
    network.eval()
    try:
        yield
    finally:
        network.train(was_training)
