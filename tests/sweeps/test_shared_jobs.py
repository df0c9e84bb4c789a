"""Jobs on a storage: each done once, whoever is killed; two sources on one storage stand for two machines."""

import json
import threading
import time
from contextlib import closing

import pytest

pytest.importorskip("optuna")

from optuna.exceptions import StorageInternalError
from optuna.trial import TrialState

from neuralbayes.sweeps import shared
from neuralbayes.sweeps.shared import SharedJobs
from neuralbayes.sweeps.storage import close_storage, open_storage

LABELS = {"a": "job a", "b": "job b", "c": "job c"}


@pytest.fixture
def storage(request, tmp_path):
    sqlite = getattr(request, "param", "journal") == "sqlite"
    return f"sqlite:///{tmp_path / 'runs.db'}" if sqlite else str(tmp_path / "journal.log")


on_both = pytest.mark.parametrize("storage", ["journal", "sqlite"], indirect=True)


@pytest.fixture
def machine(storage):
    """Opens one more source of the same jobs; all are closed at the end."""
    opened = []

    def make(labels=LABELS, **options):
        opened.append(SharedJobs(storage, "study", labels, **options))
        return opened[-1]

    yield make
    for jobs in opened:
        if not jobs._closed.is_set():
            jobs.close()


def states(storage):
    """How many trials of each state the storage has."""
    opened = open_storage(storage)
    trials = opened.get_all_trials(opened.get_study_id_from_name("study"))
    close_storage(opened)
    return {state.name: n for state in TrialState if (n := sum(trial.state == state for trial in trials))}


def die(jobs):
    """What is left of a process after kill -9: leases that nobody renews."""
    jobs._closed.set()
    jobs._renewal.join()


def wait(condition):
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def look_until(jobs, condition):
    def looked():
        jobs.look()
        return condition()

    wait(looked)


@on_both
def test_each_job_is_taken_once_and_all_get_every_result(storage, machine):
    one, two = machine(), machine()
    taken = []
    while len(taken) < 3:
        for jobs in (one, two):
            if job := jobs.take():
                taken.append(job.key)
                jobs.finish(job, {"value": 1.0, "by": id(jobs)})
        one.look()
        two.look()
    assert sorted(taken) == ["a", "b", "c"]
    assert one.over
    assert two.over
    assert one.results == two.results
    assert {result["by"] for result in one.results.values()} == {id(one), id(two)}
    assert states(storage) == {"COMPLETE": 3}


@on_both
def test_sources_that_begin_at_the_same_moment_make_each_job_once(storage):
    """All see that the jobs are missing, and make them: of each, one is done, and none is left over."""
    keys = {f"job {i}": str(i) for i in range(6)}
    barrier = threading.Barrier(4)
    taken, problems = [], []

    def work():
        try:
            barrier.wait()
            with closing(SharedJobs(storage, "study", keys)) as jobs:
                while not jobs.over:
                    if job := jobs.take():
                        taken.append(job.key)
                        jobs.finish(job, {"value": 0.0})
                    jobs.look()
        except Exception as problem:
            problems.append(problem)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert sorted(taken) == sorted(keys)
    left = states(storage)
    assert left.pop("COMPLETE") == 6
    assert set(left) <= {"FAIL"}  # those that were made twice


def test_what_was_done_before_is_told_and_not_repeated(machine):
    one, two = machine(), machine()
    one.tell("b", {"value": 5.0})
    assert one.n_done == 1
    assert [two.take().key, two.take().key, two.take()] == ["a", "c", None]
    two.look()
    assert two.results == {"b": {"value": 5.0}}
    two.tell("b", {"value": 7.0})
    assert two.results == {"b": {"value": 5.0}}


def test_a_source_leaves_jobs_alone_that_it_was_not_asked_for(machine):
    some = machine({"b": "job b"})
    everything = machine()
    assert some.take().key == "b"
    assert some.take() is None
    assert everything.take().key == "a"
    assert (some.total, everything.total) == (1, 3)


@on_both
def test_a_job_of_a_process_that_was_killed_is_taken_up_by_one_other(storage, machine, monkeypatch):
    monkeypatch.setattr(shared, "LEASE", 0.2)
    killed, *others = machine({"a": "job a"}), machine({"a": "job a"}), machine({"a": "job a"})
    killed.take()
    die(killed)
    found = []

    def rescued():
        for jobs in others:
            jobs.look()
            if job := jobs.take():
                found.append((jobs, job))
        return bool(found)

    wait(rescued)
    ((jobs, job),) = found
    jobs.finish(job, {"value": 2.0})
    for other in others:
        other.look()
        assert other.results == {"a": {"value": 2.0}}
    assert states(storage) == {"COMPLETE": 1, "FAIL": 1}


