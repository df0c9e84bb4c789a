"""Training over two processes: killed, signalled, resumed, and equal to one process."""

import json
import os
import subprocess
import sys

import pytest
import torch
from torch import nn

from neuralbayes.training import Batches, train

TWO_PROCESSES = """
import json, os, signal, sys
import torch, torch.distributed as dist
from torch import nn
from lightning_fabric import Fabric
from neuralbayes.training import Batches, Callback, train

torch.set_num_threads(1)
run_root = sys.argv[1]
X = torch.linspace(-1, 1, 21).reshape(21, 1)
batches = Batches(21, 5)  # the last batch has one sample: rank 1 gets none

class Killed(Exception): pass

class KillAt(Callback):
    def on_step_end(self, state, metrics):
        if state.step == 7:
            raise Killed

class SignalToOne(Callback):
    def on_step_end(self, state, metrics):
        if state.step == 8 and fabric.global_rank == 1:
            os.kill(os.getpid(), signal.SIGTERM)

def step(network, batch):
    n = torch.tensor(float(len(batch)))
    dist.all_reduce(n)
    loss = (network(batch) - 3 * batch).square().sum() / n
    loss.backward()
    for parameter in network.parameters():
        dist.all_reduce(parameter.grad)
    local = (batch.mean() if len(batch) else torch.tensor(torch.nan))
    return {"mean": local, "noise": torch.rand(())}

def run(name, callbacks=()):
    torch.manual_seed(fabric.global_rank)
    network = nn.Linear(1, 1)  # differs between the ranks until the loop has shared it
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    try:
        state = train(network, step, batches, fetch=lambda i: X[i], optimizer=optimizer, max_epochs=3,
                      fabric=fabric, run_dir=f"{run_root}/{name}", checkpoint_every=3, log_every=1,
                      callbacks=callbacks)
    except (Killed, SystemExit) as error:
        return type(error).__name__
    return network.weight.item(), network.bias.item(), state.history

if __name__ == "__main__":
    fabric = Fabric(accelerator="cpu", devices=2, strategy="ddp")
    fabric.launch()
    unbroken = run("unbroken")
    ends = [run("broken", [KillAt()]), run("broken", [SignalToOne()])]
    resumed = run("broken")
    torch.manual_seed(0)
    init = nn.Linear(1, 1)
    expected = init.weight.item(), init.bias.item()
    report = {"unbroken": unbroken, "resumed": resumed, "init": expected, "ends": ends}
    with open(f"{run_root}/rank{fabric.global_rank}.json", "w") as file:
        json.dump(report, file)
    dist.barrier()
    dist.destroy_process_group()
"""


def test_two_processes_train_as_one(tmp_path):
    script = tmp_path / "two.py"
    script.write_text(TWO_PROCESSES)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST")}
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path)], capture_output=True, text=True, timeout=120, env=environment
    )
    assert done.returncode == 0, done.stderr
    ranks = [json.loads((tmp_path / f"rank{rank}.json").read_text()) for rank in range(2)]
    assert ranks[0]["unbroken"] == ranks[1]["unbroken"]
    for rank in ranks:
        assert rank["ends"] == ["Killed", "SystemExit"]  # a signal to one process ends both
        assert rank["resumed"] == rank["unbroken"]

    # The same weights as one process that sees the whole batches, from the start of rank 0.
    network = nn.Linear(1, 1)
    with torch.no_grad():
        network.weight.fill_(ranks[0]["init"][0])
        network.bias.fill_(ranks[0]["init"][1])
    x = torch.linspace(-1, 1, 21).reshape(21, 1)

    def step(network, batch):
        (network(batch) - 3 * batch).square().mean().backward()
        return {"mean": batch.mean()}

    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    state = train(network, step, Batches(21, 5), fetch=lambda i: x[i], optimizer=optimizer, max_epochs=3, log_every=1)
    weight, bias, history = ranks[0]["unbroken"]
    assert (weight, bias) == pytest.approx((network.weight.item(), network.bias.item()), abs=1e-5)
    # Means over the shares of a batch, weighted by their sizes, are the mean over the batch.
    assert [r["mean"] for r in history] == pytest.approx([r["mean"] for r in state.history], abs=1e-6)
