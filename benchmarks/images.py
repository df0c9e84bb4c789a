"""Compare features of the laptop preset with a random encoder and with pixels, on all test images.

    python benchmarks/images.py cifar10         or mnist, or fashion-mnist

An interrupted run continues. After pretraining, the paper's MLP probes the features: with three seeds under the
validation protocol, and for the trained encoder with one seed under the paper's protocol, which takes 100 epochs. All
numbers go to results/images/DATA.json. There are two random encoders: one with the normalisation of the preset, and one
with the normalisation of the paper.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from paper.baselines import RandomConfig, random
from paper.packaged_data import load
from paper.protocol import probe_parts
from records import ROOT, parser

import neuralbayes as nb
from neuralbayes.features.pretraining import PRESETS
from neuralbayes.system.files import read_json, write_json

LAYERS = {"last": "relu4", "second": "relu2"}
PROTOCOLS = ("validation", "paper")


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("data", choices=["cifar10", "mnist", "fashion-mnist"])
    arguments.add_argument("--epochs", type=int, default=PRESETS["laptop"].epochs, help="by default as in the preset")
    arguments.add_argument("--runs", type=Path, default=ROOT / "runs", help="parent of the run folder")
    given = arguments.parse_args()
    folder = given.runs / f"laptop-{given.data}"
    data = load(given.data)
    config = replace(PRESETS["laptop"], epochs=given.epochs)
    command = f"python benchmarks/images.py {given.data} --epochs {given.epochs}"
    encoder = nb.pretrain(data.train.images, config, out=folder, verbose=True)
    pretraining = read_json(folder / "result.json")

    drawn = RandomConfig(encoder=config.encoder, normalize=config.normalize, seed=config.seed)
    encoders = {
        "encoder": encoder,
        "random encoder": random(data.train.images, drawn),
        "random encoder, the paper's normalisation": random(data.train.images, replace(drawn, normalize="dimension")),
    }
    rows: dict[str, dict[str, Any]] = {
        f"{name}, {layer} layer": {"encoder": each, "state": state}
        for layer, state in LAYERS.items()
        for name, each in encoders.items()
    }
    rows["pixels"] = {}

    path = ROOT / "results" / "images" / f"{given.data}.json"
    kept = (
        "config",
        "images",
        "steps",
        "seconds",
        "images_per_second",
        "peak_memory_mb",
        "layers",
        "warnings",
        "versions",
    )
    record = {"command": command, **{name: pretraining[name] for name in kept}, "probes": {name: {} for name in rows}}
    if path.is_file() and (there := read_json(path))["config"] == record["config"]:
        record = there  # keep the results of finished probes
    for protocol, seeds in (("validation", 3), ("paper", 1)):
        for name, row in rows.items():
            if protocol in record["probes"][name] or (protocol == "paper" and row.get("encoder") is not encoder):
                continue
            print(f"{name}, {protocol}")
            settings: dict[str, Any] = {"protocol": protocol, "seeds": seeds, "cache": folder / "features"}
            result = probe_parts(data.train, data.test, **row, **settings, verbose=True)
            record["probes"][name][protocol] = _short(result.to_dict())
            write_json(path, record)
            print(f"{100 * result.mean:.2f} % of {result.n_test:,} test images")


def _short(result: dict[str, Any]) -> dict[str, Any]:
    """A result without curves."""
    long = ("curves", "head", "protocol")
    return {k: round(v, 4) if isinstance(v, float) else v for k, v in result.items() if k not in long}


if __name__ == "__main__":
    main()
