"""Correct votes with known rows: a classifier learns the classes from partitions and coordinates."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from neuralbayes.clusters.known import UNKNOWN, Hints, Labels
from neuralbayes.clusters.space import Space

Array = NDArray[np.float64]

COORDINATES = 0.5
"""Weight of the coordinates, with variance 1 on average, relative to memberships of 0 and 1."""

PENALTY = 3.0
"""The parameter C of the logistic regression."""

FEW_ROWS = 2.0
"""Number of known rows per class at which votes and classifier have equal weight."""


def taught_votes(shares: Array, partitions: list[Labels], space: Space, hints: Hints) -> Array:
    """Mix the votes with the predictions of a classifier if every cluster has known rows; otherwise return the votes.

    Parameters
    ----------
    shares : ndarray of shape (n_rows, n_clusters)
        Votes of partitions that used the hints.
    partitions : list of ndarray of shape (n_rows,)
        Partitions that did not use the hints. With hints they would be right about known rows, but not about others.
    space : Space
    hints : Hints

    Returns
    -------
    ndarray of shape (n_rows, n_clusters)
    """
    n_clusters = shares.shape[1]
    if hints.known is None or n_clusters < 2 or len(hints.classes) < n_clusters:
        return shares
    points = space.denoised.double().numpy()
    features = np.hstack([COORDINATES * points / points.std(), *(np.eye(n_clusters)[labels] for labels in partitions)])
    rows = np.flatnonzero(hints.known != UNKNOWN)
    weight = None if hints.weight is None else hints.weight[rows]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        classifier = LogisticRegression(C=PENALTY, max_iter=500).fit(features[rows], hints.known[rows], weight)
    p_classes = classifier.predict_proba(features)
    smoothed = (p_classes + np.mean([p_classes[column] for column in space.neighbors.T], axis=0)) / 2.0
    trust = len(rows) / (len(rows) + FEW_ROWS * n_clusters)
    votes: Array = (1.0 - trust) * shares + trust * smoothed
    votes[hints.rows] = shares[hints.rows]
    return votes
