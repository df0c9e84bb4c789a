"""Write the tables of README.md and docs/benchmarks.md from the committed results.

Each table is between two marks. The first mark names the results that the table is made from.
"""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", "docs/benchmarks.md")
MARKED = re.compile(r"(<!-- results/(\S+), by benchmarks/tables\.py -->\n).*?(<!-- end -->)", re.DOTALL)

OURS = "InformationClusterer"
IMAGES = ("MNIST", "Fashion-MNIST")
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

Record = dict[str, Any]


def real_table() -> str:
    """Table of clusterers on real tables, sentences and images."""
    records, sentences, field = (_records(f"{name}.json") for name in ("real/tables", "real/sentences", "field/field"))
    means = _means_of_tables(records)
    rows = []
    for method in _distinct(records, "method"):
        of_sentences = [one["accuracy"] for one in sentences if one["method"] == method and "accuracy" in one]
        cells = [
            f"{statistics.mean(of_methods[method] for of_methods in means.values()):.3f}",
            f"{100 * statistics.mean(of_sentences):.1f}" if of_sentences else "",
            *(_percent(_accuracies(field, name, IN_FIELD.get(method, method))) for name in IMAGES),
        ]
        rows.append([_name(method), *cells])
    rows += [
        [method, "", "", *(_percent(_accuracies(field, name, method)) for name in IMAGES)]
        for method in ("IMSAT", "GMM on UMAP")  # the best others on images
    ]
    heads = [f"{len(means)} tables, ARI", "CLINC150 sentences, accuracy %", *(f"{name}, accuracy %" for name in IMAGES)]
    return _table(["method", *heads], rows)


def real_losses() -> str:
    """List of the sets on which another method has a higher mean, one per line."""
    means, field = _means_of_tables(_records("real/tables.json")), _records("field/field.json")
    behind_k_means = sum(of_methods["k-means"] > of_methods[OURS] for of_methods in means.values())
    behind_any = sum(max(of_methods, key=of_methods.__getitem__) != OURS for of_methods in means.values())
    lines = [
        f"- **Tables:** k-means is faster, and it beats `{OURS}` on {behind_k_means} of {len(means)} tables. On "
        f"{behind_any} of them, at least one of the methods above is better."
    ]
    for name in IMAGES:
        ours = _accuracies(field, name, OURS)
        better = [
            method
            for method in ("IMSAT", "GMM on UMAP")
            if statistics.mean(_accuracies(field, name, method)) > statistics.mean(ours)
        ]
        if not better:
            continue
        unequal = f"{name} 1:10"
        of_ours = _accuracies(field, unequal, OURS)
        shown = [
            f"{method} {_percent(found)} % ({len(found)} seed{'s' * (len(found) > 1)})"
            for method in _distinct(field, "method")
            if (found := _accuracies(field, unequal, method))
            and (method in (*better, OURS) or statistics.mean(found) > statistics.mean(of_ours))
        ]
        lines.append(
            f"- **{name}:** {' and '.join(better)} {'is' if len(better) == 1 else 'are'} better; `{OURS}` has "
            f"{_percent(ours)} % over {len(ours)} seeds. With classes of unequal size, down to a tenth of the images: "
            f"{', '.join(shown)}."
        )
    return "\n".join(lines) + "\n"


def field_table() -> str:
    """Table of clusterers on MNIST and Fashion-MNIST, with the best on MNIST first."""
    records = _records("field/field.json")
    methods = [method for method in _distinct(records, "method") if _accuracies(records, "MNIST", method)]
    methods.sort(key=lambda method: -statistics.mean(_accuracies(records, "MNIST", method)))
    rows = []
    for method in methods:
        cells = [_name(method)]
        for name in IMAGES:
            cost = _column(records, "processor_seconds", set=name, method=method)
            cells += [_percent(_accuracies(records, name, method)), _seconds(statistics.median(cost))]
        rows.append(cells)
    heads = [head for name in IMAGES for head in (f"{name}, %", "processor s")]
    return _table(["clustering accuracy", *heads], rows)


