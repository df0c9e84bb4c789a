"""Write the tables of README.md, docs/images.md and docs/scaling.md from the committed results.

A table stands between two marks, the first of which names what it is made from.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", "docs/images.md", "docs/scaling.md")
MARKED = re.compile(r"(<!-- results/(\S+), by benchmarks/tables\.py -->\n).*?(<!-- end -->)", re.DOTALL)

PUBLISHED = {
    "cifar10": {
        "encoder, last layer": 82.81,
        "encoder, second layer": 84.38,
        "random encoder, the paper's normalisation, last layer": 67.97,
    }
}
"""The paper's classification table (section 5.1.2): full width, 100 epochs, the best epoch on 128 test images."""


def demo_tables() -> str:
    """What `neuralbayes demo` found."""
    result = _read("demo.json")
    lines = [
        '| 1,200 points in 512 dimensions | states | right | k-means | separation | certified | found by "auto" |',
        "| --- | ---: | ---: | ---: | ---: | --- | ---: |",
    ]
    for row in result["manifolds"]:
        counts = ("" if row[key] is None else f"{row[key]:,}" for key in ("right", "kmeans_right"))
        certified = "yes" if row["certified"] else "refused"
        cells = (row["name"], row["n_clusters"], *counts, f"{row['separation_percent']:.1f}", certified)
        lines.append(f"| {' | '.join(map(str, cells))} | {row['n_clusters_auto']} |")
    lines += [
        "",
        f"| digits: linear probe, % of {result['digits']['n_test']} test images right | 3 labels a class "
        "| 10 labels a class | all labels |",
        "| --- | ---: | ---: | ---: |",
    ]
    for probe in result["digits"]["probes"]:
        shares = (f"{100 * probe['accuracy'][key]:.1f}" for key in ("3", "10", "all"))
        lines.append(f"| {probe['features']} | {' | '.join(shares)} |")
    return "\n".join(lines) + "\n"


def image_tables(names: str = "*.json") -> str:
    """Probes of the laptop preset on real images, one table for each data set."""
    lines: list[str] = []
    for path in sorted(_path("images").glob(names)):
        result = json.loads(path.read_text(encoding="utf-8"))
        published = PUBLISHED.get(path.stem, {})
        probes = result["probes"]
        cells = {
            "all test images": [_accuracy(found.get("validation")) for found in probes.values()],
            "best epoch on 128": [_accuracy(found.get("paper")) for found in probes.values()],
            "published (best on 128)": [str(published.get(name, "")) for name in probes],
        }
        cells = {head: column for head, column in cells.items() if any(column)}
        lines += [
            f"| {path.stem}: MLP probe, % right | {' | '.join(cells)} |",
            f"| --- |{' ---: |' * len(cells)}",
        ]
        for name, *row in zip(probes, *cells.values(), strict=True):
            lines.append(f"| {name} | {' | '.join(row)} |")
        means = {name: found["validation"]["mean"] for name, found in probes.items()}
        gains = [
            f"{100 * (means['encoder, last layer'] - mean):.1f} above the {' with '.join(name.split(', ')[:-1])}"
            for name, mean in means.items()
            if name.startswith("random") and name.endswith("last layer")
        ]
        lines += ["", f"Points that the last layer gained: {', '.join(gains)}."]
        lines.append("")
    return "\n".join(lines)


def run_table() -> str:
    """How the runs behind the probes went."""
    lines = [
        "| | epochs | minutes | images/s | memory | information of the layers, nats (bound) | dead states |",
        "| --- | ---: | ---: | ---: | ---: | --- | ---: |",
    ]
    for path in sorted(_path("images").glob("*.json")):
        result = json.loads(path.read_text(encoding="utf-8"))
        layers = result["layers"].values()
        information = ", ".join(f"{layer['information']:.2f} ({layer['bound']:.2f})" for layer in layers)
        cells = (
            f"`{result['command'].removeprefix('python ')}`",
            result["config"]["epochs"],
            f"{result['seconds'] / 60:.0f}",
            f"{result['images_per_second']:.0f}",
            f"{result['peak_memory_mb']:,} MB",
            information,
            sum(layer["dead"] for layer in layers),
        )
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines) + "\n"


