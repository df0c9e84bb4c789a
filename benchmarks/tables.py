"""Write the tables of README.md and of some pages of the documentation from the committed results.

Each table is between two marks. The first mark names the results that the table is made from.
"""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from features_page import features_table, photographs_caption
from field_records import FIELD, OURS, cost, field_results, percent, seconds, values
from guarantees_tables import (
    crashes_table,
    determinism_table,
    disks_table,
    equivalent_table,
    estimators_table,
    fuzz_table,
    leaks_table,
    mutants_table,
    objectives_table,
    soak_table,
)
from pace_page import CHANGED, PACE, caption, changes_table, pace_results
from pages import read_result, result_path, table

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", "docs/benchmarks.md")
MARKED = re.compile(r"(<!-- results/(\S+), by benchmarks/tables\.py -->\n).*?(<!-- end -->)", re.DOTALL)

IN_FIELD = {"mixture, full": "Gaussian mixture", "spectral": "spectral clustering"}
"""Names of methods in the results on images, by their names in the results on tables."""

PUBLISHED = {
    "cifar10": {
        "encoder, last layer": 82.81,
        "encoder, second layer": 84.38,
        "random encoder, the paper's normalisation, last layer": 67.97,
    }
}
"""The paper's classification table (section 5.1.2): full width, 100 epochs, the best epoch on 128 test images."""


def demo_tables() -> str:
    """Tables of the results of `neuralbayes demo`."""
    result = read_result("demo.json")
    lines = [
        '| 1,200 points in 512 dimensions | manifolds | right | k-means | separation | certified | found by "auto" |',
        "| --- | ---: | ---: | ---: | ---: | --- | ---: |",
    ]
    for row in result["manifolds"]:
        counts = ("" if row[key] is None else f"{row[key]:,}" for key in ("right", "kmeans_right"))
        certified = "yes" if row["certified"] else "refused"
        cells = (row["name"], row["n_clusters"], *counts, f"{row['separation_percent']:.1f}", certified)
        lines.append(f"| {' | '.join(map(str, cells))} | {row['n_clusters_auto']} |")
    lines += [
        "",
        f"| digits: linear probe, accuracy on {result['digits']['n_test']} test images in % | 3 labels per class "
        "| 10 labels per class | all labels |",
        "| --- | ---: | ---: | ---: |",
    ]
    for probe in result["digits"]["probes"]:
        shares = (f"{100 * probe['accuracy'][key]:.1f}" for key in ("3", "10", "all"))
        lines.append(f"| {probe['features']} | {' | '.join(shares)} |")
    return "\n".join(lines) + "\n"


def image_tables(names: str = "*.json") -> str:
    """Tables of probes of the laptop preset on real images, one for each data set."""
    lines: list[str] = []
    for path in sorted(result_path("images").glob(names)):
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


def clusters_table() -> str:
    """Table of clusterers on MNIST and Fashion-MNIST, with the best on MNIST first."""
    results = field_results(result_path("field"), None)
    names = ("MNIST", "Fashion-MNIST")
    methods = [method for method in results.names(FIELD, "method") if values(results, "MNIST", method)]
    methods.sort(key=lambda method: -statistics.mean(values(results, "MNIST", method)))
    rows = []
    for method in methods:
        cells = [f"**{method}**" if method == OURS else method]
        for name in names:
            cells += [percent(values(results, name, method)), seconds(cost(results, name, method))]
        rows.append(cells)
    return (
        table(["clustering accuracy", *(head for name in names for head in (f"{name}, %", "processor s"))], rows) + "\n"
    )


def real_table() -> str:
    """Table of clusterers on real tables, sentences and images."""
    tables = read_result("real/tables.json")["records"]
    sentences = [record for record in read_result("real/sentences.json")["records"] if "accuracy" in record]
    field = field_results(result_path("field"), None)
    methods = list(dict.fromkeys(record["method"] for record in tables))
    rows = []
    for method in methods:
        of_tables: dict[str, list[float]] = {}
        for record in tables:
            if record["method"] == method:
                of_tables.setdefault(record["set"], []).append(record["ari"])
        of_sentences = [record["accuracy"] for record in sentences if record["method"] == method]
        images = IN_FIELD.get(method, method)
        cells = [f"{statistics.mean(map(statistics.mean, of_tables.values())):.3f}"]
        cells.append(f"{100 * statistics.mean(of_sentences):.1f}" if of_sentences else "")
        cells += [
            percent(found) if (found := values(field, name, images)) else "" for name in ("MNIST", "Fashion-MNIST")
        ]
        rows.append([f"**{method}**" if method == OURS else method, *cells])
    for method in ("IMSAT", "GMM on UMAP"):  # the best others on images
        of_images = [values(field, name, method) for name in ("MNIST", "Fashion-MNIST")]
        rows += [[method, "", "", *map(percent, of_images)]]
    n_tables = len({record["set"] for record in tables})
    heads = [
        f"{n_tables} tables, ARI",
        "CLINC150 sentences, accuracy %",
        "MNIST, accuracy %",
        "Fashion-MNIST, accuracy %",
    ]
    return table(["method", *heads], rows) + "\n"


