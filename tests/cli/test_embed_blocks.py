"""`neuralbayes embed` in blocks: interrupted or with workers, it writes the same file as one process."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from neuralbayes.cli import main
from neuralbayes.data.normalize import Normalization
from neuralbayes.data.sources import ArraySource
from neuralbayes.features import feature_files
from neuralbayes.features.encoder import ImageEncoder

N = 430  # number of images, in blocks of 100


def said(capsys):
    captured = capsys.readouterr()
    return captured.out, " ".join(captured.err.split())


def pictures(n, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (n, 22, 22, 1), dtype=np.uint8)


def save_encoder(folder, seed=0):
    torch.manual_seed(seed)
    ImageEncoder("tiny", (22, 22, 1), Normalization.fit(pictures(50))).save(folder)
    return folder


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return save_encoder(tmp_path_factory.mktemp("run"))


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(feature_files, "BLOCK", 100)


@pytest.fixture
def data(tmp_path):
    np.savez(tmp_path / "x.npz", images=pictures(N), labels=np.arange(N) % 7)
    return tmp_path / "x.npz"


@pytest.fixture
def seen(monkeypatch):
    """Record how many images each call encodes; with a number, Ctrl-C comes at that call."""
    counts = []
    whole = ImageEncoder.features

    def features(self, source, *args, **kwargs):
        if len(counts) == features.broken_at:
            raise KeyboardInterrupt
        counts.append(len(source))
        return whole(self, source, *args, **kwargs)

    features.broken_at = None
    monkeypatch.setattr(ImageEncoder, "features", features)
    return counts, features


def unbroken(run, out):
    """The file of a single call without blocks."""
    source = ArraySource(pictures(N))
    feature_files.write_features(ImageEncoder.load(run), source, out, labels=np.arange(N) % 7)
    return out.read_bytes()


@pytest.mark.parametrize("suffix", ["npy", "parquet"])
def test_an_interrupted_command_goes_on_and_ends_the_same(capsys, run, data, tmp_path, seen, suffix):
    counts, features = seen
    out, folder = tmp_path / f"f.{suffix}", tmp_path / f"f.{suffix}.parts"
    words = ["embed", str(run), str(data), "--out", str(out)]
    features.broken_at = 2
    assert main(words) == 130
    assert f"interrupted: finished blocks are kept in {folder};" in said(capsys)[1]
    assert not out.exists()
    features.broken_at = None
    assert main(words) == 0
    assert "430 images" in said(capsys)[0]
    assert counts == [100, 100, 100, 100, 30]
    assert not folder.exists()
    assert out.read_bytes() == unbroken(run, tmp_path / f"whole.{suffix}")


@pytest.mark.parametrize("suffix", ["npy", "parquet"])
def test_workers_write_the_file_of_one_process(run, data, tmp_path, scheduler, suffix):
    out = tmp_path / f"f.{suffix}"
    assert main(["embed", str(run), str(data), "--out", str(out), "--scheduler", scheduler, "--quiet"]) == 0
    assert out.read_bytes() == unbroken(run, tmp_path / f"whole.{suffix}")
    assert not (tmp_path / f"{out.name}.parts").exists()


def test_workers_read_the_pictures_of_a_folder(run, tmp_path, monkeypatch, scheduler):
    folder = tmp_path / "mine"
    folder.mkdir()
    for i, picture in enumerate(pictures(23)):
        Image.fromarray(picture[..., 0]).save(folder / f"{i:02d}.png")
    (folder / "05.png").write_bytes(b"\x89PNG\r\n\x1a\n nothing")
    monkeypatch.setattr(feature_files, "BLOCK", 10)
    words = ["embed", str(run), str(folder), "--limit", "21", "--quiet"]
    assert main([*words, "--out", str(tmp_path / "f.parquet"), "--scheduler", scheduler]) == 0
    assert main([*words, "--out", str(tmp_path / "whole.parquet")]) == 0
    assert (tmp_path / "f.parquet").read_bytes() == (tmp_path / "whole.parquet").read_bytes()
    names = [Path(path).name for path in pd.read_parquet(tmp_path / "f.parquet")["path"]]
    assert names == [f"{i:02d}.png" for i in range(22) if i != 5]


@pytest.mark.parametrize("what", ["layer", "encoder", "data", "limit"])
def test_blocks_of_another_job_are_not_mixed_in(capsys, data, tmp_path, seen, what):
    out, own = tmp_path / "f.npy", save_encoder(tmp_path / "run")
    words = ["embed", str(own), str(data), "--out", str(out), "--quiet"]
    seen[1].broken_at = 2
    assert main(words) == 130
    seen[1].broken_at = None
    said(capsys)
    message = "data has changed"
    if what == "layer":
        words, message = [*words, "--layer", "2"], "layer was 'relu4'"
    elif what == "limit":
        words, message = [*words, "--limit", "250"], "limit was None, rows was 430"
    elif what == "encoder":
        save_encoder(own, seed=1)
        message = "encoder has changed"
    else:
        np.savez(data, images=pictures(N, seed=1), labels=np.arange(N) % 7)
    assert main(words) == 2
    assert f"f.npy.parts holds blocks of another job ({message}" in said(capsys)[1]
    assert main([*words, "--force"]) == 0
    assert main([*words[:4], str(tmp_path / "new.npy"), *words[5:]]) == 0
    assert out.read_bytes() == (tmp_path / "new.npy").read_bytes()


def test_an_error_leaves_no_folder(run, tmp_path):
    assert main(["embed", str(run), str(tmp_path / "none.npy"), "--out", str(tmp_path / "g.npy")]) == 2
    assert list(tmp_path.iterdir()) == []


def test_a_process_of_several_is_told_what_to_do(capsys, run, data, tmp_path, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "3")
    assert main(["embed", str(run), str(data), "--out", str(tmp_path / "f.npy")]) == 2
    assert "one of 3 processes" in (err := said(capsys)[1])
    assert "--workers N or with --scheduler ADDRESS" in err


@pytest.mark.slow
def test_two_local_workers_embed_20000_images_as_one_process_does(tmp_path):
    np.save(tmp_path / "x.npy", np.random.default_rng(0).integers(0, 256, (20_000, 32, 32, 3), dtype=np.uint8))
    torch.manual_seed(0)
    normalization = Normalization.fit(np.load(tmp_path / "x.npy", mmap_mode="r")[:500])
    ImageEncoder("tiny", (32, 32, 3), normalization).save(tmp_path / "run")
    for workers in ("1", "2"):
        words = ["embed", str(tmp_path / "run"), str(tmp_path / "x.npy"), "--out", str(tmp_path / f"{workers}.npy")]
        subprocess.run([sys.executable, "-m", "neuralbayes", *words, "--quiet", "--workers", workers], check=True)
    assert (tmp_path / "1.npy").read_bytes() == (tmp_path / "2.npy").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1.npy", "2.npy", "run", "x.npy"]
