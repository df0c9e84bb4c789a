"""scikit-learn's own checks, none excluded."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from neuralbayes import ManifoldLabeler


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks([ManifoldLabeler(n_init=2), ManifoldLabeler("auto", max_clusters=2, n_init=1, max_iter=30)])
def test_scikit_learn(estimator, check):
    check(estimator)
