"""Objectives in p(z|x) and p(z), independent of networks and optimisers.

Subclass `Objective` to define your own. `MIM` and `DML` are the objectives of the paper, `WeightedSum` applies
objectives to several outputs of a network, and `Smoothness` is the regulariser R_c.
"""

from neuralbayes.objectives.base import Objective
from neuralbayes.objectives.dml import DML, dml_loss
from neuralbayes.objectives.mim import MIM, mim_loss
from neuralbayes.objectives.running import RunningPrior
from neuralbayes.objectives.smoothness import Smoothness, smoothness
from neuralbayes.objectives.weighted import WeightedSum

__all__ = [
    "DML",
    "MIM",
    "Objective",
    "RunningPrior",
    "Smoothness",
    "WeightedSum",
    "dml_loss",
    "mim_loss",
    "smoothness",
]
