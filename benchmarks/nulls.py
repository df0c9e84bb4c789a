"""Rows that are one connected piece, or have gaps for other reasons than manifolds. None of them may be certified.

    python benchmarks/nulls.py --draws 2000    cluster generated tables, and toy manifolds that must still be found

`draw` has rows of numbers, which benchmarks/shapes.py measures; `table` has the columns of real tables. Each record is
added to results/guarantees/nulls.json, and a second run continues.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from paper.toys import HARDER, PAPER
from records import Results
from threadpoolctl import threadpool_limits

import neuralbayes as nb

Array = NDArray[Any]
Kind = Callable[[int, int, np.random.RandomState], Array]
Column = Callable[[int, np.random.RandomState], Any]
ROOT = Path(__file__).parents[1]
FIRST_TABLE, FIRST_TOY, TOY_SEEDS = 210_000, 300_000, 3  # no rule was changed after a look at these tables


def gaussian(n: int, d: int, rng: np.random.RandomState) -> Array:
    return np.asarray(rng.standard_normal((n, d)) @ (np.eye(d) + rng.standard_normal((d, d)) / (2.0 * np.sqrt(d))))


def uniform(n: int, d: int, rng: np.random.RandomState) -> Array:
    return rng.uniform(size=(n, d)) * rng.uniform(0.2, 1.0, d)


def student(n: int, d: int, rng: np.random.RandomState) -> Array:
    freedom = rng.choice([2, 3, 5])
    return np.asarray(rng.standard_normal((n, d)) / np.sqrt(rng.chisquare(freedom, (n, 1)) / freedom))


def along(n: int, rng: np.random.RandomState) -> Array:
    """Positions in [0, 1] along a line, evenly, at random or with uneven spacing."""
    even = rng.uniform(size=n)
    kinds = [
        np.arange(n) / n,
        even,
        even ** rng.uniform(1.0, 3.0),
        np.cumsum(np.exp(rng.uniform(0.3, 1.2) * rng.standard_normal(n))),
    ]
    position = kinds[rng.randint(len(kinds))]
    return np.asarray(np.sort(position) / position.max())


def curve(points: Array, d: int, rng: np.random.RandomState) -> Array:
    """Points of a curve with a little noise, rotated into d columns."""
    X = points + rng.choice([0.0, 0.005, 0.02]) * points.std() * rng.standard_normal(points.shape)
    basis, _ = np.linalg.qr(rng.standard_normal((max(d, X.shape[1]), X.shape[1])))
    return np.asarray(X @ basis.T)


def line(n: int, d: int, rng: np.random.RandomState) -> Array:
    t = along(n, rng)
    return curve(np.column_stack([t, rng.choice([0.0, 0.5]) * t**2]), d, rng)


def ring(n: int, d: int, rng: np.random.RandomState) -> Array:
    t = 2.0 * np.pi * along(n, rng)
    return curve(np.column_stack([np.cos(t), rng.uniform(0.3, 1.0) * np.sin(t)]), d, rng)


def spiral(n: int, d: int, rng: np.random.RandomState) -> Array:
    """One arm of one to five turns, with positions along its length."""
    turns, inner = rng.uniform(1.0, 5.0), rng.uniform(0.1, 0.5)
    t = np.sqrt(inner**2 + along(n, rng) * ((turns + inner) ** 2 - inner**2))
    return curve(t[:, None] * np.column_stack([np.cos(2.0 * np.pi * t), np.sin(2.0 * np.pi * t)]), d, rng)


def likert(n: int, d: int, rng: np.random.RandomState) -> Array:
    answers = rng.standard_normal((n, 1)) + rng.standard_normal((n, d))
    return np.asarray(np.clip(np.round(rng.choice([1.0, 2.0]) * answers), -3, 3))


def rounded(n: int, d: int, rng: np.random.RandomState) -> Array:
    return np.round(gaussian(n, d, rng), rng.randint(0, 3))


def repeated(n: int, d: int, rng: np.random.RandomState) -> Array:
    X = gaussian(n, d, rng)
    X[: n // 4] = X[rng.choice(n, n // 4)]
    X[n // 4 : n // 4 + rng.randint(0, n // 10 + 1)] = X[0]
    return X


def counter(n: int, d: int, rng: np.random.RandomState) -> Array:
    X = gaussian(n, d, rng)
    X[:, 0] = np.arange(n) + (rng.randint(0, 5 * n) if rng.uniform() < 0.5 else 0) * (np.arange(n) >= n // 2)
    return X


def sentinel(n: int, d: int, rng: np.random.RandomState) -> Array:
    X = [gaussian, uniform, student][rng.randint(3)](n, d, rng)
    X[rng.uniform(size=n) < rng.uniform(0.02, 0.4), rng.randint(d)] = -999.0
    return X


def mixture(n: int, d: int, rng: np.random.RandomState) -> Array:
    """Columns of several kinds side by side; one of these may be a sentinel's."""
    kinds = [gaussian, uniform, student, likert, rounded, sentinel, line, ring]
    first, second = (kinds[i] for i in rng.choice(len(kinds), 2, replace=False))
    half = max(2, d // 2)
    return np.column_stack([first(n, half, rng), second(n, half, rng)[rng.permutation(n)]])


NULLS: dict[str, Kind] = {
    kind.__name__: kind
    for kind in (
        gaussian, uniform, student, line, ring, spiral, likert, rounded, repeated, counter, sentinel, mixture,
    )
}  # fmt: skip


def draw(seed: int) -> tuple[str, Array]:
    """The rows of one seed: the kinds in turn, 50 to 2,000 rows and 2 to 50 columns."""
    rng = np.random.RandomState(seed)
    name = list(NULLS)[seed % len(NULLS)]
    n, d = (round(np.exp(rng.uniform(np.log(low), np.log(high)))) for low, high in ((50, 2000), (2, 50)))
    X = NULLS[name](n, d, rng)
    return name, X[rng.permutation(n)] if name != "counter" else X


COLUMNS: dict[str, Column] = {
    "normal": lambda n, rng: rng.standard_normal(n) * np.exp(rng.uniform(-3, 6)),
    "uniform": lambda n, rng: rng.uniform(0, 100, n),
    "skewed": lambda n, rng: np.exp(rng.uniform(0.5, 2.0) * rng.standard_normal(n)),
    "heavy": lambda n, rng: rng.standard_t(2, n),
    "rounded": lambda n, rng: np.round(rng.choice([1, 3, 30]) * rng.standard_normal(n), rng.randint(0, 2)),
    "price": lambda n, rng: np.round(np.exp(3 + rng.standard_normal(n))) - rng.choice([0.01, 0.05]),
    "amount": lambda n, rng: rng.choice([5, 50, 100]) * np.round(rng.gamma(2.0, 10.0, n)),
    "sentinel": lambda n, rng: np.where(
        rng.uniform(size=n) < rng.uniform(0.02, 0.4), rng.choice([-999, -1, 0, 9999]), 20 + 5 * rng.standard_normal(n)
    ),
    "zeros": lambda n, rng: np.where(rng.uniform(size=n) < 0.5, 0.0, 1.0 + np.exp(rng.standard_normal(n))),
    "missing": lambda n, rng: np.where(rng.uniform(size=n) < rng.uniform(0.02, 0.4), np.nan, rng.standard_normal(n)),
    "Likert": lambda n, rng: rng.choice(np.arange(1, rng.choice([6, 8, 11])), n),
    "count": lambda n, rng: rng.poisson(rng.uniform(0.5, 20), n),
    "boolean": lambda n, rng: rng.uniform(size=n) < rng.uniform(0.02, 0.98),
    "flag": lambda n, rng: (rng.uniform(size=n) < 0.3).astype(int),
    "counter": lambda n, rng: np.arange(n) + rng.randint(1, 10**6),
    "counter with a gap": lambda n, rng: np.arange(n) + np.where(np.arange(n) < rng.randint(n), 0, rng.randint(9 * n)),
    "counter again": lambda n, rng: np.arange(n) % rng.randint(10, n // 2),
    "code": lambda n, rng: rng.choice([101, 102, 205, 300, 999, 4711], n, p=rng.dirichlet(np.full(6, 2.0))),
    "many codes": lambda n, rng: rng.choice(10_000 * rng.randint(1, 90, 60) + rng.randint(0, 100, 60), n),
    "year": lambda n, rng: rng.randint(1990, 2021, n),
    "date": lambda n, rng: pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.randint(0, 400, n), unit="D"),
    "office hours": lambda n, rng: (
        pd.Timestamp("2024-01-01") + pd.to_timedelta(24 * rng.randint(0, 60, n) + rng.uniform(8, 17, n), unit="h")
    ),
    "seconds": lambda n, rng: 86_400 * rng.randint(0, 60, n) + np.round(3600 * rng.uniform(8, 17, n)),
    "words": lambda n, rng: rng.choice(["red", "green", "blue", "none"], n, p=rng.dirichlet(np.full(4, 2.0))),
}
"""Columns of real tables, each of which is independent of all others."""


def table(seed: int) -> tuple[str, pd.DataFrame]:
    """A table of 100 to 600 rows and 2 to 12 columns of one to all kinds, without clusters, and these kinds."""
    rng = np.random.RandomState(seed)
    n, d = rng.randint(100, 601), rng.randint(2, 13)
    kinds = rng.choice(list(COLUMNS), min(len(COLUMNS), rng.choice([1, 2, 3, 5, len(COLUMNS)])), replace=False)
    chosen = list(kinds[:1]) + list(rng.choice(kinds, d - 1))
    frame = pd.DataFrame({f"x{j}": COLUMNS[kind](n, rng) for j, kind in enumerate(chosen)})
    numbers = [
        name
        for name, kind in zip(frame, chosen, strict=True)
        if frame[name].dtype.kind == "f" and kind not in ("sentinel", "zeros")  # whose value would be several
    ]
    if rng.uniform() < 0.3:  # a factor that all other numbers share
        factor = rng.standard_normal(n)
        for name in numbers:
            frame[name] += frame[name].std() * factor
    repeated, rows = rng.choice(["no", "no", "some rows", "one row"]), np.arange(n)
    few = n // rng.randint(3, 11)
    if repeated != "no":
        rows[:few] = rng.choice(n, few if repeated == "some rows" else 1)
    frame = frame.iloc[rows].reset_index(drop=True)
    if rng.uniform() < 0.15:
        frame = frame.sort_values("x0", ignore_index=True)
    return "+".join(sorted(set(chosen))) + (f", {repeated} repeated" if repeated != "no" else ""), frame


def measure(kind: str, frame: pd.DataFrame, seed: int) -> dict[str, Any]:
    """The verdict on a table, and how many manifolds are certified in its numbers."""
    start = time.process_time()
    found = nb.cluster(frame, random_state=seed)
    numbers = frame.select_dtypes("number").dropna()
    numbers = numbers.loc[:, numbers.nunique() > 1]
    auto = nb.ManifoldLabeler("auto", standardize=not kind.startswith("toy"), random_state=seed)
    return {
        "kind": kind,
        "n": len(frame),
        "columns": frame.shape[1],
        "verdict": found.verdict,
        "clusters": found.n_clusters,
        "manifolds": auto.fit(numbers).n_clusters_ if numbers.size and len(numbers) > 1 else 1,
        "seconds": time.process_time() - start,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=2000, metavar="N")
    draws = parser.parse_args().draws
    results = Results(
        ROOT / "results" / "guarantees",
        ("neuralbayes", "numpy", "scikit-learn", "torch"),
        ["nulls"],
        f"python benchmarks/nulls.py --draws {draws}",
    )
    toys = [(name, *made) for name, made in {**PAPER, **HARDER}.items() for _ in range(TOY_SEEDS)]
    seeds = [*range(FIRST_TOY, FIRST_TOY + len(toys)), *range(FIRST_TABLE, FIRST_TABLE + draws)]
    for seed in seeds:
        if results.has("nulls", {"seed": seed}):
            continue
        name, make, _ = toys[seed - FIRST_TOY] if seed >= FIRST_TOY else ("", None, 0)
        kind, frame = table(seed) if make is None else (f"toy: {name}", pd.DataFrame(make(random_state=seed)[0]))
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results.add("nulls", {"seed": seed} | measure(kind, frame.rename(columns=str), seed))
    records = results.records["nulls"]
    right = {f"toy: {name}": k for name, _, k in toys}
    own = [record for record in records if record["kind"] in right]
    found = sum(r["verdict"] == "disjoint" and r["clusters"] == r["manifolds"] == right[r["kind"]] for r in own)
    nulls = [record for record in records if record["kind"] not in right]
    print(f"{found} of {len(own)} toys are certified with the right number, by both")
    print(f"{len(nulls)} tables without clusters: {dict(Counter(record['verdict'] for record in nulls))}")
    print(f"{sum(record['manifolds'] > 1 for record in nulls)} of them have certified manifolds among their numbers")


if __name__ == "__main__":
    main()
