"""`fit` takes data frames of pandas and polars."""

import numpy as np
import pandas as pd
import pytest

import neuralbayes as nb

X = np.concatenate([np.random.default_rng(0).normal(size=(40, 2)), np.random.default_rng(1).normal(size=(40, 2)) + 20])


@pytest.mark.parametrize(
    "estimator",
    [
        nb.ManifoldLabeler(2, n_init=1, max_iter=10, random_state=0),
        nb.InformationClusterer(2, max_iter=8, random_state=0),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_polars_frames_are_fitted_as_those_of_pandas_are(estimator):
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"height": X[:, 0], "weight": X[:, 1]})
    labels = estimator.fit(frame).labels_
    assert list(estimator.feature_names_in_) == ["height", "weight"]
    np.testing.assert_array_equal(estimator.predict(frame), labels)
    other = pd.DataFrame(X, columns=["height", "weight"])
    np.testing.assert_array_equal(estimator.predict_proba(other), estimator.predict_proba(frame))
    np.testing.assert_array_equal(estimator.fit(other).labels_, labels)
