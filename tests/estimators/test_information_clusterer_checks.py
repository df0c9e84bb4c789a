"""InformationClusterer as scikit-learn wants an estimator to be, with dense rows and with sparse ones."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from neuralbayes import InformationClusterer


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks([InformationClusterer(3, max_iter=100, n_components=2)])
def test_scikit_learn_accepts_the_estimator(estimator, check):
    check(estimator)
