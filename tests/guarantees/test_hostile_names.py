"""Names of files, columns and cells are text: on the page, in tables of results, and in the terminal."""

import os
import re
import sys

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import neuralbayes as nb
from neuralbayes.cli import main
from neuralbayes.data.normalize import Normalization
from neuralbayes.features.encoder import ImageEncoder

RNG = np.random.default_rng(0)
NAMES = ["=1+1", "@SUM(A1)", "+cmd|' C calc'!A0", "\x1b]0;x\x07", "\u202egnp.exe", "<script>alert(1)<script>", "A", "a"]
UNSEEN = set("\x1b\x07\u202e")


def check_results(folder, said):
    """Markup is text, control characters are spelled, and no cell starts a formula."""
    page = (folder / "report.html").read_text()
    assert "<script>alert" not in page
    assert not UNSEEN & set(page + said)
    cells = pd.read_csv(folder / "labels.csv", dtype=str, header=None, keep_default_na=False).to_numpy().ravel()
    assert [cell for cell in cells if re.match(r"[=@\x00-\x1f]|\+cmd", cell)] == []
    written = [path.name for path in folder.rglob("*")]
    assert len({name.casefold() for name in written}) == len(written)


def test_columns_and_cells_are_text_everywhere(tmp_path, capsys):
    group = np.arange(80) % 4
    frame = pd.DataFrame(RNG.normal(size=(80, 8)) + 8 * np.eye(4, 8)[group], columns=NAMES)
    frame["kind"] = np.array(NAMES[:4])[group]
    frame.to_parquet(tmp_path / "t.parquet")
    assert main(["cluster", str(tmp_path / "t.parquet"), "-k", "4", "--out", str(tmp_path / "out")]) == 0
    printed = capsys.readouterr()
    check_results(tmp_path / "out", printed.out + printed.err)
    words = ["predict", str(tmp_path / "out"), str(tmp_path / "t.parquet"), "--out", str(tmp_path / "new.csv")]
    assert main(words) == 0
    assert "'=1+1" in (tmp_path / "new.csv").read_text()


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such names")
def test_a_line_break_in_the_name_of_a_file_forges_no_line(tmp_path, capsys):
    path = tmp_path / "t\nerror: the disk is full\n.csv"
    pd.DataFrame(RNG.normal(size=(40, 2)) + 9 * np.eye(2)[np.arange(40) % 2]).to_csv(path, index=False)
    assert main(["cluster", str(path), "-k", "2"]) == 0
    assert main(["cluster", str(path), "-k", "2", "--columns", "no"]) == 2
    printed = capsys.readouterr()
    assert [line for line in (printed.out + printed.err).splitlines() if line.startswith("error: the disk")] == []


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such names")
def test_names_of_pictures_and_folders_are_text_everywhere(tmp_path, capsys):
    folder = tmp_path / "p"
    names = [name.replace("/", "-") for name in NAMES]
    names += [os.fsdecode(b"caf\xe9")] if sys.platform == "linux" else []
    for k, name in enumerate(names):
        (folder / name).mkdir(parents=True)
        for i in range(4):
            pixels = RNG.integers(0, 100, (24, 24), dtype=np.uint8) + np.uint8(100 * (k % 2))
            Image.fromarray(pixels).save(folder / name / f"{name}-{i}.png")
    words = ["cluster", str(folder), "-k", "2", "--features", "pixels", "--out", str(tmp_path / "out")]
    assert main(words) == 0
    printed = capsys.readouterr()
    check_results(tmp_path / "out", printed.out + printed.err)
    images = nb.load_images(str(folder), progress=False)
    encoder = ImageEncoder("tiny", images.source.shape, Normalization.fit(images, progress=False))
    paths = [os.path.basename(path) for path in images.source.paths]
    told = {"labels": images.labels, "class_names": images.class_names, "names": paths}
    nb.write_features(encoder, images, tmp_path / "f.csv", **told)
    table = pd.read_csv(tmp_path / "f.csv", dtype=str)
    assert not table["path"].str.match(r"[=@]|\+cmd").any()
    assert not table["class"].str.match(r"[=@]|\+cmd").any()
