"""Each display draws its data, into given axes or new ones."""

import math

import numpy as np
import pytest
from matplotlib.figure import Figure

import neuralbayes as nb
from neuralbayes.plot.members import borderline, posterior_entropy, telling_states, typical
from neuralbayes.plot.regions import PALE, Regions
from neuralbayes.plot.style import DARK, current_theme
from neuralbayes.system.files import write_json

RNG = np.random.default_rng(0)
P_ZX = RNG.dirichlet(np.full(6, 0.3), size=40)
IMAGES = RNG.integers(0, 256, (40, 5, 5), dtype=np.uint8)
METRICS = [{"step": s, "loss": 5.0 - s, "mi/a": 0.5 * s} for s in range(4)]

DISPLAYS = {
    "states": lambda ax: nb.plot.StatesDisplay.from_posterior(P_ZX, ax=ax),
    "information": lambda ax: nb.plot.InformationDisplay.from_posteriors({"a": P_ZX}, ax=ax),
    "curves": lambda ax: nb.plot.CurvesDisplay.from_metrics(METRICS, "information", bounds={"a": 2.0}, ax=ax),
    "map": lambda ax: nb.plot.StateMapDisplay(P_ZX, P_ZX.argmax(1)).plot(ax=ax),
    "members": lambda ax: nb.plot.MembersDisplay.from_posterior(P_ZX, IMAGES, ax=ax),
    "filters": lambda ax: nb.plot.FiltersDisplay(RNG.normal(size=(4, 3, 3, 3))).plot(ax=ax),
    "crosstab": lambda ax: nb.plot.CrosstabDisplay.from_labels([0, 1, 1], [0, 0, 1], ax=ax),
    "dendrogram": lambda ax: nb.plot.DendrogramDisplay([[0, 1, 0.5, 2], [2, 3, 1.0, 3]], 2).plot(ax=ax),
}


@pytest.mark.parametrize("draw", DISPLAYS.values(), ids=DISPLAYS)
def test_axes_go_in_and_come_out(draw):
    ax = Figure().add_subplot()
    display = draw(ax)
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    alone = draw(None)
    assert alone.ax_.figure is alone.figure_
    assert alone.figure_ is not display.figure_


@pytest.mark.parametrize("draw", DISPLAYS.values(), ids=DISPLAYS)
def test_a_picture_in_a_part_of_a_figure_has_the_whole_figure(draw):
    figure = Figure()
    assert draw(figure.subfigures(1, 2)[1].subplots()).figure_ is figure


@pytest.mark.parametrize("draw", DISPLAYS.values(), ids=DISPLAYS)
def test_a_notebook_shows_a_display_that_ends_a_cell(draw):
    assert draw(None)._repr_png_().startswith(b"\x89PNG")


def test_a_notebook_shows_no_display_that_is_not_drawn_or_that_pyplot_shows_already():
    from matplotlib import pyplot

    assert nb.plot.StatesDisplay([0.5, 0.5])._repr_png_() is None
    figure, ax = pyplot.subplots()
    assert nb.plot.StatesDisplay([0.5, 0.5]).plot(ax=ax)._repr_png_() is None
    pyplot.close(figure)


@pytest.mark.parametrize("draw", DISPLAYS.values(), ids=DISPLAYS)
def test_each_can_be_saved_in_light_and_in_dark(draw, tmp_path):
    for name in ("light", "dark"):
        with nb.plot.theme(name):
            nb.plot.save_picture(draw(None).figure_, tmp_path / f"{name}.svg")
    light, dark = ((tmp_path / f"{name}.svg").read_text() for name in ("light", "dark"))
    assert DARK.ground not in light
    assert DARK.ground in dark


def test_a_theme_ends_with_its_block_also_after_an_error():
    before = current_theme()
    with nb.plot.theme("dark"):
        assert current_theme() is DARK
    with pytest.raises(KeyError), nb.plot.theme("dark"):
        raise KeyError
    assert current_theme() is before
    with pytest.raises(ValueError, match="`name` must be 'light' or 'dark', got 'grey'"), nb.plot.theme("grey"):
        pass


def test_states_are_drawn_in_units_of_the_equal_share():
    display = nb.plot.StatesDisplay([0.3, 0.6, 0.02, 0.08]).plot()
    assert [bar.get_height() for bar in display.ax_.patches] == pytest.approx([2.4, 1.2, 0.32])
    assert display.dead.tolist() == [False, False, True, False]
    assert display.ax_.get_title(loc="left") == "1 of 4 states dead"


def test_information_is_a_bar_inside_its_bound():
    display = nb.plot.InformationDisplay({"a": 0.5, "b": 1.0}, {"a": math.log(2), "b": math.log(4)}).plot()
    widths = [bar.get_width() for bar in display.ax_.patches]
    assert widths == pytest.approx([math.log(2), math.log(4), 0.5, 1.0])
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == ["a", "b"]


