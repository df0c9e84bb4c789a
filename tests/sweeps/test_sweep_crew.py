"""Worker processes and their supervision, with jobs that take no time."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from sweep_cases import LABELS, Do, die

pytest.importorskip("optuna")

from optuna.trial import TrialState

from neuralbayes.distributed.launch import n_workers
from neuralbayes.sweeps.crew import do_jobs
from neuralbayes.sweeps.queue import DIED, Queue, standing


@pytest.fixture
def queue(tmp_path):
    return Queue(str(tmp_path / "runs.db"), "study")


def run(queue, folder, trouble="", labels=LABELS, verbose=False):
    return do_jobs(queue, labels, Do(folder, trouble), workers=1, what="job", verbose=verbose)


def test_all_jobs_are_done_by_a_worker_that_trains_alone(queue, tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("RANK", "3")
    now = run(queue, tmp_path, "fail")
    assert now.failures == {"b": "ValueError: wrong"}
    assert now.results == {job: {"value": 1.0, "threads": "1", "rank": None} for job in ("a", "c")}
    assert os.environ["RANK"] == "3"
    assert (tmp_path / "a").read_text() == (tmp_path / "c").read_text() != str(os.getpid())
    assert capfd.readouterr().out == ""


def test_a_worker_that_is_killed_is_replaced_and_its_job_done(queue, tmp_path, capsys):
    now = run(queue, tmp_path, "die once", labels={"a": "job a"}, verbose=True)
    assert list(now.results) == ["a"]
    assert "a worker died with exit code -9 in the job 'job a'; a new one was started" in capsys.readouterr().err


def test_a_job_that_kills_its_workers_has_failed_and_the_others_are_done(queue, tmp_path):
    now = run(queue, tmp_path, "die")
    assert now.failures == {"a": DIED}
    assert sorted(now.results) == ["b", "c"]


def test_a_machine_on_which_no_worker_lives_gives_up(queue, tmp_path, monkeypatch):
    monkeypatch.setattr("neuralbayes.sweeps.crew.serve", die)
    with pytest.raises(ChildProcessError, match=r"a worker died with exit code 7, like 2 before it; try fewer"):
        run(queue, tmp_path)
    with queue.open() as study:
        assert standing(study, LABELS).left == 3


COMMAND = """
if __name__ == "__main__":
    import signal, sys
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where the tests were started in the background
    sys.path.insert(0, {folder!r})
    from pathlib import Path
    from neuralbayes.sweeps.crew import do_jobs
    from neuralbayes.sweeps.queue import Queue
    from sweep_cases import LABELS, Do
    do_jobs(Queue({storage!r}, "study"), LABELS, Do(Path({out!r}), "take long"), workers=1, what="job", verbose=False)
"""


@pytest.mark.parametrize(
    "signum", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow), signal.SIGKILL]
)
def test_a_command_that_is_ended_leaves_no_worker_and_puts_back_what_it_had_begun(queue, tmp_path, signum):
    script = tmp_path / "command.py"
    text = COMMAND.format(folder=str(Path(__file__).parents[1]), storage=queue.storage, out=str(tmp_path))
    script.write_text(text, encoding="utf-8")
    with subprocess.Popen([sys.executable, str(script)], stderr=subprocess.DEVNULL) as command:
        deadline = time.monotonic() + 120
        while not (tmp_path / "a").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        pid = int((tmp_path / "a").read_text())
        command.send_signal(signum)
        command.wait(60)
    while time.monotonic() < deadline:
        with suppress(ProcessLookupError):
            os.kill(pid, 0)
            time.sleep(0.02)
            continue
        break
    with queue.open() as study:
        waiting = [trial.user_attrs["job"] for trial in study.get_trials() if trial.state == TrialState.WAITING]
    assert sorted(waiting) == list(LABELS)  # at once, without waiting for a missed heartbeat


def test_so_many_workers_as_there_are_cores(monkeypatch):
    monkeypatch.setattr("neuralbayes.distributed.launch.n_cores", lambda: 4)
    assert [n_workers(None), n_workers(3)] == [4, 3]
    for wrong in (0, 5):
        with pytest.raises(ValueError, match=f"--workers must be from 1 to the number of cores, 4, got {wrong}"):
            n_workers(wrong)
