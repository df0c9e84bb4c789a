"""Compare learnt features of small images with those of a random encoder and with pixels, on all test images.

    python benchmarks/images.py cifar10            or mnist, or fashion-mnist: the laptop preset
    python benchmarks/images.py cifar10 --as wide  the paper's width; two hours of one core
    python benchmarks/images.py cifar10 --as simclr, or simclr-shifts

An interrupted run continues. The paper's MLP probes the last layer, the second, and all four together, with three
seeds under the validation protocol. For the last and the second layer of a trained encoder, there is one seed under the
paper's protocol, which takes 100 epochs. All numbers go to results/images/. SimCLR sees each image twice, so it has
half of the epochs.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from lightning_fabric import Fabric
from numpy.typing import NDArray
from paper.baselines import RandomConfig, random
from paper.packaged_data import load
from paper.protocol import Protocol, probe_parts
from records import ROOT, parser
from simclr import SimCLRConfig, simclr
from torch import Tensor

import neuralbayes as nb
from neuralbayes.features.encoder import STATES, flat_state
from neuralbayes.features.pretraining import PRESETS, PretrainConfig
from neuralbayes.networks.hidden import HiddenStates
from neuralbayes.system.files import read_json, write_json
from neuralbayes.training.inference import in_blocks

LAPTOP = PRESETS["laptop"]
SIMCLR = SimCLRConfig(epochs=LAPTOP.epochs // 2, encoder=LAPTOP.encoder, normalize=LAPTOP.normalize)
CONFIGS: dict[str, PretrainConfig | SimCLRConfig] = {
    "laptop": LAPTOP,
    "wide": replace(LAPTOP, encoder="paper", beta=0.0, epochs=6),  # in bfloat16, which R_c does not allow
    "simclr": SIMCLR,
    "simclr-shifts": replace(SIMCLR, crops=False),
}

LAYERS = ("last layer", "second layer", "all layers", "whole second layer")
LARGEST = {"small": 4096, "paper": 16_384}
"""Features to which the last and the second layer are averaged, by width; `TOGETHER` in all layers."""
TOGETHER = 4096
PROTOCOLS: tuple[tuple[Protocol, int], ...] = (("validation", 3), ("paper", 1))
KEPT = ("images", "steps", "seconds", "images_per_second", "peak_memory_mb", "layers", "warnings", "versions")


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("data", choices=["cifar10", "mnist", "fashion-mnist"])
    arguments.add_argument("--as", dest="name", choices=CONFIGS, default="laptop")
    arguments.add_argument("--epochs", type=int, help="by default as in the configuration")
    arguments.add_argument("--runs", type=Path, default=ROOT / "runs", help="parent of the run folder")
    given = arguments.parse_args()
    config = CONFIGS[given.name]
    config = config if given.epochs is None else replace(config, epochs=given.epochs)
    folder = given.runs / f"{given.name}-{given.data}"
    data = load(given.data)
    if isinstance(config, SimCLRConfig):
        encoder = simclr(data.train.images, config, out=folder)
        kept: dict[str, Any] = {}
    else:
        fabric = Fabric(accelerator="cpu", devices=1, precision="bf16-mixed" if given.name == "wide" else "32-true")
        fabric.launch()
        encoder = nb.pretrain(data.train.images, config, out=folder, verbose=True, fabric=fabric)
        kept = {name: value for name, value in read_json(folder / "result.json").items() if name in KEPT}

    command = f"python benchmarks/images.py {given.data} --as {given.name} --epochs {config.epochs}"
    record: dict[str, Any] = {"command": command, "config": asdict(config), **kept, "probes": {}}
    path = ROOT / "results" / "images" / f"{given.data}{'' if given.name == 'laptop' else f'-{given.name}'}.json"
    there = read_json(path) if path.is_file() else {}
    if all(there.get(name) == json.loads(json.dumps(record.get(name))) for name in ("config", "seconds")):  # this run
        record["probes"] = there["probes"]

    drawn = RandomConfig(encoder=config.encoder, normalize=config.normalize, seed=config.seed)
    encoders: dict[str, nb.ImageEncoder | None] = {"encoder": encoder}
    if not isinstance(config, SimCLRConfig):
        encoders |= {
            "random encoder": random(data.train.images, drawn),
            "pixels": None,
            "random encoder, the paper's normalisation": random(
                data.train.images, replace(drawn, normalize="dimension")
            ),
        }
    for name, each in encoders.items():
        layers = LAYERS[: 4 if each is encoder and given.name == "laptop" else 3]
        rows = [name] if each is None else [f"{name}, {layer}" for layer in layers]
        if record["probes"].keys() >= set(rows):
            continue
        splits = data.train, data.test
        parts = [(features(each, split.images, layers), np.asarray(split.labels)) for split in splits]
        for i, row in enumerate(rows):
            train, test = ((found[i], labels) for found, labels in parts)
            record["probes"][row] = {
                protocol: _short(probe_parts(train, test, protocol=protocol, seeds=seeds).to_dict())
                for protocol, seeds in PROTOCOLS
                if protocol == "validation" or (each is encoder and i < 2)
            }
            write_json(path, record)
            print(row, {protocol: found["mean"] for protocol, found in record["probes"][row].items()}, flush=True)
        del parts, train, test  # gigabytes


def features(
    encoder: nb.ImageEncoder | None, images: NDArray[np.uint8], layers: Sequence[str]
) -> list[NDArray[np.float32]]:
    """The layers of an encoder, in one pass; without one, the pixels."""
    if encoder is None:
        return [images.reshape(len(images), -1).astype(np.float32) / np.float32(255)]
    states, largest = HiddenStates(encoder.network, STATES, scales=(1,)).eval(), LARGEST[encoder.size]

    def flat(rows: NDArray[np.int64]) -> Tensor:
        found = states(encoder.prepare(images[rows]))
        parts = [flat_state(found[name], largest) for name in ("relu4", "relu2")]
        parts.append(torch.cat([flat_state(state, TOGETHER) for state in found.values()], dim=1))
        if LAYERS[-1] in layers:
            parts.append(found["relu2"].flatten(1))
        ends[:] = np.cumsum([part.shape[1] for part in parts])[:-1]
        return torch.cat(parts, dim=1)

    ends: list[int] = []
    found = in_blocks(flat, len(images), block=500, description="batches of features", verbose=True)
    return np.split(found, ends, axis=1)


def _short(result: dict[str, Any]) -> dict[str, Any]:
    """A result without curves."""
    long = ("curves", "head", "protocol", "confusion", "feature_seconds")
    return {k: round(v, 4) if isinstance(v, float) else v for k, v in result.items() if k not in long}


if __name__ == "__main__":
    main()
