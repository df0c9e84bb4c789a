"""Dendrogram of the small states that were merged into clusters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from neuralbayes.clusters.hierarchy import check_linkage, cut, leaf_order, truncate
from neuralbayes.plot.display import Display
from neuralbayes.plot.style import current_theme, literal, quiet_frame, state_color

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_LEAVES = 40
"""Maximum number of leaves. Beyond it, the lowest merges are left out."""

LONGEST_NAME = 48
"""Maximum length of a name."""


class DendrogramDisplay(Display):
    """The hierarchy of states as a tree, coloured by cluster, with names or images at the leaves.

    Leaves with images are side by side, with the images below them. Leaves with names are one below the other, so that
    the names are easy to read.

    Parameters
    ----------
    linkage : array-like of shape (n_states - 1, 4)
        Linkage matrix, as in SciPy.
    n_clusters : int, default=1
        Number of clusters at the cut. Branches below the cut have the colours of their clusters.
    sizes : array-like of shape (n_states,), optional
        p(z) or numbers of rows. If there are too many states to draw, the largest one represents a leaf.
    names : sequence of str, optional
        Names of the states; their numbers by default.
    images : array of shape (n_states, H, W) or (n_states, H, W, C), optional
        A typical image of each state, grey or RGB, in uint8.

    Attributes
    ----------
    linkage : ndarray of shape (n_leaves - 1, 4)
        The drawn part of the linkage.
    representatives : ndarray of shape (n_leaves,)
        The state that represents each leaf.
    clusters : ndarray of shape (n_leaves,)
        The cluster of each leaf.
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import neuralbayes as nb
    >>> linkage = [[0, 1, 0.5, 2], [2, 3, 1.0, 2], [4, 5, 3.0, 4]]
    >>> display = nb.plot.DendrogramDisplay(linkage, 2, names=["cat", "lion", "car", "bus"]).plot()
    >>> display.clusters, [text.get_text() for text in display.ax_.get_yticklabels()]
    (array([0, 0, 1, 1]), ['cat', 'lion', 'car', 'bus'])
    """

    def __init__(
        self,
        linkage: ArrayLike,
        n_clusters: int = 1,
        *,
        sizes: ArrayLike | None = None,
        names: Sequence[str] | None = None,
        images: NDArray[Any] | None = None,
    ) -> None:
        whole = np.asarray(linkage, dtype=np.float64)
        check_linkage(whole)
        n_states = len(whole) + 1
        for parameter, given in (("sizes", sizes), ("names", names), ("images", images)):
            if given is not None and len(np.asarray(given)) != n_states:
                raise ValueError(f"`{parameter}` must have a value for each of {n_states} states")
        if images is not None and np.ndim(images) not in (3, 4):
            raise ValueError(f"`images` must have shape (n_states, H, W) or (n_states, H, W, C), got {images.shape}")
        of_states = cut(whole, n_clusters)
        self.linkage, leaf = truncate(whole, min(n_states, max(MAX_LEAVES, n_clusters)))
        mass = np.ones(n_states) if sizes is None else np.asarray(sizes, dtype=np.float64)
        largest = np.lexsort((-mass, leaf))  # by leaf, the largest state first
        self.representatives = largest[np.unique(leaf[largest], return_index=True)[1]]
        self.clusters = of_states[self.representatives]
        self.n_states, self.n_clusters = n_states, n_clusters
        self.names = [str(k) if names is None else str(names[k]) for k in self.representatives]
        self.images = None if images is None else np.asarray(images)[self.representatives]

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        sizes: ArrayLike | None = None,
        names: Sequence[str] | None = None,
        images: NDArray[Any] | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Draw the `hierarchy_` of an estimator, cut into its `n_clusters_`; parameters as in the class."""
        display = cls(estimator.hierarchy_, int(estimator.n_clusters_), sizes=sizes, names=names, images=images)
        return display.plot(ax=ax)

    def plot(self, *, ax: Axes | None = None) -> Self:
        """Draw into `ax`, by default into a new figure. Returns self."""
        n_leaves = len(self.clusters)
        upright = self.images is not None  # leaves are side by side
        ax = self._begin(ax, None if upright else (7.2, 1.0 + 0.22 * max(n_leaves, 4)))
        order = leaf_order(self.linkage)
        self._draw_tree(ax, order, upright)
        top = 1.05 * (float(self.linkage[-1, 2]) or 1.0) if n_leaves > 1 else 1.0
        quiet_frame(ax)
        ax.grid(visible=False)
        if self.images is not None:
            ax.set(xlim=(-0.6, n_leaves - 0.4), ylim=(0.0, top), xticks=[])
            ax.set_ylabel("height", fontsize=8)
            ax.spines["bottom"].set_visible(False)
            self._draw_images(ax, self.images[order])
        else:
            shown = [literal(_shortened(self.names[k])) for k in order]
            ax.set(ylim=(n_leaves - 0.4, -0.6), xlim=(top, 0.0))
            ax.yaxis.tick_right()
            ax.set_yticks(range(n_leaves), shown)
            ax.tick_params(axis="y", length=0)
            ax.spines["left"].set_visible(False)
            ax.set_xlabel("height", fontsize=8)
        states = f"{self.n_states} states" if self.n_states > 1 else "1 state"
        clusters = f", {self.n_clusters} clusters" if self.n_clusters > 1 else ""
        drawn = f", merged into {n_leaves} leaves" if n_leaves < self.n_states else ""
        ax.set_title(states + clusters + drawn, loc="left", fontsize=10)
        return self

    def _draw_tree(self, ax: Axes, order: NDArray[np.int64], upright: bool) -> None:
        from matplotlib.collections import LineCollection

        colors = current_theme()
        n_leaves = len(order)
        place, height = np.empty(2 * n_leaves - 1), np.zeros(2 * n_leaves - 1)
        place[order] = np.arange(n_leaves)
        cluster = np.r_[self.clusters, np.full(n_leaves - 1, -1)]  # -1: several clusters
        segments, shades = [], []
        for i, row in enumerate(self.linkage):
            node, pair = n_leaves + i, row[:2].astype(np.int64)
            place[node], height[node] = place[pair].mean(), row[2]
            within = i < n_leaves - self.n_clusters
            cluster[node] = cluster[pair[0]] if within else -1
            (a, b), (low, high) = place[pair], height[pair]
            across = np.array([[a, low], [a, row[2]], [b, row[2]], [b, high]])
            legs = (across[:2], across[2:], across[1:3])
            for leg, owner in zip(legs, (*cluster[pair], cluster[node]), strict=True):
                segments.append(leg if upright else leg[:, ::-1])
                shades.append(colors.line if owner < 0 else state_color(int(owner)))
        ax.add_collection(LineCollection(segments, colors=shades, linewidths=1.4, capstyle="round", zorder=2))
        if 1 < self.n_clusters < n_leaves:
            level = self.linkage[n_leaves - self.n_clusters - 1 : n_leaves - self.n_clusters + 1, 2].mean()
            draw = ax.axhline if upright else ax.axvline
            draw(float(level), color=colors.muted, linewidth=0.8, linestyle=(0, (4, 4)), zorder=1)

    def _draw_images(self, ax: Axes, images: NDArray[Any]) -> None:
        """Draw an image below each leaf, as wide as fits; `images` are in the order of the leaves."""
        width = 1.0 / (len(images) + 0.2)  # width of a leaf, in units of the axes
        for i, image in enumerate(images):
            small = ax.inset_axes((width * (i + 0.14), -0.27, width * 0.92, 0.25))
            small.imshow(image.squeeze(), cmap="gray", vmin=0, vmax=255, interpolation="nearest")
            small.set_anchor("N")
            small.set_axis_off()


def _shortened(name: str) -> str:
    line = " ".join(name.split())
    return line if len(line) <= LONGEST_NAME else line[: LONGEST_NAME - 1].rstrip() + "…"
