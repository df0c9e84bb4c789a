"""Write the tables of README.md from results/demo.json, which is the result of `neuralbayes demo`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
MARKED = re.compile(r"(<!-- results/demo\.json, by benchmarks/readme_tables\.py -->\n).*?(<!-- end -->)", re.DOTALL)


def tables(result: dict[str, Any]) -> str:
    """Both tables as Markdown."""
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


def with_tables(readme: str, result: dict[str, Any]) -> str:
    """The README with the tables of `result` between its marks."""
    return MARKED.sub(lambda found: found[1] + tables(result) + found[2], readme)


def main() -> None:
    result = json.loads((ROOT / "results" / "demo.json").read_text(encoding="utf-8"))
    readme = ROOT / "README.md"
    readme.write_text(with_tables(readme.read_text(encoding="utf-8"), result), encoding="utf-8")


if __name__ == "__main__":
    main()
