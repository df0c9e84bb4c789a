"""Fit ten thousand models in one process, and check for leaks.

ManifoldLabeler and MIMEncoder alternate on tiny tables. Two of every ten models are saved, loaded and used for
predictions. After every hundredth fit, it also draws a picture, writes a report, pretrains with an interruption, probes
the encoder and writes features. It then collects garbage and counts the memory of the process, Python objects, open
files, threads and temporary files. The slope of each count is fitted after a warm-up of a fifth, with a 95 % interval
from a block bootstrap, because neighbouring counts are correlated.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import neuralbayes as nb
from neuralbayes.cli import main as command
from neuralbayes.data.sources import ArraySource
from neuralbayes.system.files import write_json
from neuralbayes.training import Callback

WARM_UP = 0.2
"""Share of the counts to skip, while caches fill."""
BLOCK, RESAMPLES = 8, 2000
FLAT = {"kilobytes": 1.0, "objects": 1.0}
"""Maximum growth per fit, at the upper end of the interval: 10 MB in 10,000 fits."""

rng = np.random.default_rng(0)
ROWS = np.r_[rng.normal(size=(12, 3)), rng.normal(size=(12, 3)) + 6]
PICTURES, CLASSES = rng.integers(0, 256, (12, 24, 24, 1), dtype=np.uint8), np.arange(12) % 2
CONFIG = nb.PretrainConfig(encoder="tiny", batch_size=6, microbatch_size=6, epochs=2, scales=(1,))
MODELS: tuple[Callable[[int], nb.ManifoldLabeler | nb.MIMEncoder], ...] = (
    lambda seed: nb.ManifoldLabeler(2, n_init=1, n_hidden=4, max_iter=5, n_neighbors=3, random_state=seed),
    lambda seed: nb.MIMEncoder(hidden=(4,), max_epochs=1, random_state=seed),
)


class Interrupted(Callback):
    """Interrupt a run in the middle, like Ctrl-C."""

    def on_gradients(self, state: Any, metrics: Any) -> None:
        if state.step == 3:
            raise KeyboardInterrupt


def day(folder: Path) -> None:
    """Pretrain with an interruption, probe, write features, and label, draw and report on a table."""
    run, rows, model = folder / "run", folder / "rows.npy", folder / "model"
    with suppress(KeyboardInterrupt):
        nb.pretrain(PICTURES, CONFIG, out=run, callbacks=[Interrupted()])
    encoder = nb.pretrain(PICTURES, CONFIG, out=run)
    labelled = (PICTURES, CLASSES)
    nb.probe(encoder, *labelled, test=labelled, seeds=1, cache=folder / "features")
    nb.write_features(encoder, ArraySource(PICTURES), folder / "features.parquet")
    np.save(rows, ROWS)
    words = [["label", rows, "-k", "2", "--save", model, "--picture", folder / "rows.png"]]
    words += [["report", model, rows, "--out", folder / "report.html"]]
    for line in words:
        if command([*map(str, line), "--quiet"]) != 0:
            raise RuntimeError(f"{line} failed")


def use(model: nb.ManifoldLabeler | nb.MIMEncoder, folder: Path) -> None:
    """Save a model, load it, and compare the predictions."""
    model.save(folder / "model")
    if not np.array_equal(nb.load(folder / "model").predict_proba(ROWS), model.predict_proba(ROWS)):
        raise RuntimeError("a loaded model gives different predictions")


def counts(temporary: Path) -> dict[str, float]:
    """Count what the process holds now."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1])
    return {
        "kilobytes": pages * os.sysconf("SC_PAGE_SIZE") / 1024,
        "objects": sys.getallocatedblocks(),
        "open files": len(os.listdir("/proc/self/fd")),
        "threads": len(os.listdir("/proc/self/task")),
        "temporary files": sum(1 for _ in temporary.iterdir()),
    }


def slope(values: NDArray[np.float64], step: int) -> tuple[float, float, float]:
    """Growth per fit, and the ends of its 95 % interval."""
    x = step * np.arange(len(values), dtype=np.float64)
    x -= x.mean()
    best = float(x @ values / (x @ x))
    rest = values - values.mean() - best * x
    generator = np.random.default_rng(0)
    starts = generator.integers(0, max(1, len(rest) - BLOCK), (RESAMPLES, -(-len(rest) // BLOCK)))
    blocks = rest[(starts[..., None] + np.arange(BLOCK)).clip(max=len(rest) - 1)]
    drawn = best + blocks.reshape(RESAMPLES, -1)[:, : len(rest)] @ x / (x @ x)
    low, high = np.quantile(drawn, (0.025, 0.975))
    return best, float(low), float(high)


def leaks(n_fits: int, every: int) -> dict[str, Any]:
    """Fit `n_fits` models, and count what the process holds after every `every` fits."""
    torch.set_num_threads(1)
    found: list[dict[str, float]] = []
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as own, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # tiny tables are too small for good models
        temporary = Path(own)
        tempfile.tempdir = own  # do not count temporary files of other processes
        for fit in range(1, n_fits + 1):
            model = MODELS[fit % 2](fit).fit(ROWS)
            if fit % 10 < 2:
                with tempfile.TemporaryDirectory() as folder:
                    use(model, Path(folder))
            if fit % every == 0:
                with tempfile.TemporaryDirectory() as folder:
                    day(Path(folder))
                found.append(counts(temporary))
                print(f"{fit:,} fits:", ", ".join(f"{n:,.0f} {what}" for what, n in found[-1].items()), flush=True)
        tempfile.tempdir = None
    kept = found[round(WARM_UP * len(found)) :]
    result: dict[str, Any] = {"fits": n_fits, "days": len(found), "seconds": round(time.perf_counter() - start)}
    for what in found[0]:
        values = np.array([row[what] for row in kept])
        per_fit, low, high = slope(values, every)
        ends = {"first": float(values[0]), "last": float(values[-1]), "most": float(values.max())}
        flat = high <= FLAT[what] if what in FLAT else ends["most"] == ends["first"]
        result[what] = ends | {"a_fit": per_fit, "low": low, "high": high, "flat": bool(flat)}
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fits", type=int, default=10_000)
    parser.add_argument("--every", type=int, default=100, help="number of fits between two counts")
    parser.add_argument("--record", type=Path)
    arguments = parser.parse_args()
    if arguments.fits < 10 * arguments.every:
        parser.error(f"--fits must be at least ten times --every ({arguments.every}), got {arguments.fits}")
    found = leaks(arguments.fits, arguments.every)
    names = [name for name, value in found.items() if isinstance(value, dict)]
    for name in names:
        row = found[name]
        print(f"{name}: {row['first']:,.0f} to {row['last']:,.0f}, {row['a_fit']:+.3f} per fit", end="")
        print(f" ({row['low']:+.3f} to {row['high']:+.3f}){'' if row['flat'] else ': NOT FLAT'}")
    if arguments.record is not None:
        write_json(arguments.record, {"command": "python benchmarks/guarantees/leaks.py"} | found)
    if not all(found[name]["flat"] for name in names):
        sys.exit(1)


if __name__ == "__main__":
    main()
