"""``neuralbayes label --reject``: samples unlike the training samples get the label -1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray


def check_level(reject: float | None, method: str) -> None:
    """Raise an error unless the level of ``--reject`` is valid, and suits the method."""
    if reject is not None and not 0.0 < reject < 1.0:
        raise ValueError(f"--reject must be between 0 and 1, such as 0.01, got {reject:g}")
    if reject is not None and method == "manifolds":
        raise ValueError("--reject needs --method information, because manifolds have no typicality")


def check_typical(estimator: Any, reject: float | None) -> None:
    """Raise an error for ``--reject`` with a model that has no typicality."""
    if reject is not None and not hasattr(estimator, "typicality"):
        raise ValueError(f"--reject needs a model of --method information, got a {type(estimator).__name__}")


def labels_and_typicality(
    estimator: Any, X: Any, labels: NDArray[Any], reject: float | None
) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Replace the labels of outliers by -1, and return the typicality of all samples; None without ``--reject``.

    Parameters
    ----------
    estimator : InformationClusterer
    X : as in `estimator.predict`
    labels : ndarray of shape (n,)
    reject : float or None
        Largest typicality of an outlier.
    """
    if reject is None:
        return labels, None
    import numpy as np

    estimator.typicality_.check_level(reject)
    typicality = estimator.typicality(X)
    return np.where(typicality <= reject, -1, labels), typicality


def rejected_words(rejected: int | None, n: int, what: str) -> str:
    """How many samples are outliers; empty without ``--reject``.

    Examples
    --------
    >>> rejected_words(12, 1000, "rows")
    '12 of 1,000 rows (1.2 %) are outliers and have the label -1'
    """
    if rejected is None:
        return ""
    return f"{rejected:,} of {n:,} {what} ({100 * rejected / n:.1f} %) are outliers and have the label -1"
