"""scikit-learn's own checks, including sparse rows."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from neuralbayes import InformationClusterer

CLASSIFIER = "the check takes whatever has predict_proba for a classifier, and asks it for classifier_tags"
BATCHES = "a row of weight 2 is in other batches than two rows are"
FAIL = {
    "check_estimator_sparse_array": CLASSIFIER,
    "check_estimator_sparse_matrix": CLASSIFIER,
    "check_sample_weight_equivalence_on_dense_data": BATCHES,
    "check_sample_weight_equivalence_on_sparse_data": BATCHES,
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(
    [InformationClusterer(3, max_iter=24, n_hidden=32, n_components=2)], expected_failed_checks=lambda _: FAIL
)
def test_scikit_learn(estimator, check):
    check(estimator)
