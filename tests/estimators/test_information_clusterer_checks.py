"""scikit-learn's own checks of an estimator."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from neuralbayes import InformationClusterer

OTHER_NUMBERS = (
    "training draws the rows of a batch at random: other rows, other batches. That weights count as often as they say "
    "is tested in test_known.py"
)


def expected_failures(estimator):
    one_cluster = estimator.n_clusters == "auto"  # of noise: all are labelled alike
    return {} if one_cluster else {"check_sample_weight_equivalence_on_dense_data": OTHER_NUMBERS}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(
    [InformationClusterer(3, max_iter=60, n_hidden=32), InformationClusterer("auto", max_iter=60, n_hidden=32)],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
