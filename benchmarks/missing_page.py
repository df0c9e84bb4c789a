"""Section of docs/clustering.md on tables with missing cells, from results/real/missing.json."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from pages import table
from records import Results

FOLDER = Path(__file__).parents[1] / "results" / "real"
OURS = "InformationClusterer"
MIXED = {"housevotes": "categories", "mushroom": "categories", "heart, mixed": "mixed"}

KNOW = """Cells are removed at random here, so their absence carries no information and a mask (`missing="mask"`) cannot
help. The default was chosen on these tables too."""


def missing_sections() -> list[str]:
    """The paragraphs and tables of the section, in order."""
    results = Results(FOLDER, None, ["missing"], "")
    shares = [share for share in sorted(results.names("missing", "missing")) if is_whole(results, share)]
    return [
        "## Raw tables with missing cells",
        "These are the same tables in raw form, with numbers and categories. A share of all cells is removed at "
        "random. In *heart, mixed*, codes are treated as categories. `InformationClusterer` gets the data frame as it "
        "is. For k-means, numbers are standardised and missing cells imputed, either by the mean or most common value "
        "or by scikit-learn's `IterativeImputer`. k-prototypes handles categories itself. The figures are adjusted "
        f"Rand indices with {len(results.names('missing', 'seed'))} seed(s), measured by `python "
        "benchmarks/missing.py`. Differences of a few hundredths on one table mean little.",
        means_table(results, shares),
        "These are the tables with categories:",
        sets_table(results, shares),
        KNOW,
    ]


def is_whole(results: Results, share: float) -> bool:
    """Whether all tables were measured with this share of missing cells."""
    names, methods = (set(results.names("missing", field)) for field in ("set", "method"))
    return all(
        results.column("missing", "ari", set=name, missing=share, method=method)
        for name in names
        for method in methods
        if not method.endswith("mask")
    )


def mean_of(results: Results, share: float, method: str, names: list[str]) -> float:
    found = [
        np.mean([*results.column("missing", "ari", set=name, missing=share, method=method).values()])
        for name in names
        if results.column("missing", "ari", set=name, missing=share, method=method)
    ]
    return float(np.mean(found)) if found else float("nan")


def means_table(results: Results, shares: list[float]) -> str:
    names = results.names("missing", "set")
    rows = []
    for method in results.names("missing", "method"):
        values = [mean_of(results, share, method, names) for share in shares]
        cells = ["" if np.isnan(value) else f"{value:.3f}" for value in values]
        rows.append([method, *cells])
    return table([f"mean of {len(names)} tables", *(f"{share:.0%} missing" for share in shares)], rows)


def sets_table(results: Results, shares: list[float]) -> str:
    methods = [method for method in results.names("missing", "method") if not method.endswith("mask")]
    rows = [
        [f"{name} ({kind})", f"{share:.0%}", *(f"{mean_of(results, share, method, [name]):.3f}" for method in methods)]
        for name, kind in MIXED.items()
        for share in shares
    ]
    return table(["", "missing", *methods], rows)
