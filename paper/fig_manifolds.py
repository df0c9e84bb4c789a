"""Figure 4: disjoint manifolds in 512 dimensions, in the authors' setting, and harder sets with several methods."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from neuralbayes.clusters.accuracy import clustering_accuracy
from neuralbayes.data.published_toys import PUBLISHED
from neuralbayes.data.toys import PAPER as SETS
from neuralbayes.report.manifolds import Panel, draw_manifolds
from paper import harder_manifolds as harder
from paper import published_manifolds as published
from paper.experiment import Experiment, MorePicture, Record, Results, Scale, by
from paper.harder_manifolds import BLIND, METHODS, NAME, ManifoldRun, Predict, points_of, right_shares
from paper.published_manifolds import BATCHES, OPTIMAL, WHOLE, PublishedRun
from paper.results_page import Claim, Table, Verdict
from paper.statistics import difference, power, text, verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MARGIN = 0.62  # half the side of a map, relative to the extent of the points


def runs(scale: Scale, seeds: int | None) -> list[PublishedRun | ManifoldRun]:
    """The authors' setting first, then the harder sets."""
    return [*published.runs(scale, seeds), *harder.runs(scale, seeds)]


def run_one(run: PublishedRun | ManifoldRun, folder: Path) -> dict[str, Any]:
    """Label the points. An interrupted network starts again, which takes a minute or two."""
    plane, truth = run.plane()
    if isinstance(run, PublishedRun):
        predict, values = published.label_points(run)
        return {**values, "picture": _picture(predict, plane, run.grid)} if run.grid else values
    predict, objective = harder.label_points(run)
    values = {
        "right": round(clustering_accuracy(predict(plane), truth), 5),
        "objective": round(objective, 5),
    }
    return values if run.seed > 0 else {**values, "picture": _picture(predict, plane, run.grid)}


def _picture(predict: Predict, plane: NDArray[np.float64], n: int) -> dict[str, str]:
    """States of the points and of an n x n map, as text."""
    return {"labels": _digits(predict(plane)), "map": _digits(predict(_grid(plane, n)[0]))}


def cost(run: PublishedRun | ManifoldRun) -> float:
    return published.cost(run) if isinstance(run, PublishedRun) else harder.cost(run)


def tables(results: Results) -> list[Table]:
    return [*_published_tables(_authors(results)), *harder.tables(_harder(results))]


def _published_tables(results: Results) -> list[Table]:
    rows = []
    for name, right in published.shares(results).items():
        drawn = PUBLISHED[name]
        counts = [f"{published.solved(values)} of {len(values)}" if values else "-" for values in right.values()]
        rows.append((name, f"{drawn.solved} of {drawn.tried}", *counts, *(text(values) for values in right.values())))
    head = ("set", "authors' notebook", "here", "here, in batches", "correct points, %", "in batches, %")
    note = (
        "A seed counts if at most one point in a thousand has the wrong label. The notebook was run unchanged, on a "
        "CPU. In batches: a quarter of the points at a time (a third for the spirals), with the same number of "
        "updates. The centres of the blobs are drawn at random in a square, so some draws have no gap."
    )
    return [Table("The authors' setting: seeds that label a set optimally", head, rows, note)] if rows else []


def draw(results: Results) -> Figure:
    """Draw the authors' sets, or the harder sets if only these were run."""
    authors = by(_drawn(_authors(results)), lambda record: record.settings["published"])
    if not authors:
        return draw_harder(results)
    return draw_manifolds([_authors_panel(group[0]) for group in authors.values()], columns=len(PUBLISHED))


def draw_harder(results: Results) -> Figure:
    """Draw one row per method, with the beta that labels most points correctly."""
    panels = [
        _panel(max(found, key=lambda record: float(record.values["right"])))
        for method in METHODS
        for group in by(_drawn(_harder(results)), points_of).values()
        if (found := [record for record in group if record.settings["method"] == method])
    ]
    return draw_manifolds(panels, columns=len(SETS))


def _drawn(results: Results) -> list[Record]:
    return [record for record in results if "picture" in record.values]


