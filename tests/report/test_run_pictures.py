"""Pictures of a pretraining, and of a confusion matrix."""

import math

import numpy as np
import pytest

from neuralbayes.features.pretraining import PretrainConfig, pretrain
from neuralbayes.plot.filters import FiltersDisplay
from neuralbayes.plot.style import save_picture
from neuralbayes.report.confusion import draw_confusion
from neuralbayes.report.run import draw_information, draw_run, draw_states


def texts(ax):
    return [text.get_text() for text in ax.texts]


@pytest.mark.parametrize("channels", [1, 3])
def test_a_run_gets_three_pictures(tmp_path, channels):
    images = np.random.default_rng(0).integers(0, 256, (16, 22, 22, channels), dtype=np.uint8)
    pretrain(images, PretrainConfig(encoder="tiny", epochs=1, batch_size=8, microbatch_size=8), out=tmp_path)
    paths = draw_run(tmp_path)
    assert [path.name for path in paths] == ["filters.png", "information.png", "states.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") and path.stat().st_size > 5000 for path in paths)


def test_a_folder_without_a_run_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"encoder\.json"):
        draw_run(tmp_path)


@pytest.mark.parametrize("channels", [1, 2, 3])
def test_filters_are_scaled_one_by_one_and_the_loudest_comes_first(channels):
    weight = np.zeros((3, channels, 3, 3))
    weight[0, :, 0, 0] = -0.01
    weight[2, :, 1, 1] = 5.0
    wall = FiltersDisplay(weight).plot().ax_.images[0].get_array()
    assert wall[:3, :3].shape == (3, 3, 3)
    np.testing.assert_allclose(wall[1, 1], 1.0)  # the largest weight of the strongest filter
    np.testing.assert_allclose(wall[0, 4], 0.0)  # the negative weight of the weak filter is black all the same
    np.testing.assert_allclose(wall[0, 0], 0.5)  # zero is grey, even in a filter of zeros


def test_many_filters_are_cut_to_the_loudest():
    display = FiltersDisplay(np.random.default_rng(0).normal(size=(300, 3, 3, 3))).plot()
    assert "the 200 strongest of 300" in display.ax_.get_title(loc="left")
    with pytest.raises(ValueError, match="must have shape"):
        FiltersDisplay(np.zeros((3, 3)))


def test_information_has_a_curve_and_a_bound_for_each_layer():
    metrics = [{"step": s, "epoch": 0, "loss": 5.0 - s, "mi/a": 0.5 * s, "mi/b": 0.1} for s in range(4)]
    upper, lower = draw_information(metrics, {"a": math.log(8), "b": math.log(16)}).axes
    curve, bound = upper.lines[:2]
    assert list(curve.get_ydata()) == [0.0, 0.5, 1.0, 1.5]
    assert bound.get_ydata()[0] == pytest.approx(math.log(8))
    assert upper.get_ylim()[1] > math.log(16)
    assert list(lower.lines[0].get_ydata()) == [5.0, 4.0, 3.0, 2.0]
    assert "a: 1.50 of 2.08" in [text.get_text() for text in upper.get_legend().get_texts()]


def test_curves_far_below_their_bounds_fill_the_picture():
    metrics = [{"step": s, "loss": 1.0, "mi/a": 0.01 * s} for s in range(4)]
    upper = draw_information(metrics, {"a": math.log(1000)}).axes[0]
    assert upper.get_ylim()[1] < 0.1
    assert "above the picture" in upper.get_title(loc="left")


def test_a_run_without_metrics_yet_can_be_drawn(tmp_path):
    save_picture(draw_information([], {"a": 1.0}), tmp_path / "x.png")


def test_states_are_sorted_and_the_dead_ones_counted(tmp_path):
    figure = draw_states({"a": np.array([0.01, 0.6, 0.39]), "b": np.full(5, 0.2), "c": np.full(2, 0.5)})
    first, second, _ = figure.axes
    assert "1 of 3 states dead" in first.get_title(loc="left")
    assert "5 states, none dead" in second.get_title(loc="left")
    assert [bar.get_height() for bar in first.patches] == pytest.approx([1.8, 1.17])
    assert list(first.lines[0].get_xdata()) == [2]
    save_picture(figure, tmp_path / "states.png")


def test_confusion_is_in_per_cent_of_the_true_class(tmp_path):
    figure = draw_confusion([[8, 2], [0, 5]], class_names=["cat", "dog"], title="t")
    ax = figure.axes[0]
    np.testing.assert_allclose(ax.images[0].get_array(), [[80, 20], [0, 100]])
    assert texts(ax) == ["80", "20", "100"]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["cat", "dog"]
    save_picture(figure, tmp_path / "c.png")


def test_a_class_without_images_and_many_classes_can_be_drawn(tmp_path):
    empty = draw_confusion([[0, 0], [1, 1]])
    np.testing.assert_allclose(empty.axes[0].images[0].get_array(), [[0, 0], [50, 50]])
    many = draw_confusion(np.eye(100, dtype=int))
    assert texts(many.axes[0]) == []
    save_picture(many, tmp_path / "c.png")


@pytest.mark.parametrize(
    ("matrix", "names", "message"),
    [([[1, 2]], None, "must be square"), ([[1]], ["a", "b"], "must be 1 names, got 2")],
)
def test_a_wrong_matrix_is_refused(matrix, names, message):
    with pytest.raises(ValueError, match=message):
        draw_confusion(matrix, class_names=names)
