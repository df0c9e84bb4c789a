"""The page of a run and of a model, without a browser: its content, names as text, and errors."""

import base64
import re
import shutil

import numpy as np
import pandas as pd
import pytest
from html_pages import Page, check_self_contained
from report_cases import CLASS, SCRIPT, make_model, make_run

import neuralbayes as nb
from neuralbayes.cli import main
from neuralbayes.system.files import read_json, write_json

MOST = 5_000_000
FAST = ["--map", "pca"]


def unpacked(text, dtype):
    return np.frombuffer(base64.b64decode(text), dtype)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    make_run(folder, n=80, epochs=1)
    make_model(folder, n=240)
    return folder


@pytest.fixture(scope="module")
def run_page(folder):
    assert main(["report", str(folder / "run"), "--out", str(folder / "run.html"), "--quiet"]) == 0
    return Page(folder / "run.html")


@pytest.fixture(scope="module")
def model_page(folder):
    words = ["report", str(folder / "model"), str(folder / "table.csv"), "--labels", "arm"]
    assert main([*words, "--out", str(folder / "model.html"), "--quiet"]) == 0
    return Page(folder / "model.html")


def refused(capsys, *words):
    """The message of the command if it ends with a user error."""
    assert main(["report", *map(str, words)]) == 2
    return " ".join(capsys.readouterr().err.split())


def test_the_page_of_a_run_has_all_sections_warnings_first(run_page):
    wanted = ["know", "explore", "training", "labels", "filters", "run"]
    assert [name for name in run_page.ids() if name in wanted] == wanted
    text = run_page.text
    warned = text.index("2.5 images per state in relu2, 1.2 images per state in relu3")
    assert warned < text.index("Explore the states")
    assert "neuralbayes pretrain" in text
    assert "peak memory" in text
    assert "torch 2." in text


def test_the_page_of_a_model_has_its_certificate(model_page):
    wanted = ["found", "heat", "rows", "know", "explore", "certificate", "training", "labels", "run"]
    assert [name for name in model_page.ids() if name in wanted] == wanted
    assert "filters" not in model_page.ids()
    assert "certified as disjoint manifolds" in model_page.text
    assert len(re.findall(r"cluster \d \d+ [\d.]+ % [\d.]+ yes", model_page.text)) == 3
    assert re.search(r"neuralbayes label \S+table\.csv --columns ", model_page.text)


@pytest.mark.parametrize("name", ["run_page", "model_page"])
def test_the_page_asks_for_nothing_and_allows_nothing_but_itself(name, request):
    check_self_contained(request.getfixturevalue(name))


@pytest.mark.parametrize("name", ["run_page", "model_page"])
def test_the_page_is_small(name, request):
    assert len(request.getfixturevalue(name).source.encode()) < MOST


def test_names_from_the_data_are_text(model_page):
    assert SCRIPT not in model_page.source
    assert CLASS not in model_page.source
    assert model_page.source.count("</script>") == 3
    assert "<!--" not in model_page.source.replace("<!doctype", "")
    columns = [column["name"] for column in model_page.payload["samples"][0]["columns"]]
    assert columns == [SCRIPT, "height"]
    assert model_page.payload["samples"][0]["classNames"] == [f"{CLASS}{k}" for k in range(3)]
    assert "<script>document.title=" in model_page.text, "in the command, where it is text"


def test_folders_with_harmful_names_are_text(folder, tmp_path):
    harmful = tmp_path / "<img src=x onerror=alert(1)>"
    shutil.copytree(folder / "model", harmful)
    words = ["report", str(harmful), str(folder / "table.csv"), "--out", str(tmp_path / "page.html"), "--quiet"]
    assert main(words) == 0
    page = Page(tmp_path / "page.html")
    assert "onerror" not in {name for _, attributes in page.elements for name in attributes}
    assert "<img src=x onerror=alert(1)>" in page.text


