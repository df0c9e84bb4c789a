"""`neuralbayes embed` in parts: interrupted, damaged, and over several processes, the file is that of one process."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from neuralbayes import parts
from neuralbayes.cli import main, workers
from neuralbayes.data.normalize import Normalization
from neuralbayes.features import export
from neuralbayes.features.encoder import ImageEncoder

N = 430  # images, in parts of 100


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
def _small_parts(monkeypatch):
    monkeypatch.setattr(export, "BLOCK", 100)


@pytest.fixture
def data(tmp_path):
    np.savez(tmp_path / "x.npz", images=pictures(N), labels=np.arange(N) % 7)
    return tmp_path / "x.npz"


@pytest.fixture
def seen(monkeypatch):
    """How many images were encoded, call by call; those of a single image only ask how many features there are."""
    counts = []
    whole = ImageEncoder.features

    def features(self, source, *args, **kwargs):
        if len(source) > 1:
            counts.append(len(source))
        return whole(self, source, *args, **kwargs)

    monkeypatch.setattr(ImageEncoder, "features", features)
    return counts


@pytest.fixture
def as_process(monkeypatch):
    def run_as(rank, world, words):
        monkeypatch.setenv("RANK", str(rank))
        monkeypatch.setenv("WORLD_SIZE", str(world))
        code = main(words)
        monkeypatch.delenv("RANK")
        monkeypatch.delenv("WORLD_SIZE")
        return code

    return run_as


def break_at(monkeypatch, part):
    """Interrupt the process that is about to compute `part`."""
    store = parts.Parts._store

    def broken(self, number, compute):
        if number == part:
            raise KeyboardInterrupt
        store(self, number, compute)

    monkeypatch.setattr(parts.Parts, "_store", broken)
    return lambda: monkeypatch.setattr(parts.Parts, "_store", store)


def unbroken(run, out):
    """The file of a single call that knows no parts."""
    source = export.ArraySource(pictures(N))
    export.write_features(ImageEncoder.load(run), source, out, labels=np.arange(N) % 7)
    return out.read_bytes()


@pytest.mark.parametrize("suffix", ["npy", "parquet"])
def test_an_interrupted_command_goes_on_and_ends_the_same(capsys, run, data, tmp_path, monkeypatch, seen, suffix):
    out, folder = tmp_path / f"f.{suffix}", tmp_path / f"f.{suffix}.parts"
    words = ["embed", str(run), str(data), "--out", str(out)]
    mend = break_at(monkeypatch, 2)
    assert main(words) == 130
    assert f"finished parts are kept in {folder}; the same command goes on with them" in said(capsys)[1]
    assert not out.exists()
    mend()
    assert main(words) == 0
    assert "430 images" in said(capsys)[0]
    assert seen == [100, 100, 100, 100, 30]
    assert not folder.exists()
    assert out.read_bytes() == unbroken(run, tmp_path / f"whole.{suffix}")


@pytest.mark.parametrize("suffix", ["npy", "parquet"])
def test_two_processes_write_the_file_of_one(capsys, run, data, tmp_path, monkeypatch, seen, as_process, suffix):
    out = tmp_path / f"f.{suffix}"
    words = ["embed", str(run), str(data), "--out", str(out)]
    mend = break_at(monkeypatch, 0)
    assert as_process(0, 2, words) == 130  # it has begun
    mend()
    said(capsys)
    assert as_process(1, 2, words) == 0
    assert said(capsys) == ("", "")
    assert seen == [100, 100]
    assert as_process(0, 2, words) == 0
    assert seen == [100, 100, 100, 100, 30]
    assert out.read_bytes() == unbroken(run, tmp_path / f"whole.{suffix}")
    assert not (tmp_path / f"{out.name}.parts").exists()


def test_process_0_is_enough(run, data, tmp_path, monkeypatch, as_process):
    monkeypatch.setattr("neuralbayes.parts.files.PATIENCE", 0.0)
    out = tmp_path / "f.npy"
    assert as_process(0, 4, ["embed", str(run), str(data), "--out", str(out), "--quiet"]) == 0
    assert out.read_bytes() == unbroken(run, tmp_path / "whole.npy")


def test_a_folder_of_pictures_is_looked_through_by_process_0_alone(run, tmp_path, monkeypatch, as_process):
    folder, out = tmp_path / "mine", tmp_path / "f.parquet"
    folder.mkdir()
    for i, picture in enumerate(pictures(23)):
        Image.fromarray(picture[..., 0]).save(folder / f"{i:02d}.png")
    (folder / "05.png").write_bytes(b"\x89PNG\r\n\x1a\n nothing")
    monkeypatch.setattr(export, "BLOCK", 10)
    words = ["embed", str(run), str(folder), "--out", str(out), "--limit", "21", "--quiet"]
    mend = break_at(monkeypatch, 0)
    assert as_process(0, 2, words) == 130
    mend()
    with monkeypatch.context() as patch:
        patch.setattr("neuralbayes.cli.embed.load_fitting", None)
        assert as_process(1, 2, words) == 0
    assert len(list(tmp_path.glob("f.parquet.parts/part-*.npy"))) == 1
    assert as_process(0, 2, words) == 0
    assert main([*words[:4], str(tmp_path / "whole.parquet"), *words[5:]]) == 0
    assert out.read_bytes() == (tmp_path / "whole.parquet").read_bytes()
    assert [Path(path).name for path in pd.read_parquet(out)["path"]] == [f"{i:02d}.png" for i in range(22) if i != 5]


def begun(run, data, out, monkeypatch):
    mend = break_at(monkeypatch, 2)
    assert main(["embed", str(run), str(data), "--out", str(out), "--quiet"]) == 130
    mend()


@pytest.mark.parametrize("what", ["layer", "encoder", "data", "limit"])
def test_parts_of_another_job_are_not_mixed_in(capsys, run, data, tmp_path, monkeypatch, what):
    out = tmp_path / "f.npy"
    own = tmp_path / "run"
    save_encoder(own)
    begun(own, data, out, monkeypatch)
    words = ["embed", str(own), str(data), "--out", str(out), "--quiet"]
    message = "file has changed"
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
    err = said(capsys)[1]
    assert f"f.npy.parts holds parts of another job ({message}" in err
    assert "--force begins anew" in err
    assert main([*words, "--force"]) == 0
    assert main([*words[:4], str(tmp_path / "new.npy"), *words[5:]]) == 0
    assert out.read_bytes() == (tmp_path / "new.npy").read_bytes()


def test_a_truncated_part_is_computed_again(run, data, tmp_path, monkeypatch, seen):
    out = tmp_path / "f.npy"
    begun(run, data, out, monkeypatch)
    part = min((tmp_path / "f.npy.parts").glob("part-*.npy"))
    part.write_bytes(part.read_bytes()[:-100])
    assert main(["embed", str(run), str(data), "--out", str(out), "--quiet"]) == 0
    assert seen == [100, 100, 100, 100, 100, 30]
    assert out.read_bytes() == unbroken(run, tmp_path / "whole.npy")


def test_a_few_images_need_no_folder_and_no_folder_is_left_by_an_error(capsys, run, data, tmp_path, monkeypatch):
    monkeypatch.setattr(parts.Parts, "fill", None)
    words = ["embed", str(run), str(data), "--out", str(tmp_path / "f.npy"), "--quiet"]
    assert main([*words, "--limit", "100"]) == 0
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert main(["embed", str(run), str(tmp_path / "none.npy"), "--out", str(tmp_path / "g.npy")]) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["f.npy", "x.npz"]


@pytest.mark.parametrize(
    ("number", "environment", "message"),
    [
        ("0", {}, "--workers must be from 1 to the number of cores"),
        ("100000", {}, "--workers must be from 1 to the number of cores"),
        ("2", {"RANK": "1", "WORLD_SIZE": "3"}, "this is one of 3 that a launcher has started"),
        ("1", {"RANK": "3", "WORLD_SIZE": "3"}, "RANK must be a number from 0 and below WORLD_SIZE"),
    ],
)
def test_senseless_numbers_of_processes_are_refused(
    capsys, run, data, tmp_path, monkeypatch, number, environment, message
):
    monkeypatch.setattr(workers, "n_cores", lambda: 4)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert main(["embed", str(run), str(data), "--out", "f.npy", "--workers", number]) == 2
    assert message in said(capsys)[1]


WORKER = """
import os, signal, sys
from neuralbayes import parts
from neuralbayes.features import export
from neuralbayes.cli import workers

