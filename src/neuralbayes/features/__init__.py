"""Unsupervised features of rows and of images."""

import lazy_loader as _lazy

# The names are those of __init__.pyi. Each is imported on first use.
__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
