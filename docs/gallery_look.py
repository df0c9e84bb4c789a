"""Style of the gallery: pictures that examples draw themselves look like those of `neuralbayes.plot`."""

from typing import Any

from cycler import cycler
from matplotlib import rcParams

COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#555555")


def reset_pictures(gallery_conf: Any, fname: str) -> None:
    """Set the style; sphinx-gallery calls this before each example."""
    rcParams.update(
        {
            "figure.constrained_layout.use": True,
            "figure.figsize": (8, 4.5),
            "font.size": 9,
            "axes.titlesize": 10,
            "axes.titlelocation": "left",
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.edgecolor": "#999999",
            "xtick.color": "#555555",
            "ytick.color": "#555555",
            "axes.prop_cycle": cycler(color=COLORS),
            "legend.frameon": False,
        }
    )
