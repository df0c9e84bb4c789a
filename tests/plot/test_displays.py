"""Each display draws its data, into given axes or a new figure, in light or dark."""

import numpy as np
import pytest
from matplotlib.figure import Figure

import neuralbayes as nb
from neuralbayes.plot.style import DARK, current_theme
from neuralbayes.system.files import write_json

RNG = np.random.default_rng(0)
P_ZX = RNG.dirichlet(np.full(6, 0.3), size=40)
IMAGES = RNG.integers(0, 256, (40, 5, 5), dtype=np.uint8)
BAD = "$\\bad{ $"  # a formula that matplotlib cannot read

DISPLAYS = {
    "states": nb.plot.StatesDisplay([0.3, 0.5, 0.2], name=BAD),
    "curves": nb.plot.CurvesDisplay({BAD: ([0, 1], [0.0, 1.0])}, bounds={BAD: 2.0}, title=BAD),
    "map": nb.plot.StateMapDisplay(P_ZX[:, :2], P_ZX.argmax(1), feature_names=[BAD, "b"]),
    "members": nb.plot.MembersDisplay([IMAGES[:2], IMAGES[:1]], [BAD, "b"], [[2.0, 1.0], [3.0]]),
    "filters": nb.plot.FiltersDisplay(RNG.normal(size=(4, 3, 3, 3))),
    "crosstab": nb.plot.CrosstabDisplay([0, 1, 1], [0, 0, 1], class_names=[BAD, "b"]),
    "dendrogram": nb.plot.DendrogramDisplay([[0, 1, 0.5, 2], [2, 3, 1.0, 3]], 2, names=[BAD, "b", "c"]),
}
each_display = pytest.mark.parametrize("display", DISPLAYS.values(), ids=DISPLAYS)


@each_display
def test_axes_go_in_and_come_out(display):
    figure = Figure()
    ax = figure.subfigures(1, 2)[1].subplots()
    assert display.plot(ax=ax) is display
    assert display.ax_ is ax
    assert display.figure_ is figure, "the whole figure, not its part"
    assert display.plot().figure_ is not figure


@each_display
def test_each_is_saved_in_light_and_in_dark_and_shows_names_as_they_are(display, tmp_path):
    for name in ("light", "dark"):
        with nb.plot.theme(name):
            nb.plot.save_picture(display.plot().figure_, tmp_path / f"{name}.svg")
    light, dark = ((tmp_path / f"{name}.svg").read_text() for name in ("light", "dark"))
    assert DARK.ground not in light
    assert DARK.ground in dark


def test_a_notebook_shows_what_is_drawn_unless_pyplot_shows_it_already():
    from matplotlib import pyplot

    display = nb.plot.StatesDisplay([0.5, 0.5])
    assert display._repr_png_() is None
    assert display.plot()._repr_png_().startswith(b"\x89PNG")
    figure, ax = pyplot.subplots()
    assert display.plot(ax=ax)._repr_png_() is None
    pyplot.close(figure)


def test_a_theme_ends_with_its_block_also_after_an_error():
    before = current_theme()
    with pytest.raises(KeyError), nb.plot.theme("dark"):
        raise KeyError
    assert current_theme() is before


