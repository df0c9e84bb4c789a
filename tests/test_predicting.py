"""Parquet folders labelled by several processes give what one process gives, also if a worker is killed."""

import os
import signal
import threading
import time

import numpy as np
import pandas as pd
import pytest

import neuralbayes as nb
from neuralbayes.cli import main
from neuralbayes.predicting import predict_parquet

pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    nb.cluster(rows(300), 3, method="information").save(folder)
    return folder


def rows(n, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n, 3)) + 8 * np.eye(3)[np.arange(n) % 3], columns=["a", "b", "c"])
    frame["number"] = pd.array([None if i % 7 == 0 else 2**53 + i for i in range(n)], dtype="Int64")
    frame["word"] = [None if i % 5 == 0 else f"w{i}" for i in range(n)]
    return frame


def written(folder, n_files, n=2000):
    folder.mkdir()
    for i in range(n_files):
        rows(n, seed=i).to_parquet(folder / f"{i:02d}.parquet", index=False)
    return pd.concat([rows(n, seed=i) for i in range(n_files)], ignore_index=True)


def assert_labelled(out, frame, model):
    found = pd.read_parquet(out, dtype_backend="pyarrow").reset_index(drop=True)
    expected = nb.load(model).on(frame, reject=0.02).table()
    assert list(found) == list(expected)
    np.testing.assert_array_equal(found["cluster"], expected["cluster"])
    np.testing.assert_allclose(found["probability"].astype(float), expected["probability"], atol=1e-6)
    assert found["number"].astype("Int64").equals(frame["number"])
    assert found["word"].isna().equals(frame["word"].isna())


def test_one_file_needs_no_processes(model, tmp_path):
    frame = written(tmp_path / "in", 1)
    assert predict_parquet(model, tmp_path / "in", tmp_path / "out", reject=0.02) == 2000
    assert_labelled(tmp_path / "out", frame, model)
    with pytest.raises(FileExistsError, match="`out`"):
        predict_parquet(model, tmp_path / "in", tmp_path / "out")


def test_a_failure_leaves_nothing_behind(model, tmp_path):
    written(tmp_path / "in", 1)
    pd.DataFrame({"x": [1.0, 2.0]}).to_parquet(tmp_path / "in" / "00.parquet")
    with pytest.raises(ValueError, match="column"):
        predict_parquet(model, tmp_path / "in", tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


@pytest.mark.slow
def test_a_dask_data_frame_in_local_processes(model, tmp_path):
    import dask.dataframe as dd

    frame = written(tmp_path / "in", 3)
    frame.head(0).to_parquet(tmp_path / "in" / "99.parquet", index=False)
    source = dd.read_parquet(tmp_path / "in", dtype_backend="pyarrow")
    assert predict_parquet(model, source, tmp_path / "out", reject=0.02) == 6000
    assert_labelled(tmp_path / "out", frame, model)


@pytest.mark.slow
def test_the_parts_of_a_killed_worker_are_labelled_by_another(model, tmp_path):
    from distributed import LocalCluster

    frame = written(tmp_path / "in", 12)
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        killed = []

        def kill_one_once_files_appear():
            while not any(tmp_path.glob(".out.*/*.parquet")):
                time.sleep(0.01)
            killed.append(next(iter(cluster.workers.values())).pid)
            os.kill(killed[0], signal.SIGKILL)

        thread = threading.Thread(target=kill_one_once_files_appear, daemon=True)
        thread.start()
        words = [str(model), str(tmp_path / "in"), "--out", str(tmp_path / "out"), "--reject", "0.02"]
        assert main(["predict", *words, "--scheduler", cluster.scheduler_address]) == 0
        thread.join(5)
    assert killed
    assert_labelled(tmp_path / "out", frame, model)
