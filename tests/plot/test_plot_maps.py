import subprocess
import sys

import numpy as np
import pytest
from matplotlib.figure import Figure

from neuralbayes.plot import maps as pictures
from neuralbayes.plot.maps import StateMapDisplay
from neuralbayes.plot.style import new_picture, save_picture


def plot_labels(X, labels, *, ax=None, title=None, **options):
    return StateMapDisplay(X, labels, **options).plot(ax=ax, title=title).ax_


RNG = np.random.default_rng(0)
POINTS = RNG.normal(size=(60, 2))
LABELS = np.repeat([0, 1, 2], [10, 20, 30])


def drawn(ax):
    return np.concatenate([collection.get_offsets() for collection in ax.collections])


def alphas(ax):
    return np.concatenate([collection.get_facecolors()[:, 3] for collection in ax.collections])


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def as_set(points):
    return {tuple(np.round(point, 6)) for point in points}


def test_two_features_are_drawn_as_they_are():
    ax = plot_labels(POINTS, LABELS, feature_names=["width", "height"], title="three")
    assert as_set(drawn(ax)) == as_set(POINTS)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("width", "height")
    assert "three" in [text.get_text() for text in ax.texts]


def test_equal_units_leave_no_empty_room_and_allow_shared_axes():
    flat = StateMapDisplay(POINTS * [4.0, 1.0], LABELS).plot()
    square = StateMapDisplay(POINTS, LABELS).plot()
    assert flat.figure_.get_figheight() < square.figure_.get_figheight()
    limits = np.ptp(flat.ax_.get_xlim()) / np.ptp(flat.ax_.get_ylim())
    flat.figure_.draw_without_rendering()
    assert np.ptp(flat.ax_.get_xlim()) / np.ptp(flat.ax_.get_ylim()) == limits, "the data decide, not the figure"
    figure = Figure()
    for ax in figure.subplots(1, 2, sharex=True, sharey=True):
        assert plot_labels(POINTS, LABELS, ax=ax).get_aspect() == 1.0
    figure.draw_without_rendering()


def test_different_units_are_not_made_equal():
    assert plot_labels(POINTS * [1.0, 1000.0], LABELS).get_aspect() == "auto"


def test_the_legend_gives_the_share_of_each_state_also_of_an_empty_one():
    assert legend(plot_labels(POINTS, LABELS)) == ["cluster 0: 16.7 %", "cluster 1: 33.3 %", "cluster 2: 50.0 %"]
    assert legend(plot_labels(POINTS, LABELS, proba=np.full((60, 4), 0.25)))[3] == "cluster 3: 0.0 %"


def test_more_features_are_drawn_by_their_principal_components():
    directions = np.linalg.qr(RNG.normal(size=(9, 2)))[0]
    plane = POINTS * [5.0, 1.0]
    ax = plot_labels(plane @ directions.T + 7.0, LABELS)
    found = drawn(ax)
    # The plane is found, so all distances from the centre are kept.
    expected = np.linalg.norm(plane - plane.mean(axis=0), axis=1)
    np.testing.assert_allclose(np.sort(np.linalg.norm(found, axis=1)), np.sort(expected), atol=1e-6)
    assert found[:, 0].var() > found[:, 1].var()
    assert "principal component 1 (9" in ax.get_xlabel()
    assert "9 features" in ax.get_title(loc="left")


def test_features_of_different_units_are_drawn_as_a_standardised_fit_saw_them():
    rows = RNG.normal(size=(60, 3)) * [1.0, 10.0, 1e6]
    ax = plot_labels(rows, LABELS, standardize=True)
    assert np.abs(drawn(ax)).max() < 10.0
    assert "divided by its standard deviation" in ax.get_title("left")
    other_units = plot_labels(rows * [7.0, 0.1, 1e-3], LABELS, standardize=True)
    np.testing.assert_allclose(np.abs(drawn(other_units)), np.abs(drawn(ax)), atol=1e-9)
    assert np.abs(drawn(plot_labels(rows, LABELS))).max() > 1e6
    two = plot_labels(rows[:, 1:], LABELS, standardize=True)  # separate axes keep their units
    assert np.abs(drawn(two)).max() > 1e6
    constant = plot_labels(np.column_stack([rows, np.full(60, 3.0)]), LABELS, standardize=True)
    assert np.isfinite(drawn(constant)).all()


def test_one_feature_is_spread_over_the_height():
    ax = plot_labels(POINTS[:, :1], LABELS)
    np.testing.assert_allclose(np.sort(drawn(ax)[:, 0]), np.sort(POINTS[:, 0]))
    assert list(ax.get_yticks()) == []


