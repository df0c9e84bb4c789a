"""Training under virtual adversarial smoothness, against slow loops and values by hand."""

from functools import partial

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from torch import nn

import neuralbayes as nb
from neuralbayes.clusters.known import Hints, make_hints
from neuralbayes.clusters.training import (
    INFORMATION,
    PRIOR,
    Anchors,
    default_objective,
    imitation_step,
    seeded,
    smooth_step,
    state_mlp,
    state_network,
    train_from_votes,
    train_steps,
)
from neuralbayes.networks.states import MergedStates

SMOOTH = partial(smooth_step, objective=default_objective())


@pytest.fixture
def blobs():
    """Three blobs of 40, 30 and 20 points."""
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], [40, 30, 20])
    points = 4.0 * np.eye(3, 4)[labels] + 0.3 * rng.standard_normal((90, 4))
    return torch.from_numpy(points).float(), torch.from_numpy(labels)


def test_a_step_is_the_change_plus_a_tenth_of_the_objective():
    """With steps of length 0, only IMSAT's information is left: -(mu H(z) - H(z|x)), up to a constant."""
    torch.manual_seed(0)
    network, x = nn.Linear(3, 4), torch.randn(20, 3)
    metrics = smooth_step(network, (x, torch.zeros(20)), objective=default_objective())
    p_zx = network(x).softmax(dim=1).tolist()
    p_z = [sum(p[k] for p in p_zx) / 20 for k in range(4)]
    of_samples = -sum(p[k] * np.log(p[k]) for p in p_zx for k in range(4)) / 20
    negative_entropy = sum(p * np.log(p) for p in p_z)
    assert metrics["change"].item() == pytest.approx(0.0, abs=1e-6)
    assert metrics["loss"].item() == pytest.approx(INFORMATION * (of_samples + PRIOR * negative_entropy), rel=1e-4)
    assert metrics["mi"].item() == pytest.approx(-negative_entropy - of_samples, abs=1e-5)
    assert network.weight.grad.abs().max() > 0


def test_imitation_is_the_cross_entropy_to_the_votes():
    torch.manual_seed(0)
    network, x = nn.Linear(3, 4), torch.randn(20, 3)
    target = torch.rand(20, 4).softmax(dim=1)
    loss = imitation_step(network, (x, torch.zeros(20), target))["loss"].item()
    log_p = network(x).log_softmax(dim=1).detach()
    slow = -sum(float(target[i, k] * log_p[i, k]) for i in range(20) for k in range(4)) / 20
    assert loss == pytest.approx(slow, rel=1e-5)


def test_the_worst_step_starts_from_one_of_the_versions():
    """With a radius of 0, the change is the divergence of p(z|version) from p(z|x), which is 0 if versions equal x."""
    torch.manual_seed(0)
    network = nn.Linear(3, 4)
    x, nowhere = torch.randn(50, 3), torch.zeros(50)

    def change(versions):
        return smooth_step(network, (x, nowhere, versions), objective=nb.MIM(3.0, version=1))["change"].item()

    assert change(x[:, None].repeat(1, 2, 1)) == pytest.approx(0.0, abs=1e-6)
    whole = change((x + 1.0)[:, None])
    assert 0.2 * whole < change(torch.stack([x, x + 1.0], dim=1)) < 0.8 * whole  # about half get the second version


def test_the_loss_of_anchors_is_that_of_a_loop():
    torch.manual_seed(0)
    logits, target = torch.randn(12, 3), torch.tensor([[1.0, 0.0, 0.0], [0.2, 0.3, 0.5]])
    pairs = torch.arange(10).reshape(5, 2)
    anchors = Anchors(torch.tensor([3, 5]), target, pairs[:2], pairs[2:])
    assert_array_equal(anchors.indices(), [3, 5, *range(10)])
    p_zx = logits.softmax(dim=1).tolist()
    rows = -sum(target[i, k] * np.log(p_zx[i][k]) for i in range(2) for k in range(3)) / 2
    shared = [sum(a * b for a, b in zip(p_zx[2 + 2 * i], p_zx[3 + 2 * i], strict=True)) for i in range(5)]
    slow = rows - np.mean(np.log(shared[:2])) - np.mean(np.log(1.0 - np.array(shared[2:])))
    assert anchors.loss(logits).item() == pytest.approx(float(slow), rel=1e-5)
    nothing = Anchors(torch.empty(0, dtype=torch.int64), torch.empty(0, 3), pairs[:0], pairs[:0])
    assert nothing.loss(logits[:0]).item() == 0.0


