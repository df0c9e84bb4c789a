"""Figure 4: disjoint manifolds in 512 dimensions, in the authors' setting, and harder sets with several methods."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from neuralbayes.data.toys import PAPER as SETS
from neuralbayes.report.manifolds import draw_manifolds
from paper import authors_manifolds as authors
from paper import harder_manifolds as harder
from paper.authors_manifolds import BATCHES, OPTIMAL, WHOLE, AuthorsRun, solved
from paper.authors_toys import AUTHORS_SETS
from paper.claims import Claim, every, labelled, listed
from paper.decision_map import panel
from paper.experiment import Picture
from paper.harder_manifolds import METHODS, ManifoldRun, points_of
from paper.runs import Record, Results, Scale, by
from paper.statistics import difference
from paper.tables import Table

NAME = "fig-manifolds"
TITLE = "Figure 4: disjoint manifolds in 512 dimensions"
AT_FULL_SCALE = "minutes on one core"
ABOUT = (
    "Four sets in the plane with two or three manifolds, rotated at random into 512 dimensions and labelled by a "
    "network with four layers of 400 units. We first follow the authors' notebook, which has its own generators, "
    "with unit variance in the plane before the rotation (spirals are not scaled). All points are in one batch, and "
    "there are 41 to 601 updates with beta 0.5 in the units of this library. Directions of R_c are combinations of "
    "centred points with v in {0, 1}. The network has torch's default initialisation and no bias in the last "
    "layer. We then compare the network on harder sets with ManifoldLabeler, which has the same objective with "
    "several starts and another smoothness term, on a graph of neighbours. There, the network has "
    "the beta of [0.5, 6] that labels most points, Gaussian directions and R_c on the logits."
)
SHARE = 0.9
"""Share of seeds that must label a set without error."""


def runs(scale: Scale, seeds: int | None) -> list[AuthorsRun | ManifoldRun]:
    """The authors' setting first, then the harder sets."""
    return [*authors.runs(scale, seeds), *harder.runs(scale, seeds)]


def tables(results: Results) -> list[Table]:
    return [*authors.tables(_authors(results)), *harder.tables(_harder(results))]


def pictures(results: Results) -> list[Picture]:
    """The authors' sets at seed 0; the harder sets with one row for each method."""
    ours = by(_drawn(_authors(results)), lambda record: record.settings["published"])
    panels = [
        panel(
            group[0],
            name,
            "seed 0: ",
            AUTHORS_SETS[name].draw(random_state=group[0].seed)[0],
            good=group[0].values["right"] >= OPTIMAL,
        )
        for name, group in ours.items()
    ]
    rows = []
    for method, title in METHODS.items():
        for points, group in by(_drawn(_harder(results)), points_of).items():
            found = [record for record in group if record.settings["method"] == method]
            if found:
                best = max(found, key=lambda record: float(record.values["right"]))
                beta = "" if best.settings["beta"] is None else f"beta {best.settings['beta']:g}: "
                plane, _ = SETS[points][0](best.settings["n_points"], random_state=best.seed)
                rows.append(panel(best, points, f"{title}\n{beta}", plane, good=best.values["right"] >= OPTIMAL))
    caption = "Harder sets: the network with the beta that labels most points correctly, and ManifoldLabeler"
    found_pictures = []
    if panels:
        found_pictures.append(Picture(NAME, TITLE, partial(draw_manifolds, panels, len(panels))))
    if rows:
        found_pictures.append(Picture(f"{NAME}-harder", caption, partial(draw_manifolds, rows, len(SETS))))
    return found_pictures


def claims(results: Results) -> list[Claim]:
    found = authors.shares(_authors(results))
    counts = {name: (solved(right[WHOLE]), len(right[WHOLE])) for name, right in found.items()}
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
            f"in the authors' setting, at least {SHARE:.0%} of the seeds label a set without error (one point in a "
            "thousand may be wrong), for each of the four sets",
            labelled(counts, SHARE, len(AUTHORS_SETS)),
            ", ".join(f"{name} {count} of {n} seeds" for name, (count, n) in counts.items()),
        ),
        Claim(
            "optimizing it using gradient descent methods with small batch-sizes is not possible",
            "section 4.2",
            "with the gradient of all points minus that of batches, more points are correct, on each of the four sets",
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
        "beta": authors.BETA,
        "argument of R_c": "logits",
        "directions of R_c": "v in {0, 1}, X centred",
        "standard deviation of zeta": settings["scale"],
        "scale of the points": f"{setting} (circles)" if setting == authors.IN_EACH else "unit variance in the plane",
    }


def not_run(results: Results) -> list[str]:
    return [
        "figure 4 with the protocol of the paper's text on the paper's sets: beta from [0.5, 6] by the labels, "
        "Gaussian directions, X not centred, until convergence (that was run on harder sets only)"
    ]


def _drawn(results: Results) -> list[Record]:
    return [record for record in results if "picture" in record.values]


def _authors(results: Results) -> list[Record]:
    return [record for record in results if "published" in record.settings]


def _harder(results: Results) -> list[Record]:
    return [record for record in results if "published" not in record.settings]
