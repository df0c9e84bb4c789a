import math
import os
import random
import signal

import numpy as np
import pytest
import torch
from torch import nn

from neuralbayes.training import (
    Batches,
    Callback,
    EarlyStopping,
    StopOnNaN,
    cosine,
    load_checkpoint,
    read_metrics,
    train,
)

X = torch.linspace(-1, 1, 20).reshape(20, 1)
BATCHES = Batches(20, 6, seed=5)  # 4 steps per epoch, the last with 2 samples


class KilledError(Exception):
    """An error that no code expects, like a power cut."""


class KillAt(Callback):
    def __init__(self, *steps):
        self.steps = steps

    def on_step_end(self, state, metrics):
        if state.step in self.steps:
            raise KilledError


class Running(nn.Module):
    """State outside the network that every step changes."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(()))


class Experiment:
    """A network with buffers and dropout, augmentation from all generators, a schedule, a stateful companion."""

    def __init__(self, run_dir=None, **options):
        torch.manual_seed(0)
        np.random.seed(0)  # noqa: NPY002
        random.seed(0)
        self.network = nn.Sequential(nn.Linear(1, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 1))
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=0.02)
        self.running = Running()
        self.options = {
            "fetch": self.fetch,
            "optimizer": self.optimizer,
            "schedule": cosine(warmup=0.2),
            "max_epochs": 5,
            "clip_norm": 1.0,
            "stateful": {"running": self.running},
            "run_dir": run_dir,
            "log_every": 3,
            "checkpoint_every": 5,
        } | options

    def fetch(self, indices):
        noise = torch.randn(len(indices), 1) + random.random() + np.random.random()  # noqa: NPY002
        return X[indices] + 0.01 * noise

    def step(self, network, batch):
        loss = (network(batch) - batch.square()).square().mean()
        loss.backward()
        self.running.mean.lerp_(loss.detach(), 0.1)
        return {"loss": loss, "size": len(batch)}

    def train(self, **options):
        return train(self.network, self.step, BATCHES, **self.options | options)


def assert_same_end(one, other):
    for key, tensor in one.network.state_dict().items():
        assert torch.equal(tensor, other.network.state_dict()[key]), key
    left, right = (e.optimizer.state_dict() for e in (one, other))
    assert left["param_groups"] == right["param_groups"]
    for index, state in left["state"].items():
        for key, tensor in state.items():
            assert torch.equal(tensor, right["state"][index][key]), key
    assert torch.equal(one.running.mean, other.running.mean)


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    run_dir = tmp_path_factory.mktemp("unbroken")
    experiment = Experiment(run_dir)
    experiment.state = experiment.train()
    experiment.lines = (run_dir / "metrics.jsonl").read_text()
    return experiment


def test_lines_of_metrics(unbroken):
    records = read_metrics(unbroken.options["run_dir"] / "metrics.jsonl")
    assert records == unbroken.state.history
    # Every third step and at the end of each epoch of four.
    assert [record["step"] for record in records] == [3, 4, 6, 8, 9, 12, 15, 16, 18, 20]
    assert [record["epoch"] for record in records] == [0, 1, 1, 2, 2, 3, 3, 4, 4, 5]
    assert [record["size"] for record in records[:3]] == [6, 2, 6]  # means since the last line
    assert records[4]["size"] == 6
    assert records[1]["lr"] == pytest.approx(0.02 * (3.5 / 20) / 0.2)
    assert unbroken.optimizer.param_groups[0]["lr"] == 0.02


@pytest.mark.parametrize("kills", [(7,), (1,), (5, 13), (4, 10, 19), (2, 11, 11, 17)])
def test_a_killed_run_ends_like_an_unbroken_one(tmp_path, unbroken, kills):
    for kill in kills:
        with pytest.raises(KilledError):
            Experiment(tmp_path).train(callbacks=[KillAt(kill)])
        torch.rand(kill)  # a new process would have drawn other numbers
    last = Experiment(tmp_path)
    state = last.train()
    assert_same_end(last, unbroken)
    assert state.history == unbroken.state.history
    assert (tmp_path / "metrics.jsonl").read_text() == unbroken.lines


def test_a_finished_run_can_be_made_longer(tmp_path):
    Experiment(tmp_path).train(max_epochs=2)
    state = Experiment(tmp_path).train(max_epochs=3)
    assert state.step == 12
    assert state.history[-1]["lr"] == pytest.approx(0.02 * cosine(warmup=0.2)(11.5 / 12))


@pytest.mark.parametrize(("signum", "error"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit)])
def test_a_signal_saves_the_current_step_and_the_run_goes_on(tmp_path, unbroken, signum, error):
    class SignalAt(Callback):
        def on_gradients(self, state, metrics):
            if state.step == 6:
                os.kill(os.getpid(), signum)

    handler = signal.getsignal(signum)
    with pytest.raises(error) as caught:
        Experiment(tmp_path).train(callbacks=[SignalAt()], checkpoint_every=1000)
    assert signal.getsignal(signum) is handler
    assert getattr(caught.value, "code", 143) == 143
    assert load_checkpoint(tmp_path)["step"] == 7
    resumed = Experiment(tmp_path)
    resumed.train()
    assert_same_end(resumed, unbroken)
    assert (tmp_path / "metrics.jsonl").read_text() == unbroken.lines


class FailsAt(Experiment):
    """Step `fails` has NaN, also in the statistics of batch normalisation, or ends in an error."""

    def __init__(self, run_dir, fails, error=None):
        super().__init__(run_dir)
        self.fails, self.error = fails, error

    def step(self, network, batch):
        self.fails -= 1
        metrics = super().step(network, batch if self.fails or self.error else batch * math.nan)
        if self.error and not self.fails:
            raise self.error
        return metrics


@pytest.mark.parametrize(("fails", "error"), [(1, None), (8, None), (8, ValueError("no memory left"))])
def test_nan_and_errors_leave_a_checkpoint_of_the_last_good_step(tmp_path, unbroken, fails, error):
    message = "no memory left" if error else f"metric 'loss' is nan at step {fails};"
    with pytest.raises((FloatingPointError, ValueError), match=message) as caught:
        FailsAt(tmp_path, fails, error).train(callbacks=[StopOnNaN()])
    assert caught.value.__notes__ == [f"in training step {fails}"]
    assert load_checkpoint(tmp_path)["step"] == fails - 1
    resumed = Experiment(tmp_path)
    resumed.train()
    assert_same_end(resumed, unbroken)
    assert (tmp_path / "metrics.jsonl").read_text() == unbroken.lines


class Score(Callback):
    """A validation score that improves for two epochs."""

    def on_epoch_end(self, state, metrics):
        assert metrics["size"] == 5.0  # the mean over the epoch: (6 + 6 + 6 + 2) / 4
        return {"score": min(state.epoch, 2)}


def test_early_stopping_on_the_score_of_another_callback(tmp_path):
    def callbacks():
        return [Score(), EarlyStopping("score", mode="max", patience=2)]

    with pytest.raises(KilledError):  # in the third epoch: the checkpoint contains the state of early stopping
        Experiment(tmp_path).train(max_epochs=9, callbacks=[*callbacks(), KillAt(11)])
    state = Experiment(tmp_path).train(max_epochs=9, callbacks=callbacks())
    assert state.epoch == 4
    assert state.stop_reason == "score did not improve on 2.0 in 2 epochs"
    assert [r["score"] for r in state.history if "score" in r] == [1, 2, 2, 2]
    # A run that was stopped stays stopped.
    assert Experiment(tmp_path).train(max_epochs=9, callbacks=callbacks()).step == 16


def test_two_callbacks_of_one_class_keep_their_own_state(tmp_path):
    def callbacks():
        return [EarlyStopping("loss", patience=100), EarlyStopping("size", patience=100)]

    Experiment(tmp_path).train(max_epochs=2, callbacks=callbacks())
    resumed = callbacks()
    Experiment(tmp_path).train(max_epochs=2, callbacks=resumed)
    assert resumed[0].best != resumed[1].best == 5.0


def test_gradients_are_clipped():
    network = nn.Linear(1, 1, bias=False)
    before = network.weight.item()

    def step(network, batch):
        (1000 * network.weight.sum()).backward()
        return {}

    optimizer = torch.optim.SGD(network.parameters(), lr=1.0)
    train(network, step, BATCHES, fetch=lambda i: X[i], optimizer=optimizer, max_steps=1, clip_norm=0.5)
    assert before - network.weight.item() == pytest.approx(0.5, rel=1e-4)


def test_an_evaluation_in_a_callback_does_not_leave_the_network_in_eval_mode():
    modes = []

    class Evaluate(Callback):
        def on_step_end(self, state, metrics):
            modes.append(state.network.training)
            state.network.eval()

    Experiment().train(max_steps=3, callbacks=[Evaluate()])
    assert modes == [True, True, True]


def test_a_folder_that_cannot_be_written_is_named_before_training(tmp_path):
    (tmp_path / "file").write_text("")
    experiment = Experiment(tmp_path / "file" / "run", callbacks=[KillAt(1)])
    with pytest.raises(OSError, match="`run_dir`"):
        experiment.train()


def test_a_folder_of_another_run_is_refused(tmp_path):
    Experiment(tmp_path).train(max_steps=1)
    e = Experiment(tmp_path)
    with pytest.raises(ValueError, match="`batches`"):
        train(e.network, e.step, Batches(20, 6, seed=6), **e.options)
    with pytest.raises(TypeError, match="`batches`"):
        train(e.network, e.step, [X], **e.options)
    other = nn.Linear(1, 1)
    with pytest.raises(ValueError, match=r"does not fit `network`.*another `run_dir`"):
        e.train(stateful={"else": Running()})
    with pytest.raises(ValueError, match="does not fit `network`"):
        train(other, e.step, BATCHES, **e.options | {"optimizer": torch.optim.Adam(other.parameters())})


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"max_epochs": None}, ValueError, "`max_epochs` or `max_steps` must be given"),
        ({"max_epochs": 0}, ValueError, "`max_epochs`"),
        ({"max_steps": 2.5}, TypeError, "`max_steps`"),
        ({"log_every": 0}, ValueError, "`log_every`"),
        ({"checkpoint_every": 0}, ValueError, "`checkpoint_every`"),
        ({"clip_norm": 0.0}, ValueError, "`clip_norm`"),
        ({"optimizer": torch.optim.Adam}, TypeError, "`optimizer`"),
        (
            {"optimizer": torch.optim.Adam(nn.Linear(1, 1).parameters())},
            ValueError,
            "`optimizer`",
        ),
    ],
)
def test_bad_arguments_are_named(options, error, message):
    with pytest.raises(error, match=message):
        Experiment().train(**options)


@pytest.mark.parametrize(
    ("returned", "error", "message"),
    [
        (None, TypeError, "`step`"),
        ({"loss": None}, TypeError, "`step`"),
        ({"step": 1.0}, ValueError, "a metric must not be named 'step'"),
    ],
)
def test_bad_metrics_are_named(returned, error, message):
    e = Experiment()
    with pytest.raises(error, match=message):
        train(e.network, lambda network, batch: returned, BATCHES, **e.options)


def test_precision_that_needs_a_gradient_scaler_is_refused():
    from lightning_fabric import Fabric

    fabric = Fabric(accelerator="cpu", devices=1, precision="64-true")
    with pytest.raises(ValueError, match="`fabric`"):
        Experiment().train(fabric=fabric)
