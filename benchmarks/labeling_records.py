"""Results of benchmarks/labeling.py, summarised over the seeds."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from records import Results
from rich.console import Console
from rich.table import Table

METHODS = ("ours", "SpectralClustering", "HDBSCAN", "KMeans", "GaussianMixture", "GemClus")
FILES = ("accuracy", "cost", "certificate", "connected", "auto", "scale")


def labeling_results(folder: Path | None, versions: dict[str, str] | None) -> Results:
    """Load the records of the benchmark."""
    return Results(folder, versions, FILES, "python benchmarks/labeling.py --full")


def time_ratio(results: Results, field: str, method: str, name: str | None = None) -> float | None:
    """Median ratio of a method's seconds to ours, over the seeds of a set, or of all sets if `name` is None."""
    ratios: list[float] = []
    for one in [name] if name else results.names("accuracy", "set"):
        ours = results.column("accuracy", field, set=one, method="ours")
        theirs = results.column("accuracy", field, set=one, method=method)
        ratios += [theirs[seed] / ours[seed] for seed in theirs if seed in ours]
    return float(np.median(ratios)) if ratios else None


def cost_ratio(results: Results, above: str, below: str) -> float:
    """Median ratio of two columns of the cost file, over sets and seeds."""
    return float(np.median([record[above] / record[below] for record in results.records["cost"]]))


def scale_seconds(results: Results, method: str, dim: int) -> dict[int, float]:
    """Median seconds of a fit by number of rows."""
    sizes = sorted(results.names("scale", "n"))
    columns = {n: results.column("scale", "fit_seconds", method=method, dim=dim, n=n) for n in sizes}
    return {n: float(np.median(list(column.values()))) for n, column in columns.items() if column}


def print_summary(results: Results) -> None:
    """Print tables to the terminal."""
    console = Console()
    table = Table(title="Mean accuracy in %, the smallest below; time: fit / ours, median", show_lines=True)
    table.add_column("set", no_wrap=True)
    methods = [method for method in METHODS if method in results.names("accuracy", "method")]
    for method in methods:
        table.add_column(re.sub("(?<=[a-z])(?=[A-Z])", "\n", method), justify="right", no_wrap=True)
    for name in results.names("accuracy", "set"):
        cells = []
        for method in methods:
            accuracy = list(results.column("accuracy", "accuracy", set=name, method=method).values())
            cells.append(f"{100 * np.mean(accuracy):.1f}\n{100 * min(accuracy):.1f}" if accuracy else "")
        table.add_row(name, *cells)
    ratios = [time_ratio(results, "fit_seconds", method) for method in methods]
    table.add_row("time", *(f"{ratio:.2f}" if ratio else "" for ratio in ratios))
    console.print(table)
    auto = results.records["auto"]
    console.print(f"n_clusters='auto' right: {sum(r['found'] == r['right'] for r in auto)} of {len(auto)}")
    disjoint = min(r["separation"] for r in results.records["accuracy"] if r["method"] == "ours")
    connected = max(r["separation"] for r in results.records["certificate"])
    console.print(f"separation / log 2: disjoint sets at least {disjoint:.3f}, connected ones at most {connected:.3f}")
    console.print(f"8 restarts / 1: {cost_ratio(results, 'eight', 'one'):.2f}")
    console.print(f"512-D / 2-D: {cost_ratio(results, 'wide', 'eight'):.2f}")
    console.print(f"ours / SpectralClustering: {cost_ratio(results, 'eight', 'spectral'):.2f}")
    for dim in results.names("scale", "dim"):
        theirs = scale_seconds(results, "SpectralClustering", dim)
        for n, seconds in scale_seconds(results, "ours", dim).items():
            ratio = f", SpectralClustering / ours {theirs[n] / seconds:.2f}" if n in theirs else ""
            console.print(f"{dim}-D, {n:,} rows: {seconds:.2f} s{ratio}")
