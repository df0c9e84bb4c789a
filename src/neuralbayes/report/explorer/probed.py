"""Results of ``neuralbayes probe`` in the folder of a run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from neuralbayes.plot.crosstab import CrosstabDisplay
from neuralbayes.report.explorer.figures import Picture, drawn
from neuralbayes.report.explorer.side import Grid
from neuralbayes.system.files import read_json


def probe_grid(folder: Path) -> Grid | None:
    """All probes in a table; None without probes."""
    rows = [
        (str(found["features"]), str(found["head"]), data, f"{found['n_features']:,}", _accuracy(found))
        for data, found in _results(folder)
    ]
    if not rows:
        return None
    return Grid(
        "Probes: a small classifier on the features, % right",
        ("features", "classifier", "data", "number", "all test images"),
        rows,
    )


def probe_pictures(folder: Path, class_names: Sequence[str]) -> list[Picture]:
    """The confusion matrix of the encoder's best layer."""
    found = [row for _, row in _results(folder) if str(row["features"]).startswith("encoder") and row.get("confusion")]
    if not found:
        return []
    best = max(found, key=lambda row: float(row["mean"]))
    counts = np.asarray(best["confusion"], dtype=np.float64)
    names = list(class_names) if len(class_names) == len(counts) else None
    side = float(np.clip(2.2 + 0.26 * len(counts), 3.2, 6.0))
    return [
        drawn(
            f"Probe of {best['features']}: taken for",
            f"Confusion matrix of the {best['head']} probe of {best['features']}: {100 * best['mean']:.1f} % of "
            f"{best['n_test']:,} test images right.",
            lambda ax: CrosstabDisplay(counts, row_names=names, column_names=names).plot(ax=ax),
            (side + 0.6, side),
        )
    ]


def is_number(value: Any) -> bool:
    """Whether `value`, from JSON, is a finite number of reasonable size."""
    return isinstance(value, int | float) and abs(value) < 1e15


def _results(folder: Path) -> list[tuple[str, dict[str, Any]]]:
    """The data and the row of each probe, in the order of the files."""
    rows = []
    for path in sorted(folder.glob("probe-*.json")):
        try:
            content = read_json(path)
            divided = " (no test part: a fifth was set aside)" if content.get("division") else ""
            found = [(f"{Path(str(content['data'])).name}{divided}", dict(row)) for row in content["results"]]
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{path} does not hold the results of a probe ({error!r})") from error
        for _, row in found:
            if "features" not in row or not _is_result(row):
                raise ValueError(f"{path} does not hold the results of a probe: a row lacks its numbers")
        rows += found
    return rows


def _is_result(found: dict[str, Any]) -> bool:
    """Whether JSON contains the numbers of a `ProbeResult`."""
    if "head" not in found or not isinstance(found.get("accuracies"), list):
        return False
    return all(is_number(found.get(name)) for name in ("mean", "std", "n_features", "n_test"))


def _accuracy(found: dict[str, Any]) -> str:
    spread = f" ± {100 * found['std']:.2f}" if len(found.get("accuracies", [])) > 1 else ""
    return f"{100 * found['mean']:.2f}{spread}"
