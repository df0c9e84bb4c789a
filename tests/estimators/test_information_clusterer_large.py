"""Memory-mapped, half-precision and sparse rows, and rows of which only the direction matters."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import adjusted_rand_score

import neuralbayes as nb

QUICK = {"max_iter": 24, "random_state": 0}
LABELS = np.repeat([0, 1, 2], 60)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.RandomState(0)
    return 4.0 * np.eye(3, 8)[LABELS] + 0.3 * rng.standard_normal((180, 8)) + 1.0


@pytest.fixture(scope="module")
def of_rows(rows):
    return nb.InformationClusterer(3, **QUICK).fit(rows)


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
    return nb.InformationClusterer(3, n_components=20, **QUICK).fit(words)


def mapped(path, array):
    np.save(path, array)
    return np.load(path, mmap_mode="r")


def test_half_precision_gives_the_clusters_of_what_it_was_rounded_to(rows, tmp_path):
    half = mapped(tmp_path / "rows.npy", rows.astype(np.float16))
    fitted = nb.InformationClusterer(3, **QUICK).fit(half)
    single = nb.InformationClusterer(3, **QUICK).fit(rows.astype(np.float16).astype(np.float32))
    assert_array_equal(fitted.labels_, single.labels_)
    assert_array_equal(fitted.labels_, fitted.predict(half))
    assert fitted.predict_proba(half).dtype == np.float32
    assert_allclose(fitted.predict_proba(half), single.predict_proba(half.astype(np.float32)), atol=1e-6)
    assert_allclose(fitted.typicality(half), single.typicality(half.astype(np.float32)))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_tensors_of_half_precision(rows, dtype):
    tensor = torch.from_numpy(rows).to(dtype)
    assert adjusted_rand_score(LABELS, nb.InformationClusterer(3, **QUICK).fit_predict(tensor)) == 1.0


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "estimator", [nb.ManifoldLabeler(3, random_state=0), nb.MIMEncoder(hidden=(16,), max_epochs=2)]
)
def test_other_estimators_take_half_precision(rows, estimator):
    p_zx = estimator.fit(rows.astype(np.float16)).predict_proba(rows.astype(np.float16))
    assert p_zx.dtype == np.float32
    assert_allclose(p_zx.sum(axis=1), 1.0, rtol=1e-5)


def test_a_mapped_file_is_not_copied(tmp_path):
    rng = np.random.RandomState(0)
    big = mapped(tmp_path / "rows.npy", rng.standard_normal((40_000, 256)).astype(np.float16))  # 20 MB
    clusterer = nb.InformationClusterer(2, max_samples=500, **QUICK).fit(big[:2000])
    tracemalloc.start()
    clusterer.predict(big)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < big.nbytes / 4


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_number_that_is_none_is_found_in_any_block(dtype, value):
    X = np.zeros((3000, 100), dtype)
    X[2999, 99] = value
    with pytest.raises(ValueError, match="NaN" if np.isnan(value) else "infinity"):
        nb.InformationClusterer(2).fit(X)


def test_the_largest_half_precision_numbers_are_finite():
    X = np.full((40, 2), 65504, np.float16)
    X[::2] *= -1
    assert nb.InformationClusterer(2, **QUICK).fit(X).n_clusters_ == 2


def test_lengths_do_not_matter_to_the_cosine(rows, tmp_path):
    lengths = np.random.RandomState(1).uniform(0.1, 10.0, (180, 1))
    plain = nb.InformationClusterer(3, metric="cosine", **QUICK).fit(rows)
    scaled = nb.InformationClusterer(3, metric="cosine", **QUICK).fit(lengths * rows)
    assert_array_equal(plain.labels_, scaled.labels_)
    assert_allclose(plain.predict_proba(lengths * rows), plain.predict_proba(rows), atol=1e-5)
    new = rows + 0.01
    assert_allclose(plain.typicality(lengths * new), plain.typicality(new))
    assert adjusted_rand_score(LABELS, plain.labels_) == 1.0
    plain.set_params(metric="euclidean")  # for the next fit
    plain.save(tmp_path / "model")
    again = nb.load(tmp_path / "model")
    assert again.effective_metric_ == "cosine"
    assert_array_equal(again.predict_proba(7.0 * rows), plain.predict_proba(7.0 * rows))
    assert_allclose(again.module_(torch.from_numpy(7.0 * rows)).numpy(), plain.transform(rows), atol=1e-9)


def test_the_cosine_equals_rows_of_unit_length(rows):
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    cosine = nb.InformationClusterer(3, metric="cosine", **QUICK).fit(rows)
    euclidean = nb.InformationClusterer(3, **QUICK).fit(unit)
    assert_array_equal(cosine.labels_, euclidean.labels_)
    assert_allclose(cosine.predict_proba(rows), euclidean.predict_proba(unit), atol=1e-6)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_a_row_without_a_direction_is_named(rows, make):
    with_zeros = rows.copy()
    with_zeros[[17, 30]] = 0.0
    with pytest.raises(ValueError, match="no row of zeros with metric='cosine', got row 17"):
        nb.InformationClusterer(3, metric="cosine").fit(make(with_zeros))
    fitted = nb.InformationClusterer(3, metric="cosine", **QUICK).fit(rows)
    for method in (fitted.predict, fitted.typicality, fitted.predict_proba):
        with pytest.raises(ValueError, match="got row 17"):
            method(make(with_zeros))


def test_images_have_no_cosine():
    with pytest.raises(ValueError, match="`metric` is for rows, and must be 'euclidean' here, got 'cosine'"):
        nb.InformationClusterer(2, metric="cosine").fit(np.zeros((4, 3, 3), np.uint8))


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csr_matrix, sp.csc_array, sp.csc_matrix, sp.coo_array])
def test_few_sparse_columns_give_what_dense_rows_give(rows, of_rows, kind):
    fitted = nb.InformationClusterer(3, **QUICK).fit(kind(rows))
    assert fitted.n_components_ == 0
    assert_array_equal(fitted.predict_proba(kind(rows)), of_rows.predict_proba(rows))
    assert_array_equal(of_rows.predict(kind(rows)), of_rows.labels_)


def test_many_sparse_columns_are_reduced(words, of_words):
    assert of_words.n_components_ == 20
    assert of_words.n_features_in_ == 300
    assert adjusted_rand_score(LABELS, of_words.labels_) > 0.9
    assert_array_equal(of_words.predict(words), of_words.labels_)
    assert_array_equal(of_words.predict(words.toarray()), of_words.labels_)
    assert_allclose(of_words.typicality(words), of_words.typicality(words.toarray()))
    assert_allclose(of_words.module_(torch.from_numpy(words.toarray())).numpy(), of_words.transform(words))


def test_sparse_rows_are_never_made_dense_as_a_whole(words, monkeypatch):
    block, dense = nb.InformationClusterer._block, []
    wide = sp.vstack([words] * 20, format="csr")
    for cls in (sp.csr_array, sp.coo_array):
        monkeypatch.setattr(cls, "toarray", lambda self, *_, **__: dense.append(self.shape))
    nb.InformationClusterer(3, n_components=20, **QUICK).fit(wide).predict(wide)
    assert not dense
    assert wide.shape[0] > block


def test_a_model_of_sparse_rows_is_saved_without_them(words, of_words, tmp_path):
    of_words.save(tmp_path / "model")
    again = nb.load(tmp_path / "model")
    assert_array_equal(again.predict_proba(words), of_words.predict_proba(words))
    assert again.module_.rows.reduction.shape == (300, 20)


def test_words_of_different_lengths_under_the_cosine(words):
    fitted = nb.InformationClusterer(3, n_components=20, metric="cosine", **QUICK).fit(words)
    longer = sp.diags_array(np.random.RandomState(0).uniform(0.5, 50.0, 180)) @ words
    assert_allclose(fitted.predict_proba(longer), fitted.predict_proba(words), atol=1e-6)
    assert adjusted_rand_score(LABELS, fitted.labels_) > 0.9


def test_sparse_rows_reach_a_network_of_ones_own_reduced(words, tmp_path):
    network = torch.nn.Linear(20, 8)
    fitted = nb.InformationClusterer(3, network=network, n_components=20, **QUICK).fit(words)
    fitted.save(tmp_path / "model")
    again = nb.load(tmp_path / "model", network=torch.nn.Linear(20, 8))
    assert_array_equal(again.predict_proba(words), fitted.predict_proba(words))


def test_bad_sparse_rows_are_refused(words):
    broken = words.copy()
    broken.data[5] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        nb.InformationClusterer(3).fit(broken)
    with pytest.raises(ValueError, match="`standardize` must be False for sparse rows of more than n_components"):
        nb.InformationClusterer(3, standardize=True).fit(words)
    with pytest.raises(ValueError, match=r"X must .* 2 distinct samples, got 1"):
        nb.InformationClusterer(1).fit(sp.csr_array((5, 300)))
    with pytest.raises(TypeError, match="Sparse data"):
        nb.ManifoldLabeler(2).fit(words)


def test_duplicate_entries_are_added_and_the_callers_matrix_stays():
    indices, data = np.array([0, 0, 1, 1]), np.array([1.0, 2.0, 3.0, 4.0])
    matrix = sp.csr_array((data, indices, np.array([0, 2, 4])), shape=(2, 2))
    fitted = nb.InformationClusterer(2, max_iter=4, random_state=0).fit(matrix)
    assert matrix.nnz == 4
    assert_allclose(fitted.predict_proba(matrix), fitted.predict_proba(np.array([[3.0, 0.0], [0.0, 7.0]])))


def test_exported_models_agree(words, of_words, tmp_path):
    nb.export_clusterer(of_words, tmp_path / "words.pt2", "torch")
    p_zx, labels, _ = torch.export.load(tmp_path / "words.pt2").module()(torch.from_numpy(words.toarray()))
    assert_allclose(p_zx, of_words.predict_proba(words), atol=1e-5)
    assert_array_equal(labels, of_words.labels_)
    cosine = nb.InformationClusterer(3, metric="cosine", n_components=20, **QUICK).fit(words)
    nb.export_clusterer(cosine, tmp_path / "cosine.pt2", "torch")
    found = torch.export.load(tmp_path / "cosine.pt2").module()(torch.from_numpy(9.0 * words.toarray()))
    assert_array_equal(found[1], cosine.labels_)
    assert_allclose(found[2], cosine.typicality(words), atol=2.0 / 45)
