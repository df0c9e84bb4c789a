"""`neuralbayes label`, in this process, with a labeler that splits rows at zero instead of training."""

import io
import json
import math
import re
import sys

import numpy as np
import pandas as pd
import pytest
from label_cases import SignClusterer, SignLabeler, said, split_at_zero

import neuralbayes
from neuralbayes.cli import main
from neuralbayes.plot import StateMapDisplay


@pytest.fixture(autouse=True)
def labeler(monkeypatch):
    split_at_zero(monkeypatch)


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "name": [f"r{i}" for i in range(20)],
            "a": np.r_[-np.linspace(1, 2, 5), np.linspace(1, 2, 15)],
            "b": rng.normal(size=20),
        }
    )
    path = tmp_path / "data.csv"
    frame.to_csv(path, index=False)
    return path


def test_labels_and_probabilities_stand_beside_the_columns_of_the_input(table, capsys):
    assert main(["label", str(table), "--clusters", "2"]) == 0
    labelled = pd.read_csv(table.with_name("data-labels.csv"))
    assert list(labelled) == ["name", "a", "b", "label", "p_0", "p_1"]
    assert labelled["label"].tolist() == [0] * 5 + [1] * 15
    assert labelled["p_1"].tolist() == [0.0] * 5 + [1.0] * 15
    pd.testing.assert_frame_equal(labelled[["name", "a", "b"]], pd.read_csv(table))


def test_the_summary_counts_the_states_and_says_what_was_used(table, capsys):
    assert main(["label", str(table), "--clusters", "2"]) == 0
    out, err = said(capsys)
    assert "2 disjoint manifolds" in out
    assert "25.0 %" in out
    assert "75.0 %" in out
    assert "100.0" in out
    assert "used     a, b" in out
    assert "3 columns: 2 numbers; 1 left out: 1 id" in out
    assert re.search(r"name +left out: id +20 values in 20 rows: hardly any repeats", out)
    assert str(table.with_name("data-labels.csv")) in out
    assert str(table.with_name("data-labels.png")) in out
    assert err == ""


def test_states_that_overlap_are_not_called_disjoint_and_the_warning_becomes_a_note(table, capsys, monkeypatch):
    monkeypatch.setattr(SignLabeler, "disjoint", False)
    assert main(["label", str(table), "--clusters", "2", "--method", "manifolds", "--no-picture"]) == 0
    out, err = said(capsys)
    assert "cluster 0 (separation 50.0 of 100), cluster 1 (separation 50.0 of 100)" in out
    assert err == "note: no restart found disjoint states"


@pytest.mark.parametrize(
    ("method", "disjoint", "expected"),
    [("auto", True, SignLabeler), ("auto", False, SignClusterer), ("information", True, SignClusterer)],
)
def test_auto_takes_manifolds_only_where_all_are_certified(table, capsys, monkeypatch, method, disjoint, expected):
    monkeypatch.setattr(SignLabeler, "disjoint", disjoint)
    for cls in (SignLabeler, SignClusterer):
        monkeypatch.setattr(cls, "made", None)
    assert main(["label", str(table), "--clusters", "2", "--method", method, "--no-picture"]) == 0
    out, err = said(capsys)
    assert err == ""
    assert (SignClusterer.made is not None) == (expected is SignClusterer)
    assert ("2 disjoint manifolds" in out) == (expected is SignLabeler)
    assert ("2 clusters; two halves of the rows agree to 75 %" in out) == (expected is SignClusterer)


def test_json_is_one_object_and_nothing_else(table, capsys, monkeypatch):
    monkeypatch.setattr(SignLabeler, "disjoint", False)
    assert (
        main(
            [
                "label",
                str(table),
                "--clusters",
                "2",
                "--method",
                "manifolds",
                "--json",
                "--save",
                str(table.parent / "model"),
            ]
        )
        == 0
    )
    out, err = said(capsys)
    result = json.loads(out)
    assert err == ""
    assert [state["rows"] for state in result["states"]] == [5, 15]
    assert result["states"][0]["separation"] == pytest.approx(math.log(2) / 2)
    assert result["disjoint"] is False
    assert result["notes"] == ["no restart found disjoint states"]
    assert result["used"] == ["a", "b"]
    assert [column["kind"] for column in result["columns"]] == ["id", "number", "number"]
    assert result["new_columns"] == ["label", "p_0", "p_1"]
    assert result["model"] == str(table.parent / "model")


