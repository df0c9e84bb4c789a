"""One training loop for all: steps, checkpoints, progress and guards, on Lightning Fabric.

`train` knows neither objective nor data set: it asks `Batches` for indices, a function for the samples behind
them and another for the gradients. A run with a folder can be killed at any moment and goes on as if nothing
had happened. Lightning Fabric and rich are imported when they are first used.
"""

from neuralbayes.distributed.dealing import share
from neuralbayes.distributed.global_batch import GlobalBatch, global_batch
from neuralbayes.training.batches import Batches
from neuralbayes.training.callbacks import Callback, EarlyStopping, StopOnNaN
from neuralbayes.training.checkpoint import load_checkpoint, read_checkpoint, save_checkpoint
from neuralbayes.training.collapse import WarnOnCollapse
from neuralbayes.training.loop import train
from neuralbayes.training.metrics import read_metrics
from neuralbayes.training.progress import progress
from neuralbayes.training.schedule import constant, cosine
from neuralbayes.training.state import TrainingState
from neuralbayes.training.tensorboard import TensorBoard

__all__ = [
    "Batches",
    "Callback",
    "EarlyStopping",
    "GlobalBatch",
    "StopOnNaN",
    "TensorBoard",
    "TrainingState",
    "WarnOnCollapse",
    "constant",
    "cosine",
    "global_batch",
    "load_checkpoint",
    "progress",
    "read_checkpoint",
    "read_metrics",
    "save_checkpoint",
    "share",
    "train",
]