def test_pictures_are_written_whole_by_their_suffix(tmp_path):
    for suffix, magic in ((".PNG", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF")):
        nb.plot.save_picture(Figure(), tmp_path / f"p{suffix}")
        assert (tmp_path / f"p{suffix}").read_bytes().startswith(magic)
    with pytest.raises(ValueError, match="docx"):
        nb.plot.save_picture(Figure(), tmp_path / "p.docx")
    assert len(list(tmp_path.iterdir())) == 3


def test_states_are_drawn_in_units_of_the_equal_share():
    display = nb.plot.StatesDisplay.from_posterior(np.diag([0.3, 0.6, 0.02, 0.08]))
    assert [bar.get_height() for bar in display.ax_.patches] == pytest.approx([2.4, 1.2, 0.32])
    assert display.ax_.get_title(loc="left") == "1 of 4 states dead"


def test_a_run_is_drawn_from_what_it_wrote(tmp_path):
    lines = ['{"step": 1, "loss": 3.0, "mi/a": 0.5, "mi/b": 0.1}', '{"step": 2, "loss": 2.0, "mi/a": 1, "mi/b": 0.2}']
    (tmp_path / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    assert nb.plot.CurvesDisplay.from_run(tmp_path).curves == {"loss": ([1, 2], [3.0, 2.0])}
    assert set(nb.plot.CurvesDisplay.from_run(tmp_path, "information").curves) == {"a", "b"}
    write_json(tmp_path / "result.json", {"layers": {"a": {"information": 1.5, "bound": 2.0}}})
    finished = nb.plot.CurvesDisplay.from_run(tmp_path, "information")
    assert (finished.curves, finished.bounds) == ({"a": ([1, 2], [0.5, 1])}, {"a": 2.0})
    assert finished.ax_.get_legend().get_texts()[0].get_text() == "a: 1.00 of 2.00"
    with pytest.raises(FileNotFoundError, match="`folder`"):
        nb.plot.CurvesDisplay.from_run(tmp_path / "none")


def test_losses_of_an_estimator_are_drawn_by_iteration():
    class Clusterer:
        loss_curve_, n_iter_, n_iter_start_ = [4.0, 3.0, 2.0, 1.0], 8, 4

    curves = nb.plot.CurvesDisplay.from_estimator(Clusterer()).curves
    assert curves == {"start": ([2, 4], [4.0, 3.0]), "clusters": ([6, 8], [2.0, 1.0])}


def test_members_are_the_images_with_the_largest_ratio_of_the_states_that_say_most():
    display = nb.plot.MembersDisplay.from_posterior(P_ZX, IMAGES, n_members=3)
    p_z = P_ZX.mean(axis=0)
    states = np.argsort(-(P_ZX * np.log(P_ZX / p_z)).mean(axis=0))
    assert display.names == [f"state {k}" for k in states]
    for k, images, ratios in zip(states, display.images, display.ratios, strict=True):
        best = np.argsort(-P_ZX[:, k])[:3]
        np.testing.assert_array_equal(images, IMAGES[best])
        np.testing.assert_allclose(ratios, P_ZX[best, k] / p_z[k])


@pytest.mark.parametrize("shape", [(3, 4, 5, 5), (3, 4, 5, 5, 1), (3, 4, 5, 5, 3)])
def test_members_stand_in_rows(shape):
    images = RNG.integers(1, 256, shape).astype(np.uint8)
    display = nb.plot.MembersDisplay([images[0, :2], *images[1:]], ["a", "b", "c"], [[2.0] * 4] * 3).plot()
    wall = display.ax_.images[0].get_array()
    assert wall.shape[:2] == (3 * 6 - 1, 4 * 6 - 1)
    if shape[-1] == 3:
        np.testing.assert_allclose(wall[6:11, 12:17, :3], images[1, 2] / 255)
        assert wall[5, 0, 3] == wall[0, 12, 3] == 0.0, "nothing between rows, or where an image is missing"
    else:
        np.testing.assert_array_equal(wall[6:11, 12:17], images[1, 2].reshape(5, 5))


def test_the_strongest_filters_come_first_scaled_to_their_largest_weight():
    weight = np.zeros((3, 1, 2, 2))
    weight[:, 0, 0, 0] = [1.0, -4.0, 2.0]
    tiles = nb.plot.FiltersDisplay(weight).tiles
    assert tiles[:, 0, 0, 0].tolist() == [0.0, 1.0, 1.0]
    assert (tiles[:, 1, 1] == 0.5).all()


def test_a_crosstab_orders_the_states_by_their_classes():
    display = nb.plot.CrosstabDisplay.from_labels([5, 5, -1, 2, 2], [0, 0, 1, 1, 0], class_names=["cat", "dog"])
    assert display.counts.columns.tolist() == [5, 2, -1]
    assert display.counts.loc["dog"].tolist() == [0, 1, 1]
    assert [text.get_text() for text in display.ax_.texts] == ["100", "50", "50", "100"]
    many = nb.plot.CrosstabDisplay.from_labels(np.repeat(np.arange(30), 2), np.arange(60) % 3)
    assert not many.ax_.texts
    assert "30 states" in many.ax_.get_xlabel()


@pytest.mark.parametrize(
    ("make", "parameter"),
    [
        (lambda: nb.plot.theme("grey").__enter__(), "name"),
        (lambda: nb.plot.StatesDisplay([0.5, -0.1]), "p_z"),
        (lambda: nb.plot.StatesDisplay.from_posterior([0.5, 0.5]), "p_z"),
        (lambda: nb.plot.CurvesDisplay({"a": ([1, 2], [1.0])}), "curves"),
        (lambda: nb.plot.CurvesDisplay({}, bounds={"a": 1.0}), "bounds"),
        (lambda: nb.plot.CurvesDisplay.from_run(".", "accuracy"), "what"),
        (lambda: nb.plot.MembersDisplay(IMAGES[None], ["a", "b"], [[1.0]]), "names"),
        (lambda: nb.plot.MembersDisplay([IMAGES[0]], ["a"], [[1.0]]), "images"),
        (lambda: nb.plot.MembersDisplay.from_posterior(P_ZX, IMAGES[:3]), "p_zx"),
        (lambda: nb.plot.MembersDisplay.from_posterior(P_ZX, IMAGES, states=[6]), "states"),
        (lambda: nb.plot.FiltersDisplay(np.ones((3, 3))), "weight"),
        (lambda: nb.plot.CrosstabDisplay([0, 1], [0]), "states"),
        (lambda: nb.plot.DendrogramDisplay([[0, 0, 0]]), "linkage"),
        (lambda: nb.plot.DendrogramDisplay([[0, 1, 0.5, 2]], 3), "n_clusters"),
        (lambda: nb.plot.DendrogramDisplay([[0, 1, 0.5, 2]], names=["a"]), "names"),
        (lambda: nb.plot.CrosstabDisplay([0, 1], [0, 1], class_names=["a"]), "class_names"),
    ],
)
def test_what_cannot_be_drawn_is_refused_by_name(make, parameter):
    with pytest.raises(ValueError, match=f"`{parameter}`"):
        make()
