"""The number of processes, from the environment variables of launchers, and the device."""

import pytest

from neuralbayes.distributed import default_fabric, n_launched


@pytest.mark.parametrize(
    ("environment", "size"),
    [
        ({}, 1),
        ({"RANK": "3", "WORLD_SIZE": "4"}, 4),
        ({"SLURM_PROCID": "63", "SLURM_STEP_NUM_TASKS": "64"}, 64),
        # torchrun inside a step of Slurm: one task per node, several processes
        ({"RANK": "5", "WORLD_SIZE": "8", "SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "2"}, 8),
        # a batch script that starts one process itself
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "64"}, 1),
        ({"RANK": "0"}, 1),
    ],
)
def test_the_number_of_processes_is_what_the_launcher_says(environment: dict[str, str], size: int) -> None:
    assert n_launched(environment) == size


@pytest.mark.parametrize("device", ["gpu", "cuda:x", "", "cpu:0"])
def test_a_device_that_is_none_is_refused(device: str) -> None:
    with pytest.raises(ValueError, match="`device`"):
        default_fabric(device=device)


def test_the_processor_can_be_asked_for() -> None:
    assert default_fabric(device="cpu").device.type == "cpu"
