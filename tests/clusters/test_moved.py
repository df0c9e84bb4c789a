"""Images moved a little, and training with them."""

import math

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from torch import nn

import neuralbayes as nb
from neuralbayes.clusters import fit
from neuralbayes.clusters.merging import VersionsMerging
from neuralbayes.clusters.moved import ANGLE, N_MOVED, SHIFT, SLANT, STRETCH, _affine_maps, moved, n_versions
from neuralbayes.clusters.smooth_step import smooth_step
from neuralbayes.clusters.training import NEARLY_EQUAL

QUICK = {"max_iter": 8, "n_hidden": 16, "random_state": 0}


def test_maps_are_small_and_each_is_another_one():
    maps = _affine_maps(500, np.random.RandomState(0))
    linear, shift = maps[:, :, :2], maps[:, :, 2]
    assert np.abs(shift).max() <= 2 * SHIFT
    assert np.abs(np.log(np.linalg.det(linear))).max() <= 2 * STRETCH
    turned = np.arctan2(linear[:, 1, 0], linear[:, 0, 0])
    assert ANGLE * 0.9 < np.abs(turned).max() <= ANGLE
    assert np.abs(linear - np.eye(2)).max() < math.sin(ANGLE) + 2 * STRETCH + SLANT
    assert len(np.unique(maps.reshape(500, 6), axis=0)) == 500
    assert_allclose(maps.mean(axis=0), np.eye(2, 3), atol=0.02)


def test_moved_images_are_near_and_keep_their_colours():
    y, x = torch.meshgrid(torch.linspace(-1, 1, 32), torch.linspace(-1, 1, 32), indexing="ij")
    blob = torch.exp(-4 * (x**2 + y**2))
    images = torch.stack([blob, 0.5 * blob, 0.0 * blob])[None].repeat(40, 1, 1, 1)
    found = moved(images, np.random.RandomState(0))
    assert found.shape == images.shape
    assert_allclose(found[:, 1], 0.5 * found[:, 0], atol=1e-6)
    assert_array_equal(found[:, 2], torch.zeros(40, 32, 32))
    change = (found - images).flatten(1).norm(dim=1) / images.flatten(1).norm(dim=1)
    assert float(change.min()) > 0.0
    assert float(change.max()) < 0.5


def test_the_number_of_versions_is_bounded_by_the_pixels_and_never_zero():
    assert n_versions(10, 64) == N_MOVED
    assert n_versions(60_000, 4000 * 3000 * 3) == 1


def test_the_worst_step_starts_from_one_of_the_versions():
    """With a radius of 0, the change is the divergence of p(z|version) from p(z|x), which is 0 if versions equal x."""
    torch.manual_seed(0)
    network = nn.Linear(3, 4)
    x, nowhere = torch.randn(50, 3), torch.zeros(50)
    step = smooth_step(nb.MIM(3.0, version=1), 0.1)
    still = step(network, (x, nowhere, x[:, None].repeat(1, 2, 1)))
    assert still["change"].item() == pytest.approx(0.0, abs=1e-6)
    far = torch.stack([x, x + 1.0], dim=1)
    change = step(network, (x, nowhere, far))["change"].item()
    whole = step(network, (x, nowhere, far[:, 1:]))["change"].item()
    assert 0.2 * whole < change < 0.8 * whole  # about half of the samples get the second version


@pytest.mark.parametrize(
    ("settings", "shape", "expected"),
    [
        ({}, (60, 8, 8), (60, N_MOVED, 59)),
        ({"network": nn.Conv2d(1, 2, 3)}, (60, 8, 8), None),
        ({"start": "states"}, (60, 64), None),
    ],
)
def test_images_are_moved_and_rows_are_not(monkeypatch, settings, shape, expected):
    digits = nb.datasets.load("digits").train.images[:60].reshape(shape) / np.float32(255)
    seen = []
    inner = fit.train_states

    def watched(network, fetch, radius, options, versions):
        seen.append(None if versions is None else tuple(versions.shape))
        return inner(network, fetch, radius, options, versions)

    monkeypatch.setattr(fit, "train_states", watched)
    nb.InformationClusterer(3, **QUICK, **settings).fit(digits)
    assert seen == [expected, expected]


def test_states_of_images_are_merged_by_their_moved_versions(monkeypatch):
    """States that contain versions of one image belong together, even if the nearest images are far apart."""
    digits = nb.datasets.load("digits").train.images[:60] / np.float32(255)
    n_versions_seen = []
    inner = fit.versions_joint

    def watched(p_zx, versions, weight):
        several = list(versions)
        n_versions_seen.append(len(several))
        return inner(p_zx, several, weight)

    monkeypatch.setattr(fit, "versions_joint", watched)
    monkeypatch.setattr(fit, "neighbor_joint", lambda *_: pytest.fail("neighbours decide about rows only"))
    nb.InformationClusterer(3, **QUICK).fit(digits)
    assert n_versions_seen == [N_MOVED]


def test_the_target_of_clusters_of_images_is_the_sizes_of_their_states(monkeypatch):
    digits = nb.datasets.load("digits").train.images[:60] / np.float32(255)
    joints, targets = [], []
    make_joint, train = fit.versions_joint, fit.train_states

    def watched_joint(*arguments):
        joints.append(make_joint(*arguments))
        return joints[-1]

    def watched_train(network, fetch, radius, options, versions):
        targets.append(None if options.objective is None else options.objective.target_prior)
        return train(network, fetch, radius, options, versions)

    monkeypatch.setattr(fit, "versions_joint", watched_joint)
    monkeypatch.setattr(fit, "train_states", watched_train)
    clusterer = nb.InformationClusterer(3, **QUICK).fit(digits)
    assert targets[0] is None  # small states should have equal sizes
    sizes = joints[0].sum(axis=1) @ clusterer.module_.membership.numpy()
    assert sizes.max() > NEARLY_EQUAL * sizes.min()
    assert_allclose(np.sort(targets[1].numpy()), np.sort(sizes), rtol=1e-4)
    nb.InformationClusterer(3, objective=nb.MIM(1.0), **QUICK).fit(digits)
    assert targets[2:] == [None, None]  # the caller's objective is unchanged


@pytest.mark.parametrize(("n_clusters", "many", "by_information"), [(2, 500, True), (9, 500, False), (2, 11, False)])
def test_states_are_merged_by_ratio_if_information_does_not_support_as_many_clusters(
    monkeypatch, n_clusters, many, by_information
):
    digits = nb.datasets.load("digits").train.images[:60] / np.float32(255)
    blocks = np.kron(np.eye(3), np.full((4, 4), 1 / 48))  # three clusters of four states that are all alike
    monkeypatch.setattr(fit, "versions_joint", lambda *_: blocks)
    monkeypatch.setattr(fit, "MANY_STATES", many)
    rule, made = ("merge_versions", "merge_states")[not by_information], []
    inner = getattr(fit, rule)
    monkeypatch.setattr(fit, rule, lambda *arguments: made.append(inner(*arguments)) or made[-1])
    clusterer = nb.InformationClusterer(n_clusters, n_states=12, **QUICK).fit(digits)
    membership = clusterer.module_.membership.numpy()
    expected = np.eye(n_clusters)[made[-1].clusters(n_clusters)]
    assert_array_equal(membership @ membership.T, expected @ expected.T)
    assert isinstance(made[-1], VersionsMerging) == by_information
