"""Divide a batch among processes."""

from __future__ import annotations

from torch import Tensor


def share(indices: Tensor, rank: int, world_size: int) -> Tensor:
    """The share of process `rank` of `world_size` in a global batch.

    The shares partition the batch, and their sizes differ by at most one. Samples are dealt like cards, so equal pieces
    of all shares form a contiguous piece of the batch. If there are fewer samples than processes, some shares are
    empty.

    Parameters
    ----------
    indices : Tensor of shape (n_in_batch,)
    rank, world_size : int

    Returns
    -------
    Tensor of shape (n_in_share,).

    Examples
    --------
    >>> import torch
    >>> [share(torch.arange(5), rank, 2).tolist() for rank in range(2)]
    [[0, 2, 4], [1, 3]]
    """
    return indices[rank::world_size]