def test_the_arrays_of_the_page_are_those_of_the_model(model_page, folder):
    model = nb.load(folder / "model")
    table = pd.read_csv(folder / "table.csv")
    p_zx = model.predict_proba(table[[SCRIPT, "height"]])
    (layer,) = model_page.payload["sides"][0]["layers"]
    np.testing.assert_allclose(unpacked(layer["prior"], "<f4"), p_zx.mean(axis=0), atol=1e-6)
    top = unpacked(layer["top"], "<u2").reshape(240, 3)
    np.testing.assert_array_equal(top[:, 0], model.labels_)
    p = unpacked(layer["topP"], "<u2").reshape(240, 3) / 65535
    np.testing.assert_allclose(p, np.take_along_axis(p_zx, top, axis=1), atol=1e-4)
    typical = unpacked(layer["typical"], "<u2").reshape(3, -1)
    assert layer["midmost"]
    for k in range(3):
        assert (model.labels_[typical[k]] == k).all()
    np.testing.assert_allclose(layer["separation"], model.separation_)
    assert layer["disjoint"] == [True, True, True]
    left, right, bottom, top_ = layer["extent"]
    places = unpacked(layer["places"], "<u2").reshape(240, 2) / 65535 * [right - left, top_ - bottom] + [left, bottom]
    np.testing.assert_allclose(places, table[[SCRIPT, "height"]], atol=1e-3)


def test_the_arrays_of_the_page_are_those_of_the_encoder(run_page, folder):
    layers = run_page.payload["sides"][0]["layers"]
    assert [layer["name"] for layer in layers] == ["relu1", "relu2", "relu3", "relu4"]
    recorded = read_json(folder / "run" / "result.json")["layers"]
    for layer in layers:
        assert layer["information"] == recorded[layer["name"]]["information"]
        prior = unpacked(layer["prior"], "<f4")
        assert prior.shape == (layer["nStates"],)
        assert prior.sum() == pytest.approx(1.0, abs=1e-5)
    samples = run_page.payload["samples"][0]
    assert unpacked(samples["index"], "<u4").tolist() == list(range(80))
    assert samples["sheet"]["width"] == 24


def test_of_many_samples_some_are_in_the_page_and_it_says_so(folder, tmp_path):
    words = ["report", str(folder / "model"), str(folder / "table.csv"), "--samples", "50"]
    assert main([*words, "--out", str(tmp_path / "page.html"), "--quiet"]) == 0
    page = Page(tmp_path / "page.html")
    assert "50 of 240 rows" in page.text
    index = unpacked(page.payload["samples"][0]["index"], "<u4")
    assert len(index) == 50
    assert (np.diff(index.astype(int)) > 0).all()


def test_two_sides_share_their_samples_where_they_saw_the_same(folder, tmp_path):
    words = ["report", str(folder / "run"), "--against", str(folder / "run"), *FAST]
    assert main([*words, "--out", str(tmp_path / "page.html"), "--quiet"]) == 0
    page = Page(tmp_path / "page.html")
    assert len(page.payload["samples"]) == 1
    assert [side["samples"] for side in page.payload["sides"]] == [0, 0]
    assert "compare" in page.ids()
    titles = [side["title"] for side in page.payload["sides"]]
    assert titles == [str(folder / "run")] * 2, "folders of one name are told apart by their paths"
    assert page.ids().count("sheet-0") == 1


def test_two_sides_of_different_kinds_stand_beside_each_other(folder, tmp_path):
    words = ["report", str(folder / "model"), str(folder / "table.csv"), "--samples", "50"]
    other = tmp_path / "other"
    nb.MIMEncoder(hidden=(12, 9), max_epochs=1, random_state=0).fit(pd.read_csv(folder / "table.csv").iloc[:, :2]).save(
        other
    )
    assert main([*words, "--against", str(other), *FAST, "--out", str(tmp_path / "page.html"), "--quiet"]) == 0
    page = Page(tmp_path / "page.html")
    assert [len(side["layers"]) for side in page.payload["sides"]] == [1, 2]
    assert len(page.payload["samples"]) == 1
    assert "MIMEncoder(hidden=(12, 9)" in page.text


def test_a_saved_encoder_of_images_has_a_page(folder, tmp_path):
    images = np.load(folder / "bars.npz")["train_images"]
    encoder = nb.MIMEncoder(encoder="tiny", max_epochs=1, batch_size=40, random_state=0).fit(images)
    encoder.save(tmp_path / "model")
    words = ["report", str(tmp_path / "model"), str(folder / "bars.npz"), *FAST]
    assert main([*words, "--out", str(tmp_path / "page.html"), "--quiet"]) == 0
    page = Page(tmp_path / "page.html")
    assert len(page.payload["sides"][0]["layers"]) == 4
    assert "filters" in page.ids()


