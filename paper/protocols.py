"""The two protocols that judge the features of every run: an honest one and the paper's.

Honest ("validation"): a held-out tenth of the training images selects the epoch, and the accuracy is that on all test
images. The paper's ("paper"): the best epoch on the first 128 test images, as in the authors' public code.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from neuralbayes.probes.features import LabeledData
from neuralbayes.probes.protocol import Head, ProbeResult, Protocol, probe_parts

from paper.experiment import Record, Results
from paper.statistics import Estimate, estimate, text

PROTOCOLS: tuple[Protocol, ...] = ("validation", "paper")
DIGITS = 5  # of an accuracy; 10,000 test images determine four


def judge(
    train: LabeledData, test: LabeledData, *, head: Head = "mlp", seeds: int = 1, max_epochs: int | None = None
) -> dict[str, dict[str, Any]]:
    """The results of a probe under both protocols, short enough to be kept as JSON."""
    return {
        protocol: _short(probe_parts(train, test, head=head, protocol=protocol, seeds=seeds, max_epochs=max_epochs))
        for protocol in PROTOCOLS
    }


def accuracy(record: Record, layer: str, protocol: Protocol) -> float:
    """Accuracy of a run: the mean over its classifiers."""
    return statistics.fmean(record.values["probes"][layer][protocol]["accuracies"])


def accuracies(results: Results, layer: str, protocol: Protocol) -> list[float]:
    """Accuracy of each run."""
    return [accuracy(record, layer, protocol) for record in results]


def both(results: Results, layer: str) -> tuple[str, str]:
    """Table cells: accuracy under the paper's protocol and honest accuracy, in percent; "-" without results."""
    paper, honest = (text(accuracies(results, layer, protocol)) for protocol in ("paper", "validation"))
    return paper, honest


def selected(results: Results, layer: str, protocol: Protocol) -> list[Record]:
    """The best run of each seed, judged on the images that selected its epoch.

    This is how an experiment that tries several settings selects one: the honest protocol uses validation images, the
    paper's protocol uses the same test images that it then reports.
    """
    best: dict[int, Record] = {}
    for record in results:
        seed = record.settings["seed"]
        if seed not in best or _chosen_by(record, layer, protocol) > _chosen_by(best[seed], layer, protocol):
            best[seed] = record
    return list(best.values())


def pairs(results: Results) -> list[tuple[float, float]]:
    """Accuracy under the honest and the paper's protocol, for every probed layer of every run."""
    return [
        (accuracy(record, layer, "validation"), accuracy(record, layer, "paper"))
        for record in results
        for layer in record.values.get("probes", {})
    ]


def optimism(found: Sequence[tuple[float, float]]) -> Estimate:
    """Mean excess of the paper's protocol over the honest one."""
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