def real_losses() -> str:
    """List of the sets on which another method has a higher mean, one per line."""
    tables = read_result("real/tables.json")["records"]
    means: dict[str, dict[str, float]] = {}
    for name in dict.fromkeys(record["set"] for record in tables):
        scores: dict[str, list[float]] = {}
        for record in tables:
            if record["set"] == name:
                scores.setdefault(record["method"], []).append(record["ari"])
        means[name] = {method: statistics.mean(found) for method, found in scores.items()}
    behind_k_means = sum(of_methods["k-means"] > of_methods[OURS] for of_methods in means.values())
    behind_any = sum(max(of_methods, key=of_methods.__getitem__) != OURS for of_methods in means.values())
    lines = [
        f"- **Tables:** k-means is faster, and it beats `{OURS}` on {behind_k_means} of {len(means)} tables. On "
        f"{behind_any} of them, at least one of the methods above is better."
    ]
    field = field_results(result_path("field"), None)
    for name in ("MNIST", "Fashion-MNIST"):
        ours = values(field, name, OURS)
        better = [
            method
            for method in ("IMSAT", "GMM on UMAP")
            if statistics.mean(values(field, name, method)) > statistics.mean(ours)
        ]
        if better:
            spread = f"; `{OURS}` has {percent(ours)} % over {len(ours)} seeds" if len(ours) > 1 else ""
            line = f"- **{name}:** {' and '.join(better)} {'is' if len(better) == 1 else 'are'} better{spread}."
            unequal = f"{name} 1:10"
            ours = values(field, unequal, OURS)
            shown = [
                f"{method} {percent(shares)} % ({len(shares)} seed{'s' * (len(shares) > 1)})"
                for method in field.names(FIELD, "method")
                if (shares := values(field, unequal, method))
                and (method in (*better, OURS) or statistics.mean(shares) > statistics.mean(ours))
            ]
            if ours:
                line += f" With classes of unequal size, down to a tenth of the images: {', '.join(shown)}."
            lines.append(line)
    return "\n".join(lines) + "\n"


def manifolds_table() -> str:
    """Table of methods on disjoint manifolds: sets with every point right, and times relative to ours."""
    records = read_result("labeling/accuracy.json")["records"]
    sets = list(dict.fromkeys(record["set"] for record in records))
    ours = {(record["set"], record["seed"]): record for record in records if record["method"] == "ours"}
    rows = []
    for method in sorted(dict.fromkeys(record["method"] for record in records), key=lambda name: name != "ours"):
        of_method = [record for record in records if record["method"] == method]
        measured = [name for name in sets if any(record["set"] == name for record in of_method)]
        right = [
            name for name in measured if all(record["accuracy"] == 1 for record in of_method if record["set"] == name)
        ]
        times = []
        for key in ("fit_seconds", "predict_seconds"):
            ratios = [record[key] / ours[record["set"], record["seed"]][key] for record in of_method if record.get(key)]
            times.append(f"{float(f'{statistics.median(ratios):.2g}'):g}" if ratios else "cannot")
        name = "**ManifoldLabeler**" if method == "ours" else method
        mean = statistics.mean(record["accuracy"] for record in of_method)
        rows.append([name, f"{100 * mean:.1f}", f"{len(right)} of {len(measured)}", *times])
    return table(["method", "mean accuracy, %", "all right", "time of a fit", "time for new points"], rows) + "\n"


def pace_caption() -> str:
    """Text on when our recipe reaches the accuracy of the paper's recipe."""
    return caption(pace_results(PACE, result_path("pace"), None)) + "\n"


def pace_changes() -> str:
    """Table of short trainings with one change at a time."""
    return changes_table(pace_results(CHANGED, result_path("pace"), None)) + "\n"