def test_a_lease_that_is_renewed_does_not_run_out(machine, monkeypatch):
    clock = [0.0]
    owner, other = machine({"a": "job a"}), machine({"a": "job a"})
    monkeypatch.setattr(shared.time, "monotonic", lambda: clock[0])
    owner.take()
    trial_id = owner._held["a"].trial_id
    for beat in range(1, 5 * shared.RENEWALS):
        clock[0] += shared.LEASE / shared.RENEWALS
        owner._storage.set_trial_user_attr(trial_id, shared.BEAT, beat)
        other.look()
    assert other._trials["a"].state == TrialState.RUNNING


def test_a_source_renews_the_leases_of_what_it_has_taken(machine, monkeypatch):
    monkeypatch.setattr(shared, "RENEWALS", 6000)
    owner, other = machine(), machine()
    owner.take()
    owner.take()

    def renewed():
        return all(other._trials[key].user_attrs.get(shared.BEAT, 0) >= 2 for key in ("a", "b"))

    look_until(other, renewed)
    assert shared.BEAT not in other._trials["c"].user_attrs


def test_time_in_which_nobody_looked_does_not_count(machine, monkeypatch):
    """A process that was suspended, or could not reach the storage, must not rob the others when it comes back."""
    clock = [0.0]
    monkeypatch.setattr(shared.time, "monotonic", lambda: clock[0])
    owner, other = machine({"a": "job a"}), machine({"a": "job a"})
    owner.take()
    for _ in range(3):
        other.look()
        clock[0] += 100 * shared.LEASE
    assert other._trials["a"].state == TrialState.RUNNING
    for _ in range(shared.RENEWALS + 1):
        clock[0] += shared.LEASE
        other.look()
    assert other._trials["a"].state == TrialState.WAITING


def test_a_process_that_slept_through_its_lease_is_told_to_stop(storage, machine, monkeypatch):
    sleeper, other = machine({"a": "job a"}), machine({"a": "job a"})
    lost = sleeper.take()
    with monkeypatch.context() as patch:
        patch.setattr(shared, "LEASE", 0.1)
        look_until(other, lambda: other._trials["a"].state == TrialState.WAITING)
    job = other.take()
    die(sleeper)
    sleeper._closed.clear()
    monkeypatch.setattr(shared, "LEASE", 0.1)
    awake = threading.Thread(target=sleeper._renew, daemon=True)
    awake.start()
    wait(lambda: sleeper._lost)
    assert list(sleeper.lost()) == [lost]
    assert list(sleeper.lost()) == []
    sleeper.finish(lost, {"value": 3.0})  # comes too late, and changes nothing
    other.finish(job, {"value": 4.0})
    sleeper.look()
    assert sleeper.results == {"a": {"value": 4.0}}
    sleeper._closed.set()
    awake.join()
    assert states(storage) == {"COMPLETE": 1, "FAIL": 1}


def test_a_storage_that_is_out_of_reach_for_a_moment_costs_no_lease(machine, monkeypatch):
    monkeypatch.setattr(shared, "LEASE", 0.1)
    jobs = machine({"a": "job a"})
    renew, calls = jobs._storage.set_trial_user_attr, []

    def failing(*words):
        calls.append(words)
        if len(calls) < 4:
            raise ConnectionError("gone")
        return renew(*words)

    monkeypatch.setattr(jobs._storage, "set_trial_user_attr", failing)
    job = jobs.take()
    wait(lambda: len(calls) > 6)
    assert list(jobs.lost()) == []
    jobs.finish(job, {"value": 1.0})
    assert jobs.over


def test_a_storage_that_fails_is_asked_again_until_a_lease_would_have_run_out(machine, monkeypatch):
    monkeypatch.setattr(shared, "LEASE", 0.2)
    jobs = machine({"a": "job a"})
    read, calls = jobs._study.get_trials, []

    def failing(**options):
        calls.append(options)
        if len(calls) < 3:
            raise StorageInternalError("restarting")
        return read(**options)

    monkeypatch.setattr(jobs._study, "get_trials", failing)
    jobs.finish(jobs.take(), {"value": 1.0})
    assert jobs.over
    monkeypatch.setattr(jobs._study, "get_trials", lambda **options: 1 / len(()))
    with pytest.raises(ZeroDivisionError):
        jobs.look()

    def gone(**options):
        raise StorageInternalError("gone")

    monkeypatch.setattr(jobs._study, "get_trials", gone)
    with pytest.raises(ConnectionError, match="the storage cannot be reached: gone"):
        jobs.look()


