"""What holds for every estimator: reproducible, saved whole, of any precision, and as scikit-learn wants it."""

import pickle

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import neuralbayes as nb

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # few steps

LABELS = np.repeat([0, 1, 2], [50, 40, 30])
X = 4.0 * np.eye(3, 5)[LABELS] + 0.3 * np.random.default_rng(0).normal(size=(120, 5))
FRAME = pd.DataFrame(X, columns=list("abcde"))
NETWORK = {"metric": "cosine", "max_iter": 20, "n_hidden": 16}

ESTIMATORS = {
    "manifolds": nb.ManifoldLabeler(3, n_init=2, max_iter=20, random_state=0),
    "manifolds, auto": nb.ManifoldLabeler("auto", n_init=2, max_iter=20, random_state=0),
    "table": nb.InformationClusterer(3, random_state=0),
    "table, auto": nb.InformationClusterer(random_state=0),
    "network": nb.InformationClusterer(3, **NETWORK, random_state=0),
    "features": nb.MIMEncoder((24, 16), max_epochs=3, random_state=0),
}


@pytest.fixture(scope="session", params=ESTIMATORS)
def fitted(request):
    return clone(ESTIMATORS[request.param]).fit(FRAME)


def test_probabilities_add_up_and_follow_from_the_logits(fitted):
    p_zx = fitted.predict_proba(FRAME)
    assert_allclose(p_zx.sum(axis=1), 1.0)
    assert_allclose(torch.from_numpy(fitted.transform(FRAME)).softmax(dim=1), p_zx, atol=1e-9)
    if hasattr(fitted, "labels_"):
        assert_array_equal(fitted.labels_, p_zx.argmax(axis=1))
        assert_array_equal(fitted.labels_, fitted.predict(FRAME))
        assert_allclose(fitted.prior_, p_zx.mean(axis=0))
        assert (np.diff(fitted.prior_) <= 1e-12).all()  # the largest first
        assert_allclose(fitted.module_(torch.from_numpy(X)).softmax(dim=1), p_zx, atol=1e-6)


def test_the_seed_alone_decides_and_generators_stay(fitted):
    torch.manual_seed(7)
    np.random.seed(7)  # noqa: NPY002
    before = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    assert_array_equal(clone(fitted).fit(FRAME).transform(FRAME), fitted.transform(FRAME))
    assert_array_equal(torch.get_rng_state(), before[0])
    assert_array_equal(np.random.get_state()[1], before[1])  # noqa: NPY002


def test_a_loaded_model_is_the_saved_one(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    state = torch.get_rng_state()
    loaded = nb.load(tmp_path / "model")
    assert_array_equal(torch.get_rng_state(), state)
    assert loaded.get_params() == fitted.get_params()
    assert vars(loaded).keys() == vars(fitted).keys()
    for name in vars(fitted).keys() - {"module_", "frame_", "posterior_", "typicality_"}:
        assert_array_equal(getattr(loaded, name), getattr(fitted, name))
    methods = {"transform", "predict", "coordinates", "typicality"}
    for method in methods & set(dir(fitted)):
        assert_array_equal(getattr(loaded, method)(FRAME), getattr(fitted, method)(FRAME))
    loaded.save(tmp_path / "copy")
    copy = nb.load(tmp_path / "copy")
    assert_array_equal(copy.transform(FRAME), fitted.transform(FRAME))
    assert_array_equal(pickle.loads(pickle.dumps(fitted)).transform(FRAME), fitted.transform(FRAME))  # noqa: S301
    assert_array_equal(copy.fit(FRAME).transform(FRAME), fitted.transform(FRAME))


def test_a_refit_forgets_all_that_the_earlier_fit_found(fitted):
    fresh = clone(fitted).fit(X)
    assert vars(clone(fitted).fit(FRAME).fit(X)).keys() == vars(fresh).keys()
    assert not hasattr(fresh, "feature_names_in_")


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_low_precision_is_kept_and_changes_little(fitted, dtype):
    fresh = clone(fitted).fit(X.astype(dtype))
    p_zx = fresh.predict_proba(X.astype(dtype))
    assert p_zx.dtype == np.float32
    assert_allclose(p_zx.sum(axis=1), 1.0, rtol=1e-5)
    if hasattr(fresh, "labels_"):
        assert_array_equal(fresh.labels_, fitted.labels_)


def test_torch_and_polars_are_taken_and_outputs_have_names(fitted):
    assert list(fitted.feature_names_in_) == list("abcde")
    given = clone(fitted).fit(torch.from_numpy(X).requires_grad_())
    assert_allclose(given.predict_proba(X), fitted.predict_proba(FRAME))
    pipeline = make_pipeline(StandardScaler(), clone(fitted)).set_output(transform="pandas")
    assert list(pipeline.fit_transform(X).columns) == list(fitted.get_feature_names_out())
    polars = pytest.importorskip("polars").DataFrame({name: FRAME[name].tolist() for name in FRAME})
    again = clone(fitted).fit(polars)
    assert list(again.feature_names_in_) == list("abcde")
    assert_array_equal(again.predict_proba(polars), fitted.predict_proba(FRAME))


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (X[:1], "1 sample"),
        (np.where(X[7, 3] == X, np.nan, X), "NaN"),
        (np.where(X[7, 3] == X, np.inf, X), "infinity"),
        ([["a", "b"]] * 10, "could not convert string to float|all rows"),
    ],
)
def test_bad_rows_are_refused(fitted, rows, words):
    with pytest.raises(ValueError, match=words):
        clone(fitted).fit(rows)


CLASSIFIER = "the check takes whatever has predict_proba for a classifier, and asks it for classifier_tags"
RANDOM = "k-means starts from rows drawn at random"
FAIL = {
    "check_estimator_sparse_array": CLASSIFIER,
    "check_estimator_sparse_matrix": CLASSIFIER,
    "check_sample_weight_equivalence_on_dense_data": RANDOM,
    "check_sample_weight_equivalence_on_sparse_data": RANDOM,
}


@parametrize_with_checks(
    [
        nb.InformationClusterer(2, max_iter=4, n_components=2),
        nb.ManifoldLabeler(n_init=2),
        nb.ManifoldLabeler("auto", max_clusters=2, n_init=1, max_iter=30),
        nb.MIMEncoder(max_epochs=4),
        nb.MIMEncoder((32,), standardize=False, beta=0.0, max_epochs=2),
    ],
    expected_failed_checks=lambda estimator: FAIL if isinstance(estimator, nb.InformationClusterer) else {},
)
def test_scikit_learn(estimator, check):
    check(estimator)
