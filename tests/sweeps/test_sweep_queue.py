"""Jobs in a database: each is done once, even after kills; two studies on one database stand for two machines."""

import threading
import time
from contextlib import ExitStack

import pytest

pytest.importorskip("optuna")

from optuna.trial import TrialState

from neuralbayes.sweeps import worker
from neuralbayes.sweeps.queue import DIED, JOB, Queue, add, add_finished, counting, retry, standing
from neuralbayes.sweeps.worker import work

# Threads that stand for processes share one list of filters.
pytestmark = pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")

JOBS = ["a", "b", "c"]


@pytest.fixture
def queue(tmp_path):
    return Queue(str(tmp_path / "new" / "runs.db"), "study", grace=1)


@pytest.fixture
def study(queue):
    with queue.open() as study:
        yield study


def one(job, trial):
    return {"value": 1.0, "job": job}


def states(study, job):
    return [trial.state.name for trial in study.get_trials() if trial.user_attrs.get(JOB) == job]


def take(study):
    """Start a waiting job whose process never reports again."""
    trial = next(trial for trial in study.get_trials() if trial.state == TrialState.WAITING)
    assert study._storage.set_trial_state_values(trial._trial_id, TrialState.RUNNING)
    study._storage.record_heartbeat(trial._trial_id)
    return trial