def test_a_separation_that_could_not_be_measured_is_null(table, capsys, monkeypatch):
    fit = SignLabeler.fit

    def without_certificate(self, X):
        fit(self, X).separation_[0] = np.nan
        return self

    monkeypatch.setattr(SignLabeler, "fit", without_certificate)
    assert main(["label", str(table), "--clusters", "2", "--json", "--no-picture"]) == 0
    assert json.loads(said(capsys)[0])["states"][0]["separation"] is None


def test_quiet_prints_nothing(table, capsys, monkeypatch):
    monkeypatch.setattr(SignLabeler, "disjoint", False)
    assert main(["label", str(table), "--clusters", "2", "--quiet"]) == 0
    assert said(capsys) == ("", "")


def test_options_reach_the_estimator(table):
    main(["label", str(table), "--clusters", "3", "--seed", "7", "--columns", "b,a", "--quiet", "--no-picture"])
    made = SignLabeler.made
    assert (made.n_clusters, made.random_state) == (3, 7)
    assert list(made.vectorizer_.encoders_) == ["a", "b"]


def test_options_of_the_geometry_reach_the_estimator(table):
    words = ["label", str(table), "--quiet", "--no-picture", "--force"]
    main([*words, "--neighbors", "5"])
    assert (SignLabeler.made.vectorizer.standardize, SignLabeler.made.n_neighbors) == (True, 5)
    main([*words, "--no-standardize"])
    assert SignLabeler.made.vectorizer.standardize is False


def test_the_largest_number_to_try_reaches_the_estimator_and_is_for_auto(table, capsys):
    main(["label", str(table), "--max-clusters", "20", "--quiet", "--no-picture"])
    assert (SignLabeler.made.n_clusters, SignLabeler.made.max_clusters) == ("auto", 20)
    assert main(["label", str(table), "--clusters", "3", "--max-clusters", "20"]) == 2
    assert "--max-clusters is for --clusters auto, but --clusters is 3" in said(capsys)[1]


def test_a_saved_model_is_named_in_the_command_to_look_at_it(table, capsys):
    data, folder = table.rename(table.with_name("my data.csv")), table.parent / "model"
    assert main(["label", str(data), "--clusters", "2", "--save", str(folder), "--no-picture"]) == 0
    assert said(capsys)[0].splitlines()[-1] == f"next     neuralbayes report {folder} '{data}' --open"
    assert main(["label", str(data), "--clusters", "2", "--no-picture", "--force"]) == 0
    assert re.search(r"^next +.*--save model/ --force", said(capsys)[0], re.MULTILINE)


def test_the_number_of_clusters_is_auto_and_the_seed_0_by_default(table):
    assert main(["label", str(table), "--quiet", "--no-picture"]) == 0
    assert (SignLabeler.made.n_clusters, SignLabeler.made.random_state) == ("auto", 0)


@pytest.mark.parametrize("clusters", ["1", "0", "-3", "2.5", "many"])
def test_a_senseless_number_of_clusters_is_refused(table, capsys, clusters):
    assert main(["label", str(table), f"--clusters={clusters}"]) == 2
    assert f"--clusters must be a whole number of at least 2, or auto, got '{clusters}'" in said(capsys)[1]


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet"])
def test_an_array_is_labelled_into_a_table_with_generated_names(tmp_path, suffix):
    np.save(tmp_path / "x.npy", np.array([[-1.0, 2.0], [1.0, 3.0]]))
    out = tmp_path / f"out{suffix}"
    assert main(["label", str(tmp_path / "x.npy"), "-k", "2", "--out", str(out), "--quiet", "--no-picture"]) == 0
    frame = pd.read_parquet(out) if suffix == ".parquet" else pd.read_csv(out, sep={".csv": ",", ".tsv": "\t"}[suffix])
    assert list(frame) == ["x0", "x1", "label", "p_0", "p_1"]
    assert frame["label"].tolist() == [0, 1]


