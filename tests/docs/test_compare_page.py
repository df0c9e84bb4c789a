"""Statements about the peers in docs/compare.md agree with the numbers in results/labeling."""

import json
import statistics
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "compare.md").read_text(encoding="utf-8")


def records(name: str) -> list[dict[str, Any]]:
    text = (ROOT / "results" / "labeling" / f"{name}.json").read_text("utf-8")
    found: list[dict[str, Any]] = json.loads(text)["records"]
    return found


def by_set(method: str, key: str) -> dict[str, dict[int, float]]:
    """The values of a method: by set, then by seed."""
    values: dict[str, dict[int, float]] = defaultdict(dict)
    for record in records("accuracy"):
        if record["method"] == method and record.get(key) is not None:
            values[record["set"]][record["seed"]] = record[key]
    return values


def ties(method: str) -> set[str]:
    """Sets on which a method is as accurate as ours with every seed that it ran on."""
    ours, theirs = by_set("ours", "accuracy"), by_set(method, "accuracy")
    return {name for name, found in theirs.items() if all(ours[name][seed] == value for seed, value in found.items())}


def ratio(method: str, key: str) -> float:
    """Median ratio of the time of a method to ours on the same points, over sets and seeds."""
    ours, theirs = by_set("ours", key), by_set(method, key)
    return statistics.median(
        value / ours[name][seed] for name, found in theirs.items() for seed, value in found.items()
    )


def scale(method: str, n: int) -> float:
    """Median seconds of a fit of n rows in two dimensions."""
    return statistics.median(
        record["fit_seconds"]
        for record in records("scale")
        if record["method"] == method and record["n"] == n and record["dim"] == 2 and record.get("fit_seconds")
    )


CLAIMS: dict[str, Callable[[], bool]] = {
    "KMeans fits and predicts faster": lambda: (
        ratio("KMeans", "fit_seconds") < 1 and ratio("KMeans", "predict_seconds") < 1
    ),
    "KMeans is as accurate on round clusters alone": lambda: ties("KMeans") == {"blobs"},
    "SpectralClustering is as accurate on most sets": lambda: len(ties("SpectralClustering")) > 5,
    "SpectralClustering is faster on a thousand rows": lambda: ratio("SpectralClustering", "fit_seconds") < 1,
    "SpectralClustering is slower beyond ten thousand rows": lambda: (
        scale("SpectralClustering", 5000) < scale("ours", 5000)
        and scale("SpectralClustering", 20_000) > scale("ours", 20_000)
    ),
}


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_statement_of_the_page_agrees_with_the_numbers(claim: str) -> None:
    assert claim.split()[0] in PAGE
    assert CLAIMS[claim]()


@pytest.mark.parametrize(
    "peer", ["scikit-learn", "hdbscan", "evoc", "bertopic", "turtle", "imsat", "gemclus", "lightly"]
)
def test_each_peer_has_a_section_and_a_line_at_a_glance(peer: str) -> None:
    assert f"({peer})=\n" in PAGE
    assert f"](#{peer}) |" in PAGE
