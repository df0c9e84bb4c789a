"""Cards: what the page and a notebook say about each cluster, as data and as HTML."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from neuralbayes.report.members import CARD_COLUMNS, Clustering, Member, Members
from neuralbayes.report.template import asset, render

if TYPE_CHECKING:
    from neuralbayes.explain.description import ClusterDescription

N_TYPICAL, N_POINTS = 3, 4  # number of typical members and of differences on a card
COMMON = 0.05  # minimum share of the members that have a phrase on a card
MANY = 12  # with more clusters, the page shows a table, and a card on demand
CARD_PICTURES = 1_200_000  # maximum size in bytes of all pictures on cards

# Number of clusters with a colour of the style sheet, and degrees between the hues of the others.
COLORS, GOLDEN = 7, 137.508

VERDICTS = {
    "disjoint": "Certified disjoint",
    "clusters": "Clusters, with valleys confirmed",
    "segments": "Segments of a continuum",
    "none": "No repeatable division",
}
UNTESTED, ASKED = "Clusters; gaps were not tested", "One cluster"


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
    plain = plain_cards(result)
    typical = {k: [int(one) for one in rows[:N_TYPICAL]] for k, rows in result.clusters["typical"].items()}
    unlike = _outliers(result)
    pictures = members.thumbnails([row for rows in (*typical.values(), unlike) for row in rows], CARD_PICTURES)
    described = {} if result.description is None else {one.cluster: one for one in result.description.clusters}
    disjoint = getattr(result.model, "disjoint_", None)
    cards = []
    for card in plain:
        k, columns = card.number, _columns(members, card.number)
        cards.append(
            replace(
                card,
                disjoint=None if disjoint is None else bool(disjoint[k]),
                points=tuple(_points(described[k])) if k in described else (),
                columns=tuple(columns),
                typical=tuple(members.shown(typical[k], columns, pictures)),
            )
        )
    n_out = int((np.asarray(result.labels) < 0).sum())
    if n_out:
        columns = members.columns[:CARD_COLUMNS]
        shown = tuple(members.shown(unlike, columns, pictures))
        share = n_out / len(result.labels)
        cards.append(Card(-1, "Outliers", n_out, share, columns=tuple(columns), typical=shown))
    return cards


def plain_cards(result: Clustering) -> list[Card]:
    """Cards without members and differences."""
    table = result.clusters[["name", "size", "share", "stability", "rule", "precision", "recall"]]
    rows = table.astype(object).where(table.notna(), None).to_dict("records")
    return [Card(k, **row | {"rule": row["rule"] or ""}) for k, row in zip(table.index.tolist(), rows, strict=True)]


def cards_html(result: Clustering) -> str:
    """The verdict and the cards as HTML for a notebook, with their own style and without a script."""
    from markupsafe import Markup

    members = None if result.points.X is None else Members(result)  # a saved clustering has no members to show
    every = plain_cards(result) if members is None else make_cards(result, members)
    style, left = Markup(asset("cards.css")), max(0, len(every) - MANY)
    return render(
        "cards.html", style=style, cards=every[:MANY], left=left, tiny=bool(members and members.tiny), **said(result)
    )


def said(result: Clustering) -> dict[str, Any]:
    """What page and notebook say of the whole."""
    asked = _asked_for_one(result)
    return {
        "noun": result.points.noun,
        "sentence": result.sentence,
        "verdict": ASKED if asked else UNTESTED if _untested(result) else VERDICTS[result.verdict],
        "kind": "one" if asked else result.verdict,
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
    none = result.verdict == "none" and not _asked_for_one(result)
    found = "no clusters" if none else f"{n:,} {thing}{'' if n == 1 else 's'}"
    return f"{result.points.title}: {found}"


def _asked_for_one(result: Clustering) -> bool:
    """Whether no division was tried."""
    return bool(result.verdict == "none" and result.settings.n_clusters == 1)


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


def _points(found: ClusterDescription) -> list[Point]:
    """The differences of a cluster from the rest, or the phrases of its texts."""
    points = []
    phrases = [claim for claim in found.claims if claim.share_inside >= COMMON] or found.claims[:1]
    for claim in (found.differences or phrases)[:N_POINTS]:
        column = "" if claim.condition is None else claim.condition.column
        plain = column.replace("_", " ")
        named = plain in claim.words or column in claim.words
        words = claim.words if named else f"{plain}: {claim.words}"
        aside = f"median {claim.medians[0]}, others {claim.medians[1]}" if claim.medians else ""
        points.append(Point(words, claim.share_inside, claim.share_outside, aside))
    return points
