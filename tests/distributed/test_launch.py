"""The rank of this process, from the environment variables of launchers."""

import pytest

from neuralbayes.distributed.launch import Share, launched_share, n_cores, n_threads
from neuralbayes.distributed import default_fabric


@pytest.mark.parametrize(
    ("environment", "share"),
    [
        ({}, Share(0, 1)),
        ({"RANK": "3", "WORLD_SIZE": "4"}, Share(3, 4)),
        ({"SLURM_PROCID": "63", "SLURM_STEP_NUM_TASKS": "64"}, Share(63, 64)),
        # torchrun inside a step of Slurm: one task per node, several processes
        ({"RANK": "5", "WORLD_SIZE": "8", "SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "2"}, Share(5, 8)),
        # a batch script that starts one process itself
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "64"}, Share(0, 1)),
        ({"RANK": "0"}, Share(0, 1)),
    ],
)
def test_the_share_is_what_the_launcher_says(environment, share):
    assert launched_share(environment) == share


@pytest.mark.parametrize(("rank", "world"), [("2", "2"), ("-1", "2"), ("one", "2"), ("0", "0")])
def test_a_senseless_share_is_refused(rank, world):
    with pytest.raises(ValueError, match=f"RANK must be a number from 0 and below WORLD_SIZE, got '{rank}'"):
        launched_share({"RANK": rank, "WORLD_SIZE": world})


def test_workers_share_the_cores_and_keep_to_what_was_set(monkeypatch):
    monkeypatch.setattr("neuralbayes.distributed.launch.n_cores", lambda: 8)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert [n_threads(workers) for workers in (1, 2, 3, 8, 20)] == [8, 4, 2, 1, 1]
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert [n_threads(workers) for workers in (1, 2, 4)] == [3, 3, 2]
    assert n_cores() >= 1


@pytest.mark.parametrize(("quota", "cores"), [(None, 8), (2.5, 3), (0.5, 1), (64.0, 8)])
def test_a_container_that_gives_less_time_than_cores_gives_fewer_cores(quota, cores, monkeypatch):
    monkeypatch.setattr("neuralbayes.distributed.launch.allowed_cores", lambda: 8)
    monkeypatch.setattr("neuralbayes.distributed.launch.cpu_quota", lambda: quota)
    assert n_cores() == cores


@pytest.mark.parametrize("device", ["gpu", "cuda:x", "", "cpu:0"])
def test_a_device_that_is_none_is_refused(device: str) -> None:
    with pytest.raises(ValueError, match="`device` must be 'auto', 'cpu', 'cuda', 'cuda:N' or 'mps', got"):
        default_fabric(device=device)


def test_the_processor_can_be_asked_for() -> None:
    assert default_fabric(device="cpu").device.type == "cpu"
