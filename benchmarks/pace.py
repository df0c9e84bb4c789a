"""How soon features get good on CIFAR-10: a probe against images processed, by the paper's recipe and by ours.

    python benchmarks/pace.py               both recipes, into results/pace/pace.json; goes on where it was interrupted
    python benchmarks/pace.py --picture     docs/pictures/pace.png from it

Both train the same narrow encoder on all 50,000 images. The paper's recipe is 100 epochs of batches of 4,000; the probe
is its classifier, the epoch of which a tenth of the training images chooses, on all test images.
"""

from __future__ import annotations

import argparse
import platform
import time
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from records import Results

import neuralbayes as nb
from neuralbayes.data.normalize import Normalization
from neuralbayes.data.sources import as_source
from neuralbayes.encoder import ImageEncoder
from neuralbayes.plot.style import save_picture
from neuralbayes.pretraining import PRESETS, PretrainConfig
from neuralbayes.training import Callback

ROOT = Path(__file__).parents[1]
FILE, COMMAND = "pace", "python benchmarks/pace.py"
ENCODER = "tiny"
EPOCHS = (1, 2, 3, 4, 6, 8, 10, 15, 20, 30, 40, 50, 60, 70, 80, 90, 100)
"""After which there is a probe."""
RECIPES = {
    "paper": replace(PRESETS["paper"], encoder=ENCODER),
    "ours": replace(PRESETS["laptop"], encoder=ENCODER, epochs=10),
}
NAMES = {"paper": "the paper's recipe", "ours": "preset laptop"}
COLORS = {"paper": "#D55E00", "ours": "#0072B2"}


class Probed(Callback):
    """A probe of the encoder after some epochs, recorded."""

    def __init__(self, name: str, config: PretrainConfig, data: Any, results: Results) -> None:
        source = as_source(data.train.images)
        normalization = Normalization.fit(source, per=config.normalize, progress=False)
        self._encoder = ImageEncoder(config.encoder, source.shape, normalization)
        self._name, self._data, self._results = name, data, results
        self._processor, self._last = 0.0, time.process_time()

    def on_epoch_end(self, state: Any, metrics: Any) -> None:
        self._processor += time.process_time() - self._last
        key = {"recipe": self._name, "epoch": state.epoch, "seed": 0}
        if state.epoch in EPOCHS and not self._results.has(FILE, key):
            self._encoder.network.load_state_dict(state.network.network.state_dict())
            self._encoder.eval()
            with torch.random.fork_rng():
                probe = nb.probe(self._data.train, self._data.test, encoder=self._encoder, seeds=1)
            n_images = len(self._data.train.images) * state.epoch
            self._results.add(
                FILE, key | {"images": n_images, "processor_seconds": self._processor, "accuracy": probe.mean}
            )
            print(f"{self._name}, {state.epoch} epochs: {100 * probe.mean:.2f} %", flush=True)
        self._last = time.process_time()

    def state_dict(self) -> dict[str, Any]:
        return {"processor": self._processor}

    def load_state_dict(self, state: Any) -> None:
        self._processor, self._last = state["processor"], time.process_time()


def draw(results: Results, path: Path) -> str:
    """Accuracy against images processed; the caption, with the factor between the two."""
    figure = Figure(figsize=(7.0, 4.0), layout="constrained")
    ax = figure.subplots()
    curves = {}
    for name in RECIPES:
        records = [record for record in results.records[FILE] if record["recipe"] == name]
        records.sort(key=lambda record: record["epoch"])
        curves[name] = np.array([(record["images"], 100 * record["accuracy"]) for record in records]).reshape(-1, 2)
        ax.plot(*curves[name].T, "o-", color=COLORS[name], label=NAMES[name], markersize=4)
    ax.set_xscale("log")
    ax.set_xlabel("images processed")
    ax.set_ylabel("accuracy on all test images, %")
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="y", color="#dddddd")
    ax.legend(frameon=False)
    save_picture(figure, path)
    return caption(curves["paper"], curves["ours"])


def caption(paper: Any, ours: Any) -> str:
    """Where ours first has what the paper's recipe has at its best."""
    images, best = paper[paper[:, 1].argmax()]
    reached = ours[ours[:, 1] >= best]
    if not len(reached):
        return f"The paper's recipe reaches {best:.1f} % after {images:,.0f} images; ours ends at {ours[-1, 1]:.1f} %."
    return (
        f"The paper's recipe reaches {best:.1f} % after {images:,.0f} images, ours has {reached[0, 1]:.1f} % after "
        f"{reached[0, 0]:,.0f}: {images / reached[0, 0]:.0f} times fewer."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=list(RECIPES), help="one recipe alone")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--picture", action="store_true", help="draw what was measured, and measure nothing")
    parser.add_argument("--runs", type=Path, default=ROOT / "runs", help="where the folders of the runs are")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    folder = ROOT / "results" / "pace"
    if arguments.picture:
        print(draw(Results(folder, None, [FILE], COMMAND), ROOT / "docs" / "pictures" / "pace.png"))
        return
    versions = {
        "python": platform.python_version(),
        **{name: version(name) for name in ("neuralbayes", "torch", "numpy")},
    }
    results = Results(folder, versions, [FILE], COMMAND, arguments.threads)
    data = nb.datasets.load("cifar10")
    for name, config in RECIPES.items():
        if arguments.only in (None, name):
            probed = Probed(name, config, data, results)
            out = arguments.runs / f"pace-{name}"
            nb.pretrain(data.train.images, config, out=out, callbacks=(probed,), verbose=True)


if __name__ == "__main__":
    main()
