"""Gaps between rows at any scale: divisions of a spanning tree, and which of them no connected set would have."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree

from neuralbayes.manifolds.graph import Array, NeighborGraph
from neuralbayes.neighbors import nearest_neighbors

TINY = float(np.finfo(float).tiny)  # in place of a length of 0, which would be no edge

RATIO, CLEAR = 1.15, 2.0
"""Minimum ratio of the gap between the parts to the last merge within them: in a proven division, in a clear one."""

CHANCE, CLEAR_CHANCE = 0.03, 1e-6
"""Maximum probability that a part has an edge as long as its gap: in a proven division, in a clear one."""

TAIL = 5
"""Minimum number of edges of a tail: the mean of fewer says little."""

FACING, EXTENT, CLEAR_EXTENT = 1.5, 3.0, 1.0
"""Rows face another part within this many gaps. In a proven division they do so over a stretch of this many gaps,
longer than the ends of a broken line; in a clear one, a shorter stretch tells."""

STRAIGHT, REACH = 0.8, 2.0
"""Ends of lines continue each other within this many gaps if they point at each other with this cosine or more."""


@dataclass(frozen=True)
class Division:
    """Parts of single linkage."""

    part: NDArray[np.int64]  # (n_points,)
    gap: float  # between the nearest two
    n_parts: int
    proven: bool  # no connected set would have this gap


class Linkage:
    """Minimum spanning tree of points, cut where that gives the clearest parts of more than `k` points.

    `ratio` has, by number of parts, the ratio of the scales between which single linkage finds as many.
    """

    def __init__(self, graph: NeighborGraph) -> None:
        self.graph = graph
        self.points, self.distance, self.index = graph.points, graph.distance, graph.index
        self.k = max(10, graph.n_neighbors)
        self.edges, self.length = spanning_tree(self.points, self.distance, self.index)
        count = _large_parts(self.edges.tolist(), self.k)
        changes = np.flatnonzero(np.diff(count, prepend=0))
        self.ratio: dict[int, float] = {}
        self._end: dict[int, int] = {}
        for begin, end in pairwise(changes.tolist()):
            n_parts, ratio = int(count[begin]), float(self.length[end] / self.length[begin])
            if n_parts > 1 and ratio > self.ratio.get(n_parts, 0.0):
                self.ratio[n_parts], self._end[n_parts] = ratio, int(end)

    @property
    def clearest(self) -> int:
        """Number of parts that single linkage finds over the largest ratio of scales; 1 if that is small."""
        n_parts = max(self.ratio, key=self.ratio.__getitem__, default=1)
        return n_parts if self.ratio.get(n_parts, 0.0) >= CLEAR else 1

    @cached_property
    def proven(self) -> Division | None:
        """The proven division with the most parts, if there is one."""
        divisions = (self.divide(k) for k in sorted(self.ratio, reverse=True) if self.ratio[k] >= RATIO)
        return next((division for division in divisions if division.proven), None)

    def can_prove(self, n_parts: int) -> bool:
        """Whether there is a division into as many parts that cuts through no proven one."""
        return self.proven is not None and self.proven.n_parts >= n_parts and n_parts in self.ratio

    def divide(self, n_parts: int) -> Division:
        """The clearest division into `n_parts`."""
        end = self._end[n_parts]
        n_pieces, piece = _components(self.edges[:end], len(self.points))
        large = np.flatnonzero(np.bincount(piece) > self.k)
        # Small pieces go to the large piece that they merge with first: a spanning tree that starts from all of these.
        root = np.column_stack([np.full(len(large), n_pieces), large])
        ends = np.concatenate([piece[self.edges[end:]], root])
        length = np.append(self.length[end:], np.full(len(large), TINY))
        tree = minimum_spanning_tree(sp.coo_matrix((length, ends.T), shape=(n_pieces + 1, n_pieces + 1)))
        _, owner = connected_components(tree[:n_pieces, :n_pieces], directed=False)
        part = owner[piece].astype(np.int64)
        return Division(part, float(self.length[end]), n_parts, self._is_proven(part, self.ratio[n_parts]))

    def _is_proven(self, part: NDArray[np.int64], ratio: float) -> bool:
        gaps = self._gaps(part)
        chance = max(chance for _, chance in gaps.values())
        if ratio < RATIO or np.bincount(part).min() < 5 * self.k or chance > CHANCE or self._continues(part):
            return False
        extent = CLEAR_EXTENT if ratio >= CLEAR and chance <= CLEAR_CHANCE else EXTENT
        return all(self._faces(part == k, gap, extent) for k, (gap, _) in gaps.items())

    def may_be_broken(self, part: NDArray[np.int64]) -> bool:
        """Whether the parts may be the pieces of a line with uneven spacing: end to end, not side by side."""
        gaps = self._gaps(part)
        if all(chance <= CHANCE for _, chance in gaps.values()) or not self._continues(part):
            return False
        return not all(self._faces(part == k, gap, CLEAR_EXTENT) for k, (gap, _) in gaps.items())

    def _gaps(self, part: NDArray[np.int64]) -> dict[int, tuple[float, float]]:
        """The distance of each part to the others, and the probability that one of its own edges is as long.

        The lengths of the longest tenth of its edges, at least `TAIL`, are extrapolated by an exponential tail.
        """
        source, target = part[self.edges].T
        gaps = {}
        for k in np.unique(part):
            gap = self.length[(source == k) != (target == k)].min(initial=np.inf)
            within = self.length[(source == k) & (target == k)]
            usual = np.quantile(within, max(0.0, 1.0 - max(0.1, TAIL / len(within)))) if len(within) else 0.0
            excess = within[within > usual] - usual
            mean = excess.mean() if len(excess) else TINY
            gaps[int(k)] = float(gap), float(len(excess) * np.exp(-max(gap - usual, 0.0) / mean))
        return gaps

    def _faces(self, inside: NDArray[np.bool_], gap: float, extent: float) -> bool:
        """Whether rows face the other parts side by side, over a long enough stretch."""
        distance, _ = nearest_neighbors(self.points[~inside], 1, queries=self.points[inside])
        facing = self.points[inside][distance[:, 0] <= FACING * gap]
        if len(facing) <= self.k:
            return False
        edges, length = spanning_tree(facing, *nearest_neighbors(facing, self.index.shape[1]))
        _, stretch = _components(edges[length <= gap], len(facing))
        stretches = [facing[stretch == i] for i in np.flatnonzero(np.bincount(stretch) >= self.k)]
        return any(np.linalg.norm(rows - rows[0], axis=1).max() >= extent * gap for rows in stretches)

    def _continues(self, part: NDArray[np.int64]) -> bool:
        """Whether an end of one part points at an end of another one, as in a broken line."""
        gap = min(gap for gap, _ in self._gaps(part).values())
        same = part[self.index] == part[:, None]
        n, k = same.shape
        near = sp.csr_matrix((same.ravel().astype(float), self.index.ravel(), np.arange(0, n * k + 1, k)), shape=(n, n))
        away = same.sum(axis=1)[:, None] * self.points - near @ self.points  # from the neighbours in the part
        away /= (self.distance * same).sum(axis=1)[:, None].clip(TINY)
        ends = np.flatnonzero(np.linalg.norm(away, axis=1) >= STRAIGHT)
        for i in ends:
            between = self.points[ends] - self.points[i]
            length = np.linalg.norm(between, axis=1)
            others = (part[ends] != part[i]) & (length <= REACH * gap)
            cosine = np.minimum(between @ away[i], -(between * away[ends]).sum(axis=1))
            if (cosine >= STRAIGHT * length)[others].any():
                return True
        return False


def _components(edges: NDArray[np.int64], n: int) -> tuple[int, NDArray[np.int64]]:
    """Number of components, and the component of each of `n` points."""
    joined = sp.coo_matrix((np.ones(len(edges)), edges.T), shape=(n, n))
    return connected_components(joined, directed=False)  # type: ignore[no-any-return]


def spanning_tree(points: Array, distance: Array, index: NDArray[np.int64]) -> tuple[NDArray[np.int64], Array]:
    """Minimum spanning tree of points with these neighbours: edges (n_points - 1, 2) and their lengths, ascending."""
    n, k = index.shape
    ends = np.arange(0, n * k + 1, k)
    tree = minimum_spanning_tree(sp.csr_matrix((distance.ravel().clip(TINY), index.ravel(), ends), shape=(n, n)))
    while True:
        n_parts, part = connected_components(tree, directed=False)
        if n_parts == 1:
            break
        joins = np.zeros((n_parts, 3))
        for k in range(n_parts):  # Boruvka's step: join each part to the nearest row outside
            inside, outside = np.flatnonzero(part == k), np.flatnonzero(part != k)
            length, nearest = nearest_neighbors(points[outside], 1, queries=points[inside])
            first = length[:, 0].argmin()
            joins[k] = max(length[first, 0], TINY), inside[first], outside[nearest[first, 0]]
        tree = tree.maximum(sp.csr_matrix((joins[:, 0], joins[:, 1:].T.astype(np.int64)), shape=(n, n)))
        tree = minimum_spanning_tree(tree)
    tree = tree.tocoo()
    order = np.argsort(tree.data, kind="stable")
    return np.column_stack([tree.row, tree.col])[order], tree.data[order]


def _large_parts(edges: list[list[int]], k: int) -> NDArray[np.int64]:
    """Number of parts of more than `k` points after each edge."""
    parent, size = list(range(len(edges) + 1)), [1] * (len(edges) + 1)
    counts, n_large = [], 0
    for ends in edges:
        a, b = ends
        while parent[a] != a:
            parent[a] = a = parent[parent[a]]
        while parent[b] != b:
            parent[b] = b = parent[parent[b]]
        if size[a] < size[b]:
            a, b = b, a
        parent[b] = a
        n_large -= (size[a] > k) + (size[b] > k)
        size[a] += size[b]
        n_large += size[a] > k
        counts.append(n_large)
    return np.array(counts, np.int64)