def test_a_run_is_drawn_from_what_it_wrote(tmp_path):
    write_json(tmp_path / "result.json", {"layers": {"a": {"information": 1.5, "bound": 2.0}}})
    lines = ['{"step": 1, "loss": 3.0, "mi/a": 0.5}', '{"step": 2, "loss": 2.0, "mi/a": 1}']
    (tmp_path / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    assert nb.plot.InformationDisplay.from_run(tmp_path).information == {"a": 1.5}
    curves = nb.plot.CurvesDisplay.from_run(tmp_path, "information")
    assert (curves.curves, curves.bounds) == ({"a": ([1, 2], [0.5, 1])}, {"a": 2.0})
    assert nb.plot.CurvesDisplay.from_run(tmp_path).curves == {"loss": ([1, 2], [3.0, 2.0])}
    for draw in (nb.plot.InformationDisplay.from_run, nb.plot.CurvesDisplay.from_run):
        with pytest.raises(FileNotFoundError, match="`folder` must hold"):
            draw(tmp_path / "none")


def test_estimators_are_drawn_by_their_attributes():
    X = RNG.normal(size=(60, 3))
    encoder = nb.MIMEncoder(hidden=(8, 4), max_epochs=2, random_state=0).fit(X)
    assert list(nb.plot.InformationDisplay.from_estimator(encoder).information.values()) == pytest.approx(
        encoder.mutual_information_
    )
    assert nb.plot.CurvesDisplay.from_estimator(encoder).curves["loss"][1] == encoder.loss_curve_
    shown = nb.plot.StatesDisplay.from_estimator(encoder, X)
    np.testing.assert_allclose(shown.p_z, encoder.predict_proba(X).mean(axis=0), rtol=1e-5)


def test_typical_members_are_those_of_the_largest_ratio():
    ratio = P_ZX / P_ZX.mean(axis=0)
    for k, found in enumerate(typical(P_ZX, 5)):
        assert found.tolist() == np.argsort(-ratio[:, k], kind="stable")[:5].tolist()
    assert typical(P_ZX[:3], 5).shape == (6, 3), "no more than there are"


def test_borderline_members_are_claimed_and_the_most_uncertain():
    entropy, claimed = posterior_entropy(P_ZX), P_ZX.argmax(axis=1)
    for k, found in enumerate(borderline(P_ZX, 3)):
        own = np.flatnonzero(claimed == k)
        assert found.tolist() == own[np.argsort(-entropy[own], kind="stable")][:3].tolist()
    assert borderline(np.array([[1.0, 0.0]]), 3)[1].tolist() == []


def test_the_states_that_say_most_add_up_to_the_information():
    import torch

    order = telling_states(P_ZX)
    p_z = P_ZX.mean(axis=0)
    parts = (P_ZX * np.log(P_ZX / p_z)).mean(axis=0)
    assert (np.diff(parts[order]) <= 1e-12).all()
    assert parts.sum() == pytest.approx(float(nb.mutual_information(torch.from_numpy(P_ZX))))


@pytest.mark.parametrize("shape", [(3, 4, 5, 5), (3, 4, 5, 5, 1), (3, 4, 5, 5, 3)])
def test_members_stand_in_rows(shape):
    images = RNG.integers(1, 256, shape).astype(np.uint8)
    display = nb.plot.MembersDisplay(images, ["a", "b", "c"], [[2.0] * 4] * 3).plot()
    wall = display.ax_.images[0].get_array()
    assert wall.shape[:2] == (3 * 6 - 1, 4 * 6 - 1)
    if shape[-1] == 3:
        np.testing.assert_allclose(wall[6:11, 12:17, :3], images[1, 2] / 255)
        assert wall[5, 0, 3] == 0.0, "nothing between rows"
    else:
        np.testing.assert_array_equal(wall[6:11, 12:17], images[1, 2].reshape(5, 5))


def test_a_crosstab_of_many_states_has_no_numbers():
    states = np.repeat(np.arange(30), 2)
    display = nb.plot.CrosstabDisplay.from_labels(states, states % 3, class_names=["a", "b", "c"])
    assert len(display.ax_.texts) == 0
    assert "30 states" in display.ax_.get_xlabel()
    np.testing.assert_allclose(display.percent.sum(axis=0), 100.0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: nb.plot.StatesDisplay([0.5, -0.1]), "`p_z` must be probabilities"),
        (lambda: nb.plot.StatesDisplay.from_posterior([0.5, 0.5]), r"`p_zx` must have shape \(n_samples, n_states\)"),
        (lambda: nb.plot.InformationDisplay({"a": 1.0}, {"b": 1.0}), "must have the same layers"),
        (lambda: nb.plot.InformationDisplay({"a": 1.0}, {"a": 0.0}), "`bounds` must be positive"),
        (lambda: nb.plot.CurvesDisplay({"a": ([1, 2], [1.0])}), "a value for each place"),
        (lambda: nb.plot.CurvesDisplay({}, bounds={"a": 1.0}), "`bounds` must have the names of `curves`"),
        (lambda: nb.plot.CurvesDisplay.from_metrics([], "accuracy"), "`what` must be 'information' or 'loss'"),
        (lambda: nb.plot.MembersDisplay(IMAGES[None], ["a", "b"], [[1.0]]), "must be of one length, got 1, 2 and 1"),
        (lambda: nb.plot.MembersDisplay([IMAGES[0]], ["a"], [[1.0]]), r"`images` must be arrays \(n, H, W\)"),
        (lambda: nb.plot.MembersDisplay.from_posterior(P_ZX, IMAGES[:3]), r"must have shape \(3, n_states\)"),
        (lambda: nb.plot.MembersDisplay.from_posterior(P_ZX, IMAGES, states=[6]), "`states` must be from 0 to 5"),
        (lambda: nb.plot.CrosstabDisplay([1, 2]), r"`counts` must have shape \(n_rows, n_columns\)"),
        (lambda: nb.plot.CrosstabDisplay([[1, 2]], column_names=["a"]), "`column_names` must be 2 names, got 1"),
        (lambda: nb.plot.CrosstabDisplay([[1, 2]], normalize="all"), "`normalize` must be 'rows' or 'columns'"),
        (lambda: nb.plot.CrosstabDisplay.from_labels([0, 1], [0]), "must be of one length"),
        (lambda: nb.plot.CrosstabDisplay.from_labels([0, -1], [0, 1]), "`states` must be integers from 0"),
    ],
)
def test_what_cannot_be_drawn_is_refused_by_name(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_regions_belong_to_two_features():
    labeler = nb.ManifoldLabeler(n_clusters=2, n_init=2, random_state=0)
    X = np.concatenate([RNG.normal(size=(30, 3)), RNG.normal(size=(30, 3)) + 9.0])
    flat = nb.plot.StateMapDisplay.from_estimator(labeler.fit(X[:, :2]), X[:, :2])
    assert flat.regions is not None
    np.testing.assert_allclose(flat.regions.p_zx.sum(axis=2), 1.0, rtol=1e-6)
    assert nb.plot.StateMapDisplay.from_estimator(labeler.fit(X), X).regions is None
    with pytest.raises(ValueError, match="`regions` must belong to rows with two features, got 3"):
        nb.plot.StateMapDisplay(X, np.zeros(60, int), regions=flat.regions)


def test_regions_have_faded_at_their_edges():
    points = RNG.normal(size=(200, 2)) * [3.0, 1.0]
    regions = Regions.of(lambda grid: np.full((len(grid), 2), 0.5), points)
    opacity = regions.image(points)[..., 3]
    assert opacity.max() == pytest.approx(PALE)
    for edge in (opacity[0], opacity[-1], opacity[:, 0], opacity[:, -1]):
        np.testing.assert_allclose(edge, 0.0, atol=1e-9)


def test_regions_of_a_table_with_names():
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(np.concatenate([RNG.normal(size=(30, 2)), RNG.normal(size=(30, 2)) + 9.0]), columns=["a", "b"])
    labeler = nb.ManifoldLabeler(n_clusters=2, n_init=2, random_state=0).fit(X)
    display = nb.plot.StateMapDisplay.from_estimator(labeler, X)
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("a", "b")


BAD = "$\\bad{ $"  # a formula that matplotlib cannot read
NAMED = {
    "states": lambda name: nb.plot.StatesDisplay([0.5, 0.5], name=name).plot(),
    "information": lambda name: nb.plot.InformationDisplay({name: 0.4}, {name: 0.6}).plot(),
    "curves": lambda name: nb.plot.CurvesDisplay({name: ([0, 1], [0.0, 1.0])}, bounds={name: 2.0}, title=name).plot(),
    "map": lambda name: nb.plot.StateMapDisplay(P_ZX[:, :2], P_ZX.argmax(1), feature_names=[name, "b"]).plot(
        title=name
    ),
    "members": lambda name: nb.plot.MembersDisplay([IMAGES[:2]], [name], [[2.0, 1.0]]).plot(),
    "crosstab": lambda name: nb.plot.CrosstabDisplay([[1, 2]], row_names=[name], column_names=[name, "b"]).plot(
        title=name
    ),
}


@pytest.mark.parametrize("name", [BAD, "$", "a\\$b$", "$x$ and $y$", "caf\udce9"])
@pytest.mark.parametrize("draw", NAMED.values(), ids=NAMED)
def test_names_are_drawn_letter_by_letter(draw, name, tmp_path):
    nb.plot.save_picture(draw(name).figure_, tmp_path / "picture.svg")
    assert (tmp_path / "picture.svg").stat().st_size > 1000


def test_a_dollar_sign_is_shown():
    display = NAMED["map"]("price in $")
    shown, is_formula = display.ax_.xaxis.label._preprocess_math(display.ax_.get_xlabel())
    assert (shown, is_formula) == ("price in $", False)
