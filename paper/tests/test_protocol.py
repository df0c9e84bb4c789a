"""The paper's probe: the 128 images, the 200 units, what selects the epoch."""

import numpy as np
import pytest
import torch
from paper.protocol import make_head, probe_parts, standardisation


def rows(n, seed=0, noise=0.7, n_classes=3):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    centers = np.random.default_rng(99).normal(size=(n_classes, 6))
    return (centers[y] * 2 + noise * rng.normal(size=(n, 6))).astype(np.float32), y


def test_the_papers_classifier_has_one_hidden_layer_of_200_units():
    layers = list(make_head("mlp", 4096, 10))
    assert [type(layer).__name__ for layer in layers] == ["Linear", "ReLU", "Linear"]
    assert [tuple(layers[i].weight.shape) for i in (0, 2)] == [(200, 4096), (10, 200)]


def test_the_papers_protocol_looks_at_the_first_128_test_images_only():
    x, y = rows(400, seed=1)
    spoilt = x.copy()
    spoilt[128:] = np.random.default_rng(0).normal(size=spoilt[128:].shape)
    kept = [probe_parts(rows(300), (t, y), protocol="paper", max_epochs=4, seeds=1) for t in (x, spoilt)]
    assert kept[0].accuracies == kept[1].accuracies
    assert (128 * kept[0].mean).is_integer()
    honest = [probe_parts(rows(300), (t, y), max_epochs=4, seeds=1) for t in (x, spoilt)]
    assert honest[0].mean > honest[1].mean + 0.2


def test_the_papers_figure_is_the_best_epoch_on_the_images_it_is_judged_on():
    train, test = rows(200, noise=6.0), rows(128, seed=1, noise=6.0)
    best = probe_parts(train, test, protocol="paper", max_epochs=15, seeds=2)
    assert [len(curve) for curve in best.curves] == [15, 15]
    assert tuple(max(curve) for curve in best.curves) == best.accuracies


def test_no_test_image_takes_part_in_the_honest_protocol():
    x, y = rows(200, seed=1, noise=2.0)
    whole, *halves = (
        probe_parts(rows(300), (x[s], y[s]), max_epochs=6, seeds=2) for s in (slice(200), slice(100), slice(100, 200))
    )
    assert halves[0].curves == halves[1].curves == whole.curves
    np.testing.assert_allclose(np.mean([half.accuracies for half in halves], axis=0), whole.accuracies)
    validation = [share * 30 for share in whole.curves[0]]  # a tenth of 300 images
    np.testing.assert_allclose(validation, np.round(validation), atol=1e-9)
    assert whole.curves[0][whole.epochs[0] - 1] == max(whole.curves[0])


def test_the_seed_decides_and_the_callers_random_numbers_and_arrays_are_left_alone():
    train, test = rows(200, noise=4.0), rows(400, seed=1, noise=4.0)
    before, state = train[0].copy(), torch.get_rng_state()
    first, again = (probe_parts(train, test, max_epochs=5) for _ in range(2))
    assert first.curves == again.curves
    assert len(set(first.accuracies)) > 1
    assert torch.equal(torch.get_rng_state(), state)
    assert np.array_equal(train[0], before)


def test_features_are_standardised_by_all_training_rows_at_once():
    x = torch.randn(5000, 4) * torch.tensor([1.0, 3.0, 0.5, 0.0]) + torch.tensor([100.0, 0.0, -5.0, 2.0])
    mean, scale = standardisation(x)
    torch.testing.assert_close((x - mean).mul(scale).mean(0), torch.zeros(4), atol=1e-4, rtol=0)
    torch.testing.assert_close((x - mean).mul(scale).std(0, correction=0), torch.tensor([1.0, 1, 1, 0]))


def test_labels_that_are_not_numbers_from_0_are_refused():
    with pytest.raises(ValueError, match="labels of `train`"):
        probe_parts((np.ones((4, 2)), np.array([0, 1, 0, -1])), rows(9))
