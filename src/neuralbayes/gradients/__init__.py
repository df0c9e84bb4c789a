"""The gradient of any objective over a batch of any size: exact, except through batch normalisation in training mode."""

from neuralbayes.gradients.exact import backward

__all__ = ["backward"]
