"""Check that the same seed gives the same results: again, in a new process, after an interruption, with two threads.

ManifoldLabeler, MIMEncoder, pretrain and probe return arrays. These must be the same bit for bit when computed twice in
one process, in a new process with another PYTHONHASHSEED, and after an interruption. With two threads instead of one,
it measures the largest difference of the outputs (probabilities, features, accuracies), relative to the largest number.
tests/features/test_pretrain_processes.py compares several processes with one.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import neuralbayes as nb
from neuralbayes.data.sources import ArraySource
from neuralbayes.data.toys import make_moons
from neuralbayes.system.files import write_json
from neuralbayes.training import Callback

Arrays = dict[str, NDArray[Any]]
OUTPUT = "output"
"""Name of the main array of a result."""
CONFIG = nb.PretrainConfig(
    encoder="tiny", batch_size=20, microbatch_size=10, epochs=2, scales=(1,), marginal="running", augment=True, seed=3
)


def pictures() -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Make some images and their labels."""
    rng = np.random.default_rng(0)
    return rng.integers(0, 256, (60, 24, 24, 1), dtype=np.uint8), np.arange(60) % 2


class Interrupt(Callback):
    """Interrupt a run after its third step, like Ctrl-C."""

    def on_step_end(self, state: Any, metrics: Any) -> None:
        if state.step == 3:
            raise KeyboardInterrupt


def pretrained(*, beta: float = CONFIG.beta, interrupted: bool = False) -> nb.ImageEncoder:
    """Pretrain an encoder, optionally with an interruption."""
    config = replace(CONFIG, beta=beta)
    with tempfile.TemporaryDirectory() as folder:
        if interrupted:
            with suppress(KeyboardInterrupt):
                nb.pretrain(pictures()[0], config, out=folder, callbacks=[Interrupt()])
        return nb.pretrain(pictures()[0], config, out=folder)


def learnt(encoder: nb.ImageEncoder) -> Arrays:
    """The weights of an encoder and its features."""
    weights = {name: tensor.numpy() for name, tensor in encoder.network.state_dict().items()}
    return {**weights, OUTPUT: encoder.features(ArraySource(pictures()[0]), "relu4")}


def labeler() -> Arrays:
    """Probabilities of a ManifoldLabeler."""
    X, _ = make_moons(300, random_state=0)
    return {OUTPUT: nb.ManifoldLabeler("auto", max_clusters=3, random_state=3).fit(X).predict_proba(X)}


def rows_encoder() -> Arrays:
    """Features of a MIMEncoder."""
    X = np.random.default_rng(0).normal(size=(200, 5))
    return {OUTPUT: nb.MIMEncoder(hidden=(16, 8), max_epochs=3, random_state=3).fit_transform(X)}


def probed() -> Arrays:
    """Accuracies of a probe of pixels."""
    images, labels = pictures()
    found = nb.probe(None, images, labels, test=(images, labels), seeds=2, head="linear")
    return {OUTPUT: np.array(found.accuracies), "confusion": np.array(found.confusion)}


RESULTS: dict[str, Callable[[], Arrays]] = {
    "ManifoldLabeler": labeler,
    "MIMEncoder": rows_encoder,
    "pretrain": lambda: learnt(pretrained()),
    "pretrain, beta=0": lambda: learnt(pretrained(beta=0.0)),
    "probe": probed,
}


def computed(threads: int = 1) -> dict[str, Arrays]:
    """Compute all results."""
    torch.set_num_threads(threads)
    return {name: compute() for name, compute in RESULTS.items()}


def in_new_process(threads: int = 1, hash_seed: str = "0") -> dict[str, Arrays]:
    """Call :func:`computed` in a new process."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "results.npz"
        line = [sys.executable, __file__, "--threads", str(threads), "--write", str(file)]
        environment = os.environ | {"PYTHONHASHSEED": hash_seed, "OMP_NUM_THREADS": str(threads)}
        subprocess.run(line, check=True, env=environment)
        with np.load(file) as stored:
            flat = {tuple(key.split("/", 1)): stored[key] for key in stored.files}
    return {name: {key: array for (of, key), array in flat.items() if of == name} for name in RESULTS}


def same(one: Arrays, other: Arrays) -> bool:
    """Whether two results are the same to the last bit."""
    return one.keys() == other.keys() and all(
        one[key].dtype == other[key].dtype and one[key].tobytes() == other[key].tobytes() for key in one
    )


def difference(one: Arrays, other: Arrays) -> float:
    """The largest difference of the outputs, relative to the largest number."""
    return float(np.abs(one[OUTPUT] - other[OUTPUT]).max() / np.abs(one[OUTPUT]).max())


def compared() -> list[dict[str, Any]]:
    """Compare each result with its repetitions."""
    here, again = computed(), computed()
    fresh = in_new_process(hash_seed="0"), in_new_process(hash_seed="1")
    threads = in_new_process(threads=2)
    rows: list[dict[str, Any]] = []
    for name, result in here.items():
        row: dict[str, Any] = {"result": name, "again": same(result, again[name])}
        row |= {"new_process": same(result, fresh[0][name]), "other_hashes": same(result, fresh[1][name])}
        rows.append(row | {"interrupted": None, "two_threads": difference(result, threads[name])})
    rows[list(RESULTS).index("pretrain")]["interrupted"] = same(here["pretrain"], learnt(pretrained(interrupted=True)))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", type=Path)
    parser.add_argument("--threads", type=int, default=1, help=argparse.SUPPRESS)
    parser.add_argument("--write", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.write is not None:
        found = computed(arguments.threads)
        flat: dict[str, Any] = {f"{name}/{key}": a for name, arrays in found.items() for key, a in arrays.items()}
        np.savez(arguments.write, **flat)
        return
    rows = compared()
    for row in rows:
        told = ", ".join(f"{what.replace('_', ' ')}: {value}" for what, value in row.items() if what != "result")
        print(f"{row['result']}: {told}")
    if arguments.record is not None:
        write_json(arguments.record, {"command": "python benchmarks/guarantees/determinism.py", "results": rows})
    if any(row[what] is False for row in rows for what in ("again", "new_process", "other_hashes", "interrupted")):
        sys.exit(1)


if __name__ == "__main__":
    main()
