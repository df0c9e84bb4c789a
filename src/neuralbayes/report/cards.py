"""Cards: what the page and a notebook say about each cluster, as data and as HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from neuralbayes.report.members import CARD_COLUMNS, Member, Members
from neuralbayes.report.template import render

if TYPE_CHECKING:
    from neuralbayes.clustering import Clustering

N_TYPICAL, N_POINTS = 3, 4
"""Number of typical members and of differences on a card."""

MANY = 12
"""With more clusters, the page shows a table, and a card on demand."""

CARD_PICTURES = 1_200_000
"""Maximum size in bytes of all pictures on cards."""

COLORS, GOLDEN = 7, 137.508
"""Number of clusters with a colour of the style sheet, and degrees between the hues of the others."""

VERDICTS = {
    "disjoint": "Certified disjoint",
    "clusters": "Clusters with gaps between them",
    "segments": "Segments of a continuum",
    "none": "No repeatable division",
}
UNTESTED = "Clusters; gaps were not tested"


@dataclass(frozen=True)
class Point:
    """A claim on a card, with the shares of members and of others of which it is true, if known."""

    words: str
    inside: float | None = None
    outside: float | None = None
    aside: str = ""


@dataclass(frozen=True)
class Card:
    """What is said about a cluster; -1 stands for outliers."""

    number: int
    name: str
    size: int
    share: float
    stability: float | None = None
    separation: float | None = None
    disjoint: bool | None = None
    rule: str = ""
    precision: float | None = None
    recall: float | None = None
    points: tuple[Point, ...] = ()
    columns: tuple[str, ...] = ()
    typical: tuple[Member, ...] = ()

    @property
    def color(self) -> str:
        """The class of its colour in the style sheet."""
        return "out" if self.number < 0 else f"c{self.number}" if self.number < COLORS else "many"

    @property
    def fill(self) -> str:
        """Its colour, if the style sheet has none."""
        hue = round((self.number * GOLDEN + 205.0) % 360.0)
        return f"hsl({hue} 58% {(44, 56, 50)[self.number % 3]}%)"


def make_cards(result: Clustering, members: Members | None = None) -> list[Card]:
    """A card for each cluster, and one for the outliers, if there are any."""
    members = Members(result) if members is None else members
    rows = dict(zip(result.clusters.index.tolist(), result.clusters.to_dict("records"), strict=True))
    typical = {k: [int(one) for one in row["typical"][:N_TYPICAL]] for k, row in rows.items()}
    unlike = _outliers(result)
    wanted = [row for some in (*typical.values(), unlike) for row in some]
    pictures = members.thumbnails(wanted, CARD_PICTURES)
    described = {} if result.description is None else {one.cluster: one for one in result.description.clusters}
    certified = hasattr(result.model, "disjoint_")
    cards = []
    for number, row in rows.items():
        found = described.get(number)
        columns = _columns(members, number)
        cards.append(
            Card(
                number=number,
                name=str(row["name"]),
                size=int(row["size"]),
                share=float(row["share"]),
                stability=_known(row, "stability"),
                separation=_known(row, "separation"),
                disjoint=bool(row["disjoint"]) if certified else None,
                rule=_words(row, "rule"),
                precision=_known(row, "precision"),
                recall=_known(row, "recall"),
                points=tuple(_points(row, found, members.noun)),
                columns=tuple(columns),
                typical=tuple(members.shown(typical[number], columns, pictures)),
            )
        )
    n_out = int((np.asarray(result.labels) < 0).sum())
    if n_out:
        columns = members.columns[:CARD_COLUMNS]
        shown = tuple(members.shown(unlike, columns, pictures))
        share = n_out / len(result.labels)
        cards.append(Card(-1, "Outliers", n_out, share, columns=tuple(columns), typical=shown))
    return cards


def cards_html(result: Clustering) -> str:
    """The verdict and the cards as HTML for a notebook, with their own style and without a script."""
    members = Members(result)
    every = make_cards(result, members)
    left = max(0, len(every) - MANY)
    return render("cards.html", cards=every[:MANY], left=left, tiny=members.tiny, **said(result))


def said(result: Clustering) -> dict[str, Any]:
    """What page and notebook say of the whole."""
    return {
        "noun": result.points.noun,
        "sentence": result.sentence,
        "verdict": UNTESTED if _untested(result) else VERDICTS[result.verdict],
        "kind": result.verdict,
        "stability": result.stability,
        "named_by": getattr(result, "named_by", None),
        "title": title_of(result),
    }


def title_of(result: Clustering) -> str:
    """The name of the data and the number of clusters.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> points = SimpleNamespace(title="customers.csv")
    >>> title_of(SimpleNamespace(points=points, model=None, clusters=[1, 2, 3], verdict="segments"))
    'customers.csv: 3 segments'
    """
    n, thing = len(result.clusters), "segment" if result.verdict == "segments" and not _untested(result) else "cluster"
    found = "no clusters" if result.verdict == "none" else f"{n:,} {thing}{'' if n == 1 else 's'}"
    return f"{result.points.title}: {found}"


def _untested(result: Clustering) -> bool:
    """Whether nobody asked if there are gaps between the clusters."""
    return result.verdict == "segments" and getattr(result.model, "kind_", "") == "images"


def _outliers(result: Clustering) -> list[int]:
    """The rejected rows that are least typical of all clusters."""
    rows = np.flatnonzero(np.asarray(result.labels) < 0)
    if result.typicality is not None:
        rows = rows[np.argsort(np.asarray(result.typicality)[rows], kind="stable")]
    return [int(row) for row in rows[:N_TYPICAL]]


def _columns(members: Members, cluster: int) -> list[str]:
    """The most telling columns of a cluster, filled up with those of the others."""
    own = members.telling[cluster] if cluster < len(members.telling) else []
    return list(dict.fromkeys([*own, *members.columns]))[:CARD_COLUMNS]


def _points(row: Any, found: Any, noun: str) -> list[Point]:
    """The differences of a cluster from the rest, or the phrases of its texts."""
    if found is None:
        listed = row.get("differences", ())
        return [Point(str(words)) for words in list(listed if isinstance(listed, Sequence) else ())[:N_POINTS]]
    points = []
    for claim in list(found.differences or found.claims)[:N_POINTS]:
        column = "" if claim.condition is None else claim.condition.column
        plain = column.replace("_", " ")
        words = (
            claim.words if not column or column in claim.words or plain in claim.words else f"{plain}: {claim.words}"
        )
        aside = f"median {claim.medians[0]}, others {claim.medians[1]}" if claim.medians else ""
        points.append(Point(words, claim.share_inside, claim.share_outside, aside))
    return points


def _known(row: Any, name: str) -> float | None:
    """A number of a row of `clusters`; None if it was not measured."""
    value = row.get(name)
    return None if value is None or value != value else float(value)


def _words(row: Any, name: str) -> str:
    value = row.get(name)
    return value if isinstance(value, str) else ""
