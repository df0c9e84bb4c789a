"""Which samples of a batch each process takes."""

from __future__ import annotations

from torch import Tensor


def share(indices: Tensor, rank: int, world_size: int) -> Tensor:
    """The part of a global batch that process `rank` of `world_size` takes.

    The shares partition the batch and differ in size by one sample at most. They are dealt like cards: pieces of
    them, cut alike on every process, make up a piece of the batch. A batch of fewer samples than processes leaves some
    with none.

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
