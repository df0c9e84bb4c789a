"""`neuralbayes label` on images."""

import json
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import neuralbayes as nb
from neuralbayes.cli import main
from neuralbayes.plot import MembersDisplay


@pytest.fixture(autouse=True)
def _here(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def folder(tmp_path):
    digits = nb.datasets.load("digits").train
    for i in range(40):
        path = tmp_path / "pictures.v2" / f"{digits.labels[i] % 2}" / f"{i:02}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(digits.images[i, :, :, 0]).save(path)
    return tmp_path / "pictures.v2"


def said(capsys):
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    return captured.out, " ".join(captured.err.split())


def test_a_folder_gets_a_table_with_paths_a_contact_sheet_and_a_model(folder, capsys, tmp_path):
    assert main(["label", str(folder), "--clusters", "3", "--save", "model"]) == 0
    table = pd.read_csv(tmp_path / "pictures.v2-labels.csv")
    assert list(table) == ["index", "path", "class", "label", "p_0", "p_1", "p_2"]
    assert len(table) == 40
    assert table["path"][0].endswith("00.png")
    assert sorted(table["class"].unique()) == [0, 1]
    np.testing.assert_allclose(table[["p_0", "p_1", "p_2"]].sum(axis=1), 1.0)
    assert (table["label"] == table[["p_0", "p_1", "p_2"]].to_numpy().argmax(axis=1)).all()
    with Image.open(tmp_path / "pictures.v2-labels.png") as picture:
        assert picture.width > 500
    assert nb.load("model").image_shape_ == [8, 8, 1]
    out, _ = said(capsys)
    assert "40 images" in out
    assert "match the classes" in out
    assert f"neuralbayes report model {folder} --open" in out


def test_photographs_are_labelled_in_little_memory(tmp_path):
    """Label eight pictures of 12 megapixels in a new process; at full size, they would take 3 GB."""
    pytest.importorskip("resource")
    (tmp_path / "photos").mkdir()
    rng = np.random.default_rng(0)
    for i in range(8):
        path = tmp_path / "photos" / f"{i:02}.jpg"
        if i < 2:
            small = Image.fromarray(rng.integers(0, 256, (30, 40, 3), np.uint8))
            small.resize((4000, 3000)).save(path)
        else:
            path.write_bytes((tmp_path / "photos" / f"{i % 2:02}.jpg").read_bytes())
    script = (
        "import resource, sys; from neuralbayes.cli import main; "
        "from neuralbayes.clusters import images; images.default_steps = lambda n_samples: 20; "
        "code = main(['label', 'photos', '--clusters', '2', '--quiet', '--save', 'model']); "
        "print(code, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    code, peak = map(int, found.stdout.split())
    assert code == 0
    assert nb.load("model").image_shape_ == [64, 85, 3]
    kilobytes = 1024 if sys.platform == "darwin" else 1
    assert peak / kilobytes < 1.5e6  # a third of it for the libraries


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="names there are text")
def test_names_that_are_no_text_are_written_escaped_and_never_as_a_formula(capsys, tmp_path):
    bad = os.fsencode(tmp_path) + b"/b\xe9d"
    os.makedirs(bad + b"/\xff")
    os.makedirs(bad + b"/cats")
    rng = np.random.default_rng(0)
    for i in range(16):
        Image.fromarray(rng.integers(0, 256, (8, 8), np.uint8)).save("x.png")
        os.rename("x.png", bad + (b"/cats/%02d.png" if i % 2 else b"/\xff/%02d-\xe9.png") % i)
    with open(bad + b"/cats/broken\xfe.png", "wb") as file:
        file.write(b"nothing")
    name = os.fsdecode(os.path.basename(bad))
    assert main(["label", name, "--clusters", "2", "--save", "model", "--out", "labels.csv"]) == 0
    assert "labels.png" in said(capsys)[0]
    paths = pd.read_csv("labels.csv")["path"]
    assert paths[8] == "b\\xe9d/\\xff/00-\\xe9.png"
    assert main(["label", name, "--model", "model", "--out", "labels.parquet", "--json", "--no-picture"]) == 0
    assert list(pd.read_parquet("labels.parquet")["path"]) == list(paths)
    assert main(["report", "model", name, "--out", "page.html", "--quiet"]) == 0
    assert "00-\\xe9.png" in (tmp_path / "page.html").read_text(encoding="utf-8").replace("\\\\", "\\")
    os.chdir(bad + b"/cats")
    os.rename("01.png", "=1+1.png")
    assert main(["label", ".", "--clusters", "2", "--out", str(tmp_path / "formula.csv"), "--quiet"]) == 0
    assert "./=1+1.png" in list(pd.read_csv(tmp_path / "formula.csv")["path"])


def test_a_picture_that_cannot_be_drawn_is_a_note_and_nothing_is_lost(folder, capsys, monkeypatch, tmp_path):
    def fail(*args):
        raise RuntimeError("no fonts")

    monkeypatch.setattr("neuralbayes.plot.members.MembersDisplay.plot", fail)
    assert main(["label", str(folder), "--clusters", "2", "--save", "model", "--json"]) == 0
    summary = json.loads(said(capsys)[0])
    assert summary["picture"] is None
    assert "RuntimeError: no fonts" in summary["notes"][0]
    assert len(pd.read_csv(summary["out"])) == 40
    assert nb.load("model").image_shape_ == [8, 8, 1]


def test_pictures_that_are_made_smaller_are_told(capsys, tmp_path):
    (tmp_path / "large").mkdir()
    for i in range(8):
        pixels = np.random.default_rng(i).integers(0, 256, (80, 100), np.uint8)
        Image.fromarray(pixels).save(tmp_path / "large" / f"{i}.png")
    assert main(["label", "large", "--clusters", "2", "--no-picture"]) == 0
    out, err = said(capsys)
    assert "8 images of 64x80 pixels" in out
    assert "reduced from 80x100 to 64x80 pixels" in err
    assert main(["label", "large", "--clusters", "2", "--no-picture", "--force", "--size", "80x100"]) == 0
    out, err = said(capsys)
    assert "8 images of 80x100 pixels" in out
    assert "reduced" not in err


def test_every_file_that_was_skipped_is_named_in_a_file_beside_the_labels(folder, capsys, tmp_path):
    for i in range(13):
        (folder / "1" / f"broken{i}.png").write_bytes(b"nothing")
    assert main(["label", str(folder), "--clusters", "2", "--json"]) == 0
    summary = json.loads(said(capsys)[0])
    assert summary["skipped"] == 13
    listed = (tmp_path / "pictures.v2-labels-skipped.txt").read_text().splitlines()
    assert summary["skipped_list"] == str(tmp_path / "pictures.v2-labels-skipped.txt")
    assert len(listed) == 13
    assert all("broken" in line for line in listed)
    assert main(["label", str(folder), "--clusters", "2", "--force"]) == 0
    out, err = said(capsys)
    assert "13 files were skipped" in err
    assert "labels-skipped.txt" in out


@pytest.mark.parametrize(("where", "name"), [("1", ".."), (".", "."), ("1", "../../pictures.v2"), ("1", "../")])
def test_a_folder_by_a_path_without_a_name_gets_outputs_with_one(folder, capsys, tmp_path, monkeypatch, where, name):
    monkeypatch.chdir(folder / where)
    assert main(["label", name, "--clusters", "2", "--quiet"]) == 0
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"pictures.v2", "pictures.v2-labels.csv", "pictures.v2-labels.png"}


