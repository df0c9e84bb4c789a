"""Compare `neuralbayes label` with pandas and MiniBatchKMeans on a CSV file of a million rows and 20 columns.

The rows are drawn from 8 clusters. They have 12 numbers and 5 categories, with 2 % of the cells missing, a date, an id
and a constant. Both methods read the file and write a file of labels. The peer is a pipeline written by hand:
`pandas.read_csv`, standardised numbers, one-hot categories, imputed cells, `MiniBatchKMeans`, `to_csv`.

    python benchmarks/million.py --work FOLDER

Each method runs in its own process, on one thread. Memory is the peak of the whole process (Linux). Each result is
added to results/real/million.json, and a second run continues.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
from records import Record, Results
from sklearn.metrics import adjusted_rand_score

ROOT = Path(__file__).parents[1]
N_CLUSTERS = 8
BLOCK = 100_000
OURS, PEER = "neuralbayes label", "pandas + MiniBatchKMeans"


def make_file(path: Path, n_rows: int) -> None:
    """Write the CSV file and, next to it, the true clusters of its rows, unless they exist."""
    truth = path.with_suffix(".npy")
    if path.exists() and truth.exists():
        return
    rng = np.random.default_rng(0)
    means = rng.normal(0.0, 1.5, (N_CLUSTERS, 12))
    shares = [rng.dirichlet(np.full(size, 0.7), N_CLUSTERS) for size in (2, 3, 4, 6, 12)]
    clusters = rng.integers(N_CLUSTERS, size=n_rows)
    for start in range(0, n_rows, BLOCK):
        of_rows = clusters[start : start + BLOCK]
        columns: dict[str, object] = {"customer_id": np.arange(start, start + len(of_rows)) + 10_000_000}
        for j, values in enumerate((means[of_rows] + rng.normal(size=(len(of_rows), 12))).T):
            columns[f"amount_{j}"] = np.where(rng.random(len(of_rows)) < 0.02, np.nan, np.round(10 + 3 * values, 2))
        for j, share in enumerate(shares):
            drawn = (
                (rng.random((len(of_rows), 1)) > share[of_rows].cumsum(axis=1)).sum(axis=1).clip(max=share.shape[1] - 1)
            )
            columns[f"kind_{j}"] = np.where(rng.random(len(of_rows)) < 0.02, "", np.char.add("v", drawn.astype(str)))
        days = rng.integers(0, 1500, len(of_rows)).astype("timedelta64[D]")
        columns["since"] = np.datetime64("2021-01-01") + days
        columns["currency"] = "EUR"
        pd.DataFrame(columns).to_csv(path, index=False, mode="w" if not start else "a", header=not start)
    np.save(truth, clusters)


def by_hand(path: Path, out: Path) -> None:
    """The pipeline of the peer: pandas and scikit-learn."""
    from sklearn.cluster import MiniBatchKMeans
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    frame = pd.read_csv(path)
    vectorize = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), make_column_selector("amount_")),
        (
            make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(sparse_output=False)),
            make_column_selector("kind_"),
        ),
    )
    model = make_pipeline(vectorize, MiniBatchKMeans(N_CLUSTERS, n_init=3, random_state=0))
    frame.assign(label=model.fit_predict(frame)).to_csv(out, index=False)


def measure(side: str, path: Path, n_rows: int) -> Record:
    """Measure seconds, processor seconds, gigabytes and the adjusted Rand index of one method."""
    from resource import RUSAGE_CHILDREN, getrusage

    out = path.with_name("labelled.csv")
    out.unlink(missing_ok=True)
    command = [sys.executable, "-m", "neuralbayes", "label", str(path), "--clusters", str(N_CLUSTERS)]
    command += ["--method", "information", "--out", str(out), "--seed", "0", "--force"]
    if side == PEER:
        command = [sys.executable, __file__, "--work", str(path.parent), "--rows", str(n_rows), "--by-hand", str(out)]
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    seconds, used = time.perf_counter() - start, getrusage(RUSAGE_CHILDREN)
    labels = pd.read_csv(out, usecols=["label"])["label"].to_numpy()
    return {
        "ari": adjusted_rand_score(np.load(path.with_suffix(".npy")), labels),
        "seconds": seconds,
        "processor_seconds": used.ru_utime + used.ru_stime,
        "gigabytes": 1024 * used.ru_maxrss / 1e9,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, metavar="FOLDER", required=True, help="folder to write the files to")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--by-hand", type=Path, metavar="OUT", help=argparse.SUPPRESS)
    parser.add_argument("--one", choices=(OURS, PEER), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    path = arguments.work / f"mixed-{arguments.rows}.csv"
    if arguments.by_hand:
        by_hand(path, arguments.by_hand)
        return
    if arguments.one:  # in a new process, so the resources of its children are those of one method
        print(json.dumps(measure(arguments.one, path, arguments.rows)))
        return
    arguments.work.mkdir(parents=True, exist_ok=True)
    make_file(path, arguments.rows)
    packages = ("neuralbayes", "torch", "numpy", "scikit-learn", "pandas")
    versions = {"python": platform.python_version(), **{name: version(name) for name in packages}}
    results = Results(ROOT / "results" / "real", versions, ["million"], "python benchmarks/million.py")
    for side in (PEER, OURS):
        key: Record = {"method": side, "rows": arguments.rows, "megabytes": round(path.stat().st_size / 1e6), "seed": 0}
        if results.has("million", key):
            continue
        options = ["--work", str(arguments.work), "--rows", str(arguments.rows), "--one", side]
        done = subprocess.run([sys.executable, __file__, *options], stdout=subprocess.PIPE, text=True, check=True)
        results.add("million", {**key, **json.loads(done.stdout.splitlines()[-1])})
        print(results.records["million"][-1], flush=True)


if __name__ == "__main__":
    main()