def features_table() -> str:
    """Table of clusterers on features of photographs and of sentences."""
    records = _records("real/features.json")
    names = _distinct(records, "set")
    rows = []
    for method in _distinct(records, "method"):
        cells: list[str] = []
        for name in names:
            of_both = {key: _column(records, key, set=name, method=method) for key in ("ami", "clusters", "noise")}
            if not of_both["ami"]:
                cells += [""] * 4
                continue
            ami, clusters, noise = map(statistics.mean, of_both.values())
            seconds = statistics.mean(_column(records, "processor_seconds", set=name, method=method))
            left_out = f", {100 * noise:.0f} % noise" if noise else ""
            cells += [_percent(_accuracies(records, name, method)), f"{ami:.3f}", f"{clusters:.0f}{left_out}"]
            cells.append(_seconds(seconds))
        rows.append([_name(method), *cells])
    heads = [head for name in names for head in (f"{name}, accuracy %", "AMI", "clusters", "processor s")]
    return _table(["", *heads], rows)


def manifolds_table() -> str:
    """Table of methods on disjoint manifolds: sets with every point right, and times relative to ours."""
    records = _records("labeling/accuracy.json")
    ours = {(record["set"], record["seed"]): record for record in records if record["method"] == "ours"}
    rows = []
    for method in sorted(_distinct(records, "method"), key=lambda name: name != "ours"):
        of_method = [record for record in records if record["method"] == method]
        measured = _distinct(of_method, "set")
        right = [name for name in measured if set(_accuracies(of_method, name, method)) == {1}]
        times = []
        for key in ("fit_seconds", "predict_seconds"):
            ratios = [record[key] / ours[record["set"], record["seed"]][key] for record in of_method if record.get(key)]
            times.append(f"{float(f'{statistics.median(ratios):.2g}'):g}" if ratios else "cannot")
        name = "**ManifoldLabeler**" if method == "ours" else method
        mean = statistics.mean(record["accuracy"] for record in of_method)
        rows.append([name, f"{100 * mean:.1f}", f"{len(right)} of {len(measured)}", *times])
    return _table(["method", "mean accuracy, %", "all right", "time of a fit", "time for new points"], rows)


def rules_table() -> str:
    """Table of the F1 of rules and trees, for each data set and on average."""
    records = _records("real/rules.json")
    methods = [name for name in records[0] if name not in ("set", "seed", "clusters", "processor_seconds")]
    rows = [[r["set"], r["clusters"], *(f"{r[method]:.3f}" for method in methods)] for r in records]
    means = [f"**{statistics.mean(r[method] for r in records):.3f}**" for method in methods]
    return _table(["", "clusters", *methods], [*rows, ["**mean**", "", *means]])


def image_tables() -> str:
    """Tables of probes of the laptop preset on real images, one for each data set."""
    lines: list[str] = []
    for path in sorted((ROOT / "results" / "images").glob("*.json")):
        probes = json.loads(path.read_text(encoding="utf-8"))["probes"]
        published = PUBLISHED.get(path.stem, {})
        columns = {
            "all test images": [_probed(found.get("validation")) for found in probes.values()],
            "best epoch on 128": [_probed(found.get("paper")) for found in probes.values()],
            "published (best on 128)": [str(published.get(name, "")) for name in probes],
        }
        columns = {head: column for head, column in columns.items() if any(column)}
        rows = list(zip(probes, *columns.values(), strict=True))
        means = {name: found["validation"]["mean"] for name, found in probes.items()}
        gains = [
            f"{100 * (means['encoder, last layer'] - mean):.1f} above the {' with '.join(name.split(', ')[:-1])}"
            for name, mean in means.items()
            if name.startswith("random") and name.endswith("last layer")
        ]
        lines.append(_table([f"{path.stem}: MLP probe, % right", *columns], rows))
        lines.append(f"Points that the last layer gained: {', '.join(gains)}.\n")
    return "\n".join(lines)


