"""A full or read-only disk: an error that names the path, and nothing lost."""

import errno
import os
import re
import resource
import sys
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest
import torch
from image_cases import bars

import neuralbayes as nb
from neuralbayes.cli import main
from neuralbayes.data.normalize import Normalization
from neuralbayes.data.sources import ArraySource
from neuralbayes.data.tables import write_table
from neuralbayes.features.encoder import ImageEncoder
from neuralbayes.plot import StatesDisplay, save_picture
from neuralbayes.system.files import read_json, write_json, write_tensors
from neuralbayes.training import read_metrics, save_checkpoint

CONFIG = nb.PretrainConfig(encoder="tiny", batch_size=16, microbatch_size=16, epochs=3, scales=(1,))


@contextmanager
def no_file_longer_than(n_bytes):
    """Make the system refuse to write more, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, hard))
    sys.dont_write_bytecode, before = True, sys.dont_write_bytecode  # which would be cut short, and trusted later
    try:
        yield
    finally:
        sys.dont_write_bytecode = before
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture(scope="module")
def encoder():
    images = bars(8)[0]
    return ImageEncoder("tiny", images.shape[1:], Normalization.fit(images, progress=False))


NUMBERS = np.arange(4000.0)
WRITERS = {
    "result.json": lambda path, encoder: write_json(path, NUMBERS.tolist()),
    "weights.safetensors": lambda path, encoder: write_tensors(path, {"x": torch.from_numpy(NUMBERS)}, {}),
    "rows.csv": lambda path, encoder: write_table(path, pd.DataFrame({"x": NUMBERS})),
    "rows.parquet": lambda path, encoder: write_table(path, pd.DataFrame({"x": np.sin(NUMBERS)})),
    "features.npy": lambda path, encoder: nb.write_features(encoder, ArraySource(bars(8)[0]), path),
    "features.parquet": lambda path, encoder: nb.write_features(encoder, ArraySource(bars(8)[0]), path),
    "picture.png": lambda path, encoder: save_picture(StatesDisplay(np.full(9, 1 / 9)).plot().figure_, path),
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_writer_that_runs_out_of_room_names_the_file_and_leaves_the_old_one(name, encoder, tmp_path):
    path = tmp_path / name
    path.write_text("old")
    with no_file_longer_than(1000), pytest.raises(OSError, match=re.escape(str(path))) as caught:
        WRITERS[name](path, encoder)
    assert caught.value.errno in (errno.ENOSPC, errno.EFBIG)
    assert caught.value.filename == str(path)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == [name]
    WRITERS[name](path, encoder)  # with free space
    assert path.stat().st_size > 1000


def test_a_checkpoint_without_room_leaves_the_last_two(tmp_path):
    weights = {"x": torch.from_numpy(NUMBERS)}
    for step in (1, 2):
        save_checkpoint(tmp_path, step, weights)
    with no_file_longer_than(1000), pytest.raises(OSError, match=r"cannot write the checkpoint .*step-000000003"):
        save_checkpoint(tmp_path, 3, weights)
    names = sorted(path.name[:14] for path in (tmp_path / "checkpoints").iterdir())
    assert names == ["step-000000001", "step-000000002"]


def test_a_model_without_room_leaves_the_one_before(tmp_path):
    X = np.r_[NUMBERS[:20], 100 + NUMBERS[:20]].reshape(-1, 1) / 7
    model = nb.ManifoldLabeler(2, n_init=1, max_iter=5, random_state=0).fit(X)
    model.save(tmp_path / "model")
    with no_file_longer_than(500), pytest.raises(OSError, match=r"model/weights\.safetensors"):
        model.set_params(random_state=1).fit(X).save(tmp_path / "model")
    assert nb.load(tmp_path / "model").random_state == 0


@pytest.mark.parametrize("room", [100, 100_000], ids=["for no line of metrics", "for no checkpoint"])
def test_a_run_without_room_goes_on_when_there_is_some(room, tmp_path):
    images = bars(48)[0]
    unbroken = nb.pretrain(images, CONFIG, out=tmp_path / "unbroken")
    broken = tmp_path / "broken"
    write_json(broken / "config.json", read_json(tmp_path / "unbroken" / "config.json"))
    with no_file_longer_than(room), pytest.raises(OSError, match=str(broken)):
        nb.pretrain(images, CONFIG, out=broken)
    encoder = nb.pretrain(images, CONFIG, out=broken)
    for one, other in zip(unbroken.parameters(), encoder.parameters(), strict=True):
        assert torch.equal(one, other)
    assert read_metrics(broken / "metrics.jsonl") == read_metrics(tmp_path / "unbroken" / "metrics.jsonl")


def test_a_folder_without_permission_is_named_before_anything_is_computed(tmp_path, monkeypatch, capsys):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n3,4\n")
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)  # root may write everywhere
    assert main(["cluster", str(tmp_path / "t.csv"), "--out", str(tmp_path / "out")]) == 2
    assert re.search(r"out/labels\.csv: no permission to write there", capsys.readouterr().err)
    assert os.listdir(tmp_path) == ["t.csv"]
