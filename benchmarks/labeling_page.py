"""Write docs/labeling.md and its tables from the results of benchmarks/labeling.py."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from labeling_pictures import draw_sets, draw_time
from labeling_records import METHODS, cost_ratio, scale_seconds, time_ratio
from pages import table
from records import Record, Results

from neuralbayes.manifolds.separation import CERTIFIED
from neuralbayes.system.files import atomic_write

TITLES = {"ours": "ManifoldLabeler", "GemClus": "GemClus MLPMMD"}
PEERS = METHODS[1:]

NONE = "-"

INTRODUCTION = """<!-- Generated from results/labeling/*.json by benchmarks/labeling.py --page: do not edit. -->

# Labelling benchmarks

This page compares `ManifoldLabeler` with other methods on disjoint manifolds, and measures how often its certificate is
wrong.

In short, `ManifoldLabeler` works as follows. It connects a sample of the rows to a graph of nearest neighbours. A layer
of random sines and a linear head model $p(z \\mid x)$. The head is trained to minimise the DML objective plus a
smoothness term, the squared change of the logits along the edges of the graph. Eight starts are trained together, and
the best one is chosen by the objective on held-out rows. The separation of each state is its Jensen-Shannon divergence
from the rest after a long random walk: log 2 if no walk leaves the state. [What the certificate
means](tables.md#certificate) lists the other conditions. With `n_clusters="auto"`, it returns the largest number of
states that are all certified and that are found again in resamples."""

NOT_SHOWN = """- All disjoint sets on this page have a gap between their manifolds, because this is what the method is
  for. For clusters that touch or overlap, use `InformationClusterer` or a mixture model.
- On these sets, the neighbour graph does most of the work, as it does in SpectralClustering. `ManifoldLabeler` adds a
  network that labels new points, $p(z \\mid x)$, the certificate, and a cost that is linear in the number of rows.
- The graph contains at most 2,000 random rows. A manifold with only a handful of rows among them is not found.
- HDBSCAN does not accept a number of clusters. Of the minimum cluster sizes 5, 20 and 60, we use the one that finds the
  right number, or comes closest to it, with the least noise. Only that fit is timed. KMeans has ten starts. All other
  methods use their defaults."""


def write_page(results: Results, docs: Path) -> None:
    """Write labeling.md and two pictures into the folder `docs`."""
    draw_sets(results, docs / "pictures" / "labeling-sets.png")
    draw_time(results, docs / "pictures" / "labeling-time.png")
    seeds = sorted(results.names("auto", "seed"))
    slow = len({record["seed"] for record in results.records["accuracy"] if record["method"] == "GemClus"})
    fresh = len(results.column("accuracy", "fresh_accuracy", set="moons", method="HDBSCAN"))
    parts = [
        INTRODUCTION,
        "![The ten sets, coloured by the labels found](pictures/labeling-sets.png)",
        f"All results are over {len(seeds)} seeds ({seeds[0]} to {seeds[-1]}) on one thread. GemClus, which takes a "
        f"minute or two per fit, has at most {slow}. A dash means that it was not run. Time ratios are medians over "
        "seeds of two fits of the same points. The results come from `python benchmarks/labeling.py --full` with "
        f"{results.packages()}. The machine was also doing other work, so ratios are more reliable than seconds.",
        "## Accuracy with a given number of clusters",
        "The sets have 1,200 points in 512 dimensions. The first four are those of the paper. The table shows the mean "
        "accuracy in %, with the worst seed in brackets. Labels are matched to manifolds one to one. Points called "
        "noise count as wrong.",
        accuracy_table(results),
        "The next table counts the seeds with every point right, and those with at least 99 % right:",
        seeds_table(results),
        "## Time of a fit",
        "Times are relative to `ManifoldLabeler` on the same points. A value below 1 is faster.",
        ratio_table(results),
        "## New points",
        "Each method labels 10,000 points that it has not seen. The table shows the accuracy in %, with the worst seed "
        "in brackets, and the time relative to ours. SpectralClustering cannot label new points. HDBSCAN's "
        f"`approximate_predict` was run with {fresh} seeds.",
        fresh_table(results),
        "## The number of clusters found",
        'With `n_clusters="auto"` in 512 dimensions. The last four sets are connected, so 1 is the right answer.',
        auto_table(results),
        "## The certificate",
        f"Separation runs from 0 to 100. A manifold is certified if its separation is at least {100 * CERTIFIED:g} and "
        "if outliers, chance and discrete columns do not explain it. On connected sets, the labeler was asked for 2 "
        "and for 3 manifolds that do not exist.",
        certificate_table(results),
        connected_sentence(results),
        connected_table(results),
        "## Cost",
        cost_list(results),
        "![Time of a fit against the number of rows](pictures/labeling-time.png)",
        scale_table(results),
        memory_sentence(results),
        "## Where it loses or ties",
        "\n".join([*notes(results), NOT_SHOWN]),
    ]
    with atomic_write(docs / "labeling.md") as temporary:
        temporary.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def title(method: str) -> str:
    return TITLES.get(method, method)


def percent(value: float) -> str:
    """Format a share in percent, with more digits near 100 and never rounded up to 100."""
    if value > 0.999:
        return "100" if value == 1.0 else f"{np.floor(1e5 * value + 1e-6) / 1e3:.3f}"
    return f"{100 * value:.1f}"


def mean_and_worst(values: Sequence[float]) -> str:
    return f"{percent(float(np.mean(values)))} ({percent(min(values))})" if values else NONE


def ratio(value: float | None) -> str:
    return NONE if value is None else f"{value:.2g}" if value < 10 else f"{value:,.0f}"


def values_of(results: Results, field: str, name: str, method: str) -> list[float]:
    return list(results.column("accuracy", field, set=name, method=method).values())


def accuracy_table(results: Results) -> str:
    rows = [
        [name, *(mean_and_worst(values_of(results, "accuracy", name, method)) for method in METHODS)]
        for name in results.names("accuracy", "set")
    ]
    return table(["set", *map(title, METHODS)], rows)


def seeds_table(results: Results) -> str:
    def cell(name: str, method: str) -> str:
        values = np.array(values_of(results, "accuracy", name, method))
        return f"{(values == 1).sum()}, {(values >= 0.99).sum()} of {len(values)}" if len(values) else NONE

    rows = [[name, *(cell(name, method) for method in METHODS)] for name in results.names("accuracy", "set")]
    return table(["set", *map(title, METHODS)], rows)


def ratio_table(results: Results) -> str:
    names = results.names("accuracy", "set")
    rows = [[name, *(ratio(time_ratio(results, "fit_seconds", peer, name)) for peer in PEERS)] for name in names]
    rows.append(["**all**", *(f"**{ratio(time_ratio(results, 'fit_seconds', peer))}**" for peer in PEERS)])
    return table(["set", *map(title, PEERS)], rows)


def fresh_table(results: Results) -> str:
    methods = [method for method in METHODS if method != "SpectralClustering"]
    rows = [
        [name, *(mean_and_worst(values_of(results, "fresh_accuracy", name, method)) for method in methods)]
        for name in results.names("accuracy", "set")
    ]
    times = [time_ratio(results, "predict_seconds", method) for method in methods]
    rows.append(["**time / ours**", *(f"**{ratio(value)}**" for value in times)])
    return table(["set", *map(title, methods)], rows)


def auto_table(results: Results) -> str:
    rows = []
    for name in results.names("auto", "set"):
        found = list(results.column("auto", "found", set=name).values())
        right = next(iter(results.column("auto", "right", set=name).values()))
        counts = {k: found.count(k) for k in sorted(set(found)) if k != right}
        others = ", ".join(f"{k} on {count}" for k, count in counts.items()) or NONE
        rows.append([name, str(right), f"{found.count(right)} of {len(found)}", others])
    return table(["set", "right", "found on", "else found"], rows)


def certificate_table(results: Results) -> str:
    rows = [
        [name, f"at least {100 * min(values_of(results, 'separation', name, 'ours')):.1f}", "disjoint"]
        for name in results.names("accuracy", "set")
    ]
    for name in results.names("certificate", "set"):
        largest = max(record["separation"] for record in results.records["certificate"] if record["set"] == name)
        rows.append([name, f"at most {100 * largest:.1f}", "connected"])
    return table(["set", "separation", "true structure"], rows)


def connected_sentence(results: Results) -> str:
    records = results.records["connected"]
    false = sum(record["certified"] for record in records)
    sizes = " or ".join(f"{n:,}" for n in sorted(results.names("connected", "n")))
    return (
        f"To find out how often the certificate is wrong, we ran {len(records):,} fits on connected data of "
        f"{len(results.names('connected', 'kind'))} kinds with {sizes} rows each. They asked for 2 or 3 manifolds or "
        f'for "auto", with and without standardised columns. A manifold was certified in {false} of them '
        f"({100 * false / len(records):.2f} %)."
    )


def connected_table(results: Results) -> str:
    rows = []
    for kind in results.names("connected", "kind"):
        records = [record for record in results.records["connected"] if record["kind"] == kind]
        false, largest = sum(r["certified"] for r in records), max(r["separation"] for r in records)
        rows.append([kind.replace("beside", "with"), f"{false} of {len(records)}", f"{100 * largest:.0f}"])
    return table(["connected data", "certified", "largest separation"], rows)


def cost_list(results: Results) -> str:
    return f"""On the four sets of the paper with 1,200 points (medians over sets and seeds):

- Eight restarts, which are trained together, take {cost_ratio(results, "eight", "one"):.2f} times as long as one.
- 512 dimensions with two informative ones take {cost_ratio(results, "wide", "eight"):.2f} times as long as two.
- A fit takes {cost_ratio(results, "eight", "spectral"):.1f} times as long as SpectralClustering in two dimensions, and
  {cost_ratio(results, "wide", "spectral_wide"):.1f} times as long in 512.

The next table increases the number of rows of the set with five manifolds. Rows are float32 in a memory-mapped file,
and each fit runs in its own process:"""


def scale_table(results: Results) -> str:
    dims = results.names("scale", "dim")
    head = ["rows", *(f"{dim}-D: {method}" for dim in dims for method in ("ours, s", "spectral, s", "spectral / ours"))]
    rows = []
    for n in sorted(results.names("scale", "n")):
        cells = [f"{n:,}"]
        for dim in dims:
            ours = scale_seconds(results, "ours", dim).get(n)
            theirs = scale_seconds(results, "SpectralClustering", dim).get(n)
            cells += [NONE if seconds is None else f"{seconds:.2f}" for seconds in (ours, theirs)]
            cells.append(NONE if ours is None or theirs is None else f"{theirs / ours:.2g}")
        rows.append(cells)
    return table(head, rows)


def memory_sentence(results: Results) -> str:
    largest: Record = max(
        (record for record in results.records["scale"] if record["method"] == "ours"), key=lambda record: record["n"]
    )
    stopped = [
        f"{record['n']:,} rows in {record['dim']} dimensions after {record['stopped_after']:.0f} s"
        for record in results.records["scale"]
        if record["fit_seconds"] is None
    ]
    return (
        f"For {largest['n']:,} rows (a file of {largest['data_megabytes']:.0f} MB), the fit needs "
        f"{largest['fit_megabytes']:.0f} MB in addition to the "
        f"{largest['peak_megabytes'] - largest['fit_megabytes']:.0f} MB of the process with its libraries, and labels "
        f"{100 * largest['accuracy']:.4f} % of the rows correctly."
        + (f" SpectralClustering was stopped on {', '.join(stopped)}." if stopped else "")
    )


def fresh_means(results: Results, name: str, peer: str) -> tuple[float, float]:
    """Mean accuracy on new points of ManifoldLabeler and of a peer, over the seeds of the peer."""
    ours = results.column("accuracy", "fresh_accuracy", set=name, method="ours")
    theirs = results.column("accuracy", "fresh_accuracy", set=name, method=peer)
    if not theirs:
        return 0.0, 0.0
    return float(np.mean([ours[seed] for seed in theirs])), float(np.mean(list(theirs.values())))


def wrong_rows(results: Results, method: str, dim: int, n: int) -> float | None:
    """Mean number of mislabelled rows of a large set over the seeds; None if there was no fit."""
    accuracy = results.column("scale", "accuracy", method=method, dim=dim, n=n)
    return n * (1.0 - float(np.mean(list(accuracy.values())))) if accuracy else None


def notes(results: Results) -> list[str]:
    """List the results in which ManifoldLabeler is not ahead."""
    lines = []
    for name in results.names("accuracy", "set"):
        ours = values_of(results, "accuracy", name, "ours")
        if min(ours) < 1.0:
            wrong = sum(value < 1 for value in ours)
            lines.append(
                f"- {name}: some points are wrong with {wrong} of {len(ours)} seeds; at worst, {percent(min(ours))} % "
                "are right."
            )
    for peer in PEERS:
        names = results.names("accuracy", "set")
        means = {
            name: [float(np.mean(values_of(results, "accuracy", name, method) or [0.0])) for method in ("ours", peer)]
            for name in names
        }
        ahead = [name for name in names if means[name][1] > means[name][0]]
        tied = [name for name in names if means[name][1] == means[name][0]]
        if ahead:
            lines.append(f"- {title(peer)} is more accurate than `ManifoldLabeler` on: {', '.join(ahead)}.")
        if tied:
            lines.append(f"- {title(peer)} is as accurate as `ManifoldLabeler` on: {', '.join(tied)}.")
        new = {name: fresh_means(results, name, peer) for name in names}
        better = [
            f"{name} ({percent(new[name][1])} vs {percent(new[name][0])} %)"
            for name in names
            if new[name][1] > new[name][0]
        ]
        if better:
            lines.append(
                f"- {title(peer)} is more accurate on new points, over the seeds it ran on: {', '.join(better)}."
            )
    faster = [peer for peer in PEERS if (time_ratio(results, "fit_seconds", peer) or np.inf) < 1]
    if faster:
        lines.append(f"- Faster than `ManifoldLabeler` on 1,200 points: {', '.join(map(title, faster))}.")
    quick = [peer for peer in PEERS if (time_ratio(results, "predict_seconds", peer) or np.inf) < 1]
    if quick:
        lines.append(f"- Faster than `ManifoldLabeler` on new points: {', '.join(map(title, quick))}.")
    for dim in results.names("scale", "dim"):
        ours_s, theirs_s = scale_seconds(results, "ours", dim), scale_seconds(results, "SpectralClustering", dim)
        behind = [n for n, seconds in ours_s.items() if n in theirs_s and theirs_s[n] < seconds]
        if behind:
            lines.append(f"- SpectralClustering is faster in {dim} dimensions with up to {max(behind):,} rows.")
        for n in ours_s:
            wrong_ours, wrong_theirs = (wrong_rows(results, m, dim, n) for m in ("ours", "SpectralClustering"))
            if wrong_ours is not None and wrong_theirs is not None and wrong_ours > wrong_theirs:
                lines.append(
                    f"- On {n:,} rows in {dim} dimensions, `ManifoldLabeler` mislabels {wrong_ours:.0f} and "
                    f"SpectralClustering {wrong_theirs:.0f}."
                )
    doubted = [r for r in results.records["accuracy"] if r.get("separation", 1.0) < CERTIFIED]
    right = sum(record["accuracy"] == 1.0 for record in doubted)
    if doubted:
        where = ", ".join(sorted({record["set"] for record in doubted}))
        lines.append(
            f"- {len(doubted)} fits of disjoint sets are not certified ({where}), although {right} have every label "
            "right."
        )
    return lines
