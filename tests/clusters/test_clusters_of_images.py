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
    N_MOVED,
    NEARLY_EQUAL,
    SHIFT,
    SLANT,
    STRETCH,
    affine_maps,
    choose_number,
    fit_images,
    merge_for,
    moved,
    n_versions,
    target_sizes,
)
from neuralbayes.clusters.known import Hints, make_hints
from neuralbayes.clusters.merging import merge_states, merge_versions

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


def test_moved_images_are_near_and_keep_their_colours():
    y, x = torch.meshgrid(torch.linspace(-1, 1, 32), torch.linspace(-1, 1, 32), indexing="ij")
    blob = torch.exp(-4 * (x**2 + y**2))
    images = torch.stack([blob, 0.5 * blob, 0.0 * blob])[None].repeat(40, 1, 1, 1)
    found = moved(images, np.random.RandomState(0))
    assert found.shape == images.shape
    assert_allclose(found[:, 1], 0.5 * found[:, 0], atol=1e-6)
    assert_array_equal(found[:, 2], torch.zeros(40, 32, 32))
    change = (found - images).flatten(1).norm(dim=1) / images.flatten(1).norm(dim=1)
    assert 0.0 < float(change.min()) <= float(change.max()) < 0.5


def test_the_number_of_versions_is_bounded_by_the_pixels_and_never_zero():
    assert n_versions(10, 64) == N_MOVED
    assert n_versions(60_000, 4000 * 3000 * 3) == 1


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
    assert fitted(pixels, 1).verdict == "none"


def test_half_of_the_steps_are_for_the_states_if_there_is_something_to_merge(pixels):
    assert fitted(pixels, 3, n_states=3).trained.n_iter_start == 20
    assert fitted(pixels, 1).trained.n_iter_start == 20
    assert fitted(pixels, 3, max_iter=5).trained.n_iter_start == 3


def test_an_own_network_gets_normalised_images_and_rows_get_no_versions(pixels):
    own = nn.Conv2d(1, 2, 3)
    found = fitted(pixels, 3, body=own)
    assert found.frame.basis.shape == (64,)
    assert proba(found, pixels).shape == (200, 3)
    assert found.posterior.network.body is not own
    rows = fitted(pixels.flatten(1), None, max_clusters=6)
    assert list(rows.selection) == ["n_clusters", "ratio", "jump"]


@pytest.mark.parametrize(("n_clusters", "by_information"), [(2, True), (9, False)])
def test_states_are_merged_by_ratio_if_information_does_not_support_as_many_clusters(n_clusters, by_information):
    merging, said = merge_for(THREE, n_clusters, moved=True)
    expected = (merge_versions if by_information else merge_states)(THREE)
    assert said == by_information
    assert_array_equal(merging.linkage, expected.linkage)
    assert not merge_for(THREE, 2, moved=False)[1]


def test_the_number_is_chosen_by_what_states_were_merged_by():
    versions, neighbors = merge_versions(THREE), merge_states(THREE)
    number, selection = choose_number(versions, 5, by_information=True)
    assert number == 3
    assert selection == {"n_clusters": [2, 3, 4, 5], "information": versions.information[1:5].tolist()}
    number, selection = choose_number(neighbors, 5, by_information=False)
    assert number == 3
    assert_allclose(selection["ratio"], neighbors.ratios[[-1, -2, -3, -4]])
    assert_allclose(selection["jump"], neighbors.jumps()[:4])


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


def test_the_seed_decides(pixels):
    first, second, other = (fitted(pixels, 3, rng=np.random.RandomState(seed)) for seed in (0, 0, 1))
    assert_array_equal(proba(first, pixels), proba(second, pixels))
    assert np.abs(proba(first, pixels) - proba(other, pixels)).max() > 1e-3
