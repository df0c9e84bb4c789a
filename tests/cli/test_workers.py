"""`--workers`: starting the same command several times, and ending all when one ends badly."""

import os
import subprocess
import sys

import pytest

import neuralbayes
from neuralbayes.cli import workers
from neuralbayes.cli.workers import check_workers, command_words, lead, resumable
from neuralbayes.distributed.launch import Share

LEAVE_WITH_THE_INPUT = "import os, pathlib; os.read(0, 1); pathlib.Path(sys.argv[1], os.environ['RANK']).touch()"


def program(*lines):
    """A worker: `rank` is its own, and argv[1] a folder."""
    return [sys.executable, "-c", "\n".join(["import os, sys, signal; rank = int(os.environ['RANK'])", *lines])]


def test_every_worker_knows_its_share_and_its_threads(monkeypatch, tmp_path):
    monkeypatch.setattr("neuralbayes.distributed.launch.n_cores", lambda: 6)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    code = "open(f'{sys.argv[1]}/{rank}', 'w').write(os.environ['WORLD_SIZE'] + os.environ['OMP_NUM_THREADS'])"
    wait = "while rank == 0 and len(os.listdir(sys.argv[1])) < 3: pass"
    monkeypatch.setattr(workers, "WORKER", program(code, wait))
    lead([str(tmp_path)], 3)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"0": "32", "1": "32", "2": "32"}


def test_process_0_answers_for_the_whole(monkeypatch, tmp_path):
    monkeypatch.setattr(workers, "WORKER", program("if rank == 0: sys.exit(0)", LEAVE_WITH_THE_INPUT))
    lead([str(tmp_path)], 2)
    assert [path.name for path in tmp_path.iterdir()] == ["1"]  # told to leave, and waited for


def test_a_killed_worker_ends_the_others_with_an_error_in_words(monkeypatch, tmp_path):
    code = "if rank == 1: os.kill(os.getpid(), signal.SIGKILL)"
    monkeypatch.setattr(workers, "WORKER", program(code, LEAVE_WITH_THE_INPUT))
    with pytest.raises(ChildProcessError, match=r"worker 1 was ended by SIGKILL.*the same command goes on"):
        lead([str(tmp_path)], 2)
    assert [path.name for path in tmp_path.iterdir()] == ["0"]


def test_who_does_not_leave_is_killed(monkeypatch):
    monkeypatch.setattr(workers, "GRACE", 0.2)
    code = "if rank == 1: os.kill(os.getpid(), signal.SIGKILL)\nwhile True: os.read(0, 1)"
    monkeypatch.setattr(workers, "WORKER", program(code))
    with pytest.raises(ChildProcessError):
        lead([], 2)


@pytest.mark.parametrize("rank", [0, 1])
def test_a_worker_that_has_said_why_it_fails_gives_its_exit_code(monkeypatch, tmp_path, rank):
    monkeypatch.setattr(workers, "WORKER", program(f"if rank == {rank}: sys.exit(2)", LEAVE_WITH_THE_INPUT))
    with pytest.raises(SystemExit) as caught:
        lead([str(tmp_path)], 2)
    assert caught.value.code == 2


def test_a_worker_runs_the_command_and_leaves_with_its_input(tmp_path):
    with subprocess.Popen([*workers.WORKER, "--version"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.read().strip() == neuralbayes.__version__.encode()
        assert process.wait() == 0
    words = ["embed", str(tmp_path), "x.npy", "--out", str(tmp_path / "f.npy")]
    waiting = os.environ | {"RANK": "1", "WORLD_SIZE": "2"}  # for a process 0 that there is not
    left = subprocess.run([*workers.WORKER, *words], input=b"", capture_output=True, env=waiting, check=False)
    assert (left.returncode, left.stdout, left.stderr) == (143, b"", b"")


@pytest.mark.parametrize(
    ("number", "share", "message"),
    [
        (0, Share(), "--workers must be from 1 to the number of cores, 4, got 0"),
        (5, Share(), "--workers must be from 1 to the number of cores, 4, got 5"),
        (2, Share(1, 3), "this is one of 3 that a launcher has started; leave it out"),
    ],
)
def test_workers_that_cannot_be_started_are_refused(monkeypatch, number, share, message):
    monkeypatch.setattr(workers, "n_cores", lambda: 4)
    with pytest.raises(ValueError, match=message):
        check_workers(number, share)
    check_workers(1, share)


def test_words_keep_what_looks_like_an_option(tmp_path):
    words = command_words("label", tmp_path, columns="-a,b", json=True, quiet=False, key=None, limit=0)
    assert words == ["label", str(tmp_path), "--columns=-a,b", "--json", "--limit=0"]


def test_an_interruption_says_what_is_kept(capsys, tmp_path):
    for folder, quiet in ((tmp_path, False), (tmp_path, True), (tmp_path / "none", False)):
        with pytest.raises(KeyboardInterrupt), resumable(folder, quiet=quiet):
            raise KeyboardInterrupt
    assert capsys.readouterr().err.count("finished parts are kept in") == 1
