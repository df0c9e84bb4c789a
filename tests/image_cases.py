"""Tiny pictures with something to learn, and a callback that interrupts a run."""

import numpy as np

from neuralbayes.training import Callback


def bars(n=64, side=24, seed=0):
    """Make vertical (1) or horizontal (0) bars on noise: images (n, side, side, 1) and labels (n,)."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(n) % 2)
    pictures = rng.integers(0, 60, (n, side, side, 1))
    for picture, upright in zip(pictures, labels, strict=True):
        top, left = rng.integers(0, side - 10, 2)
        height, width = (10, 3) if upright else (3, 10)
        picture[top : top + height, left : left + width] += 180
    return pictures.astype(np.uint8), labels


class Break(Callback):
    """Raise `error` at a step, before or after the update."""

    def __init__(self, step, error, *, after=True):
        self.step, self.error, self.after = step, error, after

    def on_gradients(self, state, metrics):
        if not self.after and state.step + 1 == self.step:
            raise self.error

    def on_step_end(self, state, metrics):
        if self.after and state.step == self.step:
            raise self.error
