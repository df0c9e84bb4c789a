"""`fit`: its inputs, its results, and how it continues after a stop."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import TensorDataset

import neuralbayes as nb
from neuralbayes.networks.encoders import mlp
from neuralbayes.training import Batches, Callback, cosine

X = torch.randn(61, 5, generator=torch.Generator().manual_seed(1))


def network(**settings: Any) -> nn.Sequential:
    torch.manual_seed(0)
    return mlp((5, 8, 3), **settings)


def weights(module: nn.Module) -> Tensor:
    return torch.cat([tensor.double().flatten() for tensor in module.state_dict().values()])


class Counted:
    """Samples that are created on request."""

    def __len__(self) -> int:
        return len(X)

    def __call__(self, indices: Tensor) -> Tensor:
        return X[indices]


def test_it_is_a_loop_of_backward_and_an_optimiser() -> None:
    by_fit, by_hand = network(batch_norm=True), network(batch_norm=True)
    settings: dict[str, Any] = {"microbatch_size": 7, "smoothness": nb.Smoothness(beta=0.1)}
    torch.manual_seed(3)
    nb.fit(nb.MIM(), by_fit, X, max_steps=5, batch_size=20, seed=4, **settings)
    torch.manual_seed(3)
    optimizer = torch.optim.Adam(by_hand.parameters())
    batches = Batches(61, 20, seed=4, drop_last=True)  # the last batch of an epoch would be one sample
    for step in range(5):
        optimizer.zero_grad()
        nb.backward(nb.MIM(), by_hand, X[batches.indices(step)], **settings)
        optimizer.step()
    assert torch.equal(weights(by_fit), weights(by_hand))


def test_data_in_any_form_gives_the_same_weights(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", X.double().numpy())
    forms = [
        X,
        X.numpy(),
        np.load(tmp_path / "rows.npy", mmap_mode="r"),
        TensorDataset(X),
        TensorDataset(X, torch.arange(61)),
        [*X],
        Counted(),
    ]
    found = []
    for form in forms:
        module = network()
        nb.fit(nb.MIM(), module, form, max_epochs=2, batch_size=16)
        found.append(weights(module))
    assert all(torch.equal(one, found[0]) for one in found)


@pytest.mark.parametrize(
    ("arguments", "settings", "words"),
    [
        ((nb.MIM(), network(), 3), {}, "`data`"),
        ((nb.MIM(), network(), X.__getitem__), {}, "`data`"),
        ((nb.MIM(), network(), [1, 2, 3]), {}, "`data`"),
        ((X, network(), X), {}, "`objective`"),
        ((nb.MIM(), nn.Linear, X), {}, "`network`"),
        ((nb.MIM(), network(), X), {"max_epochs": None}, "`max_epochs` or `max_steps` must be given"),
        ((nb.MIM(), network(), X), {"microbatch_size": 0}, "`microbatch_size`"),
    ],
)
def test_what_cannot_be_is_named(arguments: tuple[Any, ...], settings: dict[str, Any], words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        nb.fit(*arguments, **{"max_epochs": 1} | settings)


def test_the_network_is_ready_for_use() -> None:
    module = network(batch_norm=True)
    other, sgd = network(batch_norm=True), partial(torch.optim.SGD, lr=0.3)
    state = nb.fit(nb.MIM(), module, X, max_epochs=3, batch_size=20, optimizer=sgd, device="cpu")
    nb.fit(nb.MIM(), other, X, max_epochs=3, batch_size=20, optimizer=sgd(other.parameters()))
    assert torch.equal(weights(module), weights(other))
    assert state.network is module
    assert not module.training
    assert [line["epoch"] for line in state.history] == [1, 2, 3]
    assert {p.device.type for p in module.parameters()} == {"cpu"}


class Stop(Callback):
    def on_step_end(self, state: Any, metrics: Any) -> None:
        if state.step == 3:
            raise KeyboardInterrupt


@pytest.mark.parametrize("marginal", ["exact", "running", "minibatch"])
def test_a_run_goes_on_where_it_was_stopped(marginal: Any, tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        "max_epochs": 3,
        "batch_size": 20,
        "microbatch_size": 10,
        "marginal": marginal,
        "smoothness": nb.Smoothness(beta=0.1),
        "schedule": cosine(),
        "checkpoint_every": 1,
    }
    unbroken, broken = network(batch_norm=True), network(batch_norm=True)
    torch.manual_seed(5)
    nb.fit(nb.MIM(), unbroken, X, **settings)
    torch.manual_seed(5)
    with pytest.raises(KeyboardInterrupt):
        nb.fit(nb.MIM(), broken, X, out=tmp_path, callbacks=[Stop()], **settings)
    again = network(batch_norm=True)
    torch.manual_seed(6)
    state = nb.fit(nb.MIM(), again, X, out=tmp_path, **settings)
    assert state.step == 9
    assert torch.equal(weights(again), weights(unbroken))
