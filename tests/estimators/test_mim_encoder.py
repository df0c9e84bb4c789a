"""Behaviour of MIMEncoder for users."""

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose
from scipy.special import softmax
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedShuffleSplit, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import neuralbayes as nb
from neuralbayes.bayes import mutual_information

X = np.random.default_rng(0).normal(size=(60, 5)) @ np.random.default_rng(1).normal(size=(5, 7))
FRAME = pd.DataFrame(X, columns=list("abcdefg"))


@pytest.fixture(scope="module")
def fitted():
    return nb.MIMEncoder(hidden=(24, 16), random_state=0).fit(FRAME)


def test_ten_labels_a_class_go_further_than_with_an_untrained_network_or_pixels():
    rows, y = load_digits(return_X_y=True)
    rows = rows.astype(np.float32)
    splits = [*StratifiedShuffleSplit(5, train_size=100, random_state=0).split(rows, y)]
    classifier = make_pipeline(StandardScaler(), LogisticRegression(max_iter=300))
    encoders = nb.MIMEncoder(max_epochs=12), nb.MIMEncoder(max_epochs=1, learning_rate=1e-12)
    features = [encoder.set_params(random_state=0).fit_transform(rows) for encoder in encoders]
    trained, untrained, pixels = (cross_val_score(classifier, x, y, cv=splits).mean() for x in (*features, rows))
    assert trained > untrained + 0.015
    assert trained > pixels + 0.005


def test_information_grows_with_training_and_is_that_of_the_layers(fitted):
    short = nb.MIMEncoder(hidden=(24, 16), max_epochs=1, learning_rate=1e-9, random_state=0).fit(X)
    long = nb.MIMEncoder(hidden=(24, 16), max_epochs=100, learning_rate=0.01, random_state=0).fit(X)
    assert (long.mutual_information_ > 2 * short.mutual_information_).all()
    assert (long.mutual_information_ < np.log([24, 16])).all()
    p_zx = torch.from_numpy(long.predict_proba(X))
    assert_allclose(long.mutual_information_[-1], float(mutual_information(p_zx)), rtol=1e-6)
    assert long.n_iter_ == len(long.loss_curve_) == 100
    assert long.loss_curve_[-1] < long.loss_curve_[0]
    assert long.n_states_ == [24, 16]


def test_p_zx_is_the_softmax_of_the_chosen_layer(fitted):
    assert_allclose(fitted.predict_proba(FRAME), softmax(fitted.transform(FRAME), axis=1))
    first = clone(fitted).set_params(layer=0).fit(FRAME)
    last = fitted.transform(FRAME)
    assert first.transform(FRAME).shape == (60, 24)
    assert_allclose(first.set_params(layer=-1).transform(FRAME), last)
    assert (last >= 0).all()


def test_standardising_makes_units_of_columns_irrelevant():
    scaled = X * np.array([1e-6, 1e6, 1, 1, 1, 1, 1]) + 1000
    one, other = (nb.MIMEncoder(hidden=(16,), random_state=0).fit_transform(rows) for rows in (X, scaled))
    assert_allclose(one, other, rtol=1e-2, atol=1e-3)
    encoder = nb.MIMEncoder(hidden=(16,), standardize=False, random_state=0).fit(scaled)
    assert_allclose(encoder.std_, encoder.std_[0])
    assert_allclose(np.square((scaled - encoder.mean_) / encoder.std_).mean(), 1.0)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "rows",
    [X[:2], X[:3], np.repeat(X[:3], 20, axis=0), np.column_stack([X, np.full(60, 5.0)]), np.full((10, 3), 2.0)],
    ids=["two", "three", "duplicates", "constant column", "constant"],
)
@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("batch_size", [2, 100])
def test_odd_data(rows, standardize, batch_size):
    encoder = nb.MIMEncoder((16,), standardize=standardize, batch_size=batch_size, max_epochs=2, random_state=0)
    features = encoder.fit_transform(rows)
    assert np.isfinite(features).all()
    assert (encoder.mutual_information_ >= 0).all()


def test_a_collapse_is_reported_with_a_remedy():
    with pytest.warns(ConvergenceWarning, match="smaller beta"):
        nb.MIMEncoder((16,), random_state=0).fit(np.full((10, 3), 2.0))


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"hidden": ()}, "`hidden`"),
        ({"hidden": (16, 1)}, "`hidden`"),
        ({"hidden": (16, 8), "layer": 2}, "`layer`"),
        ({"encoder": "huge"}, "'encoder' parameter"),
        ({"alpha": -1.0}, "'alpha' parameter"),
        ({"batch_size": 1}, "'batch_size' parameter"),
        ({"version": 3}, "'version' parameter"),
    ],
)
def test_wrong_parameters_are_named(params, message):
    with pytest.raises(ValueError, match=message):
        nb.MIMEncoder(**params).fit(X)