def test_an_npy_file_gets_the_labels_alone_and_an_npz_file_both(tmp_path):
    np.savez(tmp_path / "x.npz", X=np.array([[-1.0, 2.0], [1.0, 3.0]]), y=np.zeros(2))
    words = ["label", str(tmp_path / "x.npz"), "--key", "X", "-k", "2", "--quiet", "--no-picture"]
    assert main(words) == 0
    with np.load(tmp_path / "x-labels.npz") as archive:
        assert archive["labels"].tolist() == [0, 1]
        assert archive["probabilities"].tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert main([*words, "--out", str(tmp_path / "labels.npy")]) == 0
    labels = np.load(tmp_path / "labels.npy")
    assert labels.dtype.kind == "i"
    assert labels.tolist() == [0, 1]


def test_the_input_is_never_replaced(table, capsys):
    before = table.read_bytes()
    (table.parent / "link.csv").symlink_to(table)
    for out in (table, table.parent / "link.csv"):
        assert main(["label", str(table), "--out", str(out), "--force"]) == 2
        assert "is the input itself" in said(capsys)[1]
    assert table.read_bytes() == before


def test_another_file_is_replaced_only_with_force(table, capsys):
    words = ["label", str(table), "--clusters", "2", "--quiet"]
    SignLabeler.made = None
    table.with_name("data-labels.png").write_text("a picture")
    assert main(words) == 2
    assert "data-labels.png exists already; replace it with --force" in said(capsys)[1]
    assert SignLabeler.made is None, "it must be refused before anything is computed"
    assert main([*words, "--force"]) == 0


def test_a_folder_of_other_things_is_not_made_a_model(table, capsys):
    folder = table.parent / "thesis"
    folder.mkdir()
    (folder / "chapter1.txt").write_text("...")
    assert main(["label", str(table), "--save", str(folder), "--force"]) == 2
    assert "thesis contains files that are not a model" in said(capsys)[1]


def test_a_saved_model_labels_new_rows_by_the_names_of_its_columns(table, capsys):
    folder = table.parent / "model"
    assert main(["label", str(table), "--clusters", "2", "--save", str(folder), "--quiet"]) == 0
    new = table.with_name("new.csv")
    pd.DataFrame({"id": [7, 9], "b": [0.0, 0.0], "a": [5.0, -5.0]}).to_csv(new, index=False)
    assert main(["label", str(new), "--model", str(folder), "--no-picture"]) == 0
    frame = pd.read_csv(new.with_name("new-labels.csv"))
    assert frame["label"].tolist() == [1, 0]
    assert list(frame) == ["id", "b", "a", "label", "p_0", "p_1"]
    assert "training rows" in said(capsys)[0]


def test_a_model_says_which_columns_it_misses(table, capsys):
    folder = table.parent / "model"
    main(["label", str(table), "--clusters", "2", "--save", str(folder), "--quiet"])
    pd.DataFrame({"a": [1.0], "c": [1.0]}).to_csv(table.with_name("new.csv"), index=False)
    assert main(["label", str(table.with_name("new.csv")), "--model", str(folder)]) == 2
    err = said(capsys)[1]
    assert "has no column 'b'; its columns are 'a', 'c'" in err
    assert "was trained on the columns a, b" in err


def test_a_model_of_named_columns_takes_an_array_of_as_many(table, capsys):
    folder = table.parent / "model"
    main(["label", str(table), "--clusters", "2", "--save", str(folder), "--quiet"])
    new = table.with_name("new.npy")
    np.save(new, np.array([[-1.0, 0.0], [1.0, 0.0]]))
    assert main(["label", str(new), "--model", str(folder), "--quiet", "--no-picture"]) == 0
    assert np.load(new.with_name("new-labels.npy")).tolist() == [0, 1]
    np.save(new, np.ones((2, 5)))
    assert main(["label", str(new), "--model", str(folder), "--force"]) == 2
    assert "has 5 columns without names, not 2" in said(capsys)[1]


