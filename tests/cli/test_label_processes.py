"""`neuralbayes label --model` in parts: interrupted and over several processes, the output is that of one process."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import torch

from neuralbayes import ManifoldLabeler, parts
from neuralbayes.cli import main

N = 250  # rows, in parts of 80


def said(capsys):
    captured = capsys.readouterr()
    return captured.out, " ".join(captured.err.split())


def points(n):
    return np.random.default_rng(0).normal(size=(n, 2)) * 0.3 + 6.0 * (np.arange(n) % 2)[:, None]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    frame = pd.DataFrame(points(300), columns=["a", "b"])
    ManifoldLabeler(2, n_init=2, max_iter=20, random_state=0).fit(frame).save(folder)
    return folder


def save_table(path, n):
    frame = pd.DataFrame(points(n), columns=["a", "b"]).assign(name=[f"r{i}" for i in range(n)])
    if path.suffix == ".npy":
        np.save(path, points(n).astype(np.float32))
    elif path.suffix == ".parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False)
    return path


@pytest.fixture
def small_parts(monkeypatch):
    monkeypatch.setattr("neuralbayes.cli.label_model.PART_ROWS", 80)


@pytest.fixture
def as_process(monkeypatch):
    def run_as(rank, world, words):
        with monkeypatch.context() as patch:
            patch.setenv("RANK", str(rank))
            patch.setenv("WORLD_SIZE", str(world))
            return main(words)

    return run_as


def interrupt(monkeypatch, words, part, run=main):
    """Begin the job, and break it off before `part`."""
    store = parts.Parts._store

    def broken(self, number, compute):
        if number == part:
            raise KeyboardInterrupt
        store(self, number, compute)

    with monkeypatch.context() as patch:
        patch.setattr(parts.Parts, "_store", broken)
        assert run(words) == 130


@pytest.fixture(params=["csv", "parquet", "npy"])
def table(request, tmp_path):
    return save_table(tmp_path / f"new.{request.param}", N)


def outputs(table, model, name, *options):
    out = table.with_name(f"{name}{table.suffix}")
    return out, ["label", str(table), "--model", str(model), "--out", str(out), "--no-picture", *options]


def test_two_processes_write_the_table_of_one(capsys, table, model, monkeypatch, small_parts, as_process):
    whole, words = outputs(table, model, "whole")
    assert main(words) == 0
    summary = said(capsys)[0]
    out, words = outputs(table, model, "out")
    interrupt(monkeypatch, words, 0, lambda words: as_process(0, 2, words))
    said(capsys)
    assert as_process(1, 2, words) == 0
    assert said(capsys) == ("", "")
    assert len(list(out.with_name(f"{out.name}.parts").glob("part-*.npy"))) == 2
    assert as_process(0, 2, words) == 0
    assert said(capsys)[0].replace(str(out), str(whole)) == summary
    assert out.read_bytes() == whole.read_bytes()
    assert {path.name for path in table.parent.iterdir()} == {table.name, whole.name, out.name}


def test_parts_give_what_the_estimator_gives(table, model, small_parts, monkeypatch):
    out, words = outputs(table, model, "out", "--quiet")
    interrupt(monkeypatch, words, 2)
    assert main(words) == 0
    whole, words = outputs(table, model, "whole", "--quiet")
    monkeypatch.setattr("neuralbayes.cli.label_model.BATCHES", 1000)  # at once
    assert main(words) == 0
    assert out.read_bytes() == whole.read_bytes()


def test_the_number_of_threads_changes_nothing(tmp_path, model):
    table = save_table(tmp_path / "new.npy", 7)
    threads = torch.get_num_threads()
    try:
        for number in (1, 4):
            torch.set_num_threads(number)
            out = tmp_path / f"{number}.npz"
            assert main(["label", str(table), "--model", str(model), "--out", str(out), "--no-picture", "--quiet"]) == 0
    finally:
        torch.set_num_threads(threads)
    assert (tmp_path / "1.npz").read_bytes() == (tmp_path / "4.npz").read_bytes()


def test_a_changed_table_is_another_job(capsys, tmp_path, model, small_parts, monkeypatch):
    table = save_table(tmp_path / "new.csv", N)
    out, words = outputs(table, model, "out", "--quiet")
    interrupt(monkeypatch, words, 2)
    save_table(table, N + 1)
    assert main(words) == 2
    assert "out.csv.parts holds parts of another job (file has changed, rows was 250)" in said(capsys)[1]
    assert main([*words, "--force"]) == 0
    assert len(pd.read_csv(out)) == N + 1


def test_workers_are_for_a_saved_model(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr("neuralbayes.cli.workers.n_cores", lambda: 4)
    table = save_table(tmp_path / "new.csv", 20)
    assert main(["label", str(table), "--workers", "2"]) == 2
    assert "--workers is for labelling with --model" in said(capsys)[1]
    assert main(["label", str(table), "--model", "m", "--workers", "0"]) == 2
    assert "--workers must be from 1 to the number of cores, 4, got 0" in said(capsys)[1]


def test_a_short_table_needs_no_folder(tmp_path, model, monkeypatch):
    monkeypatch.setattr(parts.Parts, "fill", None)
    table = save_table(tmp_path / "new.npy", N)
    assert main(outputs(table, model, "out", "--quiet")[1]) == 0


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["csv", "parquet", "npy"])
def test_two_workers_label_300000_rows_as_one_does(tmp_path, model, suffix):
    table = save_table(tmp_path / f"new.{suffix}", 300_001)
    files = []
    for workers in ("1", "2"):
        out, words = outputs(table, model, workers, "--quiet", "--workers", workers)
        subprocess.run([sys.executable, "-m", "neuralbayes", *words], check=True)
        files.append(out.read_bytes())
    assert files[0] == files[1]
    assert len(list(tmp_path.iterdir())) == 3
