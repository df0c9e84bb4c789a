"""Pictures of a pretraining: filters, information and use of states."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from neuralbayes.features.encoder import STATES, ImageEncoder
from neuralbayes.features.pretraining import WATCHED
from neuralbayes.plot.curves import CurvesDisplay
from neuralbayes.plot.filters import FiltersDisplay
from neuralbayes.plot.states import DEAD, StatesDisplay
from neuralbayes.plot.style import new_picture, save_picture, state_color
from neuralbayes.system.files import read_tensors
from neuralbayes.training.run_folder import read_metrics

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_run(folder: str | Path) -> list[Path]:
    """Draw filters.png, information.png and states.png into the folder of a finished pretraining.

    Parameters
    ----------
    folder : path
        Output folder of `neuralbayes.pretrain`.

    Returns
    -------
    list of Path
        The pictures.
    """
    folder = Path(folder)
    encoder = ImageEncoder.load(folder)
    priors, _ = read_tensors(folder / "states.safetensors")
    p_z = {name: priors[name].numpy() for name in STATES}
    pictures = {
        "filters.png": FiltersDisplay.from_encoder(encoder).figure_,
        "information.png": draw_information(
            read_metrics(folder / "metrics.jsonl"), {name: math.log(len(p)) for name, p in p_z.items()}
        ),
        "states.png": draw_states(p_z),
    }
    for name, figure in pictures.items():
        save_picture(figure, folder / name)
    return [folder / name for name in pictures]


def draw_information(metrics: Sequence[Mapping[str, float]], bounds: Mapping[str, float]) -> Figure:
    """Draw I(x; z) of each layer against epochs with its bound, and the loss below.

    Parameters
    ----------
    metrics : sequence of mapping
        Lines of metrics.jsonl with "step", "epoch", "loss" and "mi/NAME" for each layer.
    bounds : mapping of str to float
        log n_states of each layer.
    """
    figure, first = new_picture()
    first.remove()
    figure.set_size_inches(7.2, 6.4)
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(2.0, 1.0))
    title = f"I(x; z) on {WATCHED} training images; its bound log K: {{bounds}}"
    CurvesDisplay.from_metrics(metrics, "information", bounds=bounds, title=title, ax=upper)
    upper.set_xlabel("")
    CurvesDisplay.from_metrics(metrics, ax=lower)
    return figure


def draw_states(p_z: Mapping[str, ArrayLike]) -> Figure:
    """Draw p(z) of the states of each layer, the largest first, in units of 1 / n_states.

    Parameters
    ----------
    p_z : mapping of str to array of shape (n_states,)
    """
    figure, first = new_picture()
    first.remove()
    figure.set_size_inches(9.0, 5.6)
    grid = figure.subplots(math.ceil(len(p_z) / 2), 2, squeeze=False).ravel()
    for ax in grid[len(p_z) :]:
        ax.remove()
    for i, (ax, (name, prior)) in enumerate(zip(grid, p_z.items(), strict=False)):
        StatesDisplay(prior, name=name).plot(ax=ax, color=state_color(i))
    figure.supxlabel(f"states, most common first; red: dead, p(z) below {DEAD:g} / K", fontsize=9)
    figure.supylabel("p(z) in units of 1 / K", fontsize=9)
    return figure
