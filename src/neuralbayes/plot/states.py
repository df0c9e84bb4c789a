"""p(z): the share of the data in each state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from neuralbayes.plot.display import Display
from neuralbayes.plot.style import current_theme, literal, quiet_frame, state_color

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DEAD = 0.1
"""Fraction of 1 / n_states below which a state is called dead."""


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
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import neuralbayes as nb
    >>> display = nb.plot.StatesDisplay([0.62, 0.37, 0.01], name="relu4").plot()
    >>> display.ax_.get_title(loc="left")
    'relu4: 1 of 3 states dead'
    """

    def __init__(self, p_z: ArrayLike, *, name: str = "") -> None:
        mass = np.asarray(p_z, dtype=np.float64)
        if mass.ndim != 1 or len(mass) < 1 or not np.isfinite(mass).all() or mass.min() < 0 or not mass.sum() > 0:
            raise ValueError(f"`p_z` must be probabilities of shape (n_states,), got shape {mass.shape}")
        self.p_z = mass / mass.sum()
        self.dead = self.p_z < DEAD / len(self.p_z)
        self.name = name

    @classmethod
    def from_posterior(cls, p_zx: ArrayLike, *, name: str = "", ax: Axes | None = None) -> Self:
        """Draw p(z), the mean of posteriors.

        Parameters
        ----------
        p_zx : array-like of shape (n_samples, n_states)
        name : str, default=""
        ax : matplotlib Axes, optional

        Examples
        --------
        >>> import neuralbayes as nb
        >>> nb.plot.StatesDisplay.from_posterior([[0.9, 0.1], [0.7, 0.3]]).p_z
        array([0.8, 0.2])
        """
        posteriors = np.asarray(p_zx, dtype=np.float64)
        if posteriors.ndim != 2 or 0 in posteriors.shape:
            raise ValueError(f"`p_zx` must have shape (n_samples, n_states), got {posteriors.shape}")
        return cls(posteriors.mean(axis=0), name=name).plot(ax=ax)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, *, name: str | None = None, ax: Axes | None = None) -> Self:
        """Draw p(z) of an estimator with `predict_proba` on `X`; parameters otherwise as in :meth:`from_posterior`."""
        return cls.from_posterior(
            estimator.predict_proba(X), name=type(estimator).__name__ if name is None else name, ax=ax
        )

    def plot(self, *, ax: Axes | None = None, color: str | None = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            By default the axes of a new figure.
        color : str, optional
            Colour of the bars.

        Returns
        -------
        self
        """
        ax = self._begin(ax)
        colors = current_theme()
        n = len(self.p_z)
        shares = np.sort(self.p_z)[::-1] * n
        dead = shares < DEAD
        ax.bar(np.flatnonzero(~dead), shares[~dead], width=1.0, color=color or state_color(0), zorder=2)
        if dead.any():  # too low to see: a marker at the bottom
            foot = np.full(int(dead.sum()), 0.02)
            ax.plot(np.flatnonzero(dead), foot, "|", color=colors.dead, transform=ax.get_xaxis_transform(), zorder=3)
        ax.axhline(1.0, color=colors.line, linewidth=0.8, linestyle=(0, (4, 4)), zorder=3)
        ax.set_xlim(-0.5, n - 0.5)
        ax.set_ylim(0.0, 1.08 * max(1.0, float(shares[0])))
        found = f"{dead.sum()} of {n} states dead" if dead.any() else f"{n} states, none dead"
        ax.set_title(literal(f"{self.name}: {found}" if self.name else found), loc="left", fontsize=10)
        quiet_frame(ax)
        return self