def claims(results: Results) -> list[Claim]:
    where = "section 5.2, figure 4"
    found = published.shares(_authors(results))
    whole = {name: right[WHOLE] for name, right in found.items() if right[WHOLE]}
    own = ", ".join(f"{name} {published.solved(right)} of {len(right)} seeds" for name, right in whole.items())
    theirs = ", ".join(f"{name} {PUBLISHED[name].solved} of {PUBLISHED[name].tried}" for name in whole)
    as_often = [published.as_often(right, name) for name, right in whole.items()]
    labeler = {
        points: values
        for points, group in by(_harder(results), points_of).items()
        if (values := right_shares(group, "labeler", BLIND))
    }
    optimal = [min(values) >= OPTIMAL for values in labeler.values()]
    gains = {
        name: difference(right[WHOLE], right[BATCHES])
        for name, right in found.items()
        if right[WHOLE] and right[BATCHES]
    }
    return [
        Claim(
            "DML optimally labels the four sets, in the authors' setting",
            where,
            _of_all([*as_often, *[False] * (len(PUBLISHED) - len(whole))]) if as_often else "not run",
            f"{own}; authors' notebook: {theirs}" if whole else "",
            authors_setting=True,
        ),
        Claim(
            "DML optimally labels disjoint manifolds: harder sets, with ManifoldLabeler",
            where,
            _of_all(optimal) if optimal else "not run",
            ", ".join(f"{points} {text(values)} %" for points, values in labeler.items()),
        ),
        Claim(
            "DML needs large batches: more points are labelled correctly with the gradient of all points",
            "section 4.2",
            verdict(list(gains.values())),
            ", ".join(f"{name} {gain.text(sign=True)} points" for name, gain in gains.items()),
            power(list(gains.values())),
            authors_setting=True,
        ),
    ]


def _of_all(optimal: list[bool]) -> Verdict:
    return "holds" if all(optimal) else "holds in part" if any(optimal) else "does not hold here"


def _authors(results: Results) -> list[Record]:
    return [record for record in results if "published" in record.settings]


def _harder(results: Results) -> list[Record]:
    return [record for record in results if "published" not in record.settings]


def _authors_panel(record: Record) -> Panel:
    plane, _ = PUBLISHED[record.settings["published"]].draw(random_state=record.settings["seed"])
    return _in_plane(record, record.settings["published"], "seed 0: ", plane)


def _panel(record: Record) -> Panel:
    settings = record.settings
    plane, _ = SETS[settings["points"]][0](settings["n_points"], random_state=settings["seed"])
    beta = "" if settings["beta"] is None else f"beta {settings['beta']:g}: "
    return _in_plane(record, settings["points"], f"{METHODS[settings['method']]}\n{beta}", plane)


def _in_plane(record: Record, title: str, caption: str, plane: NDArray[np.float64]) -> Panel:
    picture, n, right = record.values["picture"], record.settings["grid"], float(record.values["right"])
    states, labels = (np.array(list(picture[name]), dtype=np.int64) for name in ("map", "labels"))
    return Panel(
        title=title,
        caption=f"{caption}{100 * right:.1f} % correct",
        certified=right >= OPTIMAL,
        points=plane,
        labels=labels,
        extent=_grid(plane, n)[1],
        decision_map=np.eye(max(states.max(), labels.max()) + 1)[states.reshape(n, n)],
    )


def _grid(plane: NDArray[np.float64], n: int) -> tuple[NDArray[np.float64], tuple[float, float, float, float]]:
    """Points of a square around `plane`, (n * n, 2) from the bottom up, and its left, right, bottom and top."""
    low, high = plane.min(axis=0), plane.max(axis=0)
    half = MARGIN * float((high - low).max())
    columns, rows = (np.linspace(c - half, c + half, n) for c in (low + high) / 2)
    extent = (float(columns[0]), float(columns[-1]), float(rows[0]), float(rows[-1]))
    return np.stack(np.meshgrid(columns, rows), axis=-1).reshape(-1, 2), extent


def _digits(states: NDArray[np.int64]) -> str:
    """Encode states as one digit each."""
    return "".join(map(str, states))


EXPERIMENT = Experiment(
    name=NAME,
    title="Figure 4: disjoint manifolds in 512 dimensions",
    about=(
        "Four sets in the plane with two or three manifolds, rotated at random into 512 dimensions and labelled by a "
        "network with four layers of 400 units. We first follow the authors' notebook. It has its own generators, with "
        "unit variance in the plane before the rotation (spirals are not scaled). All points are in one batch, and "
        "there are 41 to 601 updates with beta 0.5 in the units of this library. Directions of R_c are combinations of "
        "centred points with v in {0, 1}. The network has torch's default initialisation and no bias in the last "
        "layer. The last picture varies the gap, the step size of R_c, the batch and the scaling (unit variance in "
        "each of the 512 dimensions, as in the paper's text). We then compare the network on harder sets with "
        "ManifoldLabeler, which has the same objective with several starts and a smoothness term on a graph of "
        "neighbours."
    ),
    runs=runs,
    run_one=run_one,
    cost=cost,
    tables=tables,
    draw=draw,
    claims=claims,
    more_pictures=(
        MorePicture(
            "harder",
            "Harder sets: the network with the beta that labels most points correctly, and ManifoldLabeler",
            draw_harder,
            lambda results: bool(_drawn(_authors(results)) and _drawn(_harder(results))),
        ),
        MorePicture(
            "grid",
            "Circles in the authors' setting: percentage of correct points, by gap and by step size of R_c",
            lambda results: published.draw_grid(_authors(results)),
            lambda results: bool(_authors(results)),
        ),
    ),
)
