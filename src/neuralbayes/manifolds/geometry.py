"""The sample of rows that a fit uses: its span, its graph, and the smooth functions on it."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import scipy.linalg
import torch
from numpy.typing import NDArray

from neuralbayes.manifolds.graph import Array, NeighborGraph, RandomWalk
from neuralbayes.manifolds.linkage import Linkage
from neuralbayes.manifolds.separation import WALK_LENGTH, settled
from neuralbayes.networks.sines import SineNetwork
from neuralbayes.objectives import Objective

DENSER = 4  # rows among which gaps are looked for, as a multiple of `max_samples`

SHORTEST, LONGEST = 1.5, 4.0  # waves that separate proven parts, in gaps: arms side by side have a period of two


@dataclass(frozen=True)
class Options:
    """Parameters of a fit; see :class:`neuralbayes.ManifoldLabeler`."""

    beta: float
    n_init: int
    n_neighbors: int
    n_hidden: int
    max_iter: int
    tol: float
    max_samples: int
    standardize: bool
    verbose: bool
    objective: Objective


class Geometry:
    """A random sample of distinct rows: its span, its graph, and the functions on it from smooth to rough."""

    def __init__(self, X: Array, options: Options, rng: np.random.RandomState) -> None:
        rows = rng.permutation(len(X))[: DENSER * options.max_samples]
        denser = take(X, rows)
        once = np.arange(len(denser))
        if len(np.unique(denser.sum(axis=1))) < len(denser) and (denser != denser[0]).any():  # some may be equal
            once = np.sort(np.unique(denser + 0.0, axis=0, return_index=True)[1])
        self.denser_rows, self.denser = rows[once], denser[once]
        self.rows, self.sample = self.denser_rows[: options.max_samples], self.denser[: options.max_samples]
        self.center, self.basis = span(self.sample, options.standardize)
        self.points = (self.sample - self.center) @ self.basis
        self.graph = NeighborGraph(self.points, options.n_neighbors)
        self.walk = RandomWalk(self.graph, WALK_LENGTH)
        self.settled = settled(self.walk)
        self.n_parts = 0  # between which edges are cut
        # Wavelengths range from two spacings, which still separate neighbours, to three times the radius of the data,
        # which is 1.
        shortest = 2.0 * np.pi * min(2.0 * self.graph.spacing, 0.5)
        self._make_waves(shortest, 6.0 * np.pi, options.n_hidden, rng)

    def _make_waves(self, shortest: float, longest: float, n_hidden: int, rng: np.random.RandomState) -> None:
        """Draw the hidden layer, and combine it into functions from smooth to rough."""
        wavelength = np.exp(rng.uniform(np.log(shortest), np.log(longest), n_hidden))
        self.frequency = 2.0 * np.pi * rng.standard_normal((self.points.shape[1], n_hidden)) / wavelength
        self.phase = rng.uniform(0.0, 2.0 * np.pi, n_hidden)
        with torch.no_grad():
            waves = self.network(1).hidden(torch.from_numpy(self.sample)).numpy()
        hidden = np.column_stack([waves, np.ones(len(waves))])
        self.modes, self.roughness = smooth_functions(hidden, self.graph)
        self.values: Array = hidden @ self.modes  # (n_rows, n_modes)

    @cached_property
    def linkage(self) -> Linkage:
        """Single linkage of the denser sample, where gaps are wide beside the distances between neighbours."""
        if len(self.denser) == len(self.sample):
            return Linkage(self.graph)
        return Linkage(NeighborGraph((self.denser - self.center) @ self.basis, self.graph.n_neighbors))

    def cut(self, n_hidden: int, rng: np.random.RandomState) -> Self:
        """Return a copy on the denser sample without edges between proven parts, with waves as short as their gap."""
        division = self.linkage.proven
        if division is None:
            raise ValueError("no division of the rows is proven, so there is nothing to cut")
        geometry = copy.copy(self)
        geometry.rows, geometry.sample = self.denser_rows, self.denser
        geometry.graph = self.linkage.graph.cut(division.part)
        geometry.points, geometry.n_parts = geometry.graph.points, division.n_parts
        geometry._make_waves(SHORTEST * division.gap, LONGEST * division.gap, n_hidden, rng)
        return geometry

    def network(self, n_states: int) -> SineNetwork:
        """Make a network on this span, with an output layer of zeros."""
        center, basis = torch.from_numpy(self.center), torch.from_numpy(self.basis)
        return SineNetwork(center, basis, torch.from_numpy(self.frequency), torch.from_numpy(self.phase), n_states)

    def relative_roughness(self, n_states: int) -> Array:
        """R_c of each mode, divided by that of mode K + 1: the first K are almost constant on K disjoint manifolds."""
        unit = float(self.roughness[min(max(n_states, self.n_parts), len(self.roughness) - 1)])
        return self.roughness / (unit or 1.0)  # 0 if the constant is the only mode: a single distinct row


def take(X: Array, rows: NDArray[np.int64]) -> Array:
    """Rows in double precision, read in ascending order, which is fast for memory-mapped files."""
    order = np.argsort(rows)
    sample = np.empty((len(rows), X.shape[1]))
    sample[order] = X[rows[order]]
    return sample


def smooth_functions(hidden: Array, graph: NeighborGraph) -> tuple[Array, Array]:
    """Combinations (n_hidden, n_modes) of hidden units of unit variance, and their R_c, which ascends from 0."""
    second = hidden.T @ hidden / len(hidden)
    edges = hidden.T @ (graph.laplacian() @ hidden) / graph.degree.sum()
    ridge = np.full(len(edges), 1e-5)  # keeps weights of no use small
    ridge[-1] = 1e-9
    smoothness, modes = scipy.linalg.eigh(second, (edges + edges.T) / 2.0 + np.diag(ridge))
    kept = smoothness > 1e-6
    roughness = 1.0 / smoothness[kept][::-1]
    modes = modes[:, kept][:, ::-1] * np.sqrt(roughness)
    roughness[0] = 0.0
    return modes, roughness


def span(sample: Array, standardize: bool) -> tuple[Array, Array]:
    """Center (n_features,) and basis (n_features, rank) of the span of the rows, with a mean square radius of 1."""
    n, d = sample.shape
    center = sample.mean(axis=0)
    centered = sample - center
    # Dividing all columns by the same number keeps the geometry and prevents overflow of squares.
    scale = centered.std(axis=0) if standardize else np.full(d, np.abs(centered).max())
    scale[scale == 0.0] = 1.0
    centered /= scale
    subspace, flat = _low_rank_span(centered)
    if flat.shape[1] <= n:
        values, vectors = np.linalg.eigh(flat.T @ flat / n)
    else:
        values, left = np.linalg.eigh(flat @ flat.T / n)
        vectors = flat.T @ left / np.sqrt(n * values.clip(np.finfo(float).tiny))
    vectors = vectors if subspace is None else subspace @ vectors
    if values[-1] <= 0.0:  # a single distinct row
        return center, np.zeros((d, 1))
    kept = values > 1e-12 * values[-1]  # a millionth in length, more than the rounding of float32
    radius = np.sqrt(values[kept].sum())
    return center, vectors[:, kept][:, ::-1] / radius / scale[:, None]


def _low_rank_span(rows: Array, rank: int = 32) -> tuple[Array | None, Array]:
    """A basis of at most `rank` orthonormal vectors that spans all rows, and the rows in it; else None and the rows."""
    n, d = rows.shape
    if d <= 2 * rank:
        return None, rows
    mixed = np.random.RandomState(0).standard_normal((rank, n)) @ rows
    basis, _ = np.linalg.qr(mixed.T)
    flat = rows @ basis
    rest = flat @ basis.T - rows
    return (basis, flat) if np.abs(rest).max() <= 1e-9 * np.abs(rows).max() else (None, rows)
