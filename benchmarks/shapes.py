"""Compare ManifoldLabeler with single linkage and HDBSCAN on disjoint manifolds of many shapes, and count certificates.

    python benchmarks/shapes.py                 measure one seed of each shape, without saving: minutes
    python benchmarks/shapes.py --full          measure three seeds, into results/manifolds/shapes.json
    python benchmarks/shapes.py --nulls 2000    draw connected rows, into results/manifolds/nulls.json

An interrupted run continues. Rules were changed after each of two looks at other seeds of these shapes, 42 and 9 sets,
so only the seeds of those that judge are unseen. Spirals of two arms and helices of one radius were used to tune the
method and are left out. Every method sees the same rows. Single linkage is told the number of manifolds; HDBSCAN has
the best of three sizes of the smallest cluster, and rows that it calls noise count as wrong. A set is right from 99 %
of the rows on.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from labeling import matching
from nulls import draw
from numpy.typing import NDArray
from records import ROOT, Record, Results, one_thread, parser, timed
from sklearn.cluster import HDBSCAN, AgglomerativeClustering
from sklearn.metrics import euclidean_distances

from neuralbayes import ManifoldLabeler

Array = NDArray[Any]
Shape = Callable[[np.random.RandomState], list[Array]]  # the rows of each manifold

FOLDER = ROOT / "results" / "manifolds"
RIGHT = 0.99
WIDE, NOISE = 512, 0.002
"""Columns of the wide sets, and the standard deviation of the noise in each; gaps are 0.3 and more."""
SIZES = (5, 15, 50)
FIRST_SEED, FIRST_NULL = 20, 100_000


def path(coordinates: Callable[..., Array], n: int, rng: np.random.RandomState, jitter: float = 0.0) -> Array:
    """n points along a curve over [0, 1], evenly in length. Jitter of 1 spacing moves them, 2 is at random."""
    fine = coordinates(np.linspace(0.0, 1.0, 5001))
    length = np.append(0.0, np.cumsum(np.linalg.norm(np.diff(fine, axis=0), axis=1)))
    at = (np.arange(n) + 0.5 + jitter * rng.uniform(-0.5, 0.5, n)) / n if jitter < 2.0 else rng.uniform(size=n)
    return np.column_stack([np.interp(at.clip(0.0, 1.0) * length[-1], length, column) for column in fine.T])


def turned(radius: Array, turns: Array, height: Array | None = None) -> Array:
    flat = [radius * np.cos(2.0 * np.pi * turns), radius * np.sin(2.0 * np.pi * turns)]
    return np.column_stack(flat if height is None else [*flat, height])


def blurred(parts: list[Array], scale: float, rng: np.random.RandomState) -> list[Array]:
    return [part + scale * rng.standard_normal(part.shape).clip(-3.0, 3.0) for part in parts]


def spirals(arms: int, turns: float, n: int, jitter: float = 0.0, noise: float = 0.0, gap: float = 0.5) -> Shape:
    def shape(rng: np.random.RandomState) -> list[Array]:
        def arm(a: int) -> Callable[..., Array]:
            return lambda t: turned(gap * arms * (0.4 + turns * t), turns * t + a / arms)

        return blurred([path(arm(a), n, rng, jitter) for a in range(arms)], noise, rng)

    return shape


def logarithmic(rng: np.random.RandomState) -> list[Array]:
    """Two arms whose distance grows with their radius."""
    return [path(lambda t, a=a: turned(0.6 * np.exp(1.6 * t), 2.2 * t + a / 2.0), 700, rng, 1.0) for a in range(2)]


def helices(rng: np.random.RandomState) -> list[Array]:
    """Three interleaved strands."""
    return [path(lambda t, a=a: turned(1.0 + 0 * t, 3.0 * t + a / 3.0, 5.0 * t), 500, rng, 1.0) for a in range(3)]


def coaxial(rng: np.random.RandomState) -> list[Array]:
    """Two helices around the same axis, one inside the other."""
    return [path(lambda t, r=r: turned(r + 0 * t, 5.0 * t, 4.0 * t), int(900 * r), rng, 1.0) for r in (0.7, 1.1)]


def flowers(rng: np.random.RandomState) -> list[Array]:
    """Three nested closed curves with five petals."""
    return [
        path(lambda t, r=r: turned(r * (1.0 + 0.3 * np.cos(10.0 * np.pi * t)), t), int(350 * r), rng, 1.0)
        for r in (1.0, 1.6, 2.4)
    ]


def ellipses(rng: np.random.RandomState) -> list[Array]:
    """Four nested ellipses, with rows at random along them and noise."""
    parts = [
        path(lambda t, r=r: turned(r + 0 * t, t) * [1.0, 0.6], int(500 * r), rng, 2.0) for r in (1.0, 2.0, 3.0, 4.0)
    ]
    return blurred(parts, 0.01, rng)


def circles(rng: np.random.RandomState) -> list[Array]:
    """Five concentric circles."""
    radii = (0.6, 1.0, 1.4, 1.8, 2.2)
    return blurred([path(lambda t, r=r: turned(r + 0 * t, t), int(260 * r), rng, 1.0) for r in radii], 0.01, rng)


def roll_with_plane(rng: np.random.RandomState) -> list[Array]:
    """A plane between the layers of a Swiss roll."""
    turn = np.sqrt(rng.uniform(0.8**2, 2.2**2, 1600))
    roll = np.insert(turned(turn, turn), 1, rng.uniform(0.0, 1.5, 1600), axis=1)
    plane = np.column_stack([rng.uniform(-0.45, 0.35, 300), rng.uniform(0.0, 1.5, 300), 0.05 * rng.uniform(-1, 1, 300)])
    return [roll, plane]


def rings_in_a_row(rng: np.random.RandomState) -> list[Array]:
    """Six rings, each beside the next."""
    rings = [path(lambda t, i=i: np.add(turned(1.0 + 0 * t, t), [2.6 * i, 0.0]), 180, rng, 1.0) for i in range(6)]
    return blurred(rings, 0.02, rng)


def thin_and_thick(rng: np.random.RandomState) -> list[Array]:
    """A thin ring around a thick one."""
    radius = np.sqrt(rng.uniform(0.5**2, 1.5**2, 1200))
    return [turned(radius, rng.uniform(size=1200)), path(lambda t: turned(1.9 + 0 * t, t), 300, rng, 1.0)]


def densities(rng: np.random.RandomState) -> list[Array]:
    """Two long waves, one with a twentieth of the rows of the other."""
    waves = [(lambda t, y=y: np.column_stack([10.0 * t, 0.5 * np.sin(9.0 * t) + y])) for y in (0.0, 0.6)]
    return [path(waves[0], 2000, rng, 2.0), path(waves[1], 100, rng, 1.0)]


def waves(rng: np.random.RandomState) -> list[Array]:
    """Five waves, one above the other."""

    def wave(i: int) -> Callable[..., Array]:
        return lambda t: np.column_stack([8.0 * t, 0.8 * np.sin(14.0 * t) + 0.8 * i])

    made = [path(wave(i), 300, rng, 1.0) for i in range(5)]
    return blurred(made, 0.015, rng)


def combs(rng: np.random.RandomState) -> list[Array]:
    """Two combs whose teeth interleave."""
    one = [np.column_stack([np.linspace(0, 6.0, 300), np.zeros(300)])]
    one += [np.column_stack([np.full(90, x), np.linspace(0.02, 2.0, 90)]) for x in np.arange(0.0, 6.1, 1.0)]
    other = [np.column_stack([np.linspace(0.5, 6.5, 300), np.full(300, 2.5)])]
    other += [np.column_stack([np.full(90, x), np.linspace(0.5, 2.48, 90)]) for x in np.arange(0.5, 6.6, 1.0)]
    return blurred([np.concatenate(one), np.concatenate(other)], 0.01, rng)


def knots(rng: np.random.RandomState) -> list[Array]:
    """A trefoil knot, and a ring through it."""

    def trefoil(t: Array) -> Array:
        s = 2.0 * np.pi * t
        return np.column_stack([np.sin(s) + 2 * np.sin(2 * s), np.cos(s) - 2 * np.cos(2 * s), -np.sin(3 * s)])

    ring = path(lambda t: turned(2.5 + 0 * t, t)[:, [0, 0, 1]] * [1.0, 0.0, 1.0] + [2.5, 0.0, 0.0], 400, rng, 1.0)
    return [path(trefoil, 800, rng, 1.0), ring]


def zigzags(rng: np.random.RandomState) -> list[Array]:
    """Two zigzag lines side by side."""

    def zigzag(t: Array) -> Array:
        return np.column_stack([9.0 * t, 2.0 * np.abs((9.0 * t) % 1.0 - 0.5)])

    return blurred([path(zigzag, 700, rng, 1.0), np.add(path(zigzag, 700, rng, 1.0), [0.0, 1.2])], 0.01, rng)


SHAPES: dict[str, Shape] = {
    "3 arms of 1.5 turns": spirals(3, 1.5, 350),
    "3 arms of 3 turns, jitter": spirals(3, 3.0, 800, 1.0, 0.02),
    "3 arms of 5 turns": spirals(3, 5.0, 2000, 1.0),
    "4 arms of 2 turns, jitter": spirals(4, 2.0, 600, 1.0, 0.03),
    "4 arms of 2.5 turns, at random": spirals(4, 2.5, 1500, 2.0),
    "logarithmic spirals": logarithmic,
    "3 helices": helices,
    "coaxial helices": coaxial,
    "nested flowers": flowers,
    "nested ellipses": ellipses,
    "5 circles": circles,
    "roll with a plane inside": roll_with_plane,
    "6 rings in a row": rings_in_a_row,
    "thin around thick": thin_and_thick,
    "densities 1:20": densities,
    "5 waves": waves,
    "combs": combs,
    "knot and ring": knots,
    "zigzags": zigzags,
}


def rows_of(name: str, wide: bool, seed: int) -> tuple[Array, Array]:
    """Shuffled rows and the manifold of each."""
    rng = np.random.RandomState(seed)
    parts = SHAPES[name](rng)
    X, y = np.concatenate(parts), np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    if wide:
        basis, _ = np.linalg.qr(rng.standard_normal((WIDE, X.shape[1])))
        X = X @ basis.T + NOISE * rng.standard_normal((len(X), WIDE))
    order = rng.permutation(len(X))
    return X[order], y[order]


def accuracy(y: Array, labels: Array) -> float:
    """Share of rows with the right label under the best one-to-one assignment; noise is wrong."""
    return float(np.mean(matching(y, labels)[labels] == y))


def measure(name: str, wide: bool, seed: int) -> Record:
    X, y = rows_of(name, wide, seed)
    n_manifolds = int(y.max()) + 1
    ours, seconds = timed(partial(ManifoldLabeler(n_manifolds, random_state=seed).fit, X))
    auto = ManifoldLabeler("auto", random_state=seed).fit(X)
    apart = euclidean_distances(X)  # once for both, faster than each would do it
    linked = AgglomerativeClustering(n_manifolds, linkage="single", metric="precomputed").fit_predict(apart)
    dense = [HDBSCAN(min_cluster_size=size, metric="precomputed", copy=True).fit_predict(apart) for size in SIZES]
    best = max(dense, key=lambda labels: accuracy(y, labels))
    return {
        "n": len(X),
        "manifolds": n_manifolds,
        "accuracy": accuracy(y, ours.labels_),
        "certified": bool(ours.disjoint_.all()),
        "found": int(auto.n_clusters_),
        "auto_accuracy": accuracy(y, auto.labels_),
        "seconds": seconds,
        "single_linkage": accuracy(y, linked),
        "hdbscan": accuracy(y, best),
        "hdbscan_found": int(best.max()) + 1,
    }


def is_solved(record: Record) -> bool:
    """Labelled right, counted right and certified."""
    return bool(record["accuracy"] >= RIGHT and record["certified"] and record["found"] == record["manifolds"])


def measure_null(seed: int) -> Record:
    name, X = draw(seed)
    two, seconds = timed(partial(ManifoldLabeler(2, random_state=seed).fit, X))
    auto, more = timed(partial(ManifoldLabeler("auto", random_state=seed).fit, X))
    found = {"two": bool(two.disjoint_.any()), "found": int(auto.n_clusters_), "seconds": seconds + more}
    return {"kind": name, "n": X.shape[0], "columns": X.shape[1]} | found


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--full", action="store_true", help="three seeds, saved")
    arguments.add_argument("--nulls", type=int, default=0, metavar="N", help="draw N connected sets instead, saved")
    arguments.add_argument("--only", nargs="+", default=SHAPES, choices=SHAPES, metavar="SHAPE")
    arguments.add_argument("--seconds", type=float, default=np.inf, help="stop after so many; run again to go on")
    given = arguments.parse_args()
    packages = ("neuralbayes", "numpy", "scikit-learn", "torch")
    file, flag = ("nulls", f"--nulls {given.nulls}") if given.nulls else ("shapes", "--full")
    saved = FOLDER if given.full or given.nulls else None
    results = Results(saved, packages, [file], f"python benchmarks/shapes.py {flag}")
    seeds = range(FIRST_SEED, FIRST_SEED + (3 if given.full else 1))
    both = (False, True)
    keys: list[Record] = [{"set": name, "wide": w, "seed": seed} for w in both for seed in seeds for name in given.only]
    if given.nulls:
        keys = [{"seed": FIRST_NULL + i} for i in range(given.nulls)]
    end = time.perf_counter() + given.seconds
    with one_thread():
        for key in keys:
            if time.perf_counter() < end:
                job = partial(measure_null, key["seed"]) if given.nulls else partial(measure, *key.values())
                results.measure(file, key, job)
    records = results.records[file]
    if given.nulls:
        false = [record for record in records if record["two"] or record["found"] > 1]
        print(f"{len(false)} of {len(records)} nulls certified:", *false, sep="\n")
        return
    possible = [r for r in records if max(r["single_linkage"], r["hdbscan"]) >= RIGHT]
    print(f"{sum(map(is_solved, possible))} of the {len(possible)} sets that a peer labels right, of {len(records)}")


if __name__ == "__main__":
    main()