def test_more_features_than_rows_and_constant_rows_can_be_drawn():
    assert len(drawn(plot_labels(RNG.normal(size=(3, 50)), [0, 1, 0]))) == 3
    assert np.isfinite(drawn(plot_labels(np.ones((5, 4)), np.zeros(5, dtype=int)))).all()
    assert len(drawn(plot_labels(np.ones((1, 4)), [0]))) == 1


def test_of_many_rows_a_part_is_drawn_and_the_picture_says_so():
    ax = plot_labels(POINTS, LABELS, max_points=25)
    assert len(drawn(ax)) == 25
    assert as_set(drawn(ax)) < as_set(POINTS)
    assert "25 of 60 rows" in ax.get_title(loc="left")
    assert legend(ax)[2] == "cluster 2: 50.0 %", "shares are those of all rows"


def test_points_keep_their_colour_when_a_part_is_drawn():
    ax = plot_labels(np.column_stack([LABELS, LABELS]), LABELS, max_points=25)
    colors = np.concatenate([collection.get_facecolors() for collection in ax.collections])
    for state in range(3):
        assert len(np.unique(colors[drawn(ax)[:, 0] == state], axis=0)) == 1
    assert len(np.unique(colors, axis=0)) == 3


def test_the_less_certain_the_paler():
    proba = np.full((60, 3), 1.0 / 3)
    proba[:30] = np.eye(3)[LABELS[:30]]
    ax = plot_labels(np.column_stack([np.arange(60), np.arange(60)]), LABELS, proba=proba)
    certain = drawn(ax)[:, 0] < 30
    assert alphas(ax)[certain].min() > 2 * alphas(ax)[~certain].max()
    assert "pale where uncertain" in ax.get_title(loc="left")


def test_a_single_state_is_certain():
    assert alphas(plot_labels(POINTS, LABELS * 0, proba=np.ones((60, 1)))).min() == pytest.approx(0.85)


def test_states_beyond_the_colours_get_another_marker_and_a_short_legend():
    ax = plot_labels(np.repeat(POINTS, 2, axis=0), np.arange(120) % 20)
    assert len(ax.collections) == 3
    assert len(drawn(ax)) == 120
    assert len(legend(ax)) == pictures.MAX_LEGEND
    assert ax.get_legend().get_title().get_text() == "the largest 14 of 20"


@pytest.mark.parametrize(
    ("X", "labels", "extra", "message"),
    [
        (np.zeros(3), [0, 0, 0], {}, r"`X` must have shape \(n_rows, n_features\), got \(3,\)"),
        (np.zeros((3, 2)), [0, 0], {}, r"`labels` must be 3 non-negative integers, got int64 of shape \(2,\)"),
        (np.zeros((3, 2)), [0.0, 0.5, 1.0], {}, "got float64"),
        (np.zeros((2, 2)), [-1, 0], {}, "non-negative"),
        (np.zeros((2, 2)), [0, 2], {"proba": np.ones((2, 2))}, r"n_states > 2, got \(2, 2\)"),
        (np.zeros((2, 2)), [0, 1], {"feature_names": ["a"]}, "`feature_names` must be 2 names"),
    ],
)
def test_what_cannot_be_drawn_is_refused(X, labels, extra, message):
    with pytest.raises(ValueError, match=message):
        plot_labels(X, labels, **extra)


@pytest.mark.parametrize(
    ("suffix", "magic"), [(".png", b"\x89PNG"), (".PNG", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF")]
)
def test_pictures_are_written_whole_in_each_format(tmp_path, suffix, magic):
    figure, ax = new_picture()
    assert plot_labels(POINTS, LABELS, ax=ax) is ax
    save_picture(figure, tmp_path / f"p{suffix}")
    assert (tmp_path / f"p{suffix}").read_bytes().startswith(magic)
    assert [path.name for path in tmp_path.iterdir()] == [f"p{suffix}"]


def test_a_picture_of_unknown_format_is_refused_and_nothing_written(tmp_path):
    with pytest.raises(ValueError, match=r"must end in one of \.png, \.svg, \.pdf"):
        save_picture(Figure(), tmp_path / "p.bmp")
    assert list(tmp_path.iterdir()) == []


def test_drawing_leaves_pyplot_and_the_global_backend_alone(tmp_path):
    program = (
        "import sys, numpy as np, neuralbayes as nb; display = nb.plot.StateMapDisplay(np.eye(3), [0, 1, 1]).plot(); "
        "nb.plot.save_picture(display.figure_, sys.argv[1]); "
        "sys.exit('matplotlib.pyplot' in sys.modules or 'torch' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "p.png")], check=True)
