"""Elements of the dendrogram: branches, colours, leaves."""

import numpy as np
import pytest
from matplotlib.colors import to_hex
from scipy.cluster.hierarchy import linkage as scipy_linkage

from neuralbayes.plot import dendrogram as module
from neuralbayes.plot.dendrogram import DendrogramDisplay
from neuralbayes.plot.style import LIGHT, state_color

FOUR = np.array([[0, 2, 0.5, 2], [1, 3, 1.0, 2], [4, 5, 3.0, 4]])


def branches(display):
    lines = display.ax_.collections[0]
    segments = [np.round(s, 6).tolist() for s in lines.get_segments()]
    return list(zip(segments, map(to_hex, lines.get_colors()), strict=True))


def test_branches_join_the_leaves_at_the_heights_and_have_the_colours_of_their_clusters():
    display = DendrogramDisplay(FOUR, 2, images=np.zeros((4, 3, 3), np.uint8)).plot()
    drawn = branches(display)  # leaves at 0 to 3: states 0, 2, 1, 3
    first, second, above = state_color(0).lower(), state_color(1).lower(), LIGHT.line
    assert ([[0.0, 0.5], [1.0, 0.5]], first) in drawn
    assert ([[2.0, 1.0], [3.0, 1.0]], second) in drawn
    assert ([[0.5, 0.5], [0.5, 3.0]], first) in drawn
    assert ([[0.5, 3.0], [2.5, 3.0]], above) in drawn
    assert len(drawn) == 9
    assert len(display.ax_.child_axes) == 4
    assert display.ax_.lines[0].get_ydata()[0] == 2.0  # the cut, halfway between two merges


def test_images_and_names_are_in_the_order_of_the_leaves():
    images = np.arange(4, dtype=np.uint8)[:, None, None, None] * np.ones((1, 2, 2, 3), np.uint8)
    display = DendrogramDisplay(FOUR, 2, images=images).plot()
    assert [int(small.images[0].get_array()[0, 0, 0]) for small in display.ax_.child_axes] == [0, 2, 1, 3]
    display = DendrogramDisplay(FOUR, names=["a", "b", "c $x", "d" * 90]).plot()
    shown = [text.get_text() for text in display.ax_.get_yticklabels()]
    assert shown[:3] == ["a", r"c \$x", "b"]
    assert shown[3] == "d" * (module.LONGEST_NAME - 1) + "…"


def test_the_largest_state_stands_for_a_leaf_where_states_are_many(monkeypatch):
    monkeypatch.setattr(module, "MAX_LEAVES", 2)
    display = DendrogramDisplay(FOUR, 2, sizes=[1.0, 5.0, 2.0, 3.0]).plot()
    assert display.representatives.tolist() == [2, 1]
    assert display.clusters.tolist() == [0, 1]
    assert display.ax_.get_title(loc="left") == "4 states, 2 clusters, merged into 2 leaves"
    assert len(DendrogramDisplay(FOUR, 3).clusters) == 3  # never fewer leaves than clusters


def test_an_estimator_is_drawn_at_its_number_of_clusters():
    class Fitted:
        hierarchy_, n_clusters_ = FOUR, 2

    display = DendrogramDisplay.from_estimator(Fitted(), names=list("abcd"))
    assert display.ax_.get_title(loc="left") == "4 states, 2 clusters"
    assert display.clusters.tolist() == [0, 0, 1, 1]  # in the order of the drawing


@pytest.mark.parametrize("n_states", [1, 2, 200])
def test_any_number_of_states_is_drawn(n_states):
    x = np.random.default_rng(0).normal(size=(n_states, 2))
    linkage = scipy_linkage(x, "ward") if n_states > 1 else np.empty((0, 4))
    assert DendrogramDisplay(linkage).plot()._repr_png_()[:4] == b"\x89PNG"


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="`linkage` must be finite"):
        DendrogramDisplay(np.zeros((3, 3)))
    with pytest.raises(ValueError, match="`n_clusters` must be from 1 to 4"):
        DendrogramDisplay(FOUR, 5)
    for name, value in (("names", ["a"]), ("sizes", [1.0] * 5), ("images", np.zeros((3, 2, 2)))):
        with pytest.raises(ValueError, match=f"`{name}` must have a value for each of 4 states"):
            DendrogramDisplay(FOUR, **{name: value})
    with pytest.raises(ValueError, match="`images` must have shape"):
        DendrogramDisplay(FOUR, images=np.zeros((4, 2)))
