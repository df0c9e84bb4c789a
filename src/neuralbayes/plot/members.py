"""The most typical samples of each state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from neuralbayes.explain.prototypes import rank_members
from neuralbayes.plot.display import Display
from neuralbayes.plot.style import current_theme, literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def typical(p_zx: NDArray[Any], n: int) -> NDArray[np.intp]:
    """Return the samples with the largest p(x|z) / p(x) of each state, most typical first: (n_samples, K) -> (K, n).

    Since p(x|z) / p(x) = p(z|x) / p(z), the order within a state is that of p(z|x).

    Examples
    --------
    >>> typical(np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]]), 2)
    array([[0, 2],
           [1, 2]])
    """
    n = min(n, len(p_zx))
    best = np.argpartition(-p_zx, n - 1, axis=0)[:n]
    order = np.argsort(-np.take_along_axis(p_zx, best, axis=0), axis=0, kind="stable")
    found: NDArray[np.intp] = np.take_along_axis(best, order, axis=0).T
    return found


def from_typical_to_odd(points: NDArray[Any], labels: NDArray[np.integer], n: int) -> list[NDArray[np.intp]]:
    """Members of each cluster, evenly spaced from the most to the least typical.

    Typical members lie in the middle of their cluster. The largest probabilities often belong to outliers.

    Parameters
    ----------
    points : ndarray of shape (n_samples, n_dimensions)
        Coordinates of the samples.
    labels : ndarray of shape (n_samples,)
    n : int
        Maximum number of members per cluster.

    Returns
    -------
    list of ndarray
        Indices of the members of each cluster; empty for an empty cluster.

    Examples
    --------
    >>> from_typical_to_odd(np.array([[0.0], [1.0], [2.0], [9.0], [50.0]]), np.array([0, 0, 0, 0, 1]), 2)
    [array([1, 3]), array([4])]
    """
    ranked = rank_members(points, labels, int(labels.max(initial=-1)) + 1)
    return [members[evenly(len(members), n)] for members in ranked]


def evenly(length: int, n: int) -> NDArray[np.intp]:
    """Return at most `n` indices, evenly spaced from 0 to length - 1.

    Examples
    --------
    >>> evenly(10, 4), evenly(2, 4), evenly(0, 4)
    (array([0, 3, 6, 9]), array([0, 1]), array([], dtype=int64))
    """
    return np.linspace(0, max(0, length - 1), min(n, length)).astype(np.intp)


def borderline(p_zx: NDArray[Any], n: int) -> list[NDArray[np.intp]]:
    """Return the samples of each state with the largest posterior entropy, at most `n` per state.

    Examples
    --------
    >>> [samples.tolist() for samples in borderline(np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]]), 1)]
    [[2], [1]]
    """
    claimed = p_zx.argmax(axis=1)
    order = np.argsort(-posterior_entropy(p_zx), kind="stable")
    by_state = order[np.argsort(claimed[order], kind="stable")]  # by state, the most uncertain first
    ends = np.cumsum(np.bincount(claimed, minlength=p_zx.shape[1]))
    return [part[:n] for part in np.split(by_state, ends[:-1])]


def posterior_entropy(p_zx: NDArray[Any]) -> NDArray[np.float64]:
    """H(z|x) of each sample in nats: (n, K) -> (n,)."""
    from scipy.special import entr

    return np.asarray(entr(p_zx).sum(axis=1), dtype=np.float64)


def telling_states(p_zx: NDArray[Any]) -> NDArray[np.intp]:
    """Return all states, sorted by their contributions to I(x; z).

    Examples
    --------
    >>> telling_states(np.array([[0.5, 0.5, 0.0], [0.5, 0.1, 0.4]]))
    array([2, 1, 0])
    """
    p_z = p_zx.mean(axis=0)
    ratio = p_zx / np.maximum(p_z, 1e-12)
    parts = (p_zx * np.log(np.maximum(ratio, 1e-12))).mean(axis=0)
    return np.argsort(-parts, kind="stable")


class MembersDisplay(Display):
    """One row of typical images per state, with the range of p(x|z) / p(x).

    Parameters
    ----------
    images : sequence of arrays of shape (n, H, W) or (n, H, W, C)
        The images of each state; grey, or RGB in uint8.
    names : sequence of str
        Names of the states.
    ratios : sequence of sequences of float
        p(x|z) / p(x) of the images of each state.

    Attributes
    ----------
    images, names, ratios : as given
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import numpy as np
    >>> import neuralbayes as nb
    >>> images = np.zeros((2, 3, 8, 8), np.uint8)  # two states, three images of each
    >>> display = nb.plot.MembersDisplay(images, ["state 4", "state 9"], [[8.0, 6.0, 5.0], [3.0, 2.0, 2.0]]).plot()
    >>> [text.get_text() for text in display.ax_.texts]
    ['state 4', '8 to 5', 'state 9', '3 to 2']
    """

    def __init__(self, images: Sequence[NDArray[Any]], names: Sequence[str], ratios: Sequence[Sequence[float]]) -> None:
        if not len(images) == len(names) == len(ratios):
            raise ValueError(
                "`images`, `names` and `ratios` must be of one length, "
                f"got {len(images)}, {len(names)} and {len(ratios)}"
            )
        self.images = [np.asarray(row) for row in images]
        if any(row.ndim not in (3, 4) or 0 in row.shape for row in self.images):
            raise ValueError(f"`images` must be arrays (n, H, W) or (n, H, W, C), got {[r.shape for r in self.images]}")
        self.names, self.ratios = list(names), [list(row) for row in ratios]

    @classmethod
    def from_posterior(
        cls,
        p_zx: ArrayLike,
        images: NDArray[Any],
        *,
        states: Sequence[int] | None = None,
        n_members: int = 10,
        ax: Axes | None = None,
    ) -> Self:
        """Draw the most typical images of states.

        Parameters
        ----------
        p_zx : array-like of shape (n_samples, n_states)
        images : array of shape (n_samples, H, W) or (n_samples, H, W, C)
        states : sequence of int, optional
            By default the eight most informative states.
        n_members : int, default=10
            Images per state.
        ax : matplotlib Axes, optional

        Examples
        --------
        >>> import numpy as np
        >>> import neuralbayes as nb
        >>> images = np.arange(3, dtype=np.uint8).reshape(3, 1, 1) * np.ones((1, 4, 4), np.uint8)
        >>> p_zx = [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]]
        >>> display = nb.plot.MembersDisplay.from_posterior(p_zx, images, states=[1], n_members=2)
        >>> display.images[0][:, 0, 0].tolist(), [round(ratio, 2) for ratio in display.ratios[0]]
        ([1, 2], [1.85, 0.92])
        """
        posteriors = np.asarray(p_zx, dtype=np.float64)
        if posteriors.ndim != 2 or len(posteriors) != len(images) or 0 in posteriors.shape:
            raise ValueError(f"`p_zx` must have shape ({len(images)}, n_states), got {posteriors.shape}")
        chosen = telling_states(posteriors)[:8].tolist() if states is None else list(states)
        if not all(0 <= k < posteriors.shape[1] for k in chosen):
            raise ValueError(f"`states` must be from 0 to {posteriors.shape[1] - 1}, got {chosen}")
        best = typical(posteriors, n_members)
        ratio = posteriors / np.maximum(posteriors.mean(axis=0), np.finfo(float).tiny)
        return cls(
            [images[best[k]] for k in chosen],
            [f"state {k}" for k in chosen],
            [ratio[best[k], k].tolist() for k in chosen],
        ).plot(ax=ax)

    @classmethod
    def from_estimator(cls, estimator: Any, images: NDArray[Any], **options: Any) -> Self:
        """Draw for an estimator with `predict_proba`, such as :class:`neuralbayes.MIMEncoder`; see `from_posterior`."""
        return cls.from_posterior(estimator.predict_proba(images), images, **options)

    def plot(self, *, ax: Axes | None = None, cmap: str = "gray") -> Self:
        """Draw into `ax`, by default into a new figure; `cmap` is for grey images. Returns self."""
        wall = self._wall()
        ax = self._begin(ax, (7.2, 0.6 + 5.8 * wall.shape[0] / wall.shape[1]))
        ax.set_axis_off()
        if not self.images:
            return self
        ax.imshow(wall, cmap=cmap, vmin=0, vmax=255, interpolation="nearest")
        height, _, gap = self._tile()
        style: dict[str, Any] = {"fontsize": 8, "color": current_theme().muted, "va": "center"}
        for i, (name, ratio) in enumerate(zip(self.names, self.ratios, strict=True)):
            middle = i * (height + gap) + (height - 1) / 2
            ax.text(-2 * gap, middle, literal(name), ha="right", **style)
            ax.text(wall.shape[1] + gap, middle, f"{ratio[0]:.0f} to {ratio[-1]:.0f}", ha="left", **style)
        return self

    def _tile(self) -> tuple[int, int, int]:
        """Height and width of an image, and the gap between two."""
        height, width = self.images[0].shape[1:3]
        return height, width, max(1, width // 8)

    def _wall(self) -> NDArray[np.float64]:
        """All images in one picture: (H, W) if they are grey, otherwise (H, W, 4) with transparent gaps."""
        if not self.images:
            return np.zeros((1, 1))
        height, width, gap = self._tile()
        most = max(map(len, self.images))
        grey = all(row.ndim == 3 or row.shape[3] == 1 for row in self.images)
        size = (len(self.images) * (height + gap) - gap, most * (width + gap) - gap)
        wall = np.full(size if grey else (*size, 4), np.nan if grey else 0.0)
        for i, row in enumerate(self.images):
            for j, image in enumerate(row):
                top, left = i * (height + gap), j * (width + gap)
                picture = image.reshape(height, width) if grey else _opaque(image)
                wall[top : top + height, left : left + width] = picture
        return wall


def _opaque(image: NDArray[Any]) -> NDArray[np.float64]:
    """An RGB or grey image with full opacity, in [0, 1]: (H, W, C) -> (H, W, 4)."""
    colors = np.broadcast_to(image / 255.0, (*image.shape[:2], 3))
    return np.dstack([colors, np.ones(image.shape[:2])])
