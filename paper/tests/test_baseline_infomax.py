"""Deep InfoMax: the estimators against loops, the adversarial prior, and that it learns."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from image_cases import bars
from paper.baselines import InfoMaxConfig, infomax, infonce_estimate, jsd_estimate
from paper.baselines.infomax import ESTIMATORS, InfoMax, prior_losses
from torch import nn

from neuralbayes.data.normalize import Normalization
from neuralbayes.features.encoder import ImageEncoder
from neuralbayes.training import read_metrics

IMAGES, _ = bars()
CONFIG = InfoMaxConfig(encoder="tiny", batch_size=16, epochs=4, units=32, learning_rate=2e-3)


def softplus(t):
    return math.log1p(math.exp(t))


def test_jsd_is_the_loop_over_pairs_and_others():
    scores = torch.randn(4, 4, 3, dtype=torch.float64)
    pairs, others = [], []
    for i in range(4):
        for j in range(4):
            for p in range(3):
                t = float(scores[i, j, p])
                (pairs if i == j else others).append(-softplus(-t) if i == j else softplus(t))
    expected = sum(pairs) / len(pairs) - sum(others) / len(others)
    assert float(jsd_estimate(scores)) == pytest.approx(expected)


def test_infonce_is_the_loop_over_positions_with_all_positions_of_others():
    scores = torch.randn(4, 4, 3, dtype=torch.float64)
    total = 0.0
    for i in range(4):
        others = sum(math.exp(scores[i, j, q]) for j in range(4) if j != i for q in range(3))
        for p in range(3):
            total += float(scores[i, i, p]) - math.log(math.exp(scores[i, i, p]) + others)
    assert float(infonce_estimate(scores)) == pytest.approx(total / 12)


def test_scores_that_say_nothing_and_scores_that_say_all():
    nothing, n = torch.zeros(5, 5, 2), 5
    assert float(jsd_estimate(nothing)) == pytest.approx(-2 * math.log(2))
    assert float(infonce_estimate(nothing)) == pytest.approx(-math.log(1 + (n - 1) * 2))
    everything = (200.0 * torch.eye(5) - 100.0)[:, :, None].expand(5, 5, 2)
    for estimate in ESTIMATORS.values():
        assert float(estimate(everything)) == pytest.approx(0.0, abs=1e-6)


def test_infonce_is_a_bound_that_the_true_ratio_reaches_from_below():
    """For x and y with correlation rho: I = -log(1 - rho^2) / 2, and T = log p(x|y) / p(x) is the best score."""
    rho, n = 0.8, 400
    y = torch.randn(n, dtype=torch.float64)
    x = rho * y + math.sqrt(1 - rho**2) * torch.randn(n, dtype=torch.float64)
    ratio = -((x[None] - rho * y[:, None]) ** 2) / (2 * (1 - rho**2)) + x[None] ** 2 / 2
    truth = -0.5 * math.log(1 - rho**2)
    found = float(infonce_estimate(ratio[:, :, None])) + math.log(n)
    assert truth - 0.1 < found < truth + 0.05
    assert float(infonce_estimate(0.3 * ratio[:, :, None])) + math.log(n) < found


@pytest.mark.parametrize("estimate", ESTIMATORS.values())
def test_gradients_of_the_estimators(estimate):
    scores = torch.randn(3, 3, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(estimate, scores)
    (slope,) = torch.autograd.grad(estimate(scores), scores)
    own = torch.eye(3, dtype=torch.bool)
    assert (slope[own] > 0).all()  # pairs should score high
    assert (slope[~own] < 0).all()


def test_each_player_has_the_gradient_of_its_own_loss_alone():
    judge = nn.Linear(2, 1)
    codes = torch.randn(6, 2, requires_grad=True)
    fooled, told = prior_losses(judge, codes)
    fooled.backward(retain_graph=True)
    assert judge.weight.grad is None
    # the loss of the encoder, softplus(-judge), by hand
    slope = -torch.sigmoid(-judge(codes.sigmoid())) * judge.weight * codes.sigmoid() * (1 - codes.sigmoid()) / 6
    torch.testing.assert_close(codes.grad, slope.detach())
    codes.grad = None
    told.backward()
    assert codes.grad is None
    assert judge.weight.grad.abs().sum() > 0


def test_codes_come_to_match_the_uniform_prior():
    codes = nn.Parameter(0.1 * torch.randn(256, 1) - 3.0)
    judge = nn.Sequential(nn.Linear(1, 16), nn.ReLU(), nn.Linear(16, 1))
    optimizer = torch.optim.Adam([{"params": [codes], "lr": 0.02}, {"params": judge.parameters(), "lr": 0.01}])
    for _ in range(400):
        optimizer.zero_grad()
        sum(prior_losses(judge, codes)).backward()
        optimizer.step()
    values = codes.detach().sigmoid()
    assert abs(float(values.mean()) - 0.5) < 0.2  # it was 0.05


@pytest.mark.parametrize("estimator", ["jsd", "infonce"])
@pytest.mark.parametrize(("global_weight", "local_weight"), [(0.0, 1.0), (1.0, 0.0), (1.0, 1.0)])
@pytest.mark.parametrize("discriminator", ["dot", "concat"])
def test_information_rises_in_every_variant(tmp_path, estimator, global_weight, local_weight, discriminator):
    config = replace(
        CONFIG,
        estimator=estimator,
        global_weight=global_weight,
        local_weight=local_weight,
        discriminator=discriminator,
        prior_weight=0.0,
    )
    infomax(IMAGES, config, out=tmp_path)
    lines = read_metrics(tmp_path / "metrics.jsonl")
    assert lines[-1]["loss"] < lines[0]["loss"]
    assert {"global", "local"} & lines[0].keys() == {
        name for name, weight in (("global", global_weight), ("local", local_weight)) if weight
    }


def test_the_loss_is_the_weighted_sum_of_its_parts():
    config = replace(CONFIG, global_weight=0.5, local_weight=2.0, prior_weight=0.25)
    encoder = ImageEncoder("tiny", (24, 24, 1), Normalization.fit(IMAGES))
    losses = InfoMax(encoder, config)(encoder.prepare(IMAGES[:8]))
    parts = 0.5 * losses["global"] + 2.0 * losses["local"] + 0.25 * losses["prior"] + losses["judge"]
    torch.testing.assert_close(losses["loss"], parts)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"estimator": "dv"}, "`estimator` must be one of jsd, infonce, got 'dv'"),
        ({"discriminator": "cosine"}, "`discriminator` must be one of dot, concat"),
        ({"state": "relu4"}, "`state` must be one of relu1, relu2, relu3, got 'relu4'"),
        ({"local_weight": 0.0}, "`global_weight` or `local_weight` must be positive"),
        ({"prior_weight": -1.0}, "`prior_weight` must be finite and non-negative, got -1.0"),
        ({"local_weight": math.nan}, "`local_weight` must be finite"),
        ({"code_size": 0}, "`code_size` must be at least 1"),
        ({"units": 0}, "`units` must be at least 1"),
        ({"batch_size": 1}, "`batch_size` must be at least 2"),
    ],
)
def test_a_wrong_setting_is_named(change, message):
    with pytest.raises(ValueError, match=message):
        replace(CONFIG, **change)


def test_one_image_has_no_other_to_be_told_from():
    with pytest.raises(ValueError, match="`images` must be at least 2"):
        infomax(np.zeros((1, 24, 24, 1), np.uint8), CONFIG)
