"""`neuralbayes pretrain`, `probe`, `embed` and `export`, in this process, on a few small pictures."""

import json
from functools import partial

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import neuralbayes
from neuralbayes.cli import main
from neuralbayes.cli.runs import DataChoice, layer_names
from neuralbayes.features.encoder import ImageEncoder
from neuralbayes.training import Callback, WarnOnCollapse

TINY = ["--encoder", "tiny", "--batch", "16", "--microbatch", "16", "--epochs", "2"]


def said(capsys):
    captured = capsys.readouterr()
    return captured.out, " ".join(captured.err.split())


def pictures(n, seed=0, shape=(22, 22, 1)):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    x = rng.integers(0, 100, (n, *shape), dtype=np.uint8)
    for image, label in zip(x, y, strict=True):
        image[:, :11] += np.uint8(100 * (label == 0))
    return x, y


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Write a file of arrays with a labelled train and test part."""
    path = tmp_path_factory.mktemp("data") / "pictures.npz"
    (x, y), (tx, ty) = pictures(48), pictures(24, seed=1)
    np.savez(path, train_images=x, train_labels=y, test_images=tx, test_labels=ty)
    return path


@pytest.fixture(scope="module")
def run(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("runs") / "run"
    assert main(["pretrain", str(data), *TINY, "--out", str(folder), "--quiet"]) == 0
    return folder


@pytest.fixture
def no_pictures(monkeypatch):
    """Draw no pictures: they take most of the time of such small runs, and few tests need them."""
    monkeypatch.setattr("neuralbayes.report.run.draw_run", lambda folder: [])


@pytest.fixture
def folder(tmp_path):
    """Make a folder of pictures: two classes, two formats, several sizes, grey and colour, some of them broken."""
    (tmp_path / "mine" / "cats").mkdir(parents=True)
    (tmp_path / "mine" / "dogs").mkdir()
    rng = np.random.default_rng(0)
    for i in range(12):
        side = (24, 30, 40)[i % 3]
        array = rng.integers(0, 256, (side, side, 3), dtype=np.uint8)
        picture = Image.fromarray(array[..., 0] if i % 4 == 0 else array)
        kind = ("cats", "dogs")[i % 2]
        picture.save(tmp_path / "mine" / kind / f"{i:02d}.{('png', 'jpg')[i % 2]}")
    for i in range(7):
        (tmp_path / "mine" / "cats" / f"broken{i}.png").write_bytes(b"\x89PNG\r\n\x1a\n nothing")
    return tmp_path / "mine"


def test_every_command_explains_itself_with_examples(capsys):
    for name in ("pretrain", "probe", "embed", "export"):
        assert main([name, "--help"]) == 0
        out = said(capsys)[0]
        assert f"neuralbayes {name} " in out
        assert "--quiet" in out


def test_pretrain_leaves_encoder_numbers_and_pictures_and_says_where(capsys, data, tmp_path):
    out_folder = tmp_path / "run"
    assert main(["pretrain", str(data), *TINY, "--out", str(out_folder)]) == 0
    out, err = said(capsys)
    for name in ("encoder.safetensors", "result.json", "filters.png", "information.png", "states.png"):
        assert (out_folder / name).is_file()
        assert name in out
    assert "48 images, 6 updates" in out
    assert "nats" in out
    assert "dead states" in out
    assert err == ""


def test_classes_beside_the_features_do_not_leak_into_labels(capsys, data, run, tmp_path):
    features = tmp_path / "features.parquet"
    assert main(["embed", str(run), str(data), "--out", str(features), "--quiet"]) == 0
    assert "label" in pd.read_parquet(features)
    assert main(["label", str(features), "--clusters", "2", "--no-picture", "--json"]) == 0
    summary = json.loads(said(capsys)[0])
    assert summary["used"]
    assert all(name.startswith("f_") for name in summary["used"])
    (why,) = (column["reason"] for column in summary["columns"] if column["name"] == "label")
    assert "neuralbayes embed" in why
    again = tmp_path / "again.csv"
    pd.read_parquet(tmp_path / "features-labels.parquet").to_csv(again, index=False)
    assert main(["label", str(again), "--clusters", "2", "--no-picture", "--json"]) == 0
    summary = json.loads(said(capsys)[0])
    left_out = {column["name"] for column in summary["columns"] if not column["used"]}
    assert left_out == {"index", "label", "label_1", "p_0_1", "p_1_1"}


@pytest.mark.usefixtures("no_pictures")
def test_settings_override_the_preset(data, tmp_path):
    options = {
        "--alpha": "1.5",
        "--beta": "0.5",
        "--version": "1",
        "--scales": "1,3",
        "--marginal": "exact",
        "--learning-rate": "0.002",
        "--weight-decay": "0.01",
        "--smooth-fraction": "0.5",
        "--schedule": "constant",
        "--patience": "3",
        "--precision": "32-true",
        "--seed": "7",
    }
    words = [word for option in options.items() for word in option]
    assert main(["pretrain", str(data), *TINY, *words, "--augment", "--out", str(tmp_path / "r"), "--quiet"]) == 0
    config = json.loads((tmp_path / "r" / "config.json").read_text())
    assert config == {
        **config,
        "encoder": "tiny",
        "alpha": 1.5,
        "beta": 0.5,
        "version": 1,
        "scales": [1, 3],
        "marginal": "exact",
        "learning_rate": 0.002,
        "weight_decay": 0.01,
        "smooth_fraction": 0.5,
        "schedule": "constant",
        "patience": 3,
        "precision": "32-true",
        "augment": True,
        "seed": 7,
        "batch_size": 16,
        "microbatch_size": 16,
        "epochs": 2,
    }


@pytest.mark.usefixtures("no_pictures")
def test_the_same_command_goes_on_and_ends_the_same(capsys, data, run, tmp_path, monkeypatch):
    class Break(Callback):
        def on_step_end(self, state, metrics):
            if state.step == 4:
                raise KeyboardInterrupt

    words = ["pretrain", str(data), *TINY, "--out", str(tmp_path / "r")]
    whole = neuralbayes.pretrain
    monkeypatch.setattr(neuralbayes, "pretrain", lambda *a, **k: whole(*a, **k | {"callbacks": [Break()]}))
    assert main(words) == 130
    assert "run the same command to continue" in said(capsys)[1]
    assert main(["probe", str(tmp_path / "r")]) == 2
    assert "has not finished" in said(capsys)[1]
    monkeypatch.setattr(neuralbayes, "pretrain", whole)
    assert main([*words, "--quiet"]) == 0
    name = "encoder.safetensors"
    assert (tmp_path / "r" / name).read_bytes() == (run / name).read_bytes()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--alpha", "3"], "another config (different: alpha)"),
        (["--limit", "20"], "a run on other images (limit was None)"),
        (["--size", "30"], "a run on other images (size was None)"),
    ],
)
def test_another_command_on_the_same_folder_is_refused(capsys, data, run, words, message):
    assert main(["pretrain", str(data), *TINY, "--out", str(run), *words]) == 2
    assert message in said(capsys)[1]


def test_what_a_killed_process_left_does_not_hinder_the_next(tmp_path):
    for name in (".config.x1.tmp.json", ".data.x2.tmp.json", ".lock"):
        (tmp_path / name).write_text("half")
    DataChoice("digits", "train", None, None, None).keep(tmp_path)
    assert (tmp_path / "data.json").is_file()


def test_a_folder_of_other_things_is_not_written_to(capsys, data, tmp_path):
    (tmp_path / "thesis.txt").write_text("x")
    assert main(["pretrain", str(data), *TINY, "--out", str(tmp_path)]) == 2
    assert "contains files that are not a run" in said(capsys)[1]


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--scales", "1,x"], "--scales must be whole numbers"),
        (["--limit", "0"], "--limit must be at least 1"),
        (["--learning-rate", "0"], "`learning_rate` must be positive"),
        (["--patience", "0"], "`patience` must be at least 1, got 0"),
        (["--precision", "bf16-mixed"], "precision '32-true' if beta is not 0"),
        (["--size", "16"], "at least 22x22 pixels"),
        (["--encoder", "huge"], "--encoder"),
        (["--split", "unlabeled"], "must hold one of the arrays"),
    ],
)
def test_what_pretrain_cannot_do_is_said_and_leaves_nothing_in_the_way(capsys, data, tmp_path, words, message):
    good = ["pretrain", str(data), *TINY, "--out", str(tmp_path / "r")]
    assert main([*good, *words]) == 2
    out, err = said(capsys)
    assert out == ""
    assert message in err
    assert main([*good, "--quiet"]) == 0


def test_training_that_diverges_is_not_called_a_bug(capsys, data, tmp_path, monkeypatch):
    def diverge(*args, **kwargs):
        raise FloatingPointError("metric 'loss' is nan at step 3")

    monkeypatch.setattr(neuralbayes, "pretrain", diverge)
    assert main(["pretrain", str(data), *TINY, "--out", str(tmp_path / "r")]) == 2
    assert "try a smaller --learning-rate" in said(capsys)[1]


@pytest.mark.usefixtures("no_pictures")
def test_tensorboard_if_asked(data, tmp_path):
    pytest.importorskip("tensorboard")
    words = ["pretrain", str(data), *TINY, "--out", str(tmp_path / "r"), "--quiet"]
    assert main(words) == 0
    assert not (tmp_path / "r" / "tensorboard").exists()
    assert main([*words[:-2], str(tmp_path / "s"), "--tensorboard", "--quiet"]) == 0
    assert list((tmp_path / "s" / "tensorboard").glob("events.*"))
    assert (tmp_path / "s" / "metrics.jsonl").read_text() == (tmp_path / "r" / "metrics.jsonl").read_text()


def test_tensorboard_without_the_extra_is_said_before_anything_is_done(capsys, data, tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert main(["pretrain", str(data), *TINY, "--tensorboard", "--out", str(tmp_path / "r")]) == 2
    assert "pip install 'neuralbayes[track]'" in said(capsys)[1]
    assert not (tmp_path / "r").exists()


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.parametrize("quiet", [True, False])
def test_warnings_and_an_early_end_are_told_in_words(capsys, tmp_path, monkeypatch, quiet):
    monkeypatch.setattr("neuralbayes.features.pretraining.WarnOnCollapse", partial(WarnOnCollapse, steps=3))
    np.save(tmp_path / "blank.npy", np.zeros((16, 22, 22, 1), np.uint8))
    words = ["pretrain", str(tmp_path / "blank.npy"), *TINY[:-1], "40", "--patience", "5", "--learning-rate", "1e-9"]
    assert main([*words, "--out", str(tmp_path / "r"), *["--quiet"] * quiet]) == 0
    out, err = said(capsys)
    assert ("warning: relu1 has carried less than 0.01 nats" in err) != quiet
    assert ("ended early: loss did not improve" in out) != quiet
    assert ".py" not in err


@pytest.mark.usefixtures("no_pictures")
def test_a_folder_of_mixed_pictures_trains_and_lists_what_it_skipped(capsys, folder, tmp_path):
    words = ["pretrain", str(folder), *TINY, "--size", "24", "--out", str(tmp_path / "r")]
    assert main(words) == 0
    err = said(capsys)[1]
    assert "7 files were skipped" in err
    assert err.count("broken") == 5
    listed = (tmp_path / "r" / "skipped.txt").read_text().splitlines()
    assert len(listed) == 7
    assert all(line.split("\t")[1] for line in listed)
    assert ImageEncoder.load(tmp_path / "r").shape == (24, 24, 3)

    out = tmp_path / "features.parquet"
    assert main(["embed", str(tmp_path / "r"), str(folder), "--out", str(out)]) == 0
    assert "7 files were skipped" in said(capsys)[1]
    frame = pd.read_parquet(out)
    assert [path.rsplit("/", 2)[-2] for path in frame["path"]] == ["cats"] * 6 + ["dogs"] * 6
    assert frame["label"].tolist() == [0] * 6 + [1] * 6


def test_probe_prints_a_table_and_remembers_the_data(capsys, run):
    words = ["probe", str(run), "--baselines", "--seeds", "2"]
    assert main(words) == 0
    out = said(capsys)[0]
    for name in (
        "encoder relu4",
        "random encoder relu4",
        "pixels",
        "accuracy on 24 test images",
        "computed once",
    ):
        assert name in out
    assert (run / "confusion-mlp-relu4.png").is_file()
    kept = json.loads((run / "probe-mlp-relu4.json").read_text())
    assert kept["data"].endswith("pictures.npz")
    assert [row["features"] for row in kept["results"]] == ["encoder relu4", "random encoder relu4", "pixels"]
    assert kept["results"][0]["n_test"] == 24


def test_probe_as_json_of_all_layers(capsys, run, data):
    assert main(["probe", str(run), "--layer", "all", "--head", "knn", "--data", str(data), "--json"]) == 0
    found = json.loads(said(capsys)[0])
    assert [row["features"] for row in found["results"]] == [f"encoder relu{i}" for i in range(1, 5)]
    assert all(0 <= row["mean"] <= 1 for row in found["results"])
    assert (run / "probe-knn-all.json").is_file()
    assert {f"confusion-knn-relu{i}.png" for i in range(1, 5)} <= {path.name for path in run.iterdir()}


def test_probe_on_other_data_has_files_of_its_own(run, tmp_path):
    other = tmp_path / "other.npz"
    (x, y), (tx, ty) = pictures(30, shape=(30, 30, 3)), pictures(10, shape=(30, 30, 3))
    np.savez(other, train_images=x, train_labels=y, test_images=tx, test_labels=ty)
    words = ["probe", str(run), "--data", str(other), "--layer", "2", "--head", "linear", "--quiet"]
    assert main(words) == 0
    kept = json.loads((run / "probe-linear-relu2-other.npz.json").read_text())
    assert kept["results"][0]["features"] == "encoder relu2"


def test_what_cannot_be_probed_is_said(capsys, run, tmp_path):
    np.save(tmp_path / "x.npy", pictures(10)[0])
    for words, message in (
        (["probe", str(tmp_path)], "encoder.json"),
        (["probe", str(run), "--layer", "7"], "--layer must be last, all, a number"),
        (["probe", str(run), "--data", str(tmp_path / "x.npy")], "have no labels"),
        (["probe", str(run), "--data", str(tmp_path / "no.npz")], "which does not exist"),
        (["probe", str(run), "--seeds", "0"], "`seeds` must be at least 1"),
    ):
        assert main(words) == 2
        assert message in said(capsys)[1]


def test_probe_divides_labelled_pictures_that_have_no_test_part(capsys, folder, run, tmp_path):
    words = ["probe", str(run), "--data", str(folder), "--head", "knn"]
    assert main(words) == 0
    out, _ = said(capsys)
    assert "has no test part" in out
    assert "seed 0" in out
    assert main([*words, "--json"]) == 0
    summary = json.loads(said(capsys)[0])
    found = summary["results"][0]
    assert (found["n_train"], found["n_test"]) == (9, 3)
    assert "3 images" in summary["division"]
    np.savez(tmp_path / "a.npz", images=pictures(20)[0], labels=pictures(20)[1])
    assert main([*words[:2], "--data", str(tmp_path / "a.npz"), *words[4:], "--json"]) == 0
    found = json.loads(said(capsys)[0])["results"][0]
    assert (found["n_train"], found["n_test"]) == (16, 4)


def test_probe_says_that_labels_are_missing_before_anything_is_decoded(capsys, folder, run, monkeypatch):
    (folder / "stray.png").write_bytes((folder / "cats" / "00.png").read_bytes())
    monkeypatch.setattr("neuralbayes.data.listed.read_picture", None)
    assert main(["probe", str(run), "--data", str(folder)]) == 2
    assert "one folder for each class" in said(capsys)[1]


def test_probe_keeps_its_numbers_when_a_picture_cannot_be_drawn(capsys, run, monkeypatch):
    def fail(*args, **options):
        raise RuntimeError("no fonts")

    monkeypatch.setattr("neuralbayes.report.confusion.draw_confusion", fail)
    assert main(["probe", str(run), "--head", "knn", "--layer", "3", "--json"]) == 0
    out, err = said(capsys)
    assert json.loads(out)["files"] == [str(run / "probe-knn-relu3.json")]
    assert "RuntimeError: no fonts" in err


def test_probe_asks_for_data_where_the_run_has_none(capsys, run, tmp_path):
    ImageEncoder.load(run).save(tmp_path / "bare")
    assert main(["probe", str(tmp_path / "bare")]) == 2
    assert "give labelled images with --data" in said(capsys)[1]


def test_embed_writes_one_row_an_image(capsys, run, data, tmp_path):
    out = tmp_path / "f.npy"
    assert main(["embed", str(run), str(data), "--split", "test", "--layer", "2", "--out", str(out)]) == 0
    assert "24 images" in said(capsys)[0]
    features = np.load(out)
    source = neuralbayes.data.sources.ArraySource(pictures(24, seed=1)[0])
    np.testing.assert_allclose(features, ImageEncoder.load(run).features(source, "relu2"), atol=1e-5)

    assert main(["embed", str(run), str(data), "--limit", "5", "--out", str(tmp_path / "g.parquet"), "--quiet"]) == 0
    frame = pd.read_parquet(tmp_path / "g.parquet")
    assert frame["label"].tolist() == pictures(48)[1][:5].tolist()
    assert said(capsys) == ("", "")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--out", "f.txt"], ".parquet, .csv or .npy"),
        (["--out", "there.npy"], "exists already; replace it with --force"),
        (["--out", "f.npy", "--layer", "all"], "--layer must be one layer here"),
    ],
)
def test_embed_finds_out_at_once_what_it_cannot_write(capsys, run, data, tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there.npy").write_text("x")
    assert main(["embed", str(run), str(data), *words]) == 2
    assert message in said(capsys)[1]
    assert main(["embed", str(run), str(data), "--out", "there.npy", "--force", "--quiet"]) == 0


def test_export_says_how_far_it_is_from_the_original(capsys, run, tmp_path):
    out = tmp_path / "encoder.pt2"
    assert main(["export", str(run), "--to", "torch", "--out", str(out)]) == 0
    text = said(capsys)[0]
    assert "(n, 22, 22, 1)" in text
    assert "differs from the original by at most" in text
    assert out.is_file()
    assert main(["export", str(run), "--to", "torch", "--out", str(tmp_path / "encoder.onnx")]) == 2
    assert "--out must end in .pt2 for --to torch" in said(capsys)[1]


def test_export_to_onnx(run, tmp_path):
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    assert main(["export", str(run), "--to", "onnx", "--layer", "3", "--out", str(tmp_path / "e.onnx"), "--quiet"]) == 0
    assert (tmp_path / "e.onnx").is_file()


def test_a_missing_extra_is_named(capsys, run, tmp_path, monkeypatch):
    monkeypatch.setattr("neuralbayes.features.programs.find_spec", lambda name: None)
    assert main(["export", str(run), "--to", "onnx", "--out", str(tmp_path / "e.onnx")]) == 2
    assert "pip install 'neuralbayes[export]'" in said(capsys)[1]


def test_layers_by_every_name():
    assert layer_names("all") == ("relu1", "relu2", "relu3", "relu4")
    assert [layer_names(name) for name in ("last", "4", "relu4")] == [("relu4",)] * 3
    with pytest.raises(ValueError, match="--layer must be"):
        layer_names("0")


MINE = """
import neuralbayes as nb


class Chi(nb.Objective):
    def sample_term(self, p_zx, p_z):
        return 1.0 - (p_zx * p_zx / p_z).sum(dim=1)


half = nb.MIM(alpha=0.5)
"""


@pytest.mark.usefixtures("no_pictures")
def test_pretrain_by_an_objective_of_ones_own(capsys, data, tmp_path):
    (tmp_path / "mine.py").write_text(MINE)
    words = ["pretrain", str(data), *TINY, "--out", str(tmp_path / "r"), "--quiet"]
    assert main([*words, "--objective", str(tmp_path / "mine.py:Chi")]) == 0
    assert json.loads((tmp_path / "r" / "config.json").read_text())["objective"] == "mine.Chi()"
    assert json.loads((tmp_path / "r" / "result.json").read_text())["config"]["objective"] == "mine.Chi()"
    for other in (["--objective", str(tmp_path / "mine.py:half")], []):
        assert main([*words, *other]) == 2
        assert "holds a run with another config (different: objective)" in " ".join(capsys.readouterr().err.split())
    assert main([*words, "--objective", str(tmp_path / "none.py:Chi")]) == 2
    assert "`objective` must be in a file that exists" in " ".join(capsys.readouterr().err.split())
