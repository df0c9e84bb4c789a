"""`neuralbayes demo`, at a small scale: what it says and what it writes."""

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

from neuralbayes.cli import main
from neuralbayes.demo import digits, manifolds

SETS = ["moons", "circles", "spirals", "blobs", "one ring"]


@pytest.fixture(scope="module", autouse=True)
def _small():
    """The same demo on fewer points, columns, epochs and draws."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifolds, "N_POINTS", 600)
        patch.setattr(manifolds, "N_FEATURES", 16)
        patch.setattr(manifolds, "GRID", 20)
        patch.setattr(digits, "EPOCHS", 4)
        patch.setattr(digits, "DRAWS", 2)
        yield


@pytest.fixture(scope="module")
def ran(tmp_path_factory, _small):
    """The folder and the words of one demo."""
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


def test_pictures_are_written_and_nothing_else_is_left(ran):
    folder = ran[0]
    assert {path.name for path in folder.iterdir()} == {"manifolds.png", "digits.png", "result.json"}
    for name in ("manifolds.png", "digits.png"):
        assert (folder / name).read_bytes().startswith(b"\x89PNG")


def test_the_files_that_are_named_are_there(result):
    assert set(result["files"]) == {"manifolds", "digits", "result"}
    assert all(Path(path).is_file() for path in result["files"].values())


def test_disjoint_sets_are_labelled_and_certified(result):
    assert [one["name"] for one in result["manifolds"]] == SETS
    for one in result["manifolds"][:4]:
        assert one["right"] == one["n_points"] == 600
        assert one["certified"]
        assert 90.0 <= one["separation_percent"] <= 100.0
        assert one["n_clusters_auto"] == one["n_clusters"]


def test_k_means_is_no_match_where_groups_are_not_round(result):
    by_name = {one["name"]: one for one in result["manifolds"]}
    assert by_name["circles"]["kmeans_right"] < 400
    assert by_name["blobs"]["kmeans_right"] == 600


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


def test_probes_are_accuracies_of_all_three_kinds_of_features(result):
    probes = result["digits"]["probes"]
    assert [probe["features"] for probe in probes] == ["pixels", "random encoder", "MIM encoder"]
    for probe in probes:
        assert list(probe["accuracy"]) == ["3", "10", "all"]
        assert 0.4 < probe["accuracy"]["3"] < probe["accuracy"]["all"] <= 1.0


def test_shown_states_have_descending_ratios_above_1(result):
    states = result["digits"]["states"]
    assert states
    for state in states:
        assert state["ratio"] == sorted(state["ratio"], reverse=True)
        assert state["ratio"][-1] > 1.0


def test_the_summary_has_both_tables_and_the_paths(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(manifolds, "SETS", {name: manifolds.SETS[name] for name in ("blobs", "one ring")})
    monkeypatch.setattr(digits, "EPOCHS", 1)
    assert main(["demo", "--out", str(tmp_path)]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert "\x1b" not in captured.out
    for words in ("blobs", "refused", "MIM encoder", "nats", "1 of 1 sets", str(tmp_path / "digits.png")):
        assert words in captured.out


def test_quiet_prints_nothing_and_without_matplotlib_there_are_no_pictures(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(manifolds, "SETS", {"blobs": manifolds.SETS["blobs"]})
    monkeypatch.setattr(digits, "EPOCHS", 1)
    monkeypatch.setattr("neuralbayes.demo.find_spec", lambda name: None)
    assert main(["demo", "--out", str(tmp_path), "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")
    assert [path.name for path in tmp_path.iterdir()] == ["result.json"]


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


def test_the_same_seed_gives_the_same_digits(result):
    again = digits.learn_digits(1, lambda what: None).to_dict()
    assert again == result["digits"]


def test_help_loads_nothing_heavy():
    program = (
        "import sys; from neuralbayes.cli import main; main(['demo', '--help']); "
        "print(*{name.partition('.')[0] for name in sys.modules}, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert {"torch", "sklearn", "numpy", "matplotlib"}.isdisjoint(done.stderr.split())
    assert "neuralbayes demo --json" in done.stdout
