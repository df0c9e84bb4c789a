"""The baselines: common behaviour of all that train, then what each of them computes."""

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch
from image_cases import bars
from paper import baselines
from paper.baselines import ImsatRowsConfig, InfoMaxConfig, RandomConfig, RotationConfig
from paper.baselines.imsat import imsat_step, radii
from paper.baselines.infomax import InfoMax, jsd_estimate, prior_losses
from paper.baselines.rotation import rotated
from torch import nn

from neuralbayes import clustering_accuracy
from neuralbayes.data.normalize import Normalization
from neuralbayes.features.encoder import ImageEncoder
from neuralbayes.networks.encoders import mlp
from neuralbayes.objectives.virtual_adversarial import virtual_adversarial
from neuralbayes.training import read_metrics

IMAGES, _ = bars()
COMMON = {"encoder": "tiny", "batch_size": 16, "epochs": 2, "schedule": "cosine", "seed": 3}
METHODS = {
    "rotation": (baselines.rotation, RotationConfig(**COMMON)),
    "infomax": (baselines.infomax, InfoMaxConfig(**COMMON, units=16)),
}


@pytest.mark.parametrize("name", METHODS)
def test_all_start_from_the_weights_of_the_random_encoder(name):
    method, config = METHODS[name]
    start = baselines.random(IMAGES, RandomConfig(encoder="tiny", seed=3)).network.state_dict()
    barely = method(IMAGES, replace(config, epochs=1, learning_rate=1e-12)).network.state_dict()
    for layer in ("conv1.weight", "conv4.weight"):
        torch.testing.assert_close(barely[layer], start[layer])


def test_the_random_encoder_is_drawn_by_its_seed():
    config = RandomConfig(encoder="tiny", batch_norm=False, seed=4)
    encoder, again, other = (baselines.random(IMAGES, replace(config, seed=seed)) for seed in (4, 4, 5))
    assert torch.equal(encoder.network.conv1.weight, again.network.conv1.weight)
    assert not torch.equal(encoder.network.conv1.weight, other.network.conv1.weight)
    assert not any(isinstance(module, nn.BatchNorm2d) for module in encoder.modules())


def test_every_image_comes_in_all_four_rotations():
    x = torch.randn(3, 2, 4, 4)
    copies, turns = rotated(x)
    assert turns.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]
    for image, found, turn in zip(x.repeat(4, 1, 1, 1), copies, turns.tolist(), strict=True):
        assert np.array_equal(found, np.rot90(image, turn, axes=(1, 2)))


def test_rotation_learns_which_way_is_up(tmp_path):
    wedges = np.random.default_rng(0).integers(0, 80, (64, 24, 24, 1))
    wedges[:, :8] += 150
    config = RotationConfig(encoder="tiny", batch_size=16, epochs=6, normalize="channel", learning_rate=3e-3)
    baselines.rotation(wedges.astype(np.uint8), config, out=tmp_path)
    assert read_metrics(tmp_path / "metrics.jsonl")[-1]["accuracy"] > 0.9


def test_the_estimate_is_a_loop_over_pairs_and_others():
    scores = torch.randn(4, 4, 3, dtype=torch.float64)
    t = scores.tolist()
    places = list(product(range(4), range(4), range(3)))
    pairs = [-math.log1p(math.exp(-t[i][j][p])) for i, j, p in places if i == j]
    others = [math.log1p(math.exp(t[i][j][p])) for i, j, p in places if i != j]
    assert float(jsd_estimate(scores)) == pytest.approx(sum(pairs) / 12 - sum(others) / 36)


def test_each_player_has_the_gradient_of_its_own_loss_alone():
    judge, codes = nn.Linear(2, 1), torch.randn(6, 2, requires_grad=True)
    fooled, told = prior_losses(judge, codes)
    assert torch.autograd.grad(fooled, judge.weight, retain_graph=True, allow_unused=True) == (None,)
    assert torch.autograd.grad(told, codes, retain_graph=True, allow_unused=True) == (None,)
    slope = -torch.sigmoid(-judge(codes.sigmoid())) * judge.weight * codes.sigmoid() * (1 - codes.sigmoid()) / 6
    torch.testing.assert_close(torch.autograd.grad(fooled, codes)[0], slope.detach())  # of softplus(-judge), by hand
    assert torch.autograd.grad(told, judge.weight)[0].abs().sum() > 0


def test_infomax_learns_and_its_loss_is_the_weighted_sum_of_its_parts(tmp_path):
    config = InfoMaxConfig(encoder="tiny", batch_size=16, epochs=4, units=32, learning_rate=2e-3, prior_weight=0.25)
    baselines.infomax(IMAGES, config, out=tmp_path)
    lines = read_metrics(tmp_path / "metrics.jsonl")
    assert lines[-1]["local"] < lines[0]["local"]
    encoder = ImageEncoder("tiny", (24, 24, 1), Normalization.fit(IMAGES))
    losses = InfoMax(encoder, config)(encoder.prepare(IMAGES[:8]))
    torch.testing.assert_close(losses["loss"], losses["local"] + 0.25 * losses["prior"] + losses["judge"])


def test_imsat_minimises_smoothness_minus_weighted_information():
    config = ImsatRowsConfig(n_clusters=3, information_weight=0.2, prior_weight=3.0)
    network, x, radius = mlp((6, 8, 3), batch_norm=True), torch.randn(20, 6), torch.full((20,), 0.5)
    torch.manual_seed(5)
    metrics = imsat_step(config)(network, (x, radius))
    torch.manual_seed(5)
    logits = network(x)
    p = logits.softmax(1)
    information = 3.0 * -(p.mean(0) * p.mean(0).log()).sum() + (p * p.log()).sum(1).mean()
    change = virtual_adversarial(network, x, radius, clean=logits, step=config.step)
    torch.testing.assert_close(metrics["loss"], change - 0.2 * information)


def test_imsat_finds_blobs_with_radii_of_a_quarter_of_the_distance_to_the_tenth_neighbour():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(300, 6)) + 6.0 * np.eye(6)[np.arange(300) % 3], np.arange(300) % 3
    config = ImsatRowsConfig(n_clusters=3, hidden=(32, 32), batch_size=50, epochs=15)
    assert clustering_accuracy(baselines.imsat_rows(x, config).predict(x), y) > 0.95
    distances = np.sort(np.linalg.norm(x - x[0], axis=1))
    assert float(radii(x, config)[0]) == pytest.approx(0.25 * distances[10], rel=1e-4)  # the first is the row itself
