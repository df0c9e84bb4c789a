"""`neuralbayes pretrain`, `embed`, `probe`, `export` and `demo`, on a few small pictures."""

import json
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import neuralbayes
from conftest import TINY, pictures
from neuralbayes.features.encoder import ImageEncoder
from neuralbayes.training import Callback


@pytest.fixture
def folder(tmp_path):
    """Make a folder of pictures: two classes, several sizes, grey and colour, some of them broken."""
    rng = np.random.default_rng(0)
    for i in range(12):
        kind = tmp_path / "mine" / ("cats", "dogs")[i % 2]
        kind.mkdir(parents=True, exist_ok=True)
        side = (24, 30, 40)[i % 3]
        array = rng.integers(0, 256, (side, side, 3), dtype=np.uint8)
        Image.fromarray(array[..., 0] if i % 4 == 0 else array).save(kind / f"{i:02d}.png")
    for i in range(7):
        (tmp_path / "mine" / "cats" / f"broken{i}.png").write_bytes(b"\x89PNG\r\n\x1a\n nothing")
    return tmp_path / "mine"


def test_pretrain_leaves_an_encoder_and_numbers_and_says_where(run, images, tmp_path):
    found = run("pretrain", images, *TINY, "--out", tmp_path / "run")
    assert (found.code, found.err) == (0, "")
    assert (tmp_path / "run" / "encoder.safetensors").is_file()
    for words in ("48 images, 6 updates", "nats", "dead states", "encoder.safetensors", f"report {tmp_path / 'run'}"):
        assert words in found.out


def test_settings_override_the_preset(run, images, tmp_path):
    words = "--alpha 1.5 --beta 0.5 --learning-rate 0.002 --seed 7 --preset paper --device cpu --limit 32 --size 24"
    assert run("pretrain", images, *TINY, *words.split(), "--quiet", "--out", tmp_path / "r").out == ""
    config = json.loads((tmp_path / "r" / "config.json").read_text())
    given = {"alpha": 1.5, "beta": 0.5, "learning_rate": 0.002, "seed": 7, "scales": [1, 2], "marginal": "minibatch"}
    given |= {"encoder": "tiny", "batch_size": 16, "microbatch_size": 16, "epochs": 2}
    assert given.items() <= config.items()
    result = json.loads((tmp_path / "r" / "result.json").read_text())
    assert (result["images"], ImageEncoder.load(tmp_path / "r").shape) == (32, (24, 24, 1))


def test_the_same_command_continues_and_ends_the_same(run, images, trained, tmp_path, monkeypatch):
    class Break(Callback):
        def on_step_end(self, state, metrics):
            if state.step == 4:
                raise KeyboardInterrupt

    words = ["pretrain", images, *TINY, "--out", tmp_path / "r"]
    whole = neuralbayes.pretrain
    monkeypatch.setattr(neuralbayes, "pretrain", lambda *a, **k: whole(*a, **k | {"callbacks": [Break()]}))
    found = run(*words)
    assert (found.code, "run the same command to continue" in found.err) == (130, True)
    assert "has not finished" in run("probe", tmp_path / "r", images).err
    monkeypatch.setattr(neuralbayes, "pretrain", whole)
    assert run(*words, "--quiet").code == 0
    name = "encoder.safetensors"
    assert (tmp_path / "r" / name).read_bytes() == (trained / name).read_bytes()


@pytest.mark.parametrize(
    ("started", "words", "message"),
    [
        (True, "--alpha 3", "another config (different: alpha)"),
        (True, "--limit 20", "holds a run on other images"),
        (True, "--size 30", "holds a run on other images"),
        (False, "--limit 0", "--limit must be at least 1"),
        (False, "--learning-rate 0", "--learning-rate must be positive"),
        (False, "--size 16", "at least 22x22 pixels"),
        (False, "--device tpu", "--device must be"),
        (False, "--objective none.py:Mine", "--objective must be in a file that exists"),
    ],
)
def test_what_pretrain_cannot_do_is_said(run, images, trained, tmp_path, started, words, message):
    found = run("pretrain", images, *TINY, "--out", trained if started else tmp_path / "r", *words.split())
    assert (found.code, found.out) == (2, "")
    assert message in found.err


def test_training_that_diverges_is_not_called_a_bug(run, images, tmp_path, monkeypatch):
    def diverge(*args, **kwargs):
        raise FloatingPointError("metric 'loss' is nan at step 3")

    monkeypatch.setattr(neuralbayes, "pretrain", diverge)
    found = run("pretrain", images, *TINY, "--out", tmp_path / "r")
    assert (found.code, "try a smaller --learning-rate" in found.err) == (2, True)


def test_pretrain_by_an_objective_of_ones_own(run, images, tmp_path):
    (tmp_path / "mine.py").write_text("import neuralbayes as nb\nhalf = nb.MIM(alpha=0.5)\n")
    words = ["pretrain", images, *TINY, "--out", tmp_path / "r", "--objective", f"{tmp_path}/mine.py:half", "--quiet"]
    assert run(*words).code == 0
    assert "alpha=0.5" in json.loads((tmp_path / "r" / "config.json").read_text())["objective"]


