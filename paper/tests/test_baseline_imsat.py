"""IMSAT: its information, its radii, its loss, and that it finds clusters."""

import copy
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from image_cases import bars
from paper.baselines import ImsatConfig, ImsatRowsConfig, clustering_accuracy, imsat, imsat_rows
from paper.baselines.imsat import ImsatTerms, _step, radii

from neuralbayes.networks.encoders import mlp
from neuralbayes.objectives import MIM
from neuralbayes.objectives.virtual_adversarial import virtual_adversarial
from neuralbayes.training import read_metrics

ROWS = ImsatRowsConfig(n_clusters=3, hidden=(32, 32), batch_size=50, epochs=15)


def blobs(n=300, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    return (rng.normal(size=(n, 6)) + 6.0 * np.eye(6)[y]).astype(np.float32), y


def test_its_information_is_mim_of_version_1():
    logits = torch.randn(7, 4, dtype=torch.float64)
    p = logits.softmax(1).numpy()
    h_zx = -sum(p[i, k] * math.log(p[i, k]) for i in range(7) for k in range(4)) / 7
    h_z = -sum(p[:, k].mean() * math.log(p[:, k].mean()) for k in range(4))
    assert float(MIM(alpha=4.0 - 1.0, version=1)(logits)) == pytest.approx(-(4.0 * h_z - h_zx))


def test_the_loss_of_a_step_is_smoothness_and_information_by_their_weights():
    terms = ImsatTerms(n_clusters=3, information_weight=0.2, prior_weight=3.0)
    network = mlp((6, 8, 3), batch_norm=True)
    again = copy.deepcopy(network)
    x, radius = torch.randn(20, 6), torch.full((20,), 0.5)
    torch.manual_seed(5)
    metrics = _step(terms)(network, (x, radius))

    torch.manual_seed(5)
    logits = again(x)
    torch.testing.assert_close(network.norm1.running_mean, again.norm1.running_mean)  # from clean samples only
    p = logits.softmax(1)
    information = 3.0 * -(p.mean(0) * p.mean(0).log()).sum() + (p * p.log()).sum(1).mean()
    change = virtual_adversarial(again, x, radius, clean=logits, step=terms.step)
    loss = change - 0.2 * information
    loss.backward()
    torch.testing.assert_close(metrics["loss"], loss)
    torch.testing.assert_close(metrics["change"], change)
    torch.testing.assert_close(network.linear1.weight.grad, again.linear1.weight.grad)


def test_radii_are_a_share_of_the_distance_to_the_tenth_neighbour():
    rows = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
    found = radii(rows, ImsatTerms(radius=0.25, n_neighbors=10))
    for row, radius in zip(rows, found.tolist(), strict=True):
        distances = sorted(float(np.linalg.norm(row - other)) for other in rows)
        assert radius == pytest.approx(0.25 * distances[10], rel=1e-4)  # the first is the row itself, at 0
    few = radii(rows[:4], ImsatTerms(radius=1.0, n_neighbors=10))
    assert float(few[0]) == pytest.approx(max(np.linalg.norm(rows[0] - r) for r in rows[:4]), rel=1e-4)


def test_rows_that_are_apart_get_clusters_of_their_own():
    x, y = blobs()
    clusterer = imsat_rows(x, ROWS)
    assert clustering_accuracy(clusterer.predict(x), y) > 0.95
    fresh, truth = blobs(90, seed=1)
    assert clustering_accuracy(clusterer.predict(fresh), truth) > 0.95
    p_zx = clusterer.predict_proba(fresh)
    assert p_zx.shape == (90, 3)
    np.testing.assert_allclose(p_zx.sum(axis=1), 1.0, atol=1e-5)


def test_rows_may_be_bytes():
    x, y = blobs()
    as_bytes = (x - x.min()).clip(0, 255).astype(np.uint8)
    clusterer = imsat_rows(as_bytes, ROWS)
    assert clustering_accuracy(clusterer.predict(as_bytes), y) > 0.95
    np.testing.assert_allclose(clusterer.predict_proba(as_bytes), clusterer.predict_proba(as_bytes.astype(float)))


def test_columns_may_be_standardised():
    x, y = blobs()
    x[:, 5] *= 1000.0  # large but uninformative
    assert clustering_accuracy(imsat_rows(x, replace(ROWS, standardize=True)).predict(x), y) > 0.95


def test_images_of_two_kinds_get_clusters_of_their_own(tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(64) % 2
    images = rng.integers(0, 60, (64, 24, 24, 1))
    images[y == 0, :12] += 150
    images[y == 1, 12:] += 150
    config = ImsatConfig(n_clusters=2, encoder="tiny", batch_size=32, epochs=10, pooled=False)
    encoder = imsat(images.astype(np.uint8), config, out=tmp_path)
    lines = read_metrics(tmp_path / "metrics.jsonl")
    assert lines[-1]["loss"] < lines[0]["loss"]
    assert lines[-1]["mi"] > lines[0]["mi"]
    assert clustering_accuracy(encoder.predict(images.astype(np.uint8)), y) > 0.9


@pytest.mark.parametrize("kind", [ImsatConfig, ImsatRowsConfig])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_clusters": 1}, "`n_clusters` must be at least 2, got 1"),
        ({"n_neighbors": 0}, "`n_neighbors` must be at least 1"),
        ({"n_iterations": 0}, "`n_iterations` must be at least 1"),
        ({"radius": 0.0}, "`radius` must be finite and positive, got 0.0"),
        ({"information_weight": -1.0}, "`information_weight` must be finite and positive"),
        ({"prior_weight": math.inf}, "`prior_weight` must be finite and positive"),
        ({"batch_size": 0}, "`batch_size` must be at least 1"),
    ],
)
def test_a_wrong_setting_is_named(kind, change, message):
    with pytest.raises(ValueError, match=message):
        kind(**change)


@pytest.mark.parametrize("X", [np.zeros(5), np.zeros((1, 5)), np.full((4, 5), np.nan)])
def test_rows_that_cannot_be_clustered_are_refused(X):
    with pytest.raises(ValueError, match="`X` must be finite, of shape"):
        imsat_rows(X, ROWS)
    with pytest.raises(ValueError, match="`hidden` must be positive integers"):
        replace(ROWS, hidden=())


def test_one_image_has_no_neighbours():
    with pytest.raises(ValueError, match="`images` must be at least 2 to have neighbours"):
        imsat(bars(1)[0], ImsatConfig(encoder="tiny"))
