"""One training loop for all: steps, checkpoints, progress and guards, on Lightning Fabric.

`train` knows neither objective nor data set: it asks `Batches` for indices, a function for the samples behind
them and another for the gradients. A run with a folder can be killed at any moment and goes on as if nothing
had happened. Lightning Fabric and rich are imported when they are first used.
"""

import lazy_loader as _lazy

from neuralbayes.training.progress import progress as progress  # at once: its module has the same name

# The names are those of __init__.pyi; each is imported when first asked for, so that a fitted model needs no trainer.
__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
