"""The gradient of any objective over any batch: exact, except through batch normalisation in training mode."""

from neuralbayes.gradients.exact import backward

__all__ = ["backward"]
