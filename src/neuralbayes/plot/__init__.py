"""Displays of models and runs, in scikit-learn's style: a display holds the data, its method `plot` draws them into
matplotlib axes, and `ax_` and `figure_` give access to the drawing. matplotlib is imported on the first drawing."""

from neuralbayes.plot.curves import CurvesDisplay
from neuralbayes.plot.dendrogram import DendrogramDisplay
from neuralbayes.plot.images import FiltersDisplay, MembersDisplay
from neuralbayes.plot.maps import StateMapDisplay
from neuralbayes.plot.states import CrosstabDisplay, StatesDisplay
from neuralbayes.plot.style import save_picture, theme

__all__ = [
    "CrosstabDisplay",
    "CurvesDisplay",
    "DendrogramDisplay",
    "FiltersDisplay",
    "MembersDisplay",
    "StateMapDisplay",
    "StatesDisplay",
    "save_picture",
    "theme",
]