def step_table() -> str:
    """The literal step of the paper against ours."""
    result = _read("step.json")
    lines = [
        "| width | batch | step | images/s | against literal | memory | against literal | of the convolution peak |",
        "| ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in result["steps"]:
        work = 1.5 if row["step"] == "literal" else 1.0  # three passes, where the operations of two are counted
        used = "" if "1/4" in row["step"] else f"{work * row['gflops'] / result['convolution_gflops']:.0%}"
        lines.append(
            f"| {row['width']:g} | {row['batch']} | {row['step']} "
            f"| {row['images_per_second']:.1f} | {row['speed']:.2f}x "
            f"| {row['megabytes']:.0f} MB | {row['memory']:.0%} | {used} |"
        )
    return "\n".join(lines) + "\n"


def traffic_table() -> str:
    """What a process sends in a step of the paper's encoder."""
    traffic = _read("processes.json")["traffic"]
    lines = ["| sum of | bytes |", "| --- | ---: |", *(f"| {name} | {n:,} |" for name, n in traffic.items())]
    return "\n".join(lines) + "\n"


def processes_table() -> str:
    """Two processes against one."""
    lines = [
        "| encoder | batch | one process | two | two against one | sent by each | messages |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name, row in _read("processes.json")["measured"].items():
        cells = (
            name,
            row["batch"],
            f"{1000 * row['seconds_one']:.0f} ms",
            f"{1000 * row['seconds_two']:.0f} ms",
            f"{row['ratio']:.2f} ({row['ratio_low']:.2f} to {row['ratio_high']:.2f})",
            f"{row['bytes'] / 1e6:.2f} MB",
            row["messages"],
        )
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines) + "\n"


def assumptions_table() -> str:
    """What the model of many cards assumes."""
    result = _read("processes.json")
    a = result["assumed"]
    rows = {
        "$b$": f"{a['images_per_gpu']} images on each card",
        "$F$": f"{a['flops_per_image'] / 1e9:.1f} billion operations an image: the paper's encoder, clean and "
        "perturbed, forward and backward",
        "$R$": f"{a['gpu_flops'] / 1e12:.0f} TFLOPS that a card really does",
        "$S$": f"{sum(result['traffic'].values()) / 1e6:.1f} MB, the table above; a ring sends them twice",
        "$W$": f"{a['gpu_link'] / 1e9:.0f} GB/s between the {a['gpus_per_node']} cards of a node, "
        f"{a['node_link'] / 1e9:.0f} GB/s for each card between nodes",
        "$m$": f"{result['model_messages']} messages",
        "$\\ell$": f"{1e6 * a['latency']:.0f} microseconds for each doubling of the cards",
    }
    lines = ["| | assumed |", "| --- | --- |", *(f"| {name} | {text} |" for name, text in rows.items())]
    return "\n".join(lines) + "\n"


def model_table() -> str:
    """The model, up to 1,024 cards."""
    lines = [
        "| cards | step | of it messages | images/s | a billion images |",
        "| ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in _read("processes.json")["model"]:
        hours = row["hours_per_billion"]
        time = f"{hours:.1f} h" if hours >= 1 else f"{60 * hours:.0f} min"
        lines.append(
            f"| {row['gpus']:,} | {row['milliseconds']:.0f} ms | {row['communication']:.0%} "
            f"| {row['images_per_second']:,.0f} | {time} |"
        )
    return "\n".join(lines) + "\n"


TABLES: dict[str, Callable[[], str]] = {
    "demo.json": demo_tables,
    "images/*.json": image_tables,
    "images/cifar10.json": partial(image_tables, "cifar10.json"),
    "images/*.json#runs": run_table,
    "step.json": step_table,
    "processes.json#traffic": traffic_table,
    "processes.json#measured": processes_table,
    "processes.json#assumed": assumptions_table,
    "processes.json#model": model_table,
}
"""What makes each table, by the name in its mark."""


def with_tables(page: str) -> str:
    """A page with its tables made anew."""
    return MARKED.sub(lambda found: found[1] + TABLES[found[2]]() + found[3], page)


def _path(name: str) -> Path:
    return ROOT / "results" / name


def _read(name: str) -> Any:
    return json.loads(_path(name).read_text(encoding="utf-8"))


def _accuracy(result: dict[str, Any] | None) -> str:
    if result is None:
        return ""
    return f"{100 * result['mean']:.1f}" + (f" ± {100 * result['std']:.1f}" if len(result["accuracies"]) > 1 else "")


def main() -> None:
    for name in PAGES:
        path = ROOT / name
        path.write_text(with_tables(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