@pytest.mark.parametrize(
    "option", [["--clusters", "3"], ["--max-clusters", "9"], ["--seed", "0"], ["--save", "x"], ["--standardize"]]
)
def test_options_of_training_are_refused_with_a_model(table, capsys, option):
    assert main(["label", str(table), "--model", "model", *option]) == 2
    assert f"{option[0]} is for training a model, but with --model none is trained" in said(capsys)[1]


def test_something_that_does_not_label_is_refused_as_a_model(table, capsys, monkeypatch):
    monkeypatch.setattr(neuralbayes, "load", lambda folder: object())
    assert main(["label", str(table), "--model", "model"]) == 2
    assert "model must hold a clusterer, got object" in said(capsys)[1]


def test_the_picture_goes_where_it_is_told_and_nowhere_with_no_picture(table, capsys):
    words = ["label", str(table), "--clusters", "2", "--quiet", "--force"]
    assert main([*words, "--no-picture"]) == 0
    assert not table.with_name("data-labels.png").exists()
    assert main([*words, "--picture", str(table.with_name("pic.svg"))]) == 0
    assert "<svg" in table.with_name("pic.svg").read_text()
    assert main([*words, "--picture", "a.png", "--no-picture"]) == 2
    assert main([*words, "--picture", "a.docx"]) == 2
    assert "a picture must end in one of .png, .svg, .pdf, got 'a.docx'" in said(capsys)[1]


def test_a_name_that_the_terminal_cannot_show_does_not_stop_the_command(table, monkeypatch):
    pd.read_csv(table).rename(columns={"a": "größe"}).to_csv(table, index=False)
    terminal = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", terminal)
    assert main(["label", str(table), "--clusters", "2", "--no-picture"]) == 0
    assert rb"used     gr\xf6\xdfe, b" in terminal.buffer.getvalue()


def test_a_column_that_looks_like_a_formula_is_drawn_by_its_letters(table, capsys):
    pd.read_csv(table).rename(columns={"a": "$\\bad{ $"}).to_csv(table, index=False)
    assert main(["label", str(table), "--clusters", "2", "--json"]) == 0
    summary = json.loads(said(capsys)[0])
    assert summary["used"] == ["$\\bad{ $", "b"]
    assert summary["notes"] == []
    assert table.with_name("data-labels.png").stat().st_size > 1000


def test_a_picture_that_cannot_be_drawn_is_a_note(table, capsys, monkeypatch):
    def fail(self, **options):
        raise RuntimeError("no fonts")

    monkeypatch.setattr("neuralbayes.plot.maps.StateMapDisplay.plot", fail)
    model = table.with_name("model")
    assert main(["label", str(table), "--clusters", "2", "--json", "--save", str(model)]) == 0
    summary = json.loads(said(capsys)[0])
    assert summary["picture"] is None
    assert "RuntimeError: no fonts" in summary["notes"][0]
    assert len(pd.read_csv(table.with_name("data-labels.csv"))) == 20
    assert (model / "model.json").is_file()


def test_the_picture_of_a_standardised_fit_is_of_standardised_columns(table, capsys, monkeypatch):
    frame = pd.read_csv(table).assign(c=1e6 * np.random.default_rng(1).normal(size=20))
    frame.to_csv(table, index=False)
    seen = []
    whole = StateMapDisplay.plot
    monkeypatch.setattr(StateMapDisplay, "plot", lambda self, **options: seen.append(self) or whole(self, **options))
    assert main(["label", str(table), "--clusters", "2", "--standardize", "--quiet"]) == 0
    assert np.abs(seen[0].points).max() < 10


def test_a_table_by_a_path_without_a_name_is_no_bug(table, capsys, monkeypatch):
    monkeypatch.chdir(table.parent)
    assert main(["label", ".", "--key", "x"]) == 2
    assert "empty name" not in said(capsys)[1]


def test_columns_that_were_left_out_for_one_reason_stand_together(table, capsys):
    assert main(["label", str(table), "--clusters", "2", "--no-picture"]) == 0
    capsys.readouterr()
    assert main(["label", str(table.with_name("data-labels.csv")), "--clusters", "2", "--no-picture"]) == 0
    out = said(capsys)[0]
    assert "6 columns: 2 numbers; 4 left out: 1 id, 3 written" in out
    assert "written by neuralbayes label" in " ".join(out.split())
