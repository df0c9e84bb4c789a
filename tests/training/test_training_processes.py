"""Training on two processes: killed, signalled, resumed, and equal to one process."""

import os
import signal
from functools import partial

import pytest
import torch
import torch.distributed as dist
from lightning_fabric import Fabric
from process_cases import results_of_launched, results_of_ranks
from torch import nn

import neuralbayes as nb
from neuralbayes.training import Batches, Callback, train

X = torch.linspace(-1, 1, 21).reshape(21, 1)
BATCHES = Batches(21, 5)  # the last batch has one sample: rank 1 gets none


class KilledError(Exception):
    pass


class KillAt(Callback):
    def on_step_end(self, state, metrics):
        if state.step == 7:
            raise KilledError


class SignalToOne(Callback):
    def on_step_end(self, state, metrics):
        if state.step == 8 and dist.get_rank() == 1:
            os.kill(os.getpid(), signal.SIGTERM)


def shared_step(network, batch):
    n = torch.tensor(float(len(batch)))
    dist.all_reduce(n)
    loss = (network(batch) - 3 * batch).square().sum() / n
    loss.backward()
    for parameter in network.parameters():
        dist.all_reduce(parameter.grad)
    local = batch.mean() if len(batch) else torch.tensor(torch.nan)
    return {"mean": local, "noise": torch.rand(())}


def trained(fabric, folder, callbacks=()):
    torch.manual_seed(fabric.global_rank)
    network = nn.Linear(1, 1)  # differs between the ranks until the loop shares it
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    options = {"fetch": lambda i: X[i], "optimizer": optimizer, "fabric": fabric, "callbacks": callbacks}
    options |= {"max_epochs": 3, "checkpoint_every": 3, "log_every": 1, "run_dir": folder}
    try:
        state = train(network, shared_step, BATCHES, **options)
    except (KilledError, SystemExit) as error:
        return type(error).__name__
    return network.weight.item(), network.bias.item(), state.history


def fitted_weights(fabric=None):
    """Eight updates by `nb.fit` with micro-batches; the batches of an epoch have 9, 9 and 3 rows."""
    torch.manual_seed(3)
    network = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 3)).double()
    rows = torch.randn(21, 2, dtype=torch.float64)
    nb.fit(nb.MIM(), network, rows, max_steps=8, batch_size=9, microbatch_size=4, fabric=fabric)
    return torch.cat([parameter.detach().flatten() for parameter in network.parameters()])


def in_one_of_two(folder, rank):
    fabric = Fabric(accelerator="cpu", devices=2, strategy="ddp")
    fabric.launch()
    unbroken = trained(fabric, folder / "unbroken")
    ends = [trained(fabric, folder / "broken", [KillAt()]), trained(fabric, folder / "broken", [SignalToOne()])]
    fitted = fitted_weights(fabric)
    return {"fitted": fitted, "unbroken": unbroken, "ends": ends, "resumed": trained(fabric, folder / "broken")}


def test_two_processes_train_as_one(tmp_path):
    results_of_launched(tmp_path, partial(in_one_of_two, tmp_path))
    ranks = results_of_ranks(tmp_path)
    assert ranks[0]["unbroken"] == ranks[1]["unbroken"]
    for rank in ranks:
        assert rank["ends"] == ["KilledError", "SystemExit"]  # a signal to one process ends both
        assert rank["resumed"] == rank["unbroken"]

    assert torch.equal(ranks[0]["fitted"], ranks[1]["fitted"])
    torch.testing.assert_close(ranks[0]["fitted"], fitted_weights(), rtol=0, atol=1e-9)

    # The same weights as one process that sees the whole batches, from the start of rank 0.
    torch.manual_seed(0)
    network = nn.Linear(1, 1)

    def step(network, batch):
        (network(batch) - 3 * batch).square().mean().backward()
        return {"mean": batch.mean()}

    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    state = train(network, step, BATCHES, fetch=lambda i: X[i], optimizer=optimizer, max_epochs=3, log_every=1)
    weight, bias, history = ranks[0]["unbroken"]
    assert (weight, bias) == pytest.approx((network.weight.item(), network.bias.item()), abs=1e-5)
    # Means over the shares of a batch, weighted by their sizes, equal the mean over the batch.
    assert [r["mean"] for r in history] == pytest.approx([r["mean"] for r in state.history], abs=1e-6)
