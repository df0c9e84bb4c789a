"""Results of benchmarks/field.py: selected numbers, and a table for the terminal."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from records import Results
from rich.console import Console
from rich.table import Table

FIELD, FIELD_COMMAND = "field", "python benchmarks/field.py --full"
OURS = "InformationClusterer"
BY_INFORMATION = "InformationClusterer, merged by information"
"""A variant that was left out: the states of three networks are merged so that the least information is lost."""
NOT_MEASURED = "-"


def field_results(folder: Path | None, versions: dict[str, str] | None, threads: int = 1) -> Results:
    return Results(folder, versions, [FIELD], FIELD_COMMAND, threads)


def values(results: Results, name: str, method: str, field: str = "accuracy") -> list[float]:
    """One value for each seed."""
    return list(results.column(FIELD, field, set=name, method=method).values())


def cost(results: Results, name: str, method: str) -> float | None:
    """Median processor time of a fit in seconds."""
    measured = values(results, name, method, "processor_seconds")
    return float(np.median(measured)) if measured else None


def percent(shares: list[float]) -> str:
    """Mean and standard deviation in percent, without line breaks; a dash if nothing was measured."""
    if not shares:
        return NOT_MEASURED
    spread = f"\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}{100 * np.std(shares, ddof=1):.1f}" if len(shares) > 1 else ""
    return f"{100 * np.mean(shares):.1f}{spread}"


def seconds(value: float | None) -> str:
    return NOT_MEASURED if value is None else f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


def print_summary(results: Results) -> None:
    """Print accuracies, costs and failures to the terminal."""
    names = results.names(FIELD, "set")
    table = Table(title="Accuracy in percent, processor seconds")
    table.add_column("method")
    for name in names:
        table.add_column(name, justify="right")
    for method in results.names(FIELD, "method"):
        cells = (
            f"{percent(values(results, name, method))}\n{seconds(cost(results, name, method))} s" for name in names
        )
        table.add_row(method, *cells)
    Console().print(table)
    for record in results.records[FIELD]:
        if "failed" in record:
            Console().print(f"{record['set']}, {record['method']}, seed {record['seed']}: {record['failed']}")
