"""Small data, and models that are fitted once for all tests of commands."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from neuralbayes.cli import main

TINY = ["--encoder", "tiny", "--batch", "16", "--microbatch", "16", "--epochs", "2"]


@pytest.fixture
def run(capsys):
    """Call a command; returns its exit code, output and errors, with single spaces."""

    def call(*words):
        code = main([str(word) for word in words])
        captured = capsys.readouterr()
        return SimpleNamespace(code=code, out=captured.out, err=" ".join(captured.err.split()))

    return call


def customers(n=90, seed=0):
    """Three groups in the numbers, with a category, an id, a constant, and known groups of some rows."""
    rng = np.random.default_rng(seed)
    group = np.arange(n) % 3
    frame = pd.DataFrame(rng.normal(size=(n, 3)) + 8 * np.eye(3)[group], columns=["age", "income", "visits"])
    frame["plan"] = np.array(["free", "basic", "gold"])[group]
    frame["id"] = [f"c{i:04d}" for i in range(n)]
    frame["unit"] = "eur"
    frame["group"] = [f"g{k}" if i < 30 else None for i, k in enumerate(group)]
    return frame


@pytest.fixture(scope="session")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "customers.csv"
    customers().to_csv(path, index=False)
    return path


@pytest.fixture(scope="session")
def clustered(table):
    """The folder that `neuralbayes cluster` writes by default."""
    assert main(["cluster", str(table), "-k", "3", "--describe", "group", "--seed", "3", "--quiet"]) == 0
    return table.with_name("customers-clusters")


def pictures(n=48, seed=0, side=22):
    """Bright left or right halves: images (n, side, side, 1) and classes."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    x = rng.integers(0, 100, (n, side, side, 1), dtype=np.uint8)
    x[y == 0, :, : side // 2] += 100
    return x, y


@pytest.fixture(scope="session")
def images(tmp_path_factory):
    """A file of arrays with a labelled train and test part."""
    path = tmp_path_factory.mktemp("data") / "pictures.npz"
    (x, y), (tx, ty) = pictures(), pictures(24, seed=1)
    np.savez(path, train_images=x, train_labels=y, test_images=tx, test_labels=ty)
    return path


@pytest.fixture(scope="session")
def trained(tmp_path_factory, images):
    """A finished run of `neuralbayes pretrain`."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    assert main(["pretrain", str(images), *TINY, "--out", str(folder), "--quiet"]) == 0
    return folder
