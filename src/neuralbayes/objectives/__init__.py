"""Objectives in p(z|x) and p(z): what to minimise, without a network or an optimiser.

`Objective` is the extension point; `MIM` and `DML` are the paper's two; `WeightedSum` applies objectives to several
outputs of one network; `Smoothness` is the regulariser R_c.
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
