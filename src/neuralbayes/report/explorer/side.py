"""One side of the page: a run or a model, applied to some samples."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from neuralbayes.plot.states import DEAD
from neuralbayes.report.explorer.figures import Picture
from neuralbayes.report.explorer.places import Places
from neuralbayes.report.explorer.samples import Samples

if TYPE_CHECKING:
    from neuralbayes.report.explorer.described import Described
    from neuralbayes.report.explorer.gallery import Gallery

Watch = Callable[[str], None]
"""Called with a description of each step while a side is built."""


@dataclass(frozen=True, eq=False)
class Layer:
    """A discrete variable z: one layer of an encoder, or the clusters of a clusterer.

    Attributes
    ----------
    name : str
    p_zx : ndarray of float32 and shape (n_samples, n_states)
        p(z|x) of the samples on the page.
    places : Places
        Positions of the samples on the map.
    information : float, or None
        I(x; z) in nats.
    n_informed : int
        Number of samples that `information` was measured on.
    separation : ndarray of shape (n_states,), or None
        Separation of each state, in nats.
    stability : ndarray of shape (n_states,), or None
        How far two halves of the training data agree about each state.
    disjoint : ndarray of bool and shape (n_states,), or None
        Whether each state is certified.
    points : ndarray of shape (n_samples, n_dimensions), or None
        Coordinates of the samples. If given, typical members lie in the middle of a state; otherwise they have the
        largest p(x|z)/p(x).
    thing : {"state", "cluster"}
        Word for a value of z on the page.
    """

    name: str
    p_zx: NDArray[np.float32]
    places: Places
    information: float | None = None
    n_informed: int = 0
    separation: NDArray[np.float64] | None = None
    stability: NDArray[np.float64] | None = None
    disjoint: NDArray[np.bool_] | None = None
    points: NDArray[np.floating] | None = None
    thing: Literal["state", "cluster"] = "state"

    @property
    def n_states(self) -> int:
        return int(self.p_zx.shape[1])

    @property
    def bound(self) -> float:
        """log n_states."""
        return float(np.log(self.n_states))

    @cached_property
    def p_z(self) -> NDArray[np.float64]:
        """p(z) over the samples on the page."""
        return np.asarray(self.p_zx.mean(axis=0, dtype=np.float64))

    @cached_property
    def dead(self) -> NDArray[np.bool_]:
        """States whose p(z) is below a tenth of 1 / n_states."""
        return np.asarray(self.p_z < DEAD / self.n_states)

    @cached_property
    def claimed(self) -> NDArray[np.intp]:
        """The most probable state of each sample."""
        return np.asarray(self.p_zx.argmax(axis=1))


@dataclass(frozen=True)
class Grid:
    """A table of text; `best` lists the cells to highlight, by row and column."""

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""
    best: Collection[tuple[int, int]] = ()


@dataclass(frozen=True, eq=False)
class Side:
    """A run or a model as the page shows it.

    Attributes
    ----------
    title : str
    subtitle : str
    samples : Samples
    layers : list of Layer
        The page opens with the last one.
    facts : list of (str, str)
        Names and values that describe the run.
    settings : list of (str, str)
    command : str
        The command that repeats it; empty if unknown.
    command_note : str
    warnings, notes : list of str
        Warnings and remarks for the reader.
    training : list of Picture
    labels : list of Picture
    grids : dict of str to list of Grid
        Tables by section: "training", "labels", "certificate".
    filters : Picture, or None
    background : (str, extent), or None
        The regions of the states behind the map: the data URL of a picture, and left, right, bottom, top.
    described : Described, or None
        Explanation of the clusters of a table.
    gallery : Gallery, or None
        Clusters of pictures or texts, by their members.
    """

    title: str
    subtitle: str
    samples: Samples
    layers: list[Layer]
    facts: list[tuple[str, str]]
    settings: list[tuple[str, str]]
    command: str
    command_note: str
    warnings: list[str]
    notes: list[str]
    training: list[Picture] = field(default_factory=list)
    labels: list[Picture] = field(default_factory=list)
    grids: dict[str, list[Grid]] = field(default_factory=dict)
    filters: Picture | None = None
    background: tuple[str, tuple[float, float, float, float]] | None = None
    described: Described | None = None
    gallery: Gallery | None = None
