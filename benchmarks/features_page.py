"""Tables and texts on pretrained features and many photographs, for docs/compare.md and docs/images.md."""

from __future__ import annotations

import statistics

from field_records import OURS, percent, seconds
from pages import read_result, table


def features_table() -> str:
    """Table of clusterers on features of photographs and of sentences."""
    records = read_result("real/features.json")["records"]
    names, methods = (list(dict.fromkeys(record[field] for record in records)) for field in ("set", "method"))
    rows = []
    for method in methods:
        cells: list[str] = []
        for name in names:
            found = [record for record in records if (record["set"], record["method"]) == (name, method)]
            if not found:
                cells += [""] * 4
                continue
            means = {key: statistics.mean(record[key] for record in found) for key in ("ami", "clusters", "noise")}
            noise = f", {100 * means['noise']:.0f} % noise" if means["noise"] else ""
            cells += [
                percent([record["accuracy"] for record in found]),
                f"{means['ami']:.3f}",
                f"{means['clusters']:.0f}{noise}",
                seconds(statistics.mean(record["processor_seconds"] for record in found)),
            ]
        rows.append([f"**{method}**" if method == OURS else method, *cells])
    heads = [head for name in names for head in (f"{name}, accuracy %", "AMI", "clusters", "processor s")]
    return table(["", *heads], rows) + "\n"


def photographs_caption() -> str:
    """Text on the memory and time of `neuralbayes label` for many photographs."""
    lines = []
    for record in read_result("real/photographs.json")["records"]:
        by = "the features of a pretrained network" if record["features"] else "their pixels"
        lines.append(
            f"`python benchmarks/photographs.py` clusters {record['pictures']:,} photographs of "
            f"{record['megapixels']:.0f} megapixels ({record['bytes'] / 1e9:.1f} GB) by {by}. It takes "
            f"{record['peak_megabytes'] / 1000:.1f} GB of memory and {record['processor_seconds'] / 60:.0f} minutes of "
            "one core."
        )
    return "\n\n".join(lines) + "\n"
