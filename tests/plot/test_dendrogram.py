"""Elements of the dendrogram: leaves, names, colours, the cut."""

from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.colors import to_hex
from scipy.cluster.hierarchy import linkage as scipy_linkage

from neuralbayes.plot import DendrogramDisplay
from neuralbayes.plot.style import LIGHT, state_color

FOUR = np.array([[0, 2, 0.5, 2], [1, 3, 1.0, 2], [4, 5, 3.0, 4]])


def labels(display):
    return [text.get_text() for text in display.ax_.get_yticklabels()]


def test_names_and_branches_have_the_colours_of_their_clusters():
    estimator = SimpleNamespace(hierarchy_=FOUR, n_clusters_=2)
    display = DendrogramDisplay.from_estimator(estimator, names=["a", "b", "c $x", "d" * 90])
    assert display.ax_.get_title(loc="left") == "4 states, 2 clusters"
    assert labels(display)[:3] == ["a", r"c \$x", "b"]
    assert labels(display)[3] == "d" * 47 + "…"
    first, second = state_color(0), state_color(1)
    assert [text.get_color() for text in display.ax_.get_yticklabels()] == [first, first, second, second]
    drawn = {to_hex(color) for lines in display.ax_.collections for color in lines.get_colors()}
    assert drawn == {first.lower(), second.lower(), LIGHT.line}
    assert display.ax_.lines[0].get_xdata()[0] == 2.0, "the cut is halfway between two merges"


def test_of_many_states_the_highest_merges_are_drawn():
    linkage = scipy_linkage(np.random.default_rng(0).normal(size=(200, 2)), "ward")
    display = DendrogramDisplay(linkage, 3).plot()
    assert len(labels(display)) == 40
    more = [int(name.split(" and ")[1].removesuffix(" more")) for name in labels(display) if " and " in name]
    assert 40 + sum(more) == 200
    assert "merged into 40 leaves" in display.ax_.get_title(loc="left")
    assert len(DendrogramDisplay(linkage, 60).clusters) == 60, "never fewer leaves than clusters"


@pytest.mark.parametrize("n_states", [1, 2, 5])
def test_few_states_are_drawn(n_states):
    linkage = scipy_linkage(np.eye(n_states), "ward") if n_states > 1 else np.empty((0, 4))
    assert len(labels(DendrogramDisplay(linkage).plot())) == n_states
