"""The pictures of the demo show the given data."""

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from neuralbayes.plot.regions import PALE, map_colors
from neuralbayes.plot.style import save_picture, state_color
from neuralbayes.report.digits import draw_digits
from neuralbayes.report.manifolds import Panel, draw_manifolds

RNG = np.random.default_rng(0)
POINTS = RNG.normal(size=(30, 2))
LABELS = np.repeat([0, 1, 2], 10)


def panel(**changes):
    given = {
        "title": "three",
        "caption": "certified: 99.0",
        "certified": True,
        "points": POINTS,
        "labels": LABELS,
        "extent": (-3.0, 3.0, -3.0, 3.0),
        "decision_map": RNG.dirichlet(np.ones(3), size=(12, 12)),
    }
    return Panel(**(given | changes))


def digits_picture(**changes):
    given = {
        "information": {"relu1": [0.1, 0.5, 0.7], "relu2": [0.1, 0.6, 0.9]},
        "bounds": [1.4, 2.1],
        "accuracy": {"pixels": {"3": 0.7, "all": 0.9}, "encoder": {"3": 0.8, "all": 0.95}},
        "members": [("state 4", RNG.integers(0, 256, (5, 8, 8)).astype(np.uint8), [9.0, 8.0, 7.0, 6.0, 5.0])],
    }
    return draw_digits(**(given | changes))


def test_every_panel_has_its_title_and_caption():
    figure = draw_manifolds([panel(), panel(title="ring", caption="refused", certified=False)])
    assert [ax.get_title() for ax in figure.axes] == ["three", "ring"]
    assert [ax.get_xlabel() for ax in figure.axes] == ["certified: 99.0", "refused"]
    certified, refused = (ax.xaxis.label.get_color() for ax in figure.axes)
    assert certified != refused


def test_points_have_the_colour_of_their_state():
    (ax,) = draw_manifolds([panel()]).axes
    assert len(ax.collections) == 3
    for k, collection in enumerate(ax.collections):
        np.testing.assert_allclose(collection.get_offsets(), POINTS[10 * k : 10 * (k + 1)])
        np.testing.assert_allclose(collection.get_facecolor()[0, :3], to_rgb(state_color(k)))


def test_a_state_without_points_is_no_error():
    (ax,) = draw_manifolds([panel(labels=np.zeros(30, np.int64))]).axes
    assert [len(collection.get_offsets()) for collection in ax.collections] == [30, 0, 0]


def test_the_map_has_the_colours_of_the_points_and_mixes_where_it_is_uncertain():
    sure, other, unsure = map_colors(np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]))
    np.testing.assert_allclose(sure, to_rgb(state_color(0)))
    np.testing.assert_allclose(unsure, (sure + other) / 2)


def test_the_map_fades_away_from_the_points():
    corner = np.array([[-2.9, -2.9]])
    (ax,) = draw_manifolds([panel(points=corner, labels=np.zeros(1, np.int64))]).axes
    opacity = ax.images[0].get_array()[..., 3]
    assert opacity[0, 0] == PALE  # the first row is at the bottom
    assert opacity[-1, -1] == 0.0


def test_no_panels_are_an_error():
    with pytest.raises(ValueError, match="`panels` must not be empty"):
        draw_manifolds([])


def test_curves_and_bounds_are_drawn_as_they_are():
    upper = digits_picture().axes[0]
    curves = {line.get_label(): list(line.get_ydata()) for line in upper.lines}
    assert curves["relu1: 0.70 of 1.40"] == [0.1, 0.5, 0.7]
    bounds = [line.get_ydata()[0] for line in upper.lines if line.get_label().startswith("_")]
    assert bounds == [1.4, 2.1]
    assert upper.get_ylim()[1] > 2.1


def test_bars_are_percentages():
    lower = digits_picture().axes[1]
    assert sorted(round(bar.get_height(), 6) for bar in lower.patches) == [70.0, 80.0, 90.0, 95.0]
    assert [text.get_text() for text in lower.get_legend().get_texts()] == ["pixels", "encoder"]


def test_images_of_a_state_stand_side_by_side_with_their_ratios():
    images = np.arange(2 * 4 * 4, dtype=np.uint8).reshape(2, 4, 4)
    row = digits_picture(members=[("state 4", images, [12.0, 3.0])]).axes[2]
    strip = np.ma.filled(row.images[0].get_array(), np.nan)
    np.testing.assert_array_equal(strip[:, :4], images[0])
    np.testing.assert_array_equal(strip[:, -4:], images[1])
    assert [text.get_text() for text in row.texts] == ["state 4", "12 to 3"]


def test_no_states_to_show_is_no_error():
    assert digits_picture(members=[]).axes


def test_pictures_can_be_saved(tmp_path):
    for i, figure in enumerate((draw_manifolds([panel()]), digits_picture())):
        save_picture(figure, tmp_path / f"{i}.png")
        assert (tmp_path / f"{i}.png").stat().st_size > 5000
