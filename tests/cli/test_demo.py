"""`neuralbayes demo` at a small scale: what it prints and what it writes."""

import base64
import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from demo_cases import make_demo_result
from html_pages import Page, check_self_contained

from neuralbayes import demo
from neuralbayes.cli import main
from neuralbayes.demo import digits, manifolds

SETS = ["moons", "circles", "spirals", "blobs", "one ring"]


@pytest.fixture(scope="module", autouse=True)
def _small():
    """Run the same demo with fewer points, columns, epochs and draws, and a coarser map."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifolds, "N_POINTS", 400)
        patch.setattr(manifolds, "N_FEATURES", 16)
        patch.setattr(manifolds, "GRID", 20)
        patch.setattr(digits, "EPOCHS", 4)
        patch.setattr(digits, "DRAWS", 2)
        patch.setattr("neuralbayes.report.explorer.places.ITERATIONS", 250)
        patch.setattr("neuralbayes.report.explorer.places.MAX_MAPPED", 300)
        yield


@pytest.fixture(scope="module")
def ran(tmp_path_factory, _small):
    """The folder and the output of one demo."""
    folder = tmp_path_factory.mktemp("demo") / "out"
    with pytest.MonkeyPatch.context() as patch:
        printed = []
        patch.setattr("rich.console.Console.out", lambda self, text, **options: printed.append(text))
        assert main(["demo", "--out", str(folder), "--seed", "1", "--json"]) == 0
    (text,) = printed
    return folder, text


@pytest.fixture(scope="module")
def result(ran):
    return json.loads(ran[1])


def test_json_is_what_the_result_file_holds(ran):
    folder, text = ran
    assert json.loads((folder / "result.json").read_text(encoding="utf-8")) == json.loads(text)


def test_a_page_and_pictures_are_written_and_nothing_else_is_left(ran):
    folder = ran[0]
    assert {path.name for path in folder.iterdir()} == {"demo.html", "manifolds.png", "digits.png", "result.json"}
    for name in ("manifolds.png", "digits.png"):
        assert (folder / name).read_bytes().startswith(b"\x89PNG")


def test_the_files_that_are_named_are_there(result):
    assert set(result["files"]) == {"page", "manifolds", "digits", "result"}
    assert all(Path(path).is_file() for path in result["files"].values())


def test_the_page_is_of_this_demo_and_needs_nothing_else(ran, result):
    page = Page(ran[0] / "demo.html")
    check_self_contained(page)
    assert [layer["nStates"] for layer in page.payload["sides"][0]["layers"]] == [256, 256, 128]
    for one in result["manifolds"]:
        assert f"{one['separation_percent']:.1f}" in page.text
    for probe in result["digits"]["probes"]:
        assert f"{probe['features']} {probe['n_features']} {100 * probe['accuracy']['3']:.1f}" in page.text
    assert "neuralbayes demo --seed 1" in page.text


def test_disjoint_sets_are_labelled_and_certified(result):
    assert [one["name"] for one in result["manifolds"]] == SETS
    for one in result["manifolds"][:4]:
        assert one["right"] == one["n_points"] == 400
        assert one["certified"]
        assert 90.0 <= one["separation_percent"] <= 100.0
        assert one["n_clusters_auto"] == one["n_clusters"]


def test_k_means_is_no_match_where_groups_are_not_round(result):
    by_name = {one["name"]: one for one in result["manifolds"]}
    assert by_name["circles"]["kmeans_right"] < 270
    assert by_name["blobs"]["kmeans_right"] == 400


def test_one_ring_is_refused(result):
    ring = result["manifolds"][-1]
    assert not ring["certified"]
    assert ring["separation_percent"] < 60.0
    assert ring["n_clusters_auto"] == 1
    assert ring["right"] is None


def test_layers_learn_within_their_bounds(result):
    for layer in result["digits"]["layers"]:
        assert layer["bound"] == pytest.approx(math.log(layer["n_states"]))
        assert len(layer["curve"]) == 1 + 4
        assert layer["curve"][-1] == layer["information"] <= layer["bound"]
    last = result["digits"]["layers"][-1]["curve"]
    assert last[-1] > 2.0 * last[0]


def test_probes_are_accuracies_of_all_kinds_of_features(result):
    probes = result["digits"]["probes"]
    assert [probe["features"] for probe in probes] == ["pixels", "random encoder", "k-means", "MIM encoder"]
    assert [probe["n_features"] for probe in probes] == [64, 128, 128, 128], "k-means has as many as we"
    for probe in probes:
        assert list(probe["accuracy"]) == ["3", "10", "all"]
        assert 0.4 < probe["accuracy"]["3"] < probe["accuracy"]["all"] <= 1.0


def test_shown_states_have_descending_ratios_above_1(result):
    states = result["digits"]["states"]
    assert states
    for state in states:
        assert state["ratio"] == sorted(state["ratio"], reverse=True)
        assert state["ratio"][-1] > 1.0


@pytest.fixture
def quick(monkeypatch):
    """A demo that takes no time: its numbers are made up, and its page and pictures are empty."""
    made_up = make_demo_result(n_images=60)
    monkeypatch.setattr("neuralbayes.demo.label_manifolds", lambda seed, done: made_up.manifolds)
    monkeypatch.setattr("neuralbayes.demo.learn_digits", lambda seed, done: made_up.digits)
    monkeypatch.setattr("neuralbayes.demo.page.digits_side", lambda result, done: None)
    monkeypatch.setattr("neuralbayes.demo.page._manifolds", lambda results: None)
    monkeypatch.setattr("neuralbayes.demo.page._digits", lambda digits: None)
    monkeypatch.setattr("neuralbayes.report.explorer.page.page_text", lambda sides, story: "")
    monkeypatch.setattr("neuralbayes.demo.pictures.draw_manifolds", lambda panels: None)
    monkeypatch.setattr("neuralbayes.demo.pictures.draw_digits", lambda **given: None)
    monkeypatch.setattr("neuralbayes.demo.pictures.save_picture", lambda figure, path: path.touch())


@pytest.fixture
def opened(monkeypatch):
    """Record the addresses that a browser gets, and ask no question."""
    addresses = []
    monkeypatch.setattr("webbrowser.open", lambda address: addresses.append(address) or True)
    monkeypatch.setattr("builtins.input", None)
    return addresses


def test_the_summary_ends_with_the_path_of_the_page(capsys, tmp_path, quick, opened):
    assert main(["demo", "--out", str(tmp_path)]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert "\x1b" not in captured.out
    for words in ("moons", "refused", "k-means", "MIM encoder", "nats", "1 of 1 sets", str(tmp_path / "digits.png")):
        assert words in captured.out
    assert captured.out.endswith(f"\n{tmp_path / 'demo.html'}\n")
    assert opened == []


@pytest.mark.parametrize("option", ["--quiet", "--json"])
def test_open_opens_and_the_rest_stays_as_it_is(capsys, tmp_path, quick, opened, option):
    assert main(["demo", "--out", str(tmp_path), "--open", option]) == 0
    assert opened == [(tmp_path / "demo.html").as_uri()]
    captured = capsys.readouterr()
    assert captured.err == ""
    if option == "--quiet":
        assert captured.out == ""
    else:
        assert json.loads(captured.out)["files"]["page"] == str(tmp_path / "demo.html")


@pytest.mark.parametrize("options", [["--quiet"], ["--json"], ["--no-open"], []])
def test_a_person_at_a_terminal_is_asked_unless_they_said_something(tmp_path, monkeypatch, quick, options):
    asked = []
    monkeypatch.setattr("neuralbayes.cli.browser._somebody_sees_it", lambda: True)
    monkeypatch.setattr("neuralbayes.cli.browser._agreed", lambda question: asked.append(question))
    assert main(["demo", "--out", str(tmp_path), *options]) == 0
    assert len(asked) == (not options)


def test_numbers_are_kept_when_pictures_cannot_be_drawn(capsys, tmp_path, monkeypatch, quick, opened):
    def fail(figure, path):
        raise RuntimeError("no fonts")

    monkeypatch.setattr("neuralbayes.demo.pictures.save_picture", fail)
    with pytest.warns(UserWarning, match="RuntimeError: no fonts"):
        result = demo.run(tmp_path)
    assert list(result.files) == ["result"]
    assert json.loads((tmp_path / "result.json").read_text())["seed"] == 0


@pytest.mark.parametrize("place", ["learn_digits", "page.write_page", "page.page_text"])
def test_ctrl_c_ends_with_a_line_and_nothing_is_written(capsys, tmp_path, monkeypatch, quick, place):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    module = "neuralbayes.report.explorer" if place == "page.page_text" else "neuralbayes.demo"
    monkeypatch.setattr(f"{module}.{place}", interrupted)
    assert main(["demo", "--out", str(tmp_path / "demo")]) == 130
    assert capsys.readouterr() == ("", "interrupted\n")
    assert not any(path.is_file() for path in tmp_path.rglob("*"))


def test_files_of_an_earlier_demo_are_replaced(tmp_path, quick):
    words = ["demo", "--out", str(tmp_path), "--quiet"]
    assert main(words) == main(words) == 0


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("result.json", '{"images": 5000}', "was not written by neuralbayes demo"),
        ("result.json", "[{}]", "was not written by neuralbayes demo"),
        ("demo.html", "<title>mine</title>", "was not written by neuralbayes demo"),
    ],
)
def test_files_of_others_are_not_replaced(capsys, tmp_path, quick, name, content, message):
    (tmp_path / name).write_text(content)
    assert main(["demo", "--out", str(tmp_path), "--quiet"]) == 2
    assert message in " ".join(capsys.readouterr().err.split())
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == content


@pytest.mark.parametrize(
    ("words", "message"),
    [(["--seed", "-1"], "--seed must be 0 or more"), (["--out", "{file}"], "is a file; choose a folder with --out")],
)
def test_bad_input_is_found_before_anything_is_computed(capsys, tmp_path, words, message):
    file = tmp_path / "file"
    file.write_text("")
    assert main(["demo", *(word.format(file=file) for word in words)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in " ".join(err.split())


def test_the_same_seed_gives_the_same_digits(ran, result):
    again = digits.learn_digits(1, lambda what: None)
    assert again.to_dict() == result["digits"]
    for layer in Page(ran[0] / "demo.html").payload["sides"][0]["layers"]:
        p_z = np.frombuffer(base64.b64decode(layer["prior"]), "<f4")
        np.testing.assert_allclose(p_z, again.posteriors[layer["name"]].mean(axis=0), rtol=1e-5)


def test_help_loads_nothing_heavy():
    program = (
        "import sys; from neuralbayes.cli import main; main(['demo', '--help']); "
        "print(*{name.partition('.')[0] for name in sys.modules}, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert {"torch", "sklearn", "numpy", "matplotlib"}.isdisjoint(done.stderr.split())
    assert "neuralbayes demo --json" in done.stdout
