"""Dendrogram of the small states that were merged into clusters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from neuralbayes.clusters.merging import check_linkage, cut
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
    linkage : ndarray of shape (n_states - 1, 4)
    representatives : ndarray of shape (n_leaves,)
        The state that represents each leaf, in the order of the drawing.
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
        self.linkage, self.n_states, self.n_clusters = whole, n_states, n_clusters
        self._cluster_of_state = cut(whole, n_clusters)
        leaf = cut(whole, min(n_states, max(MAX_LEAVES, n_clusters)))
        mass = np.ones(n_states) if sizes is None else np.asarray(sizes, dtype=np.float64)
        largest = np.lexsort((-mass, leaf))  # by leaf, the largest state first
        of_leaf = largest[np.unique(leaf[largest], return_index=True)[1]]
        along = leaf[self._state_order()]
        self.representatives = of_leaf[along[np.sort(np.unique(along, return_index=True)[1])]]
        self.clusters = self._cluster_of_state[self.representatives]
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
        if n_leaves > 1:
            self._draw_tree(ax, upright)
        top = 1.05 * (float(self.linkage[-1, 2]) or 1.0) if n_leaves > 1 else 1.0
        quiet_frame(ax)
        ax.grid(visible=False)
        if self.images is not None:
            ax.set(xlim=(-0.6, n_leaves - 0.4), ylim=(0.0, top), xticks=[])
            ax.set_ylabel("height", fontsize=8)
            ax.spines["bottom"].set_visible(False)
            self._draw_images(ax, self.images)
        else:
            ax.set(ylim=(n_leaves - 0.4, -0.6), xlim=(top, 0.0))
            ax.yaxis.tick_right()
            ax.set_yticks(range(n_leaves), [literal(_shortened(name)) for name in self.names])
            ax.tick_params(axis="y", length=0)
            ax.spines["left"].set_visible(False)
            ax.set_xlabel("height", fontsize=8)
        states = f"{self.n_states} states" if self.n_states > 1 else "1 state"
        clusters = f", {self.n_clusters} clusters" if self.n_clusters > 1 else ""
        drawn = f", merged into {n_leaves} leaves" if n_leaves < self.n_states else ""
        ax.set_title(states + clusters + drawn, loc="left", fontsize=10)
        return self

    def _state_order(self) -> NDArray[np.intp]:
        """The states in an order in which no two branches cross."""
        from scipy.cluster.hierarchy import leaves_list

        return np.asarray(leaves_list(self.linkage) if self.n_states > 1 else [0], dtype=np.intp)

    def _draw_tree(self, ax: Axes, upright: bool) -> None:
        from matplotlib.collections import LineCollection
        from scipy.cluster.hierarchy import dendrogram

        n_leaves, above = len(self.clusters), current_theme().line
        shades = [state_color(int(k)) for k in self._cluster_of_state]  # of each cluster in the linkage
        for i, (child, *_) in enumerate(self.linkage):
            shades.append(shades[int(child)] if i < self.n_states - self.n_clusters else above)
        tree = dendrogram(self.linkage, n_leaves, "lastp", no_plot=True, link_color_func=lambda node: shades[node])
        shade_at = {(10.0 * i + 5.0, 0.0): state_color(int(k)) for i, k in enumerate(self.clusters)}
        segments, drawn = [], []
        for x, height, shade in zip(tree["icoord"], tree["dcoord"], tree["color_list"], strict=True):
            branch = np.column_stack([(np.array(x) - 5.0) / 10.0, height])
            own = (
                shade_at[x[0], height[0]],
                shade_at[x[3], height[3]],
                shade,
            )  # a leg has the colour of what it leads to
            for leg, of_leg in zip((branch[:2], branch[2:], branch[1:3]), own, strict=True):
                segments.append(leg if upright else leg[:, ::-1])
                drawn.append(of_leg)
            shade_at[(x[0] + x[3]) / 2.0, height[1]] = shade
        ax.add_collection(LineCollection(segments, colors=drawn, linewidths=1.4, capstyle="round", zorder=2))
        if 1 < self.n_clusters < self.n_states:
            last = self.n_states - self.n_clusters
            level = self.linkage[last - 1 : last + 1, 2].mean()
            draw = ax.axhline if upright else ax.axvline
            draw(float(level), color=current_theme().muted, linewidth=0.8, linestyle=(0, (4, 4)), zorder=1)

    def _draw_images(self, ax: Axes, images: NDArray[Any]) -> None:
        """Draw an image below each leaf, as wide as fits."""
        width = 1.0 / (len(images) + 0.2)  # width of a leaf, in units of the axes
        for i, image in enumerate(images):
            small = ax.inset_axes((width * (i + 0.14), -0.27, width * 0.92, 0.25))
            small.imshow(image.squeeze(), cmap="gray", vmin=0, vmax=255, interpolation="nearest")
            small.set_anchor("N")
            small.set_axis_off()


def _shortened(name: str) -> str:
    line = " ".join(name.split())
    return line if len(line) <= LONGEST_NAME else line[: LONGEST_NAME - 1].rstrip() + "…"