def test_a_size_that_is_asked_for_is_taken(folder, capsys):
    assert main(["label", str(folder), "--clusters", "2", "--size", "6x7", "--save", "model", "--quiet"]) == 0
    assert nb.load("model").image_shape_ == [6, 7, 1]
    assert main(["label", "digits", "--limit", "40", "--size", "5", "--clusters", "2", "--save", "m", "--quiet"]) == 0
    assert nb.load("m").image_shape_ == [5, 5, 1]


def test_images_that_do_not_fit_into_the_memory_are_refused_before_they_are_decoded(capsys, monkeypatch, tmp_path):
    (tmp_path / "photos").mkdir()
    Image.new("RGB", (400, 300)).save(tmp_path / "photos" / "a.png")
    monkeypatch.setattr("neuralbayes.system.limits.free_memory", lambda: 10**7)
    monkeypatch.setattr("neuralbayes.data.listed.read_picture", None)  # a call would fail
    assert main(["label", "photos", "--size", "300x400"]) == 2
    message = said(capsys)[1]
    for words in ("1 images of 300x400 pixels", "0.0 GB are free", "--size 64"):
        assert words in message
    np.save("large.npy", np.zeros((3, 300, 400, 3), np.uint8))
    assert main(["label", "large.npy"]) == 2
    assert "3 images of 300x400 pixels" in said(capsys)[1]


def test_a_contact_sheet_of_large_images_is_no_larger(capsys, tmp_path):
    np.save("large.npy", np.random.default_rng(0).integers(0, 256, (6, 200, 300, 3), np.uint8))
    seen = []
    whole = MembersDisplay.__init__

    def look(self, images, *rest):
        seen.extend(images)
        whole(self, images, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MembersDisplay, "__init__", look)
        assert main(["label", "large.npy", "--clusters", "2", "--quiet"]) == 0
    assert {row.shape[1:] for row in seen} == {(86, 128, 3)}


def test_a_model_labels_other_images_and_scales_them(folder, capsys, tmp_path):
    assert main(["label", "digits", "--limit", "60", "--clusters", "2", "--save", "model", "--quiet"]) == 0
    assert said(capsys) == ("", "")
    large = np.repeat(np.repeat(nb.datasets.load("digits").test.images[:9], 2, axis=1), 2, axis=2)
    np.save("large.npy", large)
    assert main(["label", "large.npy", "--model", "model", "--json", "--no-picture", "--out", "labels.npz"]) == 0
    summary = json.loads(said(capsys)[0])
    assert summary["images"] == 9
    assert summary["n_clusters"] == 2
    assert not summary["trained"]
    assert summary["agreement"] is None
    assert summary["picture"] is None
    with np.load("labels.npz") as written:
        assert written["labels"].shape == (9,)
        assert written["probabilities"].shape == (9, 2)


