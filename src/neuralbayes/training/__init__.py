"""The training loop: steps, checkpoints, progress and guards, on Lightning Fabric.

`train` is independent of objectives and data sets: `Batches` provides indices, one function reads the samples, and
another computes the gradients. A run with a folder can be killed at any moment and then resumed. Lightning Fabric and
rich are imported on first use.
"""

import lazy_loader as _lazy

from neuralbayes.training.progress import progress as progress  # eagerly: its module has the same name

# The names are those of __init__.pyi. Each is imported on first use, so that a fitted model needs no trainer.
__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
