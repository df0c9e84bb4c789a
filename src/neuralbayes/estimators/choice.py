"""The main decision: disjoint manifolds if all of them are certified, otherwise clusters that may touch.

Certified manifolds may hold clusters of their own. Where valleys between these are confirmed, the clusters tell more,
and the manifolds become a note.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.metrics.cluster import contingency_matrix

from neuralbayes.data.columns import ATOM, as_numbers, feature_columns, why_not_continuous
from neuralbayes.data.points import Points
from neuralbayes.data.vectorizer import TableVectorizer
from neuralbayes.system.limits import free_memory

if TYPE_CHECKING:
    import pandas as pd

Method = Literal["auto", "manifolds", "information"]
Verdict = Literal["disjoint", "clusters", "segments", "none"]

WHOLE_SHARE, FEW_ROWS = 0.5, 20  # least share, and number, of rows without missing numbers to certify manifolds
OF_TORCH = 400 * 2**20  # bytes that importing PyTorch takes
STABLE, INSIDE = 0.9, 0.99  # least stability, and share of rows inside manifolds, of clusters that refine them


@dataclass(frozen=True)
class Settings:
    """What was asked for, apart from the data; as in :func:`neuralbayes.cluster`.

    `known` are classes of samples, from the columns `answers`, which do not describe clusters, and `function` is the
    user's function that computes features.
    """

    n_clusters: int | Literal["auto"] = "auto"
    method: Method = "auto"
    reject: float | None = None
    max_clusters: int | None = None
    random_state: int = 0
    device: str = "auto"
    progress: bool = False
    known: Any = None
    answers: tuple[str, ...] = ()
    function: Any = None

    def parameters(self) -> dict[str, Any]:
        """Parameters of both estimators."""
        given = {"n_clusters": self.n_clusters, "random_state": self.random_state, "device": self.device}
        return given | ({} if self.max_clusters is None else {"max_clusters": self.max_clusters})


def fit_points(points: Points, settings: Settings) -> tuple[Any, list[str]]:
    """The fitted estimator, and what a person should know about the fit."""
    notes: list[str] = []
    model = None
    free = points.noun == "row" and settings.known is None and settings.reject is None
    if settings.method == "manifolds" and not free:
        raise ValueError("`method` must not be 'manifolds' for images and texts, nor with `known` or `reject`")
    if free and settings.method != "information":
        with noting(notes):
            model = _certified(points, settings)
    if model is None:
        notes = []  # the other method makes them irrelevant
        with noting(notes):
            model = _clustered(points, settings)
    elif settings.method == settings.n_clusters == "auto" and model.n_clusters_ > 1:
        of_clusters: list[str] = []
        with noting(of_clusters):
            clusters = _clustered(points, settings)
        if _refines(clusters, model, points):
            inside = f"The clusters lie inside {model.n_clusters_} certified disjoint manifolds (method='manifolds')."
            model, notes = clusters, [*of_clusters, inside]
    if settings.reject is not None:
        model.typicality_.check_level(settings.reject)
    return model, notes


def verdict_of(model: Any) -> Verdict:
    """What the clusters of a fitted estimator are."""
    if model.n_clusters_ == 1:
        return "none"
    if hasattr(model, "disjoint_"):
        return "disjoint" if model.disjoint_.all() else "segments"
    found: Verdict = model.verdict_
    return found


def sentence_of(points: Points, settings: Settings, model: Any) -> str:
    """The verdict in one sentence."""
    n, noun, verdict = model.n_clusters_, points.noun, verdict_of(model)
    if n == 1 and points.columns and not any(column.used for column in points.columns):
        return "One cluster: all rows are equal in the columns that can be used."
    if n == 1 and settings.n_clusters == 1:
        return "One cluster, as asked for."
    if n == 1 and hasattr(model, "disjoint_"):
        return "No disjoint manifolds: one cluster."
    if n == 1:
        return f"One cluster: no division of the {noun}s is repeatable."
    filled = len(np.unique(model.labels_))
    if filled < n:
        return f"{filled} of {n} clusters hold all {noun}s: too many {noun}s are equal or similar."
    if verdict == "disjoint":
        return f"{n} disjoint manifolds, certified: no path of neighbouring {noun}s leads from one to another."
    stability = getattr(model, "stability_", None)
    halves = "" if stability is None else f" Two halves of the data agree to {100 * stability:.0f} %."
    if verdict == "clusters" and model.kind_ == "table":
        return f"{n} clusters with valleys of low density between them.{halves}"
    if verdict == "clusters":  # in many dimensions, one valley is all that can be confirmed
        return f"{n} clusters. A valley of low density between some of them was confirmed.{halves}"
    if getattr(model, "kind_", "") == "images":
        return f"{n} clusters of images. Whether there are gaps between them was not tested."
    return f"{n} segments of a continuum: no gaps between them were confirmed.{halves}"


def _certified(points: Points, settings: Settings) -> Any:
    """A labeler whose manifolds are all certified; None if there is none, unless it was asked for."""
    free = free_memory()
    if "torch" not in sys.modules and free is not None and free < OF_TORCH:
        raise MemoryError("too little memory is left to load PyTorch")  # which would end the process
    from neuralbayes.estimators.manifold_labeler import ManifoldLabeler

    must = settings.method == "manifolds"
    if isinstance(points.X, np.ndarray):
        return _if_certified(ManifoldLabeler(standardize=False, **settings.parameters()), points.X, must)
    if not points.columns:
        return None  # sparse
    frame, kinds = points.frame, points.recipe["kinds"]
    if not any(column.used for column in points.columns):
        if settings.n_clusters != "auto":
            raise ValueError(
                "all rows are equal in the columns that can be used, so they are one cluster; `kinds` can use a column "
                "that was left out"
            )
        return ManifoldLabeler(1, vectorizer=TableVectorizer(kinds=kinds)).fit(frame)
    numbers = [one.name for one in points.columns if one.kind == "number" and _is_continuous(frame[one.name])]
    if must and not numbers:
        raise ValueError("`method` must not be 'manifolds' without a column of numbers in which rows can have gaps")
    whole = frame[frame[numbers].notna().all(axis=1)] if numbers else frame.head(0)
    if not must and (len(whole) < FEW_ROWS or len(whole) < WHOLE_SHARE * len(frame)):
        return None
    others = {column.name: "ignore" for column in points.columns if column.name not in numbers}
    vectorizer = TableVectorizer(kinds=kinds | others, standardize=_has_units(points))
    model = _if_certified(ManifoldLabeler(vectorizer=vectorizer, **settings.parameters()), whole, must)
    if model is not None and len(whole) < len(frame):
        warnings.warn(
            f"{len(frame) - len(whole):,} rows with missing numbers were labelled, but not fitted.", stacklevel=2
        )
    return model


def _if_certified(labeler: Any, X: Any, must: bool) -> Any:
    labeler.fit(X)
    return labeler if must or (labeler.n_clusters_ > 1 and labeler.disjoint_.all()) else None


def _refines(clusters: Any, manifolds: Any, points: Points) -> bool:
    """Whether repeatable clusters with confirmed valleys are more than the manifolds and lie inside them."""
    if clusters.n_clusters_ <= manifolds.n_clusters_ or verdict_of(clusters) != "clusters":
        return False
    shared = contingency_matrix(clusters.labels_, manifolds.predict(points.X))
    return bool(clusters.stability_ >= STABLE and shared.max(axis=1).sum() >= INSIDE * shared.sum())


def _is_continuous(values: pd.Series[Any]) -> bool:
    """Whether gaps between the numbers of a column mean anything."""
    numbers, _ = as_numbers(values.iloc[:: max(1, len(values) // 20_000)])
    numbers = numbers[np.isfinite(numbers)]
    return len(numbers) > 1 and why_not_continuous(numbers) in (None, ATOM)


def _has_units(points: Points) -> bool:
    """Whether the columns have units of their own, unlike features of `neuralbayes embed`."""
    used = {column.name for column in points.columns if column.used}
    return not (used and feature_columns(points.frame) >= used)


def _clustered(points: Points, settings: Settings) -> Any:
    from neuralbayes.estimators.information_clusterer import InformationClusterer

    parameters = settings.parameters() | {"verbose": settings.progress}
    if isinstance(points.X, list):
        return InformationClusterer(**parameters).fit(points.X[0], features=points.X, known=settings.known)
    if points.noun == "row" and not isinstance(points.X, np.ndarray) and points.frame is not None:
        vectorizer = TableVectorizer(kinds=points.recipe["kinds"], standardize=_has_units(points))
        parameters["vectorizer"] = vectorizer
    return InformationClusterer(**parameters).fit(points.X, known=settings.known)


@contextmanager
def noting(notes: list[str]) -> Iterator[None]:
    """Turn warnings for users into notes."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield
    for warning in caught:
        if issubclass(warning.category, UserWarning):
            notes.append(str(warning.message))
        else:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