def test_each_job_is_done_once_and_all_know_every_result(queue):
    """Four processes, here threads, start at the same moment and all see that the jobs are missing."""
    barrier, done, problems = threading.Barrier(4), [], []

    def do(job, trial):
        done.append(job)
        return one(job, trial)

    def process():
        try:
            with queue.open() as study:
                barrier.wait()
                add(study, JOBS)
            work(queue, JOBS, do)
        except Exception as problem:
            problems.append(problem)

    with queue.open() as study:
        threads = [threading.Thread(target=process) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert problems == []
        assert sorted(done) == JOBS
        assert standing(study, JOBS).results == {job: {"value": 1.0, "job": job} for job in JOBS}
        assert all(states(study, job).count("COMPLETE") == 1 for job in JOBS)


def test_what_was_done_before_is_told_and_not_repeated(queue, study):
    add(study, JOBS)
    add_finished(study, "b", {"value": 5.0})
    done = []
    work(queue, JOBS, lambda job, trial: done.append(job) or one(job, trial))
    assert done == ["a", "c"]
    assert standing(study, JOBS).results["b"] == {"value": 5.0}
    add(study, JOBS)
    assert standing(study, JOBS).left == 0


def test_a_job_whose_heartbeats_stop_is_taken_up_once(queue, study):
    add(study, ["a"])
    take(study)
    done = []
    work(queue, ["a"], lambda job, trial: done.append(job) or one(job, trial))
    assert done == ["a"]
    assert states(study, "a") == ["FAIL", "COMPLETE"]


def test_a_job_whose_heartbeats_go_on_is_left_alone(queue, study, monkeypatch):
    """This also holds if it takes far longer than the time after which a silent job is taken over."""
    monkeypatch.setattr(worker, "INTERVAL", 0.2)
    add(study, ["a"])
    done = []

    def slow(job, trial):
        done.append(job)
        time.sleep(3)
        return one(job, trial)

    threads = [threading.Thread(target=work, args=(queue, ["a"], slow)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert done == ["a"]
    assert states(study, "a") == ["COMPLETE"]


def test_a_result_that_comes_when_another_process_has_the_job_is_dropped(queue, study):
    """A machine that slept: both get the same result, and it counts once."""
    add(study, ["a"])
    runs = []

    def do(job, trial):
        runs.append(trial.number)
        if len(runs) == 1:
            retry(study, study.tell(trial.number, state=TrialState.FAIL))
        return {"value": float(trial.number)}

    work(queue, ["a"], do)
    assert runs == [0, 1]
    assert standing(study, ["a"]).results == {"a": {"value": 1.0}}


def test_a_job_of_which_processes_die_has_failed_with_the_second(study):
    add(study, ["a"])
    for _ in range(2):
        assert standing(study, ["a"]).left == 1
        retry(study, study.tell(take(study).number, state=TrialState.FAIL))
    now = standing(study, ["a"])
    assert (now.left, now.failures) == (0, {"a": DIED})


def test_a_failure_is_told_to_all_and_tried_again_by_a_later_command_only(queue, study):
    def wrong(job, trial):
        raise ValueError("wrong")

    add(study, ["a", "b"])
    work(queue, ["a"], wrong)
    work(queue, ["a", "b"], one)
    now = standing(study, ["a", "b"])
    assert now.failures == {"a": "ValueError: wrong"}
    assert list(now.results) == ["b"]
    add(study, ["a", "b"])
    work(queue, ["a", "b"], one)
    assert standing(study, ["a", "b"]).failures == {}
    assert states(study, "a") == ["FAIL", "COMPLETE"]


def test_a_worker_that_is_told_to_leave_puts_its_job_back_with_its_parameters(queue, study):
    drawn = []

    def do(job, trial):
        drawn.append(trial.suggest_float("x", 0, 1))
        if len(drawn) == 1:
            raise SystemExit(143)
        return one(job, trial)

    add(study, ["a"])
    with pytest.raises(SystemExit):
        work(queue, ["a"], do)
    assert counting(study)["a"].state == TrialState.WAITING
    work(queue, ["a"], do)
    assert drawn[0] == drawn[1]
    assert standing(study, ["a"]).parameters == {"a": {"x": drawn[0]}}


def test_a_worker_waits_for_a_folder_that_another_process_is_at(queue, study, monkeypatch, capsys):
    monkeypatch.setattr(worker, "OCCUPIED", 0.01)
    tries = []

    def do(job, trial):
        tries.append(job)
        if len(tries) < 3:
            raise BlockingIOError("the folder is in use")
        return one(job, trial)

    add(study, ["a"])
    work(queue, ["a"], do)
    assert standing(study, ["a"]).failures == {}
    assert capsys.readouterr().err.count("waiting: the folder is in use") == 1


def test_a_job_without_a_value_is_finished_too(queue, study):
    add(study, ["a"])
    work(queue, ["a"], lambda job, trial: {"value": None, "note": "ended"})
    assert standing(study, ["a"]).results == {"a": {"value": None, "note": "ended"}}
    assert states(study, "a") == ["PRUNED"]


@pytest.mark.parametrize(
    ("storage", "message"),
    [
        ("{folder}", "must be a file or the address of a database, got the folder"),
        ("{folder}/notes.txt", r"notes\.txt cannot be used: file is not a database"),
        ("nosuch://host/name", "must be a database that SQLAlchemy knows, got 'nosuch://host/name'"),
        ("://", "must be a path or the address of a database"),
        ("sqlite:////no/such/folder/runs.db", "cannot be used: unable to open database file"),
    ],
)
def test_what_is_no_storage_is_refused(tmp_path, storage, message):
    (tmp_path / "notes.txt").write_text("buy milk\n" * 100)
    with pytest.raises((ValueError, OSError), match=message), Queue(storage.format(folder=tmp_path), "study").open():
        pass
    assert (tmp_path / "notes.txt").read_text() == "buy milk\n" * 100


def test_sqlite_lets_one_of_two_that_read_at_the_same_time_take_a_job(queue, study, monkeypatch):
    """Optuna reads a trial and then writes it: no other process may interfere between the two."""
    add(study, ["a"])
    with ExitStack() as opened:
        storages = [opened.enter_context(queue.open())._storage._backend for _ in range(2)]
        (trial,) = study.get_trials()
        taken = []
        for storage in storages:
            check = storage.check_trial_is_updatable

            def slow(*words, check=check):
                check(*words)
                time.sleep(0.2)

            monkeypatch.setattr(storage, "check_trial_is_updatable", slow)

        def take_it(storage):
            taken.append(storage.set_trial_state_values(trial._trial_id, TrialState.RUNNING))

        threads = [threading.Thread(target=take_it, args=(storage,)) for storage in storages]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(taken) == [False, True]