def run_table() -> str:
    """Table of the training runs behind the probes."""
    lines = [
        "| | epochs | minutes | images/s | memory | information of the layers, nats (bound) | dead states |",
        "| --- | ---: | ---: | ---: | ---: | --- | ---: |",
    ]
    for path in sorted(result_path("images").glob("*.json")):
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
    """Table that compares our step with the literal step of the paper."""
    result = read_result("step.json")
    lines = [
        "| width | batch | step | images/s | against literal | memory | against literal | of the convolution peak |",
        "| ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in result["steps"]:
        work = 1.5 if row["step"] == "literal" else 1.0  # three passes, but only the operations of two are counted
        used = "" if "1/4" in row["step"] else f"{work * row['gflops'] / result['convolution_gflops']:.0%}"
        lines.append(
            f"| {row['width']:g} | {row['batch']} | {row['step']} "
            f"| {row['images_per_second']:.1f} | {row['speed']:.2f}x "
            f"| {row['megabytes']:.0f} MB | {row['memory']:.0%} | {used} |"
        )
    return "\n".join(lines) + "\n"


def traffic_table() -> str:
    """Table of the bytes that a process sends in a step of the paper's encoder."""
    traffic = read_result("processes.json")["traffic"]
    lines = ["| sum of | bytes |", "| --- | ---: |", *(f"| {name} | {n:,} |" for name, n in traffic.items())]
    return "\n".join(lines) + "\n"


def processes_table() -> str:
    """Table that compares two processes with one."""
    lines = [
        "| encoder | batch | one process | two | two against one | sent by each | messages |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name, row in read_result("processes.json")["measured"].items():
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
    """Table of the assumptions of the model of many GPUs."""
    result = read_result("processes.json")
    a = result["assumed"]
    rows = {
        "$b$": f"{a['images_per_gpu']} images on each card",
        "$F$": f"{a['flops_per_image'] / 1e9:.1f} billion operations per image: the paper's encoder, clean and "
        "perturbed, forward and backward",
        "$R$": f"{a['gpu_flops'] / 1e12:.0f} TFLOPS achieved by a card",
        "$S$": f"{sum(result['traffic'].values()) / 1e6:.1f} MB, the table above; a ring sends them twice",
        "$W$": f"{a['gpu_link'] / 1e9:.0f} GB/s between the {a['gpus_per_node']} cards of a node, "
        f"{a['node_link'] / 1e9:.0f} GB/s for each card between nodes",
        "$m$": f"{result['model_messages']} messages",
        "$\\ell$": f"{1e6 * a['latency']:.0f} microseconds for each doubling of the cards",
    }
    lines = ["| | assumed |", "| --- | --- |", *(f"| {name} | {text} |" for name, text in rows.items())]
    return "\n".join(lines) + "\n"


def model_table() -> str:
    """Table of the model for up to 1,024 GPUs."""
    lines = [
        "| cards | step | share of messages | images/s | a billion images |",
        "| ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in read_result("processes.json")["model"]:
        hours = row["hours_per_billion"]
        time = f"{hours:.1f} h" if hours >= 1 else f"{60 * hours:.0f} min"
        lines.append(
            f"| {row['gpus']:,} | {row['milliseconds']:.0f} ms | {row['communication']:.0%} "
            f"| {row['images_per_second']:,.0f} | {time} |"
        )
    return "\n".join(lines) + "\n"


def rules_table() -> str:
    """Table of the F1 of rules and trees, for each data set and on average."""
    records = read_result("real/rules.json")["records"]
    methods = [name for name in records[0] if name not in ("set", "seed", "clusters", "processor_seconds")]
    rows = [[r["set"], r["clusters"], *(f"{r[method]:.3f}" for method in methods)] for r in records]
    means = [f"**{statistics.mean(r[method] for r in records):.3f}**" for method in methods]
    return table(["", "clusters", *methods], [*rows, ["**mean**", "", *means]]) + "\n"


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
    "real/tables.json": real_table,
    "real/tables.json#losses": real_losses,
    "labeling/accuracy.json": manifolds_table,
    "field/field.json": clusters_table,
    "pace/pace.json": pace_caption,
    "pace/changes.json": pace_changes,
    "real/rules.json": rules_table,
    "real/features.json": features_table,
    "real/photographs.json": photographs_caption,
    "guarantees/crashes.json": crashes_table,
    "guarantees/disks.json": disks_table,
    "guarantees/soak.json": soak_table,
    "guarantees/fuzz.json": fuzz_table,
    "guarantees/numerics.json#objectives": objectives_table,
    "guarantees/numerics.json#estimators": estimators_table,
    "guarantees/determinism.json": determinism_table,
    "guarantees/leaks.json": leaks_table,
    "guarantees/mutants.json": mutants_table,
    "guarantees/mutants.json#equivalent": equivalent_table,
}
"""Functions that make the tables, by the name in the mark."""


def with_tables(page: str) -> str:
    """Replace the tables of a page by new ones."""
    return MARKED.sub(lambda found: found[1] + TABLES[found[2]]() + found[3], page)


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
