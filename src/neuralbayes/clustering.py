"""The front door: clusters of a table, of photographs or of sentences, with one call.

`cluster` reads anything, finds disjoint manifolds if they can be certified and otherwise clusters that may touch, and
returns a `Clustering`, which names the clusters and says how sure it is of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.metrics import adjusted_mutual_info_score

from neuralbayes.data.columns import TAKEN
from neuralbayes.data.points import Points, as_points, some
from neuralbayes.data.tables import write_table
from neuralbayes.estimators.choice import Method, Settings, Verdict, fit_points, noting, sentence_of, verdict_of
from neuralbayes.explain.description import N_ROWS, Description
from neuralbayes.explain.description import describe as describe_clusters
from neuralbayes.explain.names import numbered
from neuralbayes.explain.prototypes import rank_members
from neuralbayes.features.networks import BETTER, PACKAGED
from neuralbayes.features.points import with_features
from neuralbayes.report.cards import cards_html
from neuralbayes.report.page import write_page

Namer = Callable[[list[dict[str, Any]]], Sequence[str]]

FEW_ROWS, MOST_SEGMENTS = 2000, 8  # a page offers other numbers of segments, up to 8, for at most so many rows
DRAWN = 4000  # samples whose coordinates are known


def cluster(
    data: Any,
    n_clusters: int | Literal["auto"] = "auto",
    *,
    method: Method = "auto",
    columns: Sequence[str] | None = None,
    kinds: Mapping[str, str] | None = None,
    text: str | None = None,
    features: Any = "auto",
    known: Any = None,
    reject: float | None = None,
    describe: Sequence[str] = (),
    read: Mapping[str, Any] | None = None,
    max_clusters: int | None = None,
    namer: Namer | None = None,
    cache: str | Path | None = None,
    random_state: int = 0,
    device: str = "auto",
    progress: bool = False,
) -> Clustering:
    """Cluster a table, photographs or sentences.

    Parameters
    ----------
    data : path, DataFrame, array, sparse array, folder, or list of pictures or sentences
        A path leads to a table (CSV, Parquet, Arrow, JSON lines, Excel, NPY, NPZ), a folder of Parquet files, a folder
        of pictures, or a .txt file with a sentence a line. A name such as "mnist" is a data set.
    n_clusters : int or "auto", default="auto"
    method : {"auto", "manifolds", "information"}, default="auto"
        "manifolds" finds and certifies disjoint manifolds in the numeric columns of a table; "information" finds
        clusters that may touch, using all columns. "auto" takes manifolds if all of them are certified.
    columns : sequence of str, optional
        Columns to use. By default all except ids, constants and empty ones.
    kinds : dict of str to str, optional
        Kinds of columns that were recognised wrongly: "number", "boolean", "category", "date", "text" or "ignore".
    text : str, optional
        The column of a table whose texts are clustered.
    features : "auto", str, array, function or None, default="auto"
        Features to compare texts and photographs by: the name of a network, an array (n, n_features) or several, a
        .npy file, or a function from a list of texts or from pictures to an array. "auto" is the best network that is
        installed; small images, such as digits, are learned from directly, which "pixels" asks for.
    known : str or array-like of shape (n_samples,), optional
        Known classes of some samples: a column, or names, with None for unknown ones.
    reject : float, optional
        Give samples whose typicality is at most this value the label -1. It bounds the share of ordinary new samples
        that are rejected.
    describe : sequence of str, optional
        Columns that describe the clusters, but are not used to find them.
    read : dict, optional
        How to read a file: "sep", "decimal", "encoding", "sheet", "key" for tables; "split", "limit", "size" for
        images.
    max_clusters : int, optional
        Largest number that "auto" considers.
    namer : callable, optional
        Your own function, from the cards of all clusters (dictionaries) to as many names.
    cache : path, optional
        A folder that keeps the features of a network.
    random_state : int, default=0
    device : str, default="auto"
    progress : bool, default=False

    Examples
    --------
    >>> import neuralbayes as nb
    >>> from sklearn.datasets import load_wine
    >>> result = nb.cluster(load_wine(as_frame=True).data, 3)
    >>> result.clusters["size"].tolist(), result.names[0]
    ([67, 60, 51], 'mostly low alcohol')
    """
    if method not in ("auto", "manifolds", "information"):
        raise ValueError(f"`method` must be 'auto', 'manifolds' or 'information', got {method!r}")
    if n_clusters != "auto" and not (type(n_clusters) is int and n_clusters >= 1):
        raise ValueError(f"`n_clusters` must be a whole number of at least 1, or 'auto', got {n_clusters!r}")
    answers = (known,) if isinstance(known, str) else ()
    apart = dict.fromkeys(describe, "describe") | dict.fromkeys(answers, "known")
    points = as_points(data, text=text, columns=columns, kinds=kinds, apart=apart, read=read, progress=progress)
    folder = None if cache is None else Path(cache)
    points = with_features(points, features, device=device, cache=folder, progress=progress)
    classes = points.frame[known].to_numpy(object, na_value=None) if isinstance(known, str) else known
    of_fit = (n_clusters, method, reject, max_clusters, random_state, device, progress)
    settings = Settings(*of_fit, classes, answers, features if callable(features) else None)
    model, notes = fit_points(points, settings)
    return Clustering(replace(points, notes=[*points.notes, *notes]), model, settings, namer)


@dataclass(eq=False)
class Clustering:
    """Clusters of some data (`points`), with their names, and how sure they are, by a fitted model."""

    points: Points
    model: Any
    settings: Settings = field(default_factory=Settings)
    namer: Namer | None = None
    saved: dict[str, Any] = field(default_factory=dict, repr=False)  # what is known without data

    @cached_property
    def proba(self) -> NDArray[np.floating[Any]]:
        """p(z|x): (n_samples, n_clusters)."""
        notes: list[str] = []
        with noting(notes):
            found: NDArray[np.floating[Any]] = self.model.predict_proba(self._given())
        self.points.notes.extend(note for note in notes if note not in self.points.notes)
        return found

    @cached_property
    def typicality(self) -> NDArray[np.float64] | None:
        """Share of ordinary samples that lie at least as far out: (n_samples,). None for certified manifolds."""
        if not hasattr(self.model, "typicality"):
            return None
        with noting([]):
            return self.model.typicality(self._given())  # type: ignore[no-any-return]

    @cached_property
    def labels(self) -> NDArray[np.int64]:
        """The cluster of each sample, from 0, or -1 if it was rejected: (n_samples,)."""
        labels: NDArray[np.int64] = self.proba.argmax(axis=1)
        if self.settings.reject is None:
            return labels
        if self.typicality is None:
            raise ValueError("`reject` must be None for certified manifolds, got a number; use method='information'")
        self.model.typicality_.check_level(self.settings.reject)
        return np.where(self.typicality <= self.settings.reject, -1, labels)

    def _given(self) -> Any:
        if self.points.X is None:
            raise ValueError("a saved clustering keeps only the model: `clustering.on(data)` describes data")
        return self.points.X

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return int(self.model.n_clusters_)

    @property
    def verdict(self) -> Verdict:
        """Either disjoint (certified), clusters (with confirmed valleys), segments (of a continuum) or none."""
        return verdict_of(self.model)

    @property
    def stability(self) -> float | None:
        """How far two halves of the data agree about the clusters, from 0 to 1; None where it is not measured."""
        found = getattr(self.model, "stability_", None)
        return None if found is None or self.n_clusters == 1 else float(found)

    @property
    def sentence(self) -> str:
        """The verdict in one sentence."""
        return sentence_of(self.points, self.settings, self.model)

    @cached_property
    def description(self) -> Description | None:
        """What sets each cluster apart, with the columns and rows behind it; None for images."""
        points = self.points
        if points.texts is None and points.frame is None:
            return None
        vectorizer = getattr(self.model, "vectorizer_", None)
        return describe_clusters(
            points.frame if points.noun == "row" else None,
            self.labels,
            n_clusters=self.n_clusters,
            proba=self.proba,
            points=None if points.features_from is None else self.model.coordinates(self._given()),
            texts=points.texts,
            fitted=[one.name for one in points.columns if one.used] if vectorizer is None else vectorizer.encoders_,
            left_out=self.settings.answers,
        )

    @cached_property
    def names(self) -> list[str]:
        """A name for each cluster."""
        if "names" in self.saved:
            return list(self.saved["names"])
        if self.namer is not None:
            given = [str(name) for name in self.namer(_records(self._cards()))]
            if len(given) != self.n_clusters:
                raise ValueError(f"`namer` must return {self.n_clusters} names, got {len(given)}")
            return given
        return self._own_names()

    @property
    def named_by(self) -> str | None:
        """Who named the clusters, if it was not this library."""
        return "you" if self.namer is not None or self.saved.get("named_by") else None

    def _own_names(self) -> list[str]:
        images = self.points.images
        if self.description is not None:
            return [found.name for found in self.description.clusters]
        names = [f"cluster {k}" for k in range(self.n_clusters)]
        if images is None or images.labels is None or not images.class_names:
            return names
        folders = np.array([*images.class_names, ""], dtype=object)[images.labels]
        shares = pd.crosstab(folders, self.labels, normalize="columns").drop(columns=-1, errors="ignore")
        for k, folder, share in zip(shares.columns, shares.idxmax(), shares.max(), strict=True):
            if folder and share > 0.5:
                names[int(k)] = str(folder)
        return numbered(names)

    @cached_property
    def clusters(self) -> pd.DataFrame:
        """A row a cluster: its name, size, share, stability, rule with precision and recall, and typical members."""
        if self.points.X is None:
            return pd.DataFrame(self.saved["clusters"]).set_index("cluster")
        cards = self._cards()
        cards["name"] = self.names
        return cards

    def _cards(self) -> pd.DataFrame:
        k = self.n_clusters
        sizes = np.bincount(self.labels[self.labels >= 0], minlength=k)
        stable = None if self.stability is None else getattr(self.model, "cluster_stability_", None)
        told = [] if self.description is None else self.description.clusters
        typical = [one.typical.tolist() for one in told]
        if not told:
            points, rows = self.coordinates()
            typical = [rows[found[:N_ROWS]].tolist() for found in rank_members(points, self.labels[rows], k)]
        cards = {
            "name": self._own_names(),
            "size": sizes,
            "share": sizes / max(1, len(self.labels)),
            "stability": [None] * k if stable is None else stable.tolist(),
            "rule": [None if one.rule is None else str(one.rule) for one in told] or [None] * k,
            "precision": [one.precision for one in told] or np.nan,
            "recall": [one.recall for one in told] or np.nan,
            "differences": [list(map(str, one.differences)) for one in told] or [[]] * k,
            "claims": [list(map(str, one.claims)) for one in told] or [[]] * k,
            "typical": typical,
            "separation": self.model.separation_,
            "disjoint": getattr(self.model, "disjoint_", np.zeros(k, bool)),
        }
        return pd.DataFrame(cards, index=pd.RangeIndex(k, name="cluster"))

    @property
    def notes(self) -> list[str]:
        """What a person should know: what was left out, and why."""
        return self.points.notes

    def coordinates(self) -> tuple[NDArray[np.floating[Any]], NDArray[np.int64]]:
        """Coordinates that clusters are found in, and the numbers of their samples, drawn at random: (n, d), (n,)."""
        n = len(self.labels)
        rows = np.arange(n) if n <= DRAWN else np.sort(np.random.default_rng(0).choice(n, DRAWN, replace=False))
        return self.model.coordinates(some(self._given(), rows)), rows

    def table(self) -> pd.DataFrame:
        """The input with the cluster of each sample, its name, its probability and its typicality."""
        labels, frame = self.labels, self.points.table()
        names = np.array([*self.names, "outlier"], dtype=object)
        new = {"cluster": labels, "name": names[labels], "probability": self.proba.max(axis=1)}
        if self.typicality is not None:
            new["typicality"] = self.typicality
        return frame.assign(**{name + TAKEN * (name in frame): values for name, values in new.items()})

    def at(self, k: int) -> Clustering:
        """The same data at `k` clusters."""
        if not isinstance(k, int | np.integer) or k < 1:
            raise ValueError(f"`k` must be a whole number of at least 1, got {k!r}")
        if k == self.n_clusters:
            return self
        settings = replace(self.settings, n_clusters=int(k), method="information", reject=None, progress=False)
        points = replace(self.points, X=self._given(), notes=[])
        if getattr(self.model, "kind_", "") == "images" and k <= self.model.n_states_:
            return Clustering(points, self.model.merged_to(int(k), some(points.X, self.coordinates()[1])), settings)
        model, notes = fit_points(points, settings)
        return Clustering(replace(points, notes=notes), model, settings)

    def compare(self, ks: Iterable[int]) -> pd.DataFrame:
        """Other numbers of clusters, a row each: stability, sizes, verdict, and agreement (AMI) with this result."""
        rows = {}
        for k in ks:
            other = self.at(k)
            sizes = np.bincount(other.labels[other.labels >= 0], minlength=k)
            agreement = float(adjusted_mutual_info_score(self.labels, other.labels))
            rows[k] = (other.stability, int(sizes.min()), int(sizes.max()), other.verdict, agreement)
        columns = ["stability", "smallest", "largest", "verdict", "agreement"]
        return pd.DataFrame.from_dict(rows, orient="index", columns=columns).rename_axis("k")

    def on(
        self, new: Any, *, reject: float | None = None, features: Any = None, cache: str | Path | None = None
    ) -> Clustering:
        """The clusters of new data, which are read as the first were.

        Your own function, or an array of features, must be given again as `features`: a saved clustering knows only
        their names, and opens and runs nothing that it names.
        """
        recipe, noun = self.points.recipe, self.points.noun
        kinds = recipe.get("kinds") if noun == "row" else None
        points = as_points(new, text=recipe.get("text"), kinds=kinds, read=recipe.get("read"), least=1)
        if points.noun != noun:
            raise ValueError(f"`new` must be {noun}s, as those that were clustered, got {points.noun}s")
        name = self.points.features_from
        if features is None and name is None:
            features = "pixels" if noun == "image" else None
        elif features is None and (features := self.settings.function) is None:
            if name not in (*PACKAGED.values(), *BETTER.values()):
                raise ValueError(f"`features` must be given again, because the model was fitted to those of {name}")
            features = name
        points = with_features(
            points, features, device=self.settings.device, cache=None if cache is None else Path(cache)
        )
        if points.identity != self.points.identity:
            raise ValueError(f"`features` must be the same {name} that the model was fitted to")
        if points.frame is not None and noun == "row" and points.features_from is None:
            points = replace(points, X=points.frame if hasattr(self.model, "vectorizer_") else points.X)
        known = self.saved | {"names": self.names}
        return Clustering(points, self.model, replace(self.settings, reject=reject, known=None), None, known)

    def predict(self, new: Any, *, reject: float | None = None, features: Any = None) -> NDArray[np.int64]:
        """The clusters of new data: (n_samples,); parameters as for `on`."""
        return self.on(new, reject=reject, features=features).labels

    def report(self, path: str | Path, *, numbers: Iterable[int] | None = None) -> Path:
        """Write the page that shows and explains the clusters.

        It offers other `numbers` of clusters, a fit each: by default 2 to 8 for segments of a table of at most 2,000
        rows, where this takes seconds.
        """
        segments = self.verdict == "segments" and getattr(self.model, "kind_", "") == "table"
        if numbers is None:
            numbers = range(2, MOST_SEGMENTS + 1) if segments and len(self.labels) <= FEW_ROWS else ()
        return write_page(self, path, others={k: self.at(k) for k in numbers})

    def write(self, path: str | Path) -> Path:
        """Write `table()` to a file, whose suffix determines the format."""
        write_table(Path(path), self.table())
        return Path(path)

    def summary(self) -> dict[str, Any]:
        """The result as JSON: the same for rows, images and texts."""
        return {
            "data": self.points.title,
            "kind": self.points.noun,
            "n": len(self.labels),
            "n_clusters": self.n_clusters,
            "verdict": self.verdict,
            "sentence": self.sentence,
            "stability": self.stability,
            "method": "manifolds" if hasattr(self.model, "disjoint_") else "information",
            "features": self.points.features_from,
            "columns": [{**vars(column), "used": column.used} for column in self.points.columns],
            "clusters": _records(self.clusters),
            "rejected": None if self.settings.reject is None else int((self.labels < 0).sum()),
            "notes": list(self.notes),
        }

    def save(self, folder: str | Path) -> None:
        """Save the model (with a sample of the rows), the names and how the data were read, for `nb.load`."""
        of_points = ("noun", "title", "features_from", "identity", "recipe")
        known = {name: getattr(self.points, name) for name in of_points} | {"answers": list(self.settings.answers)}
        known |= {"names": self.names, "named_by": self.named_by, "summary": self.summary()}
        self.model.save(folder, about=known)

    def _repr_html_(self) -> str:
        return cards_html(self)

    def __repr__(self) -> str:
        return f"<Clustering of {self.points.title}: {self.sentence}>"


def _records(cards: pd.DataFrame) -> list[dict[str, Any]]:
    """Cards as dictionaries, with None for what is unknown."""
    rows = cards.reset_index().astype(object)
    return rows.where(rows.notna(), None).to_dict("records")  # type: ignore[return-value]
