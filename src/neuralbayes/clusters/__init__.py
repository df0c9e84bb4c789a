"""Clusters that may touch: states, merging, training."""

import lazy_loader as _lazy

# The names are those of __init__.pyi, what an estimator needs when it fits; each is imported when first asked for.
__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