def test_what_was_taken_is_given_back_at_once_when_a_source_is_closed(machine):
    one, two = machine({"a": "job a"}), machine({"a": "job a"})
    one.take()
    two.look()
    assert two.take() is None
    one.close()
    two.look()
    assert two.take().key == "a"


def test_a_failure_is_told_to_all_and_tried_again_by_a_later_command_only(storage, machine):
    one, two = machine({"a": "job a"}), machine({"a": "job a"})
    one.fail(one.take(), "ValueError: wrong")
    two.look()
    assert two.over
    assert one.failures == two.failures == {"a": "ValueError: wrong"}
    assert two.take() is None
    later = machine({"a": "job a"})
    later.finish(later.take(), {"value": 1.0})
    two.look()
    assert (two.failures, two.results) == ({}, {"a": {"value": 1.0}})
    assert states(storage) == {"COMPLETE": 1, "FAIL": 1}


def test_a_job_of_which_workers_die_has_failed_with_the_second(machine):
    jobs = machine({"a": "job a"})
    jobs.died(jobs.take(), "a worker died")
    assert not jobs.over
    jobs.died(jobs.take(), "a worker died")
    assert jobs.over
    assert jobs.failures == {"a": "a worker died"}


def test_a_machine_on_which_all_workers_die_gives_up_and_leaves_the_jobs_to_others(machine):
    jobs, other = machine(), machine()
    for _ in range(shared.STRIKES - 1):
        jobs.died(jobs.take(), "a worker died")
    with pytest.raises(ChildProcessError, match="a worker died, as 2 did before it"):
        jobs.died(jobs.take(), "a worker died")
    other.look()
    assert other.failures == {}
    assert sorted(other.take().key for _ in LABELS) == ["a", "b", "c"]


@on_both
def test_a_trial_that_is_given_back_keeps_its_parameters(storage, machine):
    one, two = machine({"a": "job a"}), machine({"a": "job a"})
    job = one.take()
    drawn = one.trial(job, seed=1).suggest_float("x", 0, 1)
    one.close()
    two.look()
    job = two.take()
    assert two.trial(job, seed=2).suggest_float("x", 0, 1) == drawn
    two.finish(job, {"value": 1.0})
    assert two.parameters == {"a": {"x": drawn}}


def test_half_a_line_at_the_end_of_a_journal_is_taken_away(tmp_path):
    path = tmp_path / "journal.log"
    with closing(SharedJobs(str(path), "study", LABELS)) as jobs:
        jobs.finish(jobs.take(), {"value": 1.0})
        with path.open("ab") as journal:
            journal.write(b'{"op_code":8,"wor')  # killed while it wrote
        jobs.finish(jobs.take(), {"value": 2.0})
        assert jobs.n_done == 2
    for line in path.read_text().splitlines():
        json.loads(line)


@pytest.mark.parametrize(
    ("storage", "message"),
    [
        ("{folder}", "a journal must be a file, got the folder"),
        ("{folder}/notes.txt", "is not a journal, or it is damaged"),
        ("nosuch://host/name", "must be a database that SQLAlchemy knows, got 'nosuch://host/name'"),
        ("://", "must be the path of a file or the address of a database"),
        ("sqlite:////no/such/folder/runs.db", "cannot be opened: unable to open database file"),
    ],
)
def test_what_is_no_storage_is_refused(tmp_path, monkeypatch, storage, message):
    monkeypatch.setattr("neuralbayes.sweeps.storage.TRIES", 1)
    (tmp_path / "notes.txt").write_text("buy milk\n")
    with pytest.raises((ValueError, OSError), match=message):
        open_storage(storage.format(folder=tmp_path))
    assert (tmp_path / "notes.txt").read_text() == "buy milk\n"


def test_sqlite_lets_one_of_two_that_read_at_the_same_time_take_a_trial(tmp_path, monkeypatch):
    """Optuna reads a trial, and then writes it: between the two another process must not get in."""
    url = f"sqlite:///{tmp_path / 'runs.db'}"
    with closing(SharedJobs(url, "study", {"a": "job a"})) as one, closing(SharedJobs(url, "study", {"a": "x"})) as two:
        reading = threading.Event()
        for jobs in (one, two):
            check = jobs._storage.check_trial_is_updatable

            def slow(*words, check=check):
                check(*words)
                reading.wait(0.2)

            monkeypatch.setattr(jobs._storage, "check_trial_is_updatable", slow)
        taken = []
        threads = [threading.Thread(target=lambda jobs=jobs: taken.append(jobs.take())) for jobs in (one, two)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sum(job is not None for job in taken) == 1
