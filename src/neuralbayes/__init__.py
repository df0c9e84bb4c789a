"""Discrete latent structure from unlabelled data.

A network's softmax output is read as p(z|x); then p(z), p(x|z)/p(x), mutual information and divergences are in closed
form, and any objective written in them trains with exact gradients at any batch size (except through batch
normalisation in training mode). The method is that of Arpit et al. 2020, "Neural Bayes", arXiv:2002.09046.
"""

from importlib.metadata import version as _version

import lazy_loader as _lazy

__version__ = _version("neuralbayes")

# The public names are those of __init__.pyi. Each is imported when first asked for, so that `import neuralbayes` and
# `neuralbayes --help` answer at once.
__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
