"""scikit-learn's own checks, none excluded."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from neuralbayes import MIMEncoder


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(
    [MIMEncoder(max_epochs=4), MIMEncoder((32,), standardize=False, beta=0.0, batch_size=10, max_epochs=2)]
)
def test_scikit_learn(estimator, check):
    check(estimator)
