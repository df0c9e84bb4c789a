"""scikit-learn estimators: validation, fit, predict, save and load; no mathematics."""

import lazy_loader as _lazy

# Each class is imported on first use: a clusterer of rows does not need readers of images.
__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
