"""Small charts as shapes that the templates draw: they take their colours from the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

MAX_LEAVES = 30  # maximum number of leaves of a hierarchy; what merges below is one leaf
LEAF, DEPTH = 22, 260  # pixels: height of a leaf, width of the tree


@dataclass(frozen=True)
class Tree:
    """A hierarchy that lies on its side."""

    paths: list[str]  # of the merges, for an SVG
    leaves: list[tuple[int, str]]  # from top to bottom: the cluster, -1 if several, and its words
    width: int
    height: int


@dataclass(frozen=True)
class Lines:
    """Curves in a frame of `width` x `height`: names with points of a polyline, and labelled ticks."""

    title: str
    text: str
    curves: list[tuple[str, str]]
    x_ticks: list[tuple[float, str]]
    y_ticks: list[tuple[float, str]]
    bounds: list[tuple[int, float]]
    width: int = 440
    height: int = 240


def hierarchy_chart(result: Any) -> Tree | None:
    """How clusters would be merged further; None for a model without a hierarchy or with a single merge."""
    linkage = getattr(result.model, "hierarchy_", None)
    n_leaves = 0 if linkage is None else min(len(linkage) + 1, MAX_LEAVES, len(result.names))
    if n_leaves < 3:
        return None
    from scipy.cluster.hierarchy import dendrogram, to_tree

    linkage = np.asarray(linkage, dtype=np.float64).copy()
    linkage[:, 2] = np.maximum.accumulate(np.maximum(linkage[:, 2], 0.0))  # inversions cannot be drawn
    membership = getattr(result.model, "membership_", None)
    owners = np.arange(len(linkage) + 1) if membership is None else np.asarray(membership).argmax(axis=1)
    names = list(result.names)
    drawn = dendrogram(linkage, p=n_leaves, truncate_mode="lastp", no_plot=True)
    nodes, leaves = to_tree(linkage, rd=True)[1], []
    for node in drawn["leaves"]:
        own = sorted({int(owners[leaf]) for leaf in nodes[node].pre_order()})
        words = ", ".join(names[k] for k in own[:2]) + (f" and {len(own) - 2} more" if own[2:] else "")
        leaves.append((own[0] if len(own) == 1 else -1, words))
    top = max(max(depth) for depth in drawn["dcoord"]) or 1.0
    paths = []
    for places, heights in zip(drawn["icoord"], drawn["dcoord"], strict=True):
        y = [LEAF * place / 10.0 for place in places]
        x = [4.0 + (DEPTH - 8.0) * (1.0 - height / top) for height in heights]
        paths.append(f"M{x[0]:.1f} {y[0]:.1f}H{x[1]:.1f}V{y[3]:.1f}H{x[3]:.1f}")
    return Tree(paths, leaves, DEPTH, LEAF * len(leaves))


def line_chart(
    title: str, curves: Mapping[str, tuple[Sequence[float], Sequence[float]]], bounds: Mapping[str, float] | None = None
) -> Lines | None:
    """Curves of x and y by name, with a dotted line at the bound of each; None without points."""
    from matplotlib.ticker import MaxNLocator

    drawn = {name: (x, y) for name, (x, y) in curves.items() if len(x) > 1 and np.isfinite(y).all()}
    if not drawn:
        return None
    known = [bounds[name] for name in drawn if bounds and name in bounds]
    every_x = np.concatenate([np.asarray(x, float) for x, _ in drawn.values()])
    every_y = np.concatenate([np.asarray(y, float) for _, y in drawn.values()] + [np.asarray(known, float)])
    ticks = MaxNLocator(4)
    first, last = float(every_x.min()), float(every_x.max())
    y_ticks = ticks.tick_values(float(every_y.min()), float(every_y.max()))
    low, high = float(y_ticks[0]), float(y_ticks[-1])

    def across(value: float) -> float:
        return 46.0 + 384.0 * (value - first) / ((last - first) or 1.0)

    def down(value: float) -> float:
        return 212.0 - 200.0 * (value - low) / ((high - low) or 1.0)

    text = "; ".join(f"{name} from {y[0]:.3g} to {y[-1]:.3g}" for name, (_, y) in drawn.items())
    return Lines(
        title,
        f"{title}: {text}.",
        [
            (name, " ".join(f"{across(a):.1f},{down(b):.1f}" for a, b in zip(x, y, strict=True)))
            for name, (x, y) in drawn.items()
        ],
        [(across(value), f"{value:,g}") for value in ticks.tick_values(first, last) if first <= value <= last],
        [(down(value), f"{value:,g}") for value in y_ticks],
        [(i, down(bounds[name])) for i, name in enumerate(drawn) if bounds and name in bounds],
    )