store = parts.Parts._store

def stored(self, number, compute):
    if os.environ["RANK"] == "1" and number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    store(self, number, compute)

if __name__ == "__main__":
    export.BLOCK = 100
    parts.Parts._store = stored
    sys.exit(workers.work())
"""


def test_a_worker_that_is_killed_ends_the_command_and_the_next_goes_on(capfd, run, data, tmp_path, monkeypatch, seen):
    monkeypatch.setattr(workers, "n_cores", lambda: 2)
    (tmp_path / "worker.py").write_text(WORKER)
    monkeypatch.setattr(workers, "WORKER", [sys.executable, str(tmp_path / "worker.py")])
    out, folder = tmp_path / "f.npy", tmp_path / "f.npy.parts"
    words = ["embed", str(run), str(data), "--out", str(out)]
    assert main([*words, "--workers", "2"]) == 2
    err = capfd.readouterr().err
    assert err.count("error:") == 1
    assert "worker 1 was ended by SIGKILL" in err
    assert "what is finished is kept, and the same command goes on with it" in err
    kept = {path.name.split("-")[1] for path in folder.glob("part-*.npy")}
    assert "00001" in kept
    assert "00003" not in kept
    assert main(words) == 0
    assert len(seen) == 5 - len(kept)
    assert out.read_bytes() == unbroken(run, tmp_path / "whole.npy")
    assert not folder.exists()


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """100,000 images, and their features by one process that nobody interrupts."""
    folder = tmp_path_factory.mktemp("many")
    np.save(folder / "x.npy", np.random.default_rng(0).integers(0, 256, (100_000, 32, 32, 3), dtype=np.uint8))
    images = np.load(folder / "x.npy", mmap_mode="r")
    torch.manual_seed(0)
    ImageEncoder("tiny", (32, 32, 3), Normalization.fit(images[:500])).save(folder / "run")
    subprocess.run(command(folder, "whole.npy"), check=True)
    return folder


def command(folder, out, *options, program=("-m", "neuralbayes")):
    words = ["embed", str(folder / "run"), str(folder / "x.npy"), "--out", str(folder / out), "--quiet"]
    return [sys.executable, *program, *words, *options]


@pytest.mark.slow
@pytest.mark.parametrize("workers_after", ["2", "1"])
def test_half_of_100000_images_survive_a_killed_worker(many, workers_after):
    out, folder = many / f"f{workers_after}.npy", many / f"f{workers_after}.npy.parts"
    process = subprocess.Popen(command(many, out.name, "--workers", "2"), stderr=subprocess.PIPE, text=True)
    while len(list(folder.glob("part-*.npy"))) < 50:
        assert process.poll() is None
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    os.kill(int(children[1]), signal.SIGKILL)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert err.count("error:") == 1
    assert "was ended by SIGKILL" in err
    assert 50 <= len(list(folder.glob("part-*.npy"))) < 100
    subprocess.run(command(many, out.name, "--workers", workers_after), check=True)
    assert not folder.exists()
    assert out.read_bytes() == (many / "whole.npy").read_bytes()


@pytest.mark.slow
def test_torchrun_gives_the_same_file(many):
    launcher = ("-m", "torch.distributed.run", "--nproc-per-node", "2", "-m", "neuralbayes")
    subprocess.run(command(many, "torchrun.npy", program=launcher), check=True)
    assert (many / "torchrun.npy").read_bytes() == (many / "whole.npy").read_bytes()
    assert not (many / "torchrun.npy.parts").exists()
