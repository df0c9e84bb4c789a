"""Accuracy of features under the two protocols of `protocol.py`, in the records of runs."""

from __future__ import annotations

import statistics
from typing import Any

from paper.protocol import PROTOCOLS, Head, Protocol, probe_parts
from paper.runs import Record, Results

DIGITS = 5  # of an accuracy; 10,000 test images determine four


def probe(
    train: tuple[Any, Any],
    test: tuple[Any, Any],
    *,
    head: Head = "mlp",
    seeds: int = 1,
    max_epochs: int | None = None,
) -> dict[str, dict[str, Any]]:
    """Train and test classifiers on (features, labels) under both protocols, and keep what fits into a record."""
    found: dict[str, dict[str, Any]] = {}
    for protocol in PROTOCOLS:
        result = probe_parts(train, test, head=head, protocol=protocol, seeds=seeds, max_epochs=max_epochs)
        found[protocol] = {
            "accuracies": [round(value, DIGITS) for value in result.accuracies],
            "epochs": list(result.epochs),
            "curves": [[round(value, DIGITS) for value in curve] for curve in result.curves],
            "n_features": result.n_features,
            "n_train": result.n_train,
            "n_test": result.n_test,
        }
    return found


def accuracy(record: Record, layer: str, protocol: Protocol = "validation") -> float:
    """Accuracy of a run: the mean over its classifiers."""
    return statistics.fmean(record.values["probes"][layer][protocol]["accuracies"])


def accuracies(results: Results, layer: str, protocol: Protocol = "validation") -> list[float]:
    """Accuracy of each run."""
    return [accuracy(record, layer, protocol) for record in results]


def selected(results: Results, layer: str, protocol: Protocol) -> list[Record]:
    """The best run of each seed, judged on the images that selected its epoch, if several settings were tried.

    The honest protocol uses validation images, the paper's the same test images that it then reports.
    """

    def chosen_by(record: Record) -> float:
        return statistics.fmean(max(curve) for curve in record.values["probes"][layer][protocol]["curves"])

    best: dict[int, Record] = {}
    for record in results:
        if record.seed not in best or chosen_by(record) > chosen_by(best[record.seed]):
            best[record.seed] = record
    return list(best.values())


def pairs(results: Results) -> list[tuple[float, float]]:
    """Accuracy under the honest and the paper's protocol, for every probed layer of every run."""
    return [
        (accuracy(record, layer), accuracy(record, layer, "paper"))
        for record in results
        for layer in record.values.get("probes", {})
    ]
