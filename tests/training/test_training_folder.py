"""The folder of a run: one process trains in it, and leftovers are removed."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from neuralbayes.system.files import read_tensors
from neuralbayes.training import Batches, Callback, StopOnNaN, load_checkpoint, save_checkpoint, train

ROOT = Path(__file__).parents[2]


def run(folder, callbacks=()):
    x = torch.linspace(-1, 1, 8).reshape(8, 1)
    network = nn.Linear(1, 1)

    def step(network, batch):
        loss = network(batch).square().mean()
        loss.backward()
        return {"loss": loss}

    return train(
        network,
        step,
        Batches(8, 4),
        fetch=lambda i: x[i],
        optimizer=torch.optim.SGD(network.parameters(), lr=0.1),
        max_epochs=2,
        callbacks=callbacks,
        run_dir=folder,
    )


class SecondRun(Callback):
    """Start another run in the same folder during this one."""

    def __init__(self, folder):
        self.folder = folder

    def on_step_end(self, state, metrics):
        with pytest.raises(BlockingIOError, match="`run_dir`"):
            run(self.folder)


def test_two_runs_do_not_share_a_folder(tmp_path):
    alone = run(tmp_path / "alone")
    shared = run(tmp_path / "shared", [SecondRun(tmp_path / "shared")])
    assert (shared.step, shared.finished) == (alone.step, True)
    assert run(tmp_path / "shared").step == 4  # the folder is free again


def test_what_a_killed_writer_left_is_removed(tmp_path):
    run(tmp_path)
    left = [tmp_path / ".metrics.x1.tmp.jsonl", tmp_path / "checkpoints" / ".step-000000002-1.x2.tmp.pt"]
    for path in left:
        path.write_bytes(b"half")
    run(tmp_path)
    assert not any(path.exists() for path in left)


def test_the_batch_of_a_loss_that_is_not_a_number_is_kept(tmp_path):
    class Poison(Callback):
        def on_step_end(self, state, metrics):
            if state.step == 2:
                state.network.weight.data.fill_(float("nan"))

    with pytest.raises(FloatingPointError, match="metric 'loss' is nan at step 3"):
        run(tmp_path, [StopOnNaN(), Poison()])
    tensors, metadata = read_tensors(tmp_path / "bad-batch-0.safetensors")
    assert metadata == {"step": "3"}
    x = torch.linspace(-1, 1, 8).reshape(8, 1)
    assert torch.equal(tensors["batch"], x[tensors["indices"]])


def test_a_run_that_is_killed_again_and_again_ends_as_if_it_had_not_been():
    """Five kills here; `python benchmarks/crashes.py` does fifty."""
    command = [sys.executable, "-W", "error", str(ROOT / "benchmarks" / "crashes.py"), "--kills", "5"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "same_weights: True\nsame_metrics: True" in done.stdout


def test_a_checkpoint_with_weights_that_are_no_numbers_is_refused_by_name(tmp_path):
    run(tmp_path)
    state = load_checkpoint(tmp_path)
    state["network"]["weight"].fill_(float("nan"))
    save_checkpoint(tmp_path, 4, state)
    with pytest.raises(ValueError, match="the weights 'weight' hold NaN"):
        run(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {"step": "4"},
        {"step": None},
        {"network": [1]},
        {"network": {"weight": 1, "bias": 2}},
        {"optimizer": None},
        {"interval": 1},
        {"rng": 5},
        {"rng": [{}]},
        {"batches": None},
    ],
    ids=str,
)
def test_a_checkpoint_that_holds_something_else_is_refused(tmp_path, change):
    run(tmp_path)
    save_checkpoint(tmp_path, 4, load_checkpoint(tmp_path) | change)
    with pytest.raises(ValueError, match=r"checkpoint in|`batches` must be"):
        run(tmp_path)
