"""Worker processes and the loop that gives them work, with workers that do nothing but obey."""

import os
import signal
import sys
from contextlib import closing

import pytest

from neuralbayes.sweeps.crew import n_workers, work
from neuralbayes.sweeps.jobs import LocalJobs

WORKER = """
import os, signal, time
from pathlib import Path
from neuralbayes.sweeps import worker
from neuralbayes.sweeps.worker import serve

worker.OCCUPIED = 0.01

def obey(order, report):
    print("not an answer")
    if order.get("fail"):
        raise ValueError("wrong")
    if order.get("die") and not Path(order["die"]).exists():
        Path(order["die"]).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    if order.get("occupied") and Path(order["occupied"]).exists():
        Path(order["occupied"]).unlink()
        raise BlockingIOError("the folder is in use")
    if "report" in order:
        return {"value": 1.0, "told": [report(step, 0.5) for step in range(order["report"])]}
    return {"value": 1.0, "pid": os.getpid(), "threads": os.environ["OMP_NUM_THREADS"], "rank": os.environ.get("RANK")}

serve(obey)
"""
COMMAND = [sys.executable, "-c", WORKER]
LABELS = {"a": "job a", "b": "job b", "c": "job c"}


class Watched(LocalJobs):
    """Jobs of this process that remember what they were told."""

    def __init__(self, labels, prune=()):
        super().__init__(labels)
        self.prune = prune

    def finish(self, job, result):
        super().finish(job, result)
        self.results[job.key] = result

    def report(self, job, step, value):
        return (job.key, step) in self.prune


def run(jobs, orders, workers=1, verbose=False):
    work(jobs, COMMAND, lambda job: orders.get(job.key, {}), workers=workers, what="job", verbose=verbose)


def test_all_jobs_are_done_by_workers_that_are_kept(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("RANK", "3")  # whoever started us: a worker trains alone
    jobs = Watched(LABELS)
    run(jobs, {"b": {"fail": True}})
    assert jobs.over
    assert jobs.failures == {"b": "ValueError: wrong"}
    assert jobs.results["a"] == jobs.results["c"]
    assert jobs.results["a"]["threads"] == "1"
    assert jobs.results["a"]["rank"] is None


def test_a_worker_is_told_whether_to_go_on():
    jobs = Watched({"a": "job a", "b": "job b"}, prune={("b", 1)})
    run(jobs, {"a": {"report": 2}, "b": {"report": 3}})
    assert jobs.results["a"]["told"] == [False, False]
    assert jobs.results["b"]["told"] == [False, True, False]


def test_a_worker_waits_for_a_folder_that_another_process_is_at(tmp_path, capfd):
    jobs = Watched({"a": "job a"})
    (tmp_path / "lock").touch()
    run(jobs, {"a": {"occupied": str(tmp_path / "lock")}})
    assert jobs.failures == {}
    assert capfd.readouterr().err.count("waiting: the folder is in use") == 1


def test_a_worker_that_is_killed_ends_a_sweep_of_one_process(tmp_path):
    with pytest.raises(ChildProcessError, match="a worker died with exit code -9 in the job 'job a', perhaps for want"):
        run(Watched(LABELS), {"a": {"die": str(tmp_path / "dead")}})


def test_a_worker_that_is_killed_is_replaced_where_there_is_a_storage(tmp_path, capsys):
    pytest.importorskip("optuna")
    from neuralbayes.sweeps.shared import SharedJobs

    with closing(SharedJobs(str(tmp_path / "journal.log"), "study", LABELS)) as jobs:
        run(jobs, {"a": {"die": str(tmp_path / "dead")}}, verbose=True)
        assert jobs.failures == {}
        assert set(jobs.results) == set(LABELS)
    assert "a worker died with exit code -9 in the job 'job a'; there is a new one" in capsys.readouterr().err


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_interrupted_it_gives_back_what_it_had_begun(tmp_path, signum):
    pytest.importorskip("optuna")
    from neuralbayes.sweeps.shared import SharedJobs

    class Interrupted(SharedJobs):
        def report(self, job, step, value):
            os.kill(os.getpid(), signum)
            return False

    place = str(tmp_path / "journal.log")
    earlier = signal.getsignal(signal.SIGTERM)
    with closing(Interrupted(place, "study", LABELS)) as jobs, pytest.raises((SystemExit, KeyboardInterrupt)):
        run(jobs, {"a": {"report": 3}})
    assert signal.getsignal(signal.SIGTERM) is earlier
    with closing(SharedJobs(place, "study", LABELS)) as jobs:
        assert [jobs.take().key for _ in LABELS] == ["b", "c", "a"]


def test_so_many_workers_as_there_are_cores(monkeypatch):
    monkeypatch.setattr("neuralbayes.sweeps.crew.n_cores", lambda: 4)
    assert [n_workers(None), n_workers(3)] == [4, 3]
    for wrong in (0, 5):
        with pytest.raises(ValueError, match=f"--workers must be from 1 to the number of cores, 4, got {wrong}"):
            n_workers(wrong)