def test_warnings_and_probes_in_the_folder_of_the_run_are_in_the_page(folder, tmp_path):
    shutil.copytree(folder / "run", tmp_path / "run")
    result = read_json(tmp_path / "run" / "result.json")
    write_json(tmp_path / "run" / "result.json", result | {"warnings": ["<b>collapsed</b>"]})
    found = {"head": "linear", "n_features": 80, "n_test": 24, "mean": 0.75, "std": 0.01, "accuracies": [0.74, 0.76]}
    rows = [{"features": "encoder relu4", **found, "confusion": [[9, 3], [3, 9]]}]
    write_json(tmp_path / "run" / "probe-linear-relu4.json", {"data": "/somewhere/bars.npz", "results": rows})
    assert main(["report", str(tmp_path / "run"), *FAST, "--out", str(tmp_path / "page.html"), "--quiet"]) == 0
    page = Page(tmp_path / "page.html")
    assert "<b>collapsed</b>" in page.text
    assert "b" not in {tag for tag, _ in page.elements}
    assert "encoder relu4 linear bars.npz 80 75.00 ± 1.00" in page.text
    assert "Probe of encoder relu4: taken for" in page.text


def test_the_command_says_where_the_page_is_how_large_and_what_it_warns_of(folder, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    assert main(["report", str(folder / "run"), *FAST, "--open"]) == 0
    out = capsys.readouterr().out
    assert re.match(r"report\.html \(\d\.\d MB, \d+ s\)\n", out)
    assert "run: Few samples: " in " ".join(out.split())
    assert opened == [(tmp_path / "report.html").as_uri()]
    words = ["report", str(folder / "model"), str(folder / "table.csv"), "--quiet"]
    assert main(words) == 0, "a report may be replaced"
    assert capsys.readouterr().out == ""


def test_a_file_that_is_no_report_is_not_replaced(folder, tmp_path, capsys):
    (tmp_path / "mine.html").write_text("my own page")
    said = refused(capsys, folder / "run", "--out", tmp_path / "mine.html")
    assert re.search(r"mine\.html exists .*--out", said)
    assert (tmp_path / "mine.html").read_text() == "my own page"
    assert "is a folder" in refused(capsys, folder / "run", "--out", tmp_path)


def test_a_folder_that_holds_nothing_of_ours_is_refused(tmp_path, capsys, folder):
    said = refused(capsys, tmp_path)
    for words in ("holds no results", "config.json", "model.json"):
        assert words in said
    assert "holds no results" in refused(capsys, folder / "run", "--against", tmp_path)
    assert "is not a folder" in refused(capsys, tmp_path / "none")


def test_a_run_that_has_not_ended_is_refused(tmp_path, capsys):
    write_json(tmp_path / "config.json", {"method": "mim"})
    assert "run the same pretrain command" in refused(capsys, tmp_path)


def test_data_that_do_not_fit_are_refused(folder, tmp_path, capsys):
    pd.DataFrame({"width": [1.0, 2.0], "height": [1.0, 2.0]}).to_csv(tmp_path / "other.csv", index=False)
    assert "has no column" in refused(capsys, folder / "model", tmp_path / "other.csv")
    np.save(tmp_path / "wide.npy", np.zeros((9, 5)))
    assert "was trained on 3 columns, but" in refused(capsys, folder / "model", tmp_path / "wide.npy")
    assert "must be a folder, a .npy or a .npz" in refused(capsys, folder / "run", folder / "table.csv")
    assert "a model keeps no data: name them" in refused(capsys, folder / "model")
    (tmp_path / "run").mkdir()
    for name in ("encoder.json", "encoder.safetensors"):
        shutil.copy(folder / "run" / name, tmp_path / "run")
    assert "does not say which images it was trained on" in refused(capsys, tmp_path / "run")
    assert (
        main(["report", str(tmp_path / "run"), str(folder / "bars.npz"), *FAST, "--out", str(tmp_path / "p.html")]) == 0
    )
    assert "no record of its training" in Page(tmp_path / "p.html").text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--labels", "species"], "--labels must be a column of"),
        (["--samples", "1"], "--samples must be from 2 to 20,000, got 1"),
        (["--key", "x"], "--key names an array of a .npz file"),
    ],
)
def test_options_that_do_not_fit_are_refused(folder, capsys, words, message):
    assert message in refused(capsys, folder / "model", folder / "table.csv", *words)


def test_options_of_tables_are_refused_for_runs(folder, capsys):
    assert "--labels is for tables" in refused(capsys, folder / "run", "--labels", "arm")
