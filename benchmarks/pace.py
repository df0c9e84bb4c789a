"""Measure how fast features of CIFAR-10 improve with the number of images processed, by the paper's recipe and ours.

    python benchmarks/pace.py               train with both recipes, into results/pace/pace.json
    python benchmarks/pace.py --changes     short training with one change at a time, into results/pace/changes.json

An interrupted run continues. All runs train a narrow encoder on all 50,000 images. The paper's recipe has 100 epochs
with batches of 4,000. The probe is the paper's classifier, scored on all test images in the epoch that is best on a
tenth of the training images.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from paper.packaged_data import load
from records import Record, Results
from torch import Tensor, nn

import neuralbayes as nb
from neuralbayes.data.images import as_source
from neuralbayes.data.normalize import Normalization
from neuralbayes.features.encoder import ImageEncoder
from neuralbayes.features.pretraining import PRESETS, PretrainConfig
from neuralbayes.training import Callback

ROOT = Path(__file__).parents[1]
PACE, CHANGED = "pace", "changes"
COMMANDS = {PACE: "python benchmarks/pace.py", CHANGED: "python benchmarks/pace.py --changes"}
OURS = replace(PRESETS["laptop"], encoder="tiny", epochs=10)
RECIPES = {
    "paper": replace(PRESETS["paper"], encoder="tiny", recompute=False),  # same gradients, less time
    "ours": OURS,
}
SEEN = (0, 4, 12, 24, 50, 100, 150, 250, 350, 500, 1000, 2000, 3000, 4000, 5000)
"""Numbers of processed images, in thousands, at which to probe the features."""

SHORT = 1
"""Number of epochs of a short training."""
SEEDS = 2
SMALLER = "24x24 pixels in the first half, p(z) of the batch"
CHANGES: dict[str, dict[str, Any]] = {
    "none": {},
    "every pixel normalised by itself, as in the paper": {"normalize": "dimension"},
    "normalised by channel": {"normalize": "channel"},
    "learning rate 0.001, constant, as in the paper": {"learning_rate": 0.001, "schedule": "constant"},
    "learning rate 0.01, constant": {"schedule": "constant"},
    "batches of 32": {"batch_size": 32, "microbatch_size": 32},
    "batches of 400": {"batch_size": 400, "microbatch_size": 400},
    "batches of 4000, as in the paper": {"batch_size": 4000, "microbatch_size": 500},
    "p(z) of the batch, as in the paper": {"marginal": "minibatch"},
    "R_c on all images with weight 4, as in the paper": {"beta": 4.0, "smooth_fraction": 1.0},
    "without R_c": {"beta": 0.0},
    "the first version of MIM": {"version": 1},
    "images mirrored and shifted": {"augment": True},
    SMALLER: {"marginal": "minibatch"},  # a running p(z) would need images of one size
    "three times the width": {"encoder": "small"},
}


class Probed(Callback):
    """Probe the encoder after given numbers of images, and pass the result and the processor time to `record`."""

    def __init__(
        self, config: PretrainConfig, data: Any, seen: Collection[int], record: Callable[[Record], None]
    ) -> None:
        source = as_source(data.train.images)
        normalization = Normalization.fit(source, per=config.normalize, progress=False)
        torch.manual_seed(config.seed)
        self._encoder = ImageEncoder(config.encoder, source.shape, normalization).eval()
        self._batch_size, self._n_images = config.batch_size, len(source)
        self._data, self._seen, self._record = data, seen, record
        self._processor = 0.0
        if 0 in seen:
            self._probe(0)
        self._last = time.process_time()

    def _probe(self, images: int) -> None:
        with torch.random.fork_rng():
            probe = nb.probe(self._encoder, self._data.train, test=self._data.test, seeds=1)
        self._record({"images": images, "processor_seconds": self._processor, "accuracy": probe.mean})

    def on_step_end(self, state: Any, metrics: Any) -> None:
        self._processor += time.process_time() - self._last
        epochs, steps = divmod(state.step, state.steps_per_epoch)
        images = epochs * self._n_images + steps * self._batch_size
        if images in self._seen:
            self._encoder.network.load_state_dict(state.network.network.state_dict())
            self._probe(images)
        self._last = time.process_time()

    def state_dict(self) -> dict[str, Any]:
        return {"processor": self._processor}

    def load_state_dict(self, state: Any) -> None:
        self._processor, self._last = state["processor"], time.process_time()


class FirstSmaller(Callback):
    """Scale images to three quarters of their size in the first half of training."""

    def __init__(self) -> None:
        self._hook: Any = None

    def on_step_end(self, state: Any, metrics: Any) -> None:
        if self._hook is None and 2 * state.step < state.total_steps:
            self._hook = state.network.register_forward_pre_hook(self._smaller)
        elif self._hook is not None and 2 * state.step >= state.total_steps:
            self._hook.remove()

    @staticmethod
    def _smaller(network: nn.Module, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return nn.functional.interpolate(inputs[0], scale_factor=0.75, mode="area"), *inputs[1:]


def follow(data: Any, arguments: argparse.Namespace, results: Results) -> None:
    """Train with both recipes, and probe the features along the way."""
    for name, config in RECIPES.items():
        if arguments.only in (None, name):
            key = {"recipe": name, "seed": config.seed}
            seen = [1000 * n for n in SEEN if not results.has(PACE, {**key, "images": 1000 * n})]
            probed = Probed(config, data, seen, partial(record, results, PACE, key))
            out = arguments.runs / f"pace-{name}"
            nb.pretrain(data.train.images, config, out=out, callbacks=(probed,), verbose=True)


def change(data: Any, arguments: argparse.Namespace, results: Results) -> None:
    """Train briefly with our recipe, with one change at a time."""
    for seed in range(arguments.seeds):
        for name, changed in CHANGES.items():
            key: Record = {"change": name, "seed": seed}
            if results.has(CHANGED, key):
                continue
            config = replace(OURS, epochs=SHORT, seed=seed, **changed)
            seen = [config.epochs * len(data.train.images)]
            probed = Probed(config, data, seen, partial(record, results, CHANGED, key))
            smaller = [FirstSmaller()] if name == SMALLER else []
            nb.pretrain(data.train.images, config, callbacks=(*smaller, probed))


def record(results: Results, file: str, key: Record, found: Record) -> None:
    results.add(file, {**key, **found})
    print(
        f"{', '.join(map(str, key.values()))}, {found['images']:,} images: {100 * found['accuracy']:.2f} %", flush=True
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=list(RECIPES), help="train with this recipe only")
    parser.add_argument("--changes", action="store_true", help="train briefly with one change at a time")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="number of seeds for --changes (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--runs", type=Path, default=ROOT / "runs", help="parent of the run folders")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    packages = ("neuralbayes", "torch", "numpy")
    data = load("cifar10")
    run, file = (change, CHANGED) if arguments.changes else (follow, PACE)
    results = Results(ROOT / "results" / "pace", packages, [file], COMMANDS[file], arguments.threads)
    run(data, arguments, results)


if __name__ == "__main__":
    main()
