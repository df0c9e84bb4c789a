"""How features are judged: honestly, and as the paper's numbers came about; both for every run.

Honest ("validation"): a tenth of the training images chooses the epoch, and all test images are judged. The paper's
("paper"): the best epoch on the first 128 test images, as the authors' public code has it.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from neuralbayes.probes.features import LabeledData
from neuralbayes.probes.protocol import Head, ProbeResult, Protocol, probe_parts
from neuralbayes.reproduce.experiment import Record, Results
from neuralbayes.reproduce.statistics import Estimate, estimate, text

PROTOCOLS: tuple[Protocol, ...] = ("validation", "paper")
DIGITS = 5  # of an accuracy, which 10,000 test images give to four


def judge(
    train: LabeledData, test: LabeledData, *, head: Head = "mlp", seeds: int = 1, max_epochs: int | None = None
) -> dict[str, dict[str, Any]]:
    """What a probe finds under both protocols, short enough to be kept as JSON."""
    return {
        protocol: _short(probe_parts(train, test, head=head, protocol=protocol, seeds=seeds, max_epochs=max_epochs))
        for protocol in PROTOCOLS
    }


def accuracy(record: Record, layer: str, protocol: Protocol) -> float:
    """Of a run, the mean over its classifiers."""
    return statistics.fmean(record.values["probes"][layer][protocol]["accuracies"])


def accuracies(results: Results, layer: str, protocol: Protocol) -> list[float]:
    """Of each run."""
    return [accuracy(record, layer, protocol) for record in results]


def both(results: Results, layer: str) -> tuple[str, str]:
    """Cells of a table: the accuracy by the paper's protocol and the honest one, in percent; "-" without results."""
    paper, honest = (text(accuracies(results, layer, protocol)) for protocol in ("paper", "validation"))
    return paper, honest


def selected(results: Results, layer: str, protocol: Protocol) -> list[Record]:
    """Of the runs with the same seed the one that does best on the images that chose its epoch.

    Where an experiment tries several settings, that is how one is chosen: honestly on validation images, and under the
    paper's protocol on the very test images that are then reported.
    """
    best: dict[int, Record] = {}
    for record in results:
        seed = record.settings["seed"]
        if seed not in best or _chosen_by(record, layer, protocol) > _chosen_by(best[seed], layer, protocol):
            best[seed] = record
    return list(best.values())


def pairs(results: Results) -> list[tuple[float, float]]:
    """Honest accuracy and that of the paper's protocol, for every layer of every run that was probed."""
    return [
        (accuracy(record, layer, "validation"), accuracy(record, layer, "paper"))
        for record in results
        for layer in record.values.get("probes", {})
    ]


def optimism(found: Sequence[tuple[float, float]]) -> Estimate:
    """By how much the paper's protocol is above the honest one, on average."""
    return estimate([paper - honest for honest, paper in found])


def _chosen_by(record: Record, layer: str, protocol: Protocol) -> float:
    return statistics.fmean(max(curve) for curve in record.values["probes"][layer][protocol]["curves"])


def _short(result: ProbeResult) -> dict[str, Any]:
    return {
        "accuracies": [round(value, DIGITS) for value in result.accuracies],
        "epochs": list(result.epochs),
        "curves": [[round(value, DIGITS) for value in curve] for curve in result.curves],
        "n_features": result.n_features,
        "n_train": result.n_train,
        "n_test": result.n_test,
    }