def test_anchors_are_the_known_rows_and_the_links():
    hints = make_hints(6, known=[1, -1, -1, -1, -1, 0], must_link=[[1, 2], [2, 3]], cannot_link=[[3, 4]])[0]
    anchors = Anchors.of(hints, 2)
    assert_array_equal(anchors.rows, [0, 5])
    assert_array_equal(anchors.target, [[0.0, 1.0], [1.0, 0.0]])
    assert_array_equal(anchors.must, [[1, 2], [2, 3]])
    assert_array_equal(anchors.cannot, [[3, 4]])
    votes = torch.full((6, 2), 0.5)
    with_votes = Anchors.of(hints, 2, votes)
    assert_array_equal(with_votes.rows, [0, 5, 0, 5, 0, 5, *range(6)])  # half of them are known
    assert_array_equal(with_votes.target[6:], votes)
    assert Anchors.of(Hints(weight=np.ones(6)), 2) is None
    few = with_votes.draw(8)
    assert (len(few.rows), len(few.must), len(few.cannot)) == (2, 2, 1)


def test_a_network_learns_from_votes_and_keeps_the_sizes(blobs):
    x, labels = blobs
    shares = 0.7 * torch.eye(3)[labels] + 0.1
    shares[:4] = torch.tensor([0.1, 0.8, 0.1])  # wrong votes
    with seeded(np.random.RandomState(0)):
        network = state_mlp(4, 16, 3)
        trained = train_from_votes(network, x.numpy(), np.ones(90), shares.numpy(), steps=100)
    assert_array_equal(network(x).argmax(dim=1), labels)  # the objective corrects the wrong ones
    assert not network.training
    assert (trained.n_iter, trained.n_iter_start) == (100, 25)
    assert len(trained.loss_curve) == 20
    assert trained.loss_curve[-1] < trained.loss_curve[10]


def test_known_rows_win_over_the_votes(blobs):
    x, labels = blobs
    shares = torch.eye(3)[labels][:, [1, 0, 2]]  # two clusters are swapped
    known = np.where(np.arange(90) % 5 == 0, labels.numpy(), -1)
    with seeded(np.random.RandomState(0)):
        network = state_mlp(4, 16, 3)
        anchors = Anchors.of(make_hints(90, known=known)[0], 3)
        train_from_votes(network, x.numpy(), 2.5 * np.ones(90), shares.numpy(), steps=300, anchors=anchors)
    assert (network(x).argmax(dim=1)[known >= 0] == labels[known >= 0]).float().mean() > 0.9


def test_pairs_of_clusters_are_respected(blobs):
    x, _ = blobs
    must = np.array([[i, i + 40] for i in range(30)])  # the first two blobs belong together
    hints = make_hints(90, must_link=must)[0]
    with seeded(np.random.RandomState(0)):
        network = MergedStates(state_mlp(4, 16, 6), torch.eye(3)[torch.arange(6) % 3])
        step = partial(SMOOTH, fetch=x.__getitem__, anchors=Anchors.of(hints, 3))
        train_steps(network, x.__getitem__, (torch.ones(90),), step, steps=200, description="")
    found = network(x).argmax(dim=1)
    assert (found[must[:, 0]] == found[must[:, 1]]).float().mean() > 0.9


def test_samples_are_drawn_in_proportion_to_their_weights(blobs):
    x, _ = blobs
    drawn = []

    def fetch(rows):
        drawn.append(rows)
        return x[rows]

    weight = np.where(np.arange(90) < 45, 0.5, 1.5)
    hints = Hints(weight=weight)
    train_steps(state_mlp(4, 8, 3), fetch, (torch.ones(90),), SMOOTH, steps=5, hints=hints, description="")
    counts = np.bincount(torch.cat(drawn), minlength=90)
    assert_array_equal(counts, 5 * np.where(np.arange(90) < 45, 2, 6))


def test_states_are_almost_equally_probable_at_the_start_and_an_own_network_is_copied():
    x = torch.randn(50, 1, 4, 4)
    own = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2))
    before = {name: tensor.clone() for name, tensor in own.state_dict().items()}
    for network, inputs in ((state_network(None, x.flatten(1), 5, 8), x.flatten(1)), (state_network(own, x, 5, 8), x)):
        assert_allclose(network(inputs).softmax(dim=1).detach(), 0.2, atol=1e-3)
    for name, tensor in own.state_dict().items():
        assert_array_equal(tensor, before[name])