def step_table() -> str:
    """Table that compares our step with the literal step of the paper."""
    result = json.loads((ROOT / "results" / "step.json").read_text(encoding="utf-8"))
    rows = []
    for row in result["steps"]:
        work = 1.5 if row["step"] == "literal" else 1.0  # three passes, but only the operations of two are counted
        used = "" if "1/4" in row["step"] else f"{work * row['gflops'] / result['convolution_gflops']:.0%}"
        speed = [f"{row['images_per_second']:.1f}", f"{row['speed']:.2f}x"]
        memory = [f"{row['megabytes']:.0f} MB", f"{row['memory']:.0%}"]
        rows.append([f"{row['width']:g}", row["batch"], row["step"], *speed, *memory, used])
    heads = ["width", "batch", "step", "images/s", "against literal", "memory", "against literal"]
    return _table([*heads, "of the convolution peak"], rows, words=(2,))


TABLES: dict[str, Callable[[], str]] = {
    "real/tables.json": real_table,
    "real/tables.json#losses": real_losses,
    "field/field.json": field_table,
    "real/features.json": features_table,
    "labeling/accuracy.json": manifolds_table,
    "real/rules.json": rules_table,
    "images/*.json": image_tables,
    "step.json": step_table,
}
"""Functions that make the tables, by the name in the mark."""


def with_tables(page: str) -> str:
    """Replace the tables of a page by new ones."""
    return MARKED.sub(lambda found: found[1] + TABLES[found[2]]() + found[3], page)


def _table(heads: Sequence[str], rows: Iterable[Sequence[Any]], words: Sequence[int] = (0,)) -> str:
    """A Markdown table; columns of `words` are aligned to the left, and others, of numbers, to the right."""
    marks = ["---" if i in words else "---:" for i in range(len(heads))]
    return "".join(f"| {' | '.join(map(str, cells))} |\n" for cells in (heads, marks, *rows))


def _records(name: str) -> list[Record]:
    records: list[Record] = json.loads((ROOT / "results" / name).read_text(encoding="utf-8"))["records"]
    return records


def _distinct(records: Iterable[Record], key: str) -> list[str]:
    return list(dict.fromkeys(record[key] for record in records))


def _column(records: Iterable[Record], key: str, **where: str) -> list[float]:
    return [record[key] for record in records if where.items() <= record.items() and record.get(key) is not None]


def _accuracies(records: Iterable[Record], name: str, method: str) -> list[float]:
    """One value for each seed."""
    return _column(records, "accuracy", set=name, method=method)


def _means_of_tables(records: Iterable[Record]) -> dict[str, dict[str, float]]:
    """Mean ARI over the seeds by table and method."""
    found: dict[str, dict[str, list[float]]] = {}
    for record in records:
        found.setdefault(record["set"], {}).setdefault(record["method"], []).append(record["ari"])
    return {name: {key: statistics.mean(values) for key, values in one.items()} for name, one in found.items()}


def _name(method: str) -> str:
    return f"**{method}**" if method == OURS else method


def _percent(shares: Sequence[float]) -> str:
    """Mean and standard deviation in percent, without line breaks; empty if nothing was measured."""
    spread = f"\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}{100 * np.std(shares, ddof=1):.1f}" if len(shares) > 1 else ""
    return f"{100 * np.mean(shares):.1f}{spread}" if shares else ""


def _seconds(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


def _probed(result: dict[str, Any] | None) -> str:
    if result is None:
        return ""
    return f"{100 * result['mean']:.1f}" + (f" ± {100 * result['std']:.1f}" if len(result["accuracies"]) > 1 else "")


def main() -> None:
    for name in PAGES:
        path = ROOT / name
        path.write_text(with_tables(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
