"""The states of a layer or a clusterer: how much of the data each holds, and of which classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from neuralbayes.plot.style import Display, current_theme, literal, quiet_frame, state_color

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DEAD = 0.1  # fraction of 1 / n_states below which a state is called dead
MAX_NUMBERS = 20  # maximum number of states in a table with numbers


class StatesDisplay(Display):
    """Bars of p(z) in units of 1 / n_states, sorted by size. Dead states are marked.

    Parameters
    ----------
    p_z : array-like of shape (n_states,)
        Non-negative; normalised to sum to 1.
    name : str, default=""
        Name of the layer or model, for the title.

    Attributes
    ----------
    p_z : ndarray of shape (n_states,)
    dead : ndarray of shape (n_states,), bool
        States with p(z) below a tenth of 1 / n_states.

    Examples
    --------
    >>> import neuralbayes as nb
    >>> display = nb.plot.StatesDisplay([0.62, 0.37, 0.01], name="relu4").plot()
    >>> display.ax_.get_title(loc="left")
    'relu4: 1 of 3 states dead'
    """

    def __init__(self, p_z: ArrayLike, *, name: str = "") -> None:
        mass = np.asarray(p_z, dtype=np.float64)
        if mass.ndim != 1 or not mass.size or not np.isfinite(mass).all() or mass.min() < 0 or not mass.sum() > 0:
            raise ValueError(f"`p_z` must be probabilities of shape (n_states,), got shape {mass.shape}")
        self.p_z = mass / mass.sum()
        self.dead = self.p_z < DEAD / len(self.p_z)
        self.name = name

    @classmethod
    def from_posterior(cls, p_zx: ArrayLike, *, name: str = "", ax: Axes | None = None) -> Self:
        """Draw p(z), the mean of posteriors of shape (n_samples, n_states)."""
        return cls(np.asarray(p_zx, dtype=np.float64).mean(axis=0), name=name).plot(ax=ax)

    def plot(self, *, ax: Axes | None = None) -> Self:
        """Draw into `ax`, by default into a new figure; returns self."""
        ax = self._begin(ax)
        colors, n = current_theme(), len(self.p_z)
        shares = np.sort(self.p_z)[::-1] * n
        dead = np.flatnonzero(shares < DEAD)
        ax.bar(range(n - len(dead)), shares[: n - len(dead)], width=1.0, color=state_color(0), zorder=2)
        # Too low to see: a marker at the bottom.
        ax.plot(dead, np.full(len(dead), 0.02), "|", color=colors.dead, transform=ax.get_xaxis_transform(), zorder=3)
        ax.axhline(1.0, color=colors.line, linewidth=0.8, linestyle=(0, (4, 4)), zorder=3)
        ax.set(xlim=(-0.5, n - 0.5), ylim=(0.0, 1.08 * max(1.0, float(shares[0]))))
        ax.locator_params(axis="x", integer=True)
        found = f"{len(dead)} of {n} states dead" if len(dead) else f"{n} states, none dead"
        ax.set_title(literal(f"{self.name}: {found}" if self.name else found), loc="left", fontsize=10)
        ax.set_ylabel("p(z) times number of states", fontsize=9, color=colors.muted)
        quiet_frame(ax)
        return self


class CrosstabDisplay(Display):
    """A coloured table of the classes in each state, in percent of the state; `counts` is a data frame of the samples.

    States are sorted by their most common class.

    Parameters
    ----------
    states, classes : array-like of shape (n_samples,)
    class_names : sequence of str, optional
        Names of the distinct `classes`, in sorted order; by default their values.

    Examples
    --------
    >>> import neuralbayes as nb
    >>> nb.plot.CrosstabDisplay([1, 1, 0, 2, 2], ["cat", "cat", "dog", "dog", "cat"]).counts.to_dict("list")
    {1: [2, 0], 2: [1, 1], 0: [0, 1]}
    """

    def __init__(self, states: ArrayLike, classes: ArrayLike, *, class_names: Sequence[str] | None = None) -> None:
        import pandas as pd

        z, y = np.asarray(states), np.asarray(classes)
        if z.shape != y.shape or z.ndim != 1 or not z.size:
            raise ValueError(f"`states` and `classes` must be of one length, got shapes {z.shape} and {y.shape}")
        counts = pd.crosstab(y, z, rownames=["class"], colnames=["state"])
        if class_names is not None and len(class_names) != len(counts):
            raise ValueError(f"`class_names` must be {len(counts)} names, got {len(class_names)}")
        counts.index = counts.index if class_names is None else pd.Index(class_names, name="class")
        found = counts.to_numpy()
        self.counts = counts.iloc[:, np.lexsort((-found.max(axis=0), found.argmax(axis=0)))]

    @classmethod
    def from_labels(
        cls, states: ArrayLike, classes: ArrayLike, *, class_names: Sequence[str] | None = None, ax: Axes | None = None
    ) -> Self:
        """Draw the table; parameters as in the class."""
        return cls(states, classes, class_names=class_names).plot(ax=ax)

    def plot(self, *, ax: Axes | None = None) -> Self:
        """Draw into `ax`, by default into a new figure; returns self."""
        ax = self._begin(ax)
        from matplotlib.colors import LinearSegmentedColormap

        percent = (100.0 * self.counts / self.counts.sum()).to_numpy()
        theme, (n_classes, n_states) = current_theme(), percent.shape
        shades = LinearSegmentedColormap.from_list("shades", theme.shades)
        aspect: Literal["equal", "auto"] = "equal" if n_states <= 3 * n_classes else "auto"
        image = ax.imshow(percent, cmap=shades, vmin=0.0, vmax=100.0, aspect=aspect)
        ax.figure.colorbar(image, ax=ax, label="% of the samples of a state", shrink=0.8).outline.set_visible(False)
        ax.spines[:].set_visible(False)
        ax.tick_params(length=0)
        ax.set_ylabel("class")
        ax.set_yticks(range(n_classes), [literal(str(name)) for name in self.counts.index])
        if n_states > MAX_NUMBERS:
            ax.set(xticks=[], xlabel=f"{n_states} states, ordered by their most common class")
            return self
        ax.set_xlabel("state")
        ax.set_xticks(range(n_states), [literal(str(name)) for name in self.counts.columns])
        for i, j in np.argwhere(percent >= 0.5):
            color = theme.ground if percent[i, j] > 55 else theme.ink
            ax.text(j, i, f"{percent[i, j]:.0f}", ha="center", va="center", fontsize=8, color=color)
        return self
