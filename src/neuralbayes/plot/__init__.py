"""Pictures of what was learnt, in scikit-learn's style: a display holds what is drawn, its method `plot` draws it into
matplotlib axes, `ax_` and `figure_` are what it drew into. matplotlib is imported when something is drawn."""

from neuralbayes.plot.crosstab import CrosstabDisplay
from neuralbayes.plot.curves import CurvesDisplay
from neuralbayes.plot.dendrogram import DendrogramDisplay
from neuralbayes.plot.filters import FiltersDisplay
from neuralbayes.plot.information import InformationDisplay
from neuralbayes.plot.maps import StateMapDisplay
from neuralbayes.plot.members import MembersDisplay
from neuralbayes.plot.states import StatesDisplay
from neuralbayes.plot.style import save_picture, theme

__all__ = [
    "CrosstabDisplay",
    "CurvesDisplay",
    "DendrogramDisplay",
    "FiltersDisplay",
    "InformationDisplay",
    "MembersDisplay",
    "StateMapDisplay",
    "StatesDisplay",
    "save_picture",
    "theme",
]
