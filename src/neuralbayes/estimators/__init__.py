"""scikit-learn estimators: validation, fit, predict, save and load; no maths."""

from neuralbayes.estimators.manifold_labeler import ManifoldLabeler
from neuralbayes.estimators.mim_encoder import MIMEncoder
from neuralbayes.estimators.persistence import load

__all__ = ["MIMEncoder", "ManifoldLabeler", "load"]
