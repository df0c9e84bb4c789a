"""Figure 4: disjoint manifolds in 512 dimensions, in the authors' setting."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from paper.authors_manifolds import BATCHES, BETA, IN_EACH, SETTINGS, WHOLE, ZETA, grid_around, runs
from paper.authors_toys import AUTHORS_SETS, CIRCLE_GAP
from paper.claims import Claim, every, labelled, listed
from paper.experiment import Picture
from paper.manifold_pictures import Panel, draw_manifolds
from paper.runs import Record, Results, by
from paper.statistics import difference, text
from paper.tables import Table

__all__ = ["runs"]

NAME = "fig-manifolds"
TITLE = "Figure 4: disjoint manifolds in 512 dimensions"
AT_FULL_SCALE = "minutes on one core"
ABOUT = (
    "Sets in the plane, rotated into 512 dimensions. We follow the authors' notebook: all points in one batch, R_c on "
    "the logits in directions with v in {0, 1}, and torch's default initialisation."
)
SHARE = 0.9
"""Share of seeds that must label a set without error."""

OPTIMAL = 0.999
"""Minimum fraction of correct labels to count a set as labelled optimally, as all are in figure 4."""


def tables(results: Results) -> list[Table]:
    """How often each set is solved, and the circles by gap and step."""
    results = _authors(results)
    if not results:
        return []
    rows = []
    for name, right in _shares(results).items():
        counts = [f"{_solved(values)} of {len(values)}" if values else "-" for values in right.values()]
        rows.append((name, *counts, *(text(values) for values in right.values())))
    note = "Batches hold a quarter of the points (spirals: a third). Some draws of the blobs have no gap."
    circles = [record for record in results if record.settings["published"] == "circles"]
    grouped = by(circles, lambda r: (r.settings["setting"], r.settings["scale"], r.settings["gap"]))
    cells = {key: [_right(record) for record in group] for key, group in grouped.items()}
    gaps = sorted({gap for _, _, gap in cells})
    grid = [
        (f"{setting}, zeta {step:g}", *(text(cells.get((setting, step, gap), []), 0) for gap in gaps))
        for setting, step in product(SETTINGS, sorted({step for _, step, _ in cells}))
        if step == ZETA or setting == WHOLE
    ]
    head = ("set", "here", "here, in batches", "correct points, %", "in batches, %")
    return [
        Table("The authors' setting: seeds that label a set optimally", head, rows, note),
        Table(
            "Circles: correct points in %, by the gap and the scale of zeta",
            ("setting", *(f"gap {gap:g}" for gap in gaps)),
            grid,
        ),
    ]


def pictures(results: Results) -> list[Picture]:
    """The sets at seed 0, with the decisions of the network."""
    drawn = by([r for r in _authors(results) if "picture" in r.values], lambda record: record.settings["published"])
    panels = [_panel(name, group[0]) for name, group in drawn.items()]
    return [Picture(NAME, TITLE, partial(draw_manifolds, panels, len(panels)))] if panels else []


def claims(results: Results) -> list[Claim]:
    found = _shares(_authors(results))
    counts = {name: (_solved(right[WHOLE]), len(right[WHOLE])) for name, right in found.items()}
    gains = {
        name: difference(right[WHOLE], right[BATCHES])
        for name, right in found.items()
        if right[WHOLE] and right[BATCHES]
    }
    return [
        Claim(
            "our goal is to optimally label all the disjoint manifolds […] Regularization coefficient β was chosen […] "
            "that resulted in optimal clustering",
            "section 5.2, figure 4",
            f"at least {SHARE:.0%} of the seeds label a set without error (one point in a thousand may be wrong), for "
            "each of the four sets",
            labelled(counts, SHARE, len(AUTHORS_SETS)),
            ", ".join(f"{name} {count} of {n} seeds" for name, (count, n) in counts.items()),
        ),
        Claim(
            "optimizing it using gradient descent methods with small batch-sizes is not possible",
            "section 4.2",
            "more points are correct with the gradient of all points than with batches, on each set",
            every(gains),
            listed(gains),
        ),
    ]


def settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Readable settings of a run on the authors' sets."""
    if "published" not in settings:
        return {}
    name, setting = settings["published"], settings["setting"]
    return {
        "units": "-".join(map(str, settings["hidden"])),
        "dimensions": settings["dimensions"],
        "points": f"{AUTHORS_SETS[name].n_points:,}{' (spirals)' if name == 'spirals' else ''}",
        "batch": "a third (spirals) or a quarter of the points" if setting == BATCHES else "all points",
        "updates": f"{settings['updates']} {name}",
        "beta": BETA,
        "argument of R_c": "logits",
        "directions of R_c": "v in {0, 1}, X centred",
        "standard deviation of zeta": settings["scale"],
        "scale of the points": f"{setting} (circles)" if setting == IN_EACH else "unit variance in the plane",
    }


def not_run(results: Results) -> list[str]:
    return ["figure 4 with the protocol of the paper's text (beta by the labels, Gaussian directions) on its sets"]


def _authors(results: Results) -> list[Record]:
    """The runs on the authors' sets; the records have others, of an earlier version of this folder."""
    return [record for record in results if "published" in record.settings]


def _right(record: Record) -> float:
    return float(record.values["right"])


def _shares(results: Results) -> dict[str, dict[str, list[float]]]:
    """Fraction of correct points per seed, in the authors' setting and in batches: set -> setting -> values."""
    plain = [r for r in results if (r.settings["gap"], r.settings["scale"]) == (CIRCLE_GAP, ZETA)]
    return {
        name: {s: [_right(record) for record in group if record.settings["setting"] == s] for s in (WHOLE, BATCHES)}
        for name, group in by(plain, lambda record: record.settings["published"]).items()
    }


def _solved(right: list[float]) -> int:
    """Number of seeds that label a set optimally."""
    return sum(value >= OPTIMAL for value in right)


def _panel(name: str, record: Record) -> Panel:
    """The points of a record with a map, in the colours of their states."""
    picture, n = record.values["picture"], record.settings["grid"]
    states, labels = (np.array(list(picture[key]), dtype=np.int64) for key in ("map", "labels"))
    plane, _ = AUTHORS_SETS[name].draw(random_state=record.seed)
    return Panel(
        title=name,
        caption=f"seed {record.seed}: {100 * _right(record):.1f} % correct",
        certified=_right(record) >= OPTIMAL,
        points=plane,
        labels=labels,
        extent=grid_around(plane, n)[1],
        decision_map=np.eye(max(states.max(), labels.max()) + 1)[states.reshape(n, n)],
    )
