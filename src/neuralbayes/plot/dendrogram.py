"""Dendrogram of the small states that were merged into clusters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.cluster.hierarchy import dendrogram

from neuralbayes.clusters.merging import check_linkage, cut
from neuralbayes.plot.style import Display, current_theme, literal, quiet_frame, state_color

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_LEAVES = 40  # beyond it, the lowest merges are left out
LONGEST_NAME = 48


class DendrogramDisplay(Display):
    """The hierarchy of states as a tree with names at its leaves, coloured by cluster; drawn by SciPy.

    Parameters
    ----------
    linkage : array-like of shape (n_states - 1, 4)
        Linkage matrix, as in SciPy.
    n_clusters : int, default=1
        Number of clusters at the cut. Branches below the cut have the colours of their clusters.
    names : sequence of str, optional
        Names of the states; their numbers by default. A leaf of several states has the name of the first.

    Attributes
    ----------
    leaves : list of int
        In the order of the drawing, in the numbers of the linkage matrix: a state, or a merge of several.
    clusters : ndarray of shape (n_leaves,)
        The cluster of each leaf.

    Examples
    --------
    >>> import neuralbayes as nb
    >>> linkage = [[0, 1, 0.5, 2], [2, 3, 1.0, 2], [4, 5, 3.0, 4]]
    >>> display = nb.plot.DendrogramDisplay(linkage, 2, names=["cat", "lion", "car", "bus"]).plot()
    >>> display.clusters, [text.get_text() for text in display.ax_.get_yticklabels()]
    (array([0, 0, 1, 1]), ['cat', 'lion', 'car', 'bus'])
    """

    def __init__(self, linkage: ArrayLike, n_clusters: int = 1, *, names: Sequence[str] | None = None) -> None:
        self.linkage, self.n_clusters = np.asarray(linkage, dtype=np.float64), n_clusters
        check_linkage(self.linkage)
        self.n_states = len(self.linkage) + 1
        if names is not None and len(names) != self.n_states:
            raise ValueError(f"`names` must be {self.n_states} names, one for each state, got {len(names)}")
        self.names = list(map(str, range(self.n_states) if names is None else names))
        self._cluster_of_state = cut(self.linkage, n_clusters)
        self.leaves: list[int] = self._tree(no_plot=True)["leaves"] if self.n_states > 1 else [0]
        self.clusters = self._cluster_of_state[[self._first_state(leaf) for leaf in self.leaves]]

    @classmethod
    def from_estimator(cls, estimator: Any, *, names: Sequence[str] | None = None, ax: Axes | None = None) -> Self:
        """Draw the `hierarchy_` of an estimator, cut into its `n_clusters_`."""
        return cls(estimator.hierarchy_, int(estimator.n_clusters_), names=names).plot(ax=ax)

    def plot(self, *, ax: Axes | None = None) -> Self:
        """Draw into `ax`, by default into a new figure. Returns self."""
        n_leaves = len(self.leaves)
        ax = self._begin(ax, height=1.0 + 0.22 * max(n_leaves, 4))
        quiet_frame(ax)
        ax.grid(visible=False)
        if n_leaves > 1:
            self._tree(ax=ax, orientation="left", link_color_func=self._link_color)
        last = self.n_states - self.n_clusters  # the first merge above the cut
        if 1 < self.n_clusters < self.n_states:
            level = float(self.linkage[last - 1 : last + 1, 2].mean())
            ax.axvline(level, color=current_theme().muted, linewidth=0.8, linestyle=(0, (4, 4)), zorder=1)
        top = 1.05 * (float(self.linkage[-1, 2]) or 1.0) if n_leaves > 1 else 1.0
        ax.set(ylim=(10 * n_leaves, 0), xlim=(top, 0.0), xlabel="height")
        ax.yaxis.tick_right()
        ax.set_yticks(10 * np.arange(n_leaves) + 5, list(map(self._leaf_name, self.leaves)))  # as SciPy places them
        ax.tick_params(axis="y", length=0, labelsize=8)
        ax.spines["left"].set_visible(False)
        for label, k in zip(ax.get_yticklabels(), self.clusters, strict=True):
            label.set_color(state_color(int(k)))
        drawn = f", merged into {n_leaves} leaves" if n_leaves < self.n_states else ""
        ax.set_title(f"{self.n_states} states, {self.n_clusters} clusters{drawn}", loc="left", fontsize=10)
        return self

    def _tree(self, **options: Any) -> dict[str, Any]:
        return dict(dendrogram(self.linkage, max(MAX_LEAVES, self.n_clusters), "lastp", **options))

    def _first_state(self, node: int) -> int:
        while node >= self.n_states:
            node = int(self.linkage[node - self.n_states, 0])
        return node

    def _link_color(self, node: int) -> str:
        """The colour of the cluster that the merge `node` is in, or of the lines above all clusters."""
        above = node >= 2 * self.n_states - self.n_clusters
        return current_theme().line if above else state_color(int(self._cluster_of_state[self._first_state(node)]))

    def _leaf_name(self, leaf: int) -> str:
        name = " ".join(self.names[self._first_state(leaf)].split())
        name = name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1].rstrip() + "…"
        more = int(self.linkage[leaf - self.n_states, 3]) - 1 if leaf >= self.n_states else 0
        return literal(f"{name} and {more} more" if more else name)
