"""The number of clusters that is found in rows."""

import numpy as np
import pytest

from neuralbayes.clusters.known import NO_HINTS
from neuralbayes.clusters.number import agreement, agreement_of_clusters, choose_segments, confirmed, stability
from neuralbayes.clusters.space import make_space
from neuralbayes.clusters.valleys import count_valleys, cut_at_valleys, held_out_valley


def number(X, max_clusters=20, seed=0):
    rng = np.random.RandomState(seed)
    return count_valleys(make_space(X - X.mean(axis=0), rng)[0], max_clusters)


def blobs(n_clusters, n, d=2, apart=8.0, seed=0):
    rng = np.random.RandomState(seed)
    centers = apart * np.stack([np.cos(angles := 2 * np.pi * np.arange(n_clusters) / n_clusters), np.sin(angles)], 1)
    X = rng.standard_normal((n, d))
    X[:, :2] += centers[np.arange(n) % n_clusters]
    return X


@pytest.mark.parametrize(("n_clusters", "n", "d"), [(2, 300, 10), (3, 150, 5), (4, 200, 3), (3, 2400, 3)])
def test_blobs_are_counted(n_clusters, n, d):
    found, selection = number(blobs(n_clusters, n, d))
    assert found == n_clusters
    assert selection["rows"] == sorted(selection["rows"], reverse=True)
    assert len(selection["rows"]) == len(selection["p_value"]) == n_clusters - 1
    assert max(selection["p_value"]) < 0.1
    assert number(blobs(n_clusters, n, d), max_clusters=2)[0] == 2


KINDS = {
    "gaussian": lambda rng: rng.standard_normal((150, 5)),
    "uniform": lambda rng: rng.uniform(size=(150, 2)),
    "exponential": lambda rng: rng.exponential(size=(150, 3)),
    "heavy tails": lambda rng: rng.standard_t(4, size=(150, 2)),
    "codes": lambda rng: rng.randint(3, size=(150, 4)).astype(float),  # gaps between codes are not valleys
}


@pytest.mark.parametrize("kind", KINDS)
def test_rows_without_a_valley_are_one_cluster(kind):
    found = [number(KINDS[kind](np.random.RandomState(seed)))[0] for seed in range(4)]
    assert sum(n > 1 for n in found) <= 1
    assert np.median(found) == 1


def test_p_values_of_rows_without_a_valley_are_large_however_many_dimensions_found_it():
    """In many dimensions, the rows that find a band see a valley in it, but held-out rows do not."""
    draws = [np.random.RandomState(seed).standard_normal((60, 20)) for seed in range(12)]
    p = [held_out_valley(x, np.random.RandomState(0), level=0.0).p_value for x in draws]
    assert np.median(p) > 0.3
    assert np.mean(np.array(p) < 0.1) <= 0.2


@pytest.mark.parametrize("x", [np.zeros((1, 2)), np.zeros((40, 3)), np.repeat(np.eye(2), 30, axis=0)])
def test_few_rows_and_equal_rows_do_no_harm(x):
    labels, cuts = cut_at_valleys(x, 20)
    assert labels.shape == (len(x),)
    assert labels.max() == len(cuts) == (len(np.unique(x, axis=0)) > 1)


@pytest.mark.parametrize("round_to", [None, 0])
def test_the_order_of_the_rows_and_the_seed_do_not_change_the_number(round_to):
    """The clusters are hard to separate: other random numbers would find other numbers of clusters."""
    X = blobs(6, 150, 3, apart=4.5)
    X = X if round_to is None else X.round(round_to)
    found = [number(X[np.random.RandomState(seed).permutation(len(X))], seed=seed) for seed in range(2)]
    assert len({n for n, _ in found}) == 1
    assert all(selection["rows"] == found[0][1]["rows"] for _, selection in found)


def test_two_partitions_agree_as_far_as_their_information_is_shared():
    a = np.repeat([0, 1, 2], 20)
    assert agreement([(a, (a + 1) % 3)]) == pytest.approx(1.0)
    assert agreement([(a, np.random.RandomState(0).permutation(a))]) < 0.1
    merged = np.minimum(a, 1)  # two of the clusters are one in the other partition
    found = agreement_of_clusters([(a, merged), (a, a)], a, 3)
    assert found[0] == 1.0
    assert found[1:].min() == pytest.approx((0.0 + 1.0) / 2)


def rows_in_space(x):
    return make_space((x - x.mean(axis=0)) / x.std(axis=0), np.random.RandomState(0))[0]


@pytest.mark.parametrize("kind", ["table", "embeddings"])
def test_the_most_repeatable_number_is_chosen_and_none_if_nothing_is_repeatable(kind):
    rng = np.random.RandomState(0)
    chosen, selection = choose_segments(rows_in_space(blobs(3, 300, 4)), kind, range(2, 8), rng)
    assert chosen == 3
    assert selection["agreement"][1] == max(selection["agreement"]) > 0.9
    noise = np.random.RandomState(0).standard_normal((200, 30))
    assert choose_segments(rows_in_space(noise), kind, range(3, 8), rng)[0] == 1


def test_a_given_number_is_confirmed_by_as_many_valleys():
    space = rows_in_space(blobs(3, 300, 4))
    verdicts = [confirmed(space, "table", k, NO_HINTS) for k in (1, 2, 3, 4)]
    assert verdicts == ["none", "clusters", "clusters", "segments"]
    assert confirmed(space, "embeddings", 4, NO_HINTS) == "clusters"  # one valley suffices in many dimensions
    noise = rows_in_space(np.random.RandomState(0).standard_normal((300, 4)))
    assert {confirmed(noise, kind, 3, NO_HINTS) for kind in ("table", "embeddings")} == {"segments"}


def test_stability_is_high_for_clusters_low_for_noise_and_one_for_one_cluster():
    x, rng = blobs(3, 300, 4), np.random.RandomState(0)
    whole, each = stability(rows_in_space(x), "table", np.arange(300) % 3, 3, rng)
    assert whole > 0.95
    assert (each > 0.95).all()
    noise = np.random.RandomState(0).standard_normal((300, 10))
    assert stability(rows_in_space(noise), "table", np.arange(300) % 3, 3, rng)[0] < 0.6
    assert stability(rows_in_space(noise), "table", np.zeros(300, int), 1, rng)[0] == 1.0