def test_auto_is_the_default_and_the_seed_decides(capsys):
    for name in ("a.npy", "b.npy"):
        assert main(["label", "digits", "--limit", "80", "--out", name, "--quiet", "--no-picture"]) == 0
    np.testing.assert_array_equal(np.load("a.npy"), np.load("b.npy"))


def test_a_npz_of_images_is_images_and_one_of_rows_is_a_table(capsys):
    digits = nb.datasets.load("digits").train
    np.savez("images.npz", images=digits.images[:50], labels=digits.labels[:50])
    np.savez("rows.npz", x=np.random.default_rng(0).normal(size=(30, 2)) + 9 * np.eye(2)[np.arange(30) % 2])
    assert main(["label", "images.npz", "--clusters", "2", "--no-picture"]) == 0
    assert "50 images" in said(capsys)[0]
    assert main(["label", "rows.npz", "--clusters", "2", "--no-picture"]) == 0
    assert "30 rows" in said(capsys)[0]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--columns", "a"], "--columns is for tables, but digits holds images"),
        (["--standardize"], "--standardize is for tables, but digits holds images"),
        (["--limit", "0"], "--limit must be at least 1, got 0"),
        (["--clusters", "1"], "--clusters must be a whole number of at least 2"),
        (["--split", "unlabeled"], "unlabeled"),
        (["--picture", "sheet.gif"], "sheet.gif"),
        (["--size", "big"], "--size must be a number of pixels from 1 to 4096, or two as in 48x64 (HxW), got 'big'"),
        (["--size", "0"], "got '0'"),
        (["--size", "9999"], "got '9999'"),
        (["--size", "32", "--model", "nothing"], "--size is for training a model"),
        (["--out", "labels.doc"], "labels.doc must end in one of"),
        (["--model", "nothing"], "--model must hold a saved model"),
    ],
)
def test_what_cannot_be_is_said_before_anything_is_written(words, message, capsys, tmp_path):
    assert main(["label", "digits", *words]) == 2
    assert message in said(capsys)[1]
    assert list(tmp_path.iterdir()) == []


def test_options_of_images_are_refused_for_tables_and_models_of_rows_for_images(capsys, tmp_path):
    np.save("rows.npy", np.random.default_rng(0).normal(size=(30, 2)) + 9 * np.eye(2)[np.arange(30) % 2])
    assert main(["label", "rows.npy", "--split", "test"]) == 2
    assert "--split is for images, but rows.npy is a table" in said(capsys)[1]
    assert main(["label", "rows.npy", "--size", "32"]) == 2
    assert "--size is for images, but rows.npy is a table" in said(capsys)[1]
    assert main(["label", "rows.npy", "--clusters", "2", "--save", "model", "--quiet", "--no-picture"]) == 0
    assert main(["label", "digits", "--model", "model"]) == 2
    assert "must hold an InformationClusterer of images" in said(capsys)[1]


def test_files_that_are_there_are_kept(capsys, tmp_path):
    (tmp_path / "digits-labels.csv").write_text("mine")
    assert main(["label", "digits", "--clusters", "2"]) == 2
    assert "exists already" in said(capsys)[1]
    assert (tmp_path / "digits-labels.csv").read_text() == "mine"


def test_pictures_are_sorted_into_folders_and_odd_ones_are_listed(folder, capsys, tmp_path):
    Image.new("L", (8, 8), 255).save(folder / "1" / "white.png")
    words = ["label", str(folder), "--clusters", "2", "--sort-into", "sorted", "--no-picture", "--json"]
    assert main(words) == 0
    found = json.loads(said(capsys)[0])
    assert found["sorted_into"] == "sorted"
    assert "1 blank picture" in found["notes"][0]
    assert pd.read_csv("pictures.v2-odd.csv").iloc[0].tolist()[:2] == [str(folder / "1" / "white.png"), "blank"]
    table = pd.read_csv("pictures.v2-labels.csv")
    for path, cluster in zip(table["path"], table["label"], strict=True):
        link = tmp_path / "sorted" / f"cluster-{cluster}" / os.path.relpath(path, folder)
        assert link.is_symlink()
        assert link.samefile(path)
    assert main([*words, "--force"]) == 2
    assert "sorted exists already" in said(capsys)[1]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["pictures.v2", "--copy"], "--copy is for --sort-into"),
        (["digits", "--sort-into", "sorted"], "--sort-into is for a folder of pictures"),
        (["table.csv", "--sort-into", "sorted"], "--sort-into is for images"),
        (["pictures.v2", "--sort-into", "pictures.v2/sorted"], "choose a folder outside"),
        (["pictures.v2", "--device", "tpu"], "`device` must be 'auto', 'cpu'"),
    ],
)
def test_what_cannot_be_sorted_is_said_before_anything_is_read(folder, capsys, words, expected):
    pd.DataFrame({"a": [1, 2]}).to_csv("table.csv", index=False)
    assert main(["label", *words]) == 2
    assert expected in said(capsys)[1]
