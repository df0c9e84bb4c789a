"""Clusters of images: moved versions, states, their merging and the last training."""

import math

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import softmax
from torch import nn

import neuralbayes as nb
from neuralbayes.clusters.images import (
    ANGLE,
    MARGIN,
    NEARLY_EQUAL,
    SHIFT,
    SLANT,
    STRETCH,
    affine_maps,
    choose_number,
    fit_images,
    merge_for,
    target_sizes,
)
from neuralbayes.clusters.known import Hints, make_hints
from neuralbayes.clusters.merging import Merging, merge_states

THREE = np.kron(np.eye(3), np.full((4, 4), 1 / 48))  # three clusters of four states that are all alike


@pytest.fixture(scope="module")
def pixels():
    """Digits as (n, C, H, W) in [0, 1]."""
    images = torch.from_numpy(nb.datasets.load("digits").train.images[:200])
    return images.movedim(-1, 1).float() / 255


def fitted(x, n_clusters=3, **settings):
    settings = {"max_iter": 20, "n_hidden": 16, "rng": np.random.RandomState(0)} | settings
    return fit_images(lambda rows: x[rows], len(x), n_clusters, **settings)


def test_maps_are_small_and_each_is_another_one():
    maps = affine_maps(500, np.random.RandomState(0))
    linear, shift = maps[:, :, :2], maps[:, :, 2]
    assert np.abs(shift).max() <= 2 * SHIFT
    assert np.abs(np.log(np.linalg.det(linear))).max() <= 2 * STRETCH
    turned = np.arctan2(linear[:, 1, 0], linear[:, 0, 0])
    assert ANGLE * 0.9 < np.abs(turned).max() <= ANGLE
    assert np.abs(linear - np.eye(2)).max() < math.sin(ANGLE) + 2 * STRETCH + SLANT
    assert len(np.unique(maps.reshape(500, 6), axis=0)) == 500
    assert_allclose(maps.mean(axis=0), np.eye(2, 3), atol=0.02)


def proba(found, x):
    points = found.frame(x.flatten(1).numpy())
    if found.frame.basis.ndim == 1:
        points = points.reshape(x.shape)
    return softmax(found.posterior.logits(points), axis=1) @ found.membership


def test_the_fit_says_how_states_were_merged_and_trained(pixels):
    found = fitted(pixels, 3)
    assert found.membership.shape == (12, 3)
    assert_array_equal(found.membership.sum(axis=1), np.ones(12))
    assert found.merging.linkage.shape == (11, 4)
    assert (found.trained.n_iter, found.trained.n_iter_start) == (20, 10)
    assert ((found.separation > 0) & (found.separation < np.log(2))).all()
    assert found.frame.basis.shape == (64, 64)
    assert (found.selection, found.stability, found.verdict) == ({}, None, "segments")
    one, unmerged = fitted(pixels, 1), fitted(pixels, 3, n_states=3)  # nothing to merge: all steps are for the states
    assert (one.verdict, one.trained.n_iter_start, unmerged.trained.n_iter_start) == ("none", 20, 20)


def test_an_own_network_gets_normalised_images_and_no_versions(pixels):
    own = nn.Conv2d(1, 2, 3)
    found = fitted(pixels, 3, body=own)
    assert found.frame.basis.shape == (64,)
    assert proba(found, pixels).shape == (200, 3)
    assert found.posterior.network.body is not own
    assert list(fitted(pixels, None, body=own, max_clusters=6).selection) == ["n_clusters", "ratio", "jump"]


@pytest.mark.parametrize(("n_clusters", "by_information"), [(2, True), (9, False)])
def test_states_are_merged_by_ratio_if_information_does_not_support_as_many_clusters(n_clusters, by_information):
    merging, said = merge_for(THREE, n_clusters, moved=True)
    assert said == by_information
    assert_array_equal(merging.linkage, merge_states(THREE, by_information=by_information).linkage)
    assert not merge_for(THREE, 2, moved=False)[1]


def by_hand(ratios=(), information=()):
    return Merging(np.zeros((0, 4)), np.array(ratios), np.array(information))


def test_the_number_by_information_is_the_smallest_that_is_nearly_the_best():
    best = 2.0
    merging = by_hand(information=[0.0, 1.0, best * (1 - 1.1 * MARGIN), best * (1 - 0.9 * MARGIN), best, 1.9, 2.5])
    assert [choose_number(merging, most, True)[0] for most in (6, 7, 3, 1)] == [4, 7, 3, 1]
    expected = {"n_clusters": [2, 3], "information": merging.information[1:3].tolist()}
    assert choose_number(merging, 3, True)[1] == expected
    assert choose_number(by_hand(information=[0.0, -0.5, -0.8]), 3, True)[0] == 2
    assert choose_number(by_hand(information=[0.0]), 3, True)[0] == 1


def test_the_number_by_ratios_is_that_of_the_largest_jump_up_to_the_largest_number():
    """The jumps are 2, 3, 4, 5 at K = 2, 3, 4, 5, so each allowed number is better than all before it."""
    merging = by_hand(ratios=[120.0, 24.0, 6.0, 2.0, 1.0])
    assert [choose_number(merging, most, False)[0] for most in (1, 2, 3, 4, 5, 9)] == [1, 2, 3, 4, 5, 5]
    selection = choose_number(merging, 3, False)[1]
    assert selection == {"n_clusters": [2, 3], "ratio": [1.0, 2.0], "jump": [2.0, 3.0]}


def test_sizes_that_differ_are_the_target_of_p_z():
    assert target_sizes(torch.tensor([0.30, 0.35, 0.35])) is None
    sizes = torch.tensor([0.2, 0.2 * NEARLY_EQUAL + 0.01])
    assert_array_equal(target_sizes(sizes), sizes)


def test_a_uniform_target_of_p_z_makes_clusters_of_equal_size():
    """A blob in the left half of nine of ten images, and in the right half of the others."""
    rng = np.random.RandomState(0)
    y, x = np.mgrid[:12, :12]
    side = rng.rand(300) < 0.9
    center = np.where(side, 3.5, 8.5)[:, None, None]
    spread = rng.uniform(2.0, 8.0, 300)[:, None, None]
    images = np.exp(-((x - center) ** 2 + (y - 6.0) ** 2) / spread)
    images = torch.from_numpy(images).float()[:, None]
    shares = []
    for target in ("auto", "uniform"):
        found = fitted(images, 2, target_prior=target, max_iter=400, n_hidden=64, n_states=20)
        shares.append(float(proba(found, images).mean(axis=0).max()))
    assert shares[1] < 0.7 < shares[0]


def test_known_classes_keep_their_numbers_and_weights_count(pixels):
    labels = nb.datasets.load("digits").train.labels[:200]
    known = np.where(np.arange(200) % 4 == 0, labels, -1)
    found = fitted(pixels, 10, hints=make_hints(200, known=known)[0], max_iter=200, n_hidden=64)
    assert (proba(found, pixels).argmax(axis=1) == known)[known >= 0].mean() > 0.9
    weight = np.where(labels < 5, 2.0, 0.1)
    weighed = fitted(pixels, 10, hints=Hints(weight=weight / weight.mean()))
    assert proba(weighed, pixels).shape == (200, 10)
