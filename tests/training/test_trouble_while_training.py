"""Trouble from outside during a run: its data vanish, or the clock jumps."""

import itertools
import time

import numpy as np
import pytest
from image_cases import bars
from PIL import Image

import neuralbayes as nb
from neuralbayes.data.images import load_images
from neuralbayes.data.sources import FilesSource
from neuralbayes.training import Callback

CONFIG = nb.PretrainConfig(encoder="tiny", batch_size=16, microbatch_size=16, epochs=2)


class At(Callback):
    """Call a function after a given step."""

    def __init__(self, step, action):
        self.step, self.action = step, action

    def on_step_end(self, state, metrics):
        if state.step == self.step:
            self.action()


@pytest.fixture(scope="module")
def images():
    return bars(48)[0]


@pytest.fixture(scope="module")
def unbroken(images, tmp_path_factory):
    folder = tmp_path_factory.mktemp("unbroken")
    nb.pretrain(images, CONFIG, out=folder)
    return folder


def assert_same(run, unbroken):
    for name in ("encoder.safetensors", "metrics.jsonl"):
        assert (run / name).read_bytes() == (unbroken / name).read_bytes()


def test_a_folder_of_pictures_that_vanishes_is_named_and_the_run_goes_on_when_it_is_back(images, unbroken, tmp_path):
    folder, away, run = tmp_path / "pictures", tmp_path / "away", tmp_path / "run"
    folder.mkdir()
    for number, image in enumerate(images):
        Image.fromarray(image[..., 0]).save(folder / f"{number:02d}.png")
    streamed = FilesSource(sorted(folder.iterdir()), images.shape[1:])
    with pytest.raises(OSError, match=r"pictures/\d\d\.png could be read at the start .* restore the file"):
        nb.pretrain(streamed, CONFIG, out=run, callbacks=[At(2, lambda: folder.rename(away))])
    assert [path.name[:14] for path in (run / "checkpoints").iterdir()] == ["step-000000002"]
    away.rename(folder)
    nb.pretrain(streamed, CONFIG, out=run)
    assert_same(run, unbroken)


def test_an_array_that_is_deleted_while_it_is_mapped_changes_nothing(images, unbroken, tmp_path):
    path = tmp_path / "images.npy"
    np.save(path, images)
    mapped = load_images(str(path), progress=False)
    nb.pretrain(mapped, CONFIG, out=tmp_path / "run", callbacks=[At(2, path.unlink)])
    assert not path.exists()
    assert_same(tmp_path / "run", unbroken)


def test_a_clock_that_jumps_by_days_changes_nothing(images, unbroken, tmp_path, monkeypatch):
    days = itertools.cycle([0, 3, -400, 30_000])
    monkeypatch.setattr(time, "time", lambda: 1.7e9 + 86_400.0 * next(days))
    nb.pretrain(images, CONFIG, out=tmp_path)
    assert_same(tmp_path, unbroken)
