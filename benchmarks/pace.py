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

import torch
from pace_picture import PACE, caption, draw, pace_results
from records import Results

import neuralbayes as nb
from neuralbayes.data.normalize import Normalization
from neuralbayes.data.sources import as_source
from neuralbayes.encoder import ImageEncoder
from neuralbayes.pretraining import PRESETS, PretrainConfig
from neuralbayes.training import Callback

ROOT = Path(__file__).parents[1]
ENCODER = "tiny"
EPOCHS = (1, 2, 3, 5, 7, 10, 20, 40, 60, 80, 100)
"""After which there is a probe."""
RECIPES = {
    "paper": replace(PRESETS["paper"], encoder=ENCODER, recompute=False),  # the same gradients in less time
    "ours": replace(PRESETS["laptop"], encoder=ENCODER, epochs=10),
}


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
        if state.epoch in EPOCHS and not self._results.has(PACE, key):
            self._encoder.network.load_state_dict(state.network.network.state_dict())
            self._encoder.eval()
            with torch.random.fork_rng():
                probe = nb.probe(self._data.train, self._data.test, encoder=self._encoder, seeds=1)
            n_images = len(self._data.train.images) * state.epoch
            self._results.add(
                PACE, key | {"images": n_images, "processor_seconds": self._processor, "accuracy": probe.mean}
            )
            print(f"{self._name}, {state.epoch} epochs: {100 * probe.mean:.2f} %", flush=True)
        self._last = time.process_time()

    def state_dict(self) -> dict[str, Any]:
        return {"processor": self._processor}

    def load_state_dict(self, state: Any) -> None:
        self._processor, self._last = state["processor"], time.process_time()


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
        results = pace_results(folder, None)
        draw(results, ROOT / "docs" / "pictures" / "pace.png")
        print(caption(results))
        return
    versions = {
        "python": platform.python_version(),
        **{name: version(name) for name in ("neuralbayes", "torch", "numpy")},
    }
    results = pace_results(folder, versions, arguments.threads)
    data = nb.datasets.load("cifar10")
    for name, config in RECIPES.items():
        if arguments.only in (None, name):
            probed = Probed(name, config, data, results)
            out = arguments.runs / f"pace-{name}"
            nb.pretrain(data.train.images, config, out=out, callbacks=(probed,), verbose=True)


if __name__ == "__main__":
    main()
