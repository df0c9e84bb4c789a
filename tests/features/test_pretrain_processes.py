"""`pretrain` on several processes: like one process, on two nodes, and after one process was killed."""

import json
import os
import signal
import socket
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed as dist
from process_cases import child, results_of_launched
from torch import Tensor

from neuralbayes import PretrainConfig, pretrain
from neuralbayes.distributed import default_fabric
from neuralbayes.features.encoder import ImageEncoder
from neuralbayes.training import Callback, TrainingState

if not dist.is_available() or not dist.is_gloo_available():
    pytest.skip("this torch has no gloo", allow_module_level=True)

CONFIG = PretrainConfig(
    encoder="tiny", batch_size=12, microbatch_size=6, epochs=2, learning_rate=1e-4, marginal="minibatch", beta=0.0
)


class KillRank1(Callback):
    def on_step_end(self, state: TrainingState, metrics: Mapping[str, float]) -> None:
        if state.step == 5 and dist.get_rank() == 1:
            os.kill(os.getpid(), signal.SIGKILL)


def trained(what: str, out: str, rank: int = 0) -> dict[str, Tensor]:
    """Run one of the processes, and return its final weights."""
    torch.set_num_threads(1)
    fabric = default_fabric()
    callbacks = [KillRank1()] if what == "kill" else []
    weights = dict(pretrain(images(), CONFIG, out=out, callbacks=callbacks, fabric=fabric).state_dict())
    torch.save(weights, Path(out).with_suffix(f".{fabric.global_rank}.pt"))
    return weights


def images() -> np.ndarray[Any, np.dtype[np.uint8]]:
    """28 images: the last batch of an epoch has four."""
    return np.random.default_rng(0).integers(0, 256, (28, 24, 24, 1), dtype=np.uint8)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def slurm(rank: int, out: Path, port: int) -> None:
    """A task of a job of two, as srun starts it: no process watches the other."""
    os.environ |= {
        "SLURM_NTASKS": "2",
        "SLURM_NTASKS_PER_NODE": "2",
        "SLURM_NNODES": "1",
        "SLURM_STEP_NUM_TASKS": "2",
        "SLURM_STEP_NUM_NODES": "1",
        "SLURM_PROCID": str(rank),
        "SLURM_LOCALID": str(rank),
        "SLURM_NODEID": "0",
        "SLURM_JOB_NAME": "test",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }
    with open(out.with_suffix(f".{rank}.txt"), "w") as said:
        os.dup2(said.fileno(), 2)
    trained("kill", str(out))


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> ImageEncoder:
    return pretrain(images(), CONFIG, out=tmp_path_factory.mktemp("alone") / "run")


def lines(run: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def assert_equal_to(encoder: ImageEncoder, run: Path) -> None:
    """Weights and statistics after all updates agree up to rounding, which Adam enlarges if a gradient is nearly 0."""
    ours = ImageEncoder.load(run).state_dict()
    for name, weight in encoder.state_dict().items():
        torch.testing.assert_close(ours[name], weight, rtol=1e-5, atol=1e-4)


def assert_both_equal_to(encoder: ImageEncoder, run: Path) -> None:
    assert_equal_to(encoder, run)
    both = [torch.load(run.with_suffix(f".{rank}.pt"), weights_only=True) for rank in range(2)]
    assert all(torch.equal(both[0][name], both[1][name]) for name in both[0])
    assert json.loads((run / "result.json").read_text())["processes"] == 2


def test_two_nodes_do_what_one_process_does(tmp_path: Path, alone: ImageEncoder) -> None:
    results_of_launched(tmp_path, partial(trained, "plain", str(tmp_path / "run")), n_nodes=2)
    assert_both_equal_to(alone, tmp_path / "run")


def test_a_killed_process_ends_the_job_which_another_number_goes_on_with(tmp_path: Path, alone: ImageEncoder) -> None:
    out = tmp_path / "run"
    port = free_port()
    jobs = [child(slurm, rank, out, port) for rank in range(2)]
    for job in jobs:
        job.join(120)
    said = out.with_suffix(".0.txt").read_text()
    assert [job.exitcode for job in jobs] == [1, -9], said
    assert "another of the 2 processes ended or cannot be reached" in said
    assert not (out / "result.json").exists()
    assert [line["step"] for line in lines(out)][-1] >= 3  # the first epoch is kept

    pretrain(images(), CONFIG, out=out)
    assert_equal_to(alone, out)
    assert [line["step"] for line in lines(out)] == [3, 6]
