"""Rows of all kinds: memory-mapped, of half precision, sparse, of unit length, data frames, and features."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import adjusted_rand_score

import neuralbayes as nb

LABELS = np.repeat([0, 1, 2], 60)
FEW_STEPS = {"max_iter": 30, "n_hidden": 32}


def fit(rows, n_clusters=3, *, features=None, **settings):
    return nb.InformationClusterer(n_clusters, random_state=0, **settings).fit(rows, features=features)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.RandomState(0)
    return 4.0 * np.eye(3, 8)[LABELS] + 0.3 * rng.standard_normal((180, 8)) + 1.0


@pytest.fixture(scope="module")
def of_rows(rows):
    return fit(rows)


@pytest.fixture(scope="module")
def words():
    """Sparse rows of 300 columns; each cluster uses 40 of them."""
    rng = np.random.RandomState(0)
    dense = rng.poisson(0.03, (180, 300)).astype(float)
    for k in range(3):
        dense[k * 60 : (k + 1) * 60, 40 * k : 40 * k + 40] += rng.poisson(0.5, (60, 40))
    return sp.csr_array(dense)


@pytest.fixture(scope="module")
def of_words(words):
    return fit(words, n_components=20)


def mapped(path, array):
    np.save(path, array)
    return np.load(path, mmap_mode="r")


def test_a_mapped_file_is_not_copied(tmp_path):
    rng = np.random.RandomState(0)
    big = mapped(tmp_path / "rows.npy", rng.standard_normal((160_000, 64)).astype(np.float16))  # 20 MB
    clusterer = fit(big[:2000], 2, max_samples=500, **FEW_STEPS)
    tracemalloc.start()
    clusterer.predict(big)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < big.nbytes / 3


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_number_that_is_none_is_found_in_every_block(dtype, value):
    X = np.zeros((3000, 100), dtype)
    X[2999, 99] = value
    with pytest.raises(ValueError, match="NaN" if np.isnan(value) else "infinity"):
        fit(X)


def test_lengths_do_not_matter_to_the_cosine(rows):
    lengths = np.random.RandomState(1).uniform(0.1, 10.0, (180, 1))
    plain = fit(rows, metric="cosine", **FEW_STEPS)
    assert (plain.kind_, plain.kind_reason_) == ("embeddings", "metric='cosine'")
    assert adjusted_rand_score(LABELS, plain.labels_) == 1.0
    assert_array_equal(plain.labels_, fit(lengths * rows, metric="cosine", **FEW_STEPS).labels_)
    assert_allclose(plain.predict_proba(lengths * rows), plain.predict_proba(rows), atol=1e-5)
    new = rows + 0.01
    assert_allclose(plain.typicality(lengths * new), plain.typicality(new))
    assert_allclose(plain.module_(torch.from_numpy(7.0 * rows)).numpy(), plain.transform(rows), atol=1e-5)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_a_row_without_a_direction_is_named(rows, make):
    with_zeros = rows.copy()
    with_zeros[[17, 30]] = 0.0
    with pytest.raises(ValueError, match="metric='cosine', got row 17"):
        fit(make(with_zeros), metric="cosine")
    fitted = fit(rows, metric="cosine", **FEW_STEPS)
    for method in (fitted.predict, fitted.typicality, fitted.predict_proba):
        with pytest.raises(ValueError, match="got row 17"):
            method(make(with_zeros))


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_matrix, sp.coo_array])
def test_few_sparse_columns_give_what_dense_rows_give(rows, of_rows, kind):
    fitted = fit(kind(rows))
    assert fitted.frame_.reduction is None
    assert_array_equal(fitted.predict_proba(kind(rows)), of_rows.predict_proba(rows))
    assert_array_equal(of_rows.predict(kind(rows)), of_rows.labels_)


def test_many_sparse_columns_are_reduced(words, of_words, tmp_path):
    dense = words.toarray()
    assert of_words.frame_.reduction.shape == (300, 20)
    assert adjusted_rand_score(LABELS, of_words.labels_) > 0.9
    for form in (words, dense):
        assert_array_equal(of_words.predict(form), of_words.labels_)
    assert_allclose(of_words.typicality(words), of_words.typicality(dense))
    assert_allclose(of_words.module_(torch.from_numpy(dense)).numpy(), of_words.transform(words), atol=1e-6)
    of_words.save(tmp_path / "model")
    assert_array_equal(nb.load(tmp_path / "model").predict_proba(words), of_words.predict_proba(words))


def test_sparse_rows_are_never_made_dense_as_a_whole(words):
    wide = sp.hstack([sp.vstack([words] * 30, format="csr"), sp.csr_array((5400, 9700))], format="csr")
    tracemalloc.start()
    fit(wide, n_components=20).predict(wide)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * wide.shape[0] * wide.shape[1] / 4


def test_bad_sparse_rows_are_refused(words):
    broken = words.copy()
    broken.data[5] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        fit(broken)
    with pytest.raises(ValueError, match=r"X must .* 2 distinct samples, got 1"):
        fit(sp.csr_array((5, 300)), 1)
    with pytest.raises(TypeError, match="Sparse data"):
        nb.ManifoldLabeler(2).fit(words)


def test_a_frame_with_words_and_missing_cells_is_vectorised(rows, tmp_path):
    frame = pd.DataFrame(rows[:, :3], columns=["a", "b", "c"]).assign(kind=np.array(["x", "y", "z"])[LABELS])
    frame.loc[::9, "a"] = np.nan
    fitted = fit(frame)
    assert (fitted.kind_, fitted.kind_reason_) == ("table", "a data frame")
    assert adjusted_rand_score(LABELS, fitted.labels_) > 0.95
    fitted.save(tmp_path / "model")
    assert_array_equal(nb.load(tmp_path / "model").predict_proba(frame), fitted.predict_proba(frame))


G = 1000.0 * (np.random.RandomState(1).normal(size=(180, 2)) * 0.3 + np.array([[0, 0], [0, 4], [4, 0]])[LABELS])
SENTENCES = [f"sentence {i}" for i in range(180)]


def test_several_spaces_count_the_same(rows, tmp_path):
    found = fit(SENTENCES, features=[rows, G])
    assert nb.clustering_accuracy(found.labels_, LABELS) > 0.95
    spaces = zip([rows, G], found.feature_scales_, strict=True)
    assert_allclose([float((space * scale).var(axis=0).sum()) for space, scale in spaces], 1.0)
    assert_array_equal(found.predict([rows, G]), found.labels_)
    found.save(tmp_path / "model")
    again = nb.load(tmp_path / "model")
    assert_array_equal(again.predict_proba([rows[:5], G[:5]]), found.predict_proba([rows[:5], G[:5]]))
    with pytest.raises(ValueError, match="X must have 2 feature spaces, as in fit, got 1"):
        found.predict([rows])


@pytest.mark.parametrize(
    ("X", "features", "message"),
    [
        (SENTENCES[:7], G, "`features`"),
        (SENTENCES, [G, G[:5]], r"`features\[1\]` must have shape \(180, n_features\)"),
        (SENTENCES, [G, 0 * G], r"`features\[1\]` must be finite and have rows that differ"),
    ],
)
def test_wrong_features_are_named(X, features, message):
    with pytest.raises(ValueError, match=message):
        fit(X, features=features)
