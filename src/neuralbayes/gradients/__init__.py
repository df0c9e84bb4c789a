"""The gradient of any objective over a batch of any size."""

from neuralbayes.gradients.exact import backward

__all__ = ["backward"]
