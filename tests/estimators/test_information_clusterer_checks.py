"""InformationClusterer as scikit-learn wants an estimator to be, with dense rows and with sparse ones."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from neuralbayes import InformationClusterer

pytestmark = pytest.mark.filterwarnings("ignore")

OTHER_NUMBERS = (
    "training draws the rows of a batch at random: other rows, other batches. That weights count as often as they say "
    "is tested in test_known.py"
)


def expected_failures(estimator):
    return {
        "check_sample_weight_equivalence_on_dense_data": OTHER_NUMBERS,
        "check_sample_weight_equivalence_on_sparse_data": OTHER_NUMBERS,
    }


@parametrize_with_checks(
    [
        InformationClusterer(3, max_iter=8, n_hidden=16, n_components=2),
        InformationClusterer("auto", max_iter=8, n_hidden=16, n_components=2),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
