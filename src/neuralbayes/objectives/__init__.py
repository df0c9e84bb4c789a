"""Objectives in p(z|x) and p(z), independent of networks and optimisers.

Subclass `Objective` to define your own. `MIM` and `DML` are the objectives of the paper, `WeightedSum` applies
objectives to several outputs of a network, and `Smoothness` is the regulariser R_c.
"""

from neuralbayes.objectives.base import Objective, RunningPrior, WeightedSum
from neuralbayes.objectives.dml import DML
from neuralbayes.objectives.mim import MIM
from neuralbayes.objectives.smoothness import Smoothness, smoothness

__all__ = [
    "DML",
    "MIM",
    "Objective",
    "RunningPrior",
    "Smoothness",
    "WeightedSum",
    "smoothness",
]
