"""Commands that are killed at any time leave each file old or new, but whole, and the next run finishes the work."""

import random
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

import neuralbayes as nb
from neuralbayes.training import read_metrics

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL is of POSIX")]

TINY = ["--encoder", "tiny", "--batch", "16", "--microbatch", "16", "--epochs", "20", "--seed", "3"]


def command(*words):
    return [sys.executable, "-m", "neuralbayes", *map(str, words), "--quiet"]


def kill(words, times, check, until):
    """Kill a command at random times of the second half of its run, and check what is left."""
    rng, killed = random.Random(0), 0
    start = time.monotonic()
    subprocess.run(until, check=True, capture_output=True)
    lasts = time.monotonic() - start
    while killed < times:
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            process.wait(rng.uniform(0.4, 1.05) * lasts)
        except subprocess.TimeoutExpired:
            process.kill()
        killed += process.wait() == -signal.SIGKILL
        check()


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rows")
    X = np.random.default_rng(0).normal(size=(300, 3)) + 8 * np.eye(3)[np.arange(300) % 3]
    pd.DataFrame(X, columns=["a", "b", "c"]).to_csv(folder / "t.csv", index=False)
    return folder / "t.csv"


def test_cluster(rows, tmp_path):
    words = command("cluster", rows, "-k", "3", "--out", tmp_path / "out", "--force")

    def check():
        assert len(nb.load(tmp_path / "out" / "model").predict(rows)) == 300
        assert len(pd.read_csv(tmp_path / "out" / "labels.csv")) == 300
        assert (tmp_path / "out" / "report.html").read_text().rstrip().endswith("</html>")

    kill(words, 20, check, words)
    subprocess.run(words, check=True)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["labels.csv", "model", "report.html"]
    assert len(list((tmp_path / "out" / "model").iterdir())) == 2


def test_predict(rows, tmp_path):
    subprocess.run(command("cluster", rows, "-k", "3", "--out", tmp_path / "out"), check=True)
    words = command("predict", tmp_path / "out", rows, "--out", tmp_path / "new.csv", "--force")
    subprocess.run(words, check=True)
    whole = (tmp_path / "new.csv").read_bytes()

    def check():
        assert (tmp_path / "new.csv").read_bytes() == whole

    kill(words, 15, check, words)


def test_pretrain(tmp_path):
    images = np.random.default_rng(0).integers(0, 255, (64, 22, 22, 1), dtype=np.uint8)
    np.save(tmp_path / "images.npy", images)
    unbroken = command("pretrain", tmp_path / "images.npy", *TINY, "--out", tmp_path / "unbroken")
    words = command("pretrain", tmp_path / "images.npy", *TINY, "--out", tmp_path / "run")

    def check():
        if (tmp_path / "run" / "encoder.json").exists():
            nb.ImageEncoder.load(tmp_path / "run")

    kill(words, 15, check, unbroken)
    subprocess.run(words, check=True)
    for name in ("encoder.safetensors", "encoder.json"):
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "unbroken" / name).read_bytes()
    assert read_metrics(tmp_path / "run" / "metrics.jsonl") == read_metrics(tmp_path / "unbroken" / "metrics.jsonl")
    assert [path.name for path in (tmp_path / "run").rglob("*.tmp*")] == []


def test_ctrl_c_ends_a_command_in_words(rows, tmp_path):
    words = command("cluster", rows, "--out", tmp_path / "out", "--method", "manifolds")
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
        time.sleep(3.0)
        process.send_signal(signal.SIGINT)
        said = process.stderr.read()
    assert process.returncode in (0, 130)
    assert said in ("", "interrupted\n")
    assert process.returncode == 0 or not (tmp_path / "out").exists()
