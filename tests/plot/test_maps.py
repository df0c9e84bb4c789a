"""Points of the map: places, colours, legend and background."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import neuralbayes as nb
from neuralbayes.plot.maps import PALE, Regions

RNG = np.random.default_rng(0)
POINTS = RNG.normal(size=(60, 2))
LABELS = np.repeat([0, 1, 2], [10, 20, 30])


def draw(X, labels, **options):
    return nb.plot.StateMapDisplay(X, labels, **options).plot().ax_


def points(ax):
    return np.concatenate([c.get_offsets() for c in ax.collections if len(c.get_offsets())])


def colors(ax):
    return np.concatenate([c.get_facecolors() for c in ax.collections if len(c.get_offsets())])


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_two_features_are_drawn_as_they_are_with_the_shares_of_the_states():
    ax = nb.plot.StateMapDisplay(POINTS, LABELS, feature_names=["a", "b"]).plot(title="$ title").ax_
    np.testing.assert_allclose(np.sort(points(ax), axis=0), np.sort(POINTS, axis=0))
    assert legend(ax) == ["cluster 0: 16.7 %", "cluster 1: 33.3 %", "cluster 2: 50.0 %"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("a", "b")
    assert ax.get_title("left").split("\n") == [r"\$ title", "60 rows"]


def test_one_feature_is_spread_over_the_height():
    ax = draw(POINTS[:, :1], LABELS)
    np.testing.assert_allclose(np.sort(points(ax)[:, 0]), np.sort(POINTS[:, 0]))
    assert list(ax.get_yticks()) == []


def test_more_features_are_drawn_by_their_principal_components():
    rows = RNG.normal(size=(60, 3)) * [1.0, 10.0, 1e6]
    assert np.abs(points(draw(rows, LABELS))).max() > 1e6
    ax = draw(rows, LABELS, standardize=True)
    other_units = draw(rows * [7.0, 0.1, 1e-3], LABELS, standardize=True)
    np.testing.assert_allclose(np.abs(points(other_units)), np.abs(points(ax)), atol=1e-9)
    assert "divided by its standard deviation" in ax.get_title("left")
    two = draw(rows[:, 1:], LABELS, standardize=True)
    assert np.abs(points(two)).max() > 1e6, "separate axes keep their units"


@pytest.mark.parametrize("X", [RNG.normal(size=(3, 50)), np.ones((5, 4)), np.ones((1, 4)), np.ones((4, 2))])
def test_few_and_constant_rows_can_be_drawn(X):
    drawn = points(draw(X, np.zeros(len(X), dtype=int), standardize=True))
    assert drawn.shape == (len(X), 2)
    assert np.isfinite(drawn).all()


def test_of_many_rows_a_part_is_drawn_with_the_same_colours_and_the_picture_says_so():
    ax = draw(np.column_stack([LABELS, LABELS]), LABELS, max_points=25)
    assert len(points(ax)) == 25
    assert "25 of 60 rows" in ax.get_title("left")
    assert legend(ax)[2] == "cluster 2: 50.0 %", "shares are those of all rows"
    for state in range(3):
        assert len(np.unique(colors(ax)[points(ax)[:, 0] == state], axis=0)) == 1


def test_the_less_certain_the_paler():
    proba = np.full((60, 3), 1.0 / 3)
    proba[:30] = np.eye(3)[LABELS[:30]]
    ax = draw(np.column_stack([np.arange(60), np.arange(60)]), LABELS, proba=proba)
    certain, alpha = points(ax)[:, 0] < 30, colors(ax)[:, 3]
    assert alpha[certain].min() > 2 * alpha[~certain].max()
    assert "pale where uncertain" in ax.get_title("left")
    assert colors(draw(POINTS, LABELS * 0, proba=np.ones((60, 1))))[:, 3].min() == pytest.approx(0.85)


def test_states_beyond_the_colours_get_another_marker_and_a_short_legend():
    ax = draw(np.repeat(POINTS, 2, axis=0), np.arange(120) % 20)
    assert sum(len(c.get_offsets()) > 0 for c in ax.collections) == 3
    assert len(points(ax)) == 120
    assert len(legend(ax)) == 14
    assert ax.get_legend().get_title().get_text() == "the largest 14 of 20"


def test_p_zx_lies_behind_an_estimator_of_two_features():
    X = pd.DataFrame(np.concatenate([RNG.normal(size=(30, 3)), RNG.normal(size=(30, 3)) + 9.0]), columns=list("abc"))
    labeler = nb.ManifoldLabeler(n_clusters=2, n_init=2, random_state=0)
    flat = nb.plot.StateMapDisplay.from_estimator(labeler.fit(X[["a", "b"]]), X[["a", "b"]])
    np.testing.assert_allclose(flat.regions.p_zx.sum(axis=2), 1.0, rtol=1e-6)
    assert (flat.ax_.get_xlabel(), flat.ax_.get_ylabel()) == ("a", "b")
    assert nb.plot.StateMapDisplay.from_estimator(labeler.fit(X), X).regions is None


def test_the_background_has_faded_at_its_edges():
    points = POINTS * [3.0, 1.0]
    opacity = Regions.of(lambda grid: np.full((len(grid), 2), 0.5), points).image(points)[..., 3]
    assert opacity.max() == pytest.approx(PALE)
    for edge in (opacity[0], opacity[-1], opacity[:, 0], opacity[:, -1]):
        np.testing.assert_allclose(edge, 0.0, atol=1e-9)


@pytest.mark.parametrize(
    ("X", "labels", "options", "parameter"),
    [
        (np.zeros(3), [0, 0, 0], {}, "X"),
        (np.zeros((3, 2)), [0, 0], {}, "labels"),
        (np.zeros((3, 2)), [0.0, 0.5, 1.0], {}, "labels"),
        (np.zeros((2, 2)), [-1, 0], {}, "labels"),
        (np.zeros((2, 2)), [0, 2], {"proba": np.ones((2, 2))}, "proba"),
        (np.zeros((2, 2)), [0, 1], {"feature_names": ["a"]}, "feature_names"),
    ],
)
def test_what_cannot_be_drawn_is_refused_by_name(X, labels, options, parameter):
    with pytest.raises(ValueError, match=f"`{parameter}`"):
        draw(X, labels, **options)


def test_drawing_leaves_pyplot_and_torch_alone(tmp_path):
    program = (
        "import sys, numpy as np, neuralbayes as nb; display = nb.plot.StateMapDisplay(np.eye(3), [0, 1, 1]).plot(); "
        "nb.plot.save_picture(display.figure_, sys.argv[1]); "
        "sys.exit('matplotlib.pyplot' in sys.modules or 'torch' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "p.png")], check=True)