def test_a_folder_of_mixed_pictures_trains_and_is_embedded(run, folder, tmp_path):
    found = run("pretrain", folder, *TINY, "--size", "24", "--out", tmp_path / "r")
    assert found.code == 0
    assert "7 files were skipped" in found.err
    assert found.err.count("broken") == 5
    out = tmp_path / "features.parquet"
    assert run("embed", tmp_path / "r", folder, "--out", out).code == 0
    frame = pd.read_parquet(out)
    assert [path.rsplit("/", 2)[-2] for path in frame["path"]] == ["cats"] * 6 + ["dogs"] * 6
    assert frame["label"].tolist() == [0] * 6 + [1] * 6
    summary = json.loads(run("cluster", out, "-k", "2", "--json", "--out", tmp_path / "labels.csv").out)
    used = [column["name"] for column in summary["columns"] if column["used"]]
    assert used
    assert all(name.startswith("f_") for name in used)


def test_embed_writes_one_row_an_image(run, trained, images, tmp_path):
    out = tmp_path / "f.npy"
    words = ["embed", trained, images, "--split", "test", "--layer", "2", "--device", "cpu", "--out", out]
    assert "24 images" in run(*words).out
    expected = ImageEncoder.load(trained).features(pictures(24, seed=1)[0], "relu2")
    np.testing.assert_allclose(np.load(out), expected, atol=1e-5)
    assert "exists already; replace it with --force" in run(*words).err
    assert run(*words, "--force", "--quiet").out == ""
    assert "must end in .parquet, .csv or .npy" in run(*words[:-1], tmp_path / "f.txt").err
    assert "--layer" in run(*words[:5], "--layer", "7", "--out", tmp_path / "g.npy").err


def test_probe_prints_a_table_and_keeps_the_numbers(run, trained, images):
    found = run("probe", trained, images, "--baselines", "--seeds", "2", "--limit", "20", "--device", "cpu")
    assert found.code == 0
    for name in ("encoder relu4", "random encoder relu4", "pixels", "accuracy on 20 test images"):
        assert name in found.out
    kept = json.loads((trained / "probe-mlp-relu4-pictures.npz.json").read_text())
    assert [row["features"] for row in kept["results"]] == ["encoder relu4", "random encoder relu4", "pixels"]
    assert not kept["held_out"]
    summary = json.loads(run("probe", trained, images, "--layer", "1", "--head", "knn", "--json").out)
    assert summary["results"][0]["n_test"] == 24
    assert summary["results"][0]["features"] == "encoder relu1"


def test_probe_divides_labelled_pictures_that_have_no_test_part(run, trained, folder, tmp_path):
    found = run("probe", trained, folder, "--head", "linear")
    assert "There is no test part" in found.out
    assert run("probe", trained, folder, "--head", "linear", "--quiet").out == ""
    np.save(tmp_path / "x.npy", pictures(10)[0])
    found = run("probe", trained, tmp_path / "x.npy")
    assert (found.code, "classes" in found.err) == (2, True)


def test_export_says_how_far_it_is_from_the_original(run, trained, clustered, tmp_path):
    out = tmp_path / "encoder.pt2"
    found = run("export", trained, "--out", out)
    assert "uint8 images (n, 22, 22, 1) to relu4; differs from the original by at most" in found.out
    assert "exists already" in run("export", trained, "--out", out).err
    assert run("export", trained, "--out", out, "--layer", "3", "--force", "--quiet").code == 0
    assert "--out must end in .onnx or .pt2" in run("export", trained, "--out", tmp_path / "e.bin").err
    found = run("export", clustered, "--out", tmp_path / "clusters.pt2")
    assert "to probabilities, labels" in found.out


def test_export_to_onnx(run, trained, tmp_path, monkeypatch):
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    assert run("export", trained, "--layer", "3", "--out", tmp_path / "e.onnx", "--quiet").code == 0
    monkeypatch.setattr("neuralbayes.estimators.export.find_spec", lambda name: None)
    found = run("export", trained, "--out", tmp_path / "f.onnx")
    assert (found.code, "pip install 'neuralbayes[export]'" in found.err) == (2, True)


def test_report_of_a_run_needs_its_images(run, trained, images, tmp_path):
    found = run("report", trained)
    assert (found.code, f"neuralbayes report {trained} {images}" in found.err) == (2, True)
    assert run("report", trained, images, "--out", tmp_path / "run.html").code == 0
    assert (tmp_path / "run.html").stat().st_size > 1000


def test_demo_writes_a_page_and_opens_it(run, tmp_path, monkeypatch):
    def run_demo(out, *, progress):
        progress("digits")
        out.mkdir()
        (out / "demo.html").write_text("page")
        return out / "demo.html"

    monkeypatch.setitem(sys.modules, "neuralbayes.demo", SimpleNamespace(run_demo=run_demo))
    opened = []
    monkeypatch.setattr("webbrowser.open", lambda address: opened.append(address) or True)
    assert str(tmp_path / "d" / "demo.html") in run("demo", "--out", tmp_path / "d").out
    assert opened == []
    assert run("demo", "--out", tmp_path / "e", "--open", "--quiet").out == ""
    assert len(opened) == 1
