"""Check objectives and estimators on extreme inputs: results must be finite, or an error must say why.

It computes the value and the gradient of each objective, directly and with `neuralbayes.backward`. Inputs have 2 to
4,096 states, logits up to 10,000, and samples that are all equal, all in one state, or a single sample. It then fits
the estimators to tables with duplicates, constant columns, and columns of 1e30 and 1e-30. A warning from NumPy or torch
counts as a failure.
"""

from __future__ import annotations

import argparse
import itertools
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

import neuralbayes as nb
from neuralbayes.system.files import write_json

STATES = (2, 3, 10, 257, 4096)
SCALES = (0.0, 1.0, 1e2, 1e4)
TYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
OBJECTIVES: dict[str, Callable[[], nb.Objective]] = {
    "MIM, version 1": lambda: nb.MIM(version=1),
    "MIM, version 2": nb.MIM,
    "DML": nb.DML,
}
N = 12


def logits(kind: str, n_states: int, scale: float, dtype: torch.dtype) -> Tensor:
    """Make logits of a kind: (n, n_states)."""
    generator = torch.Generator().manual_seed(0)
    x = scale * torch.randn(N, n_states, generator=generator).clamp(-1.0, 1.0)
    if kind == "all alike":
        x = x[:1].repeat(N, 1)
    elif kind == "one class":
        x[:] = -scale
        x[:, 0] = scale
    elif kind == "one sample":
        x = x[:1]
    return x.to(dtype)


KINDS = ("at random", "all alike", "one class", "one sample")


def objective_outcomes() -> Counter[tuple[str, str, str]]:
    """Count the outcomes of each objective, by the type of number."""
    outcomes: Counter[tuple[str, str, str]] = Counter()
    for (name, make), kind, n_states, scale, dtype in itertools.product(
        OBJECTIVES.items(), KINDS, STATES, SCALES, TYPES
    ):
        x = logits(kind, n_states, scale, dtype)

        def direct(x: Tensor = x, make: Callable[[], nb.Objective] = make) -> list[Tensor]:
            leaf = x.clone().requires_grad_()
            value = make()(leaf)
            value.backward()
            return [value.detach(), leaf.grad if leaf.grad is not None else torch.tensor(torch.nan)]

        def through_backward(x: Tensor = x, make: Callable[[], nb.Objective] = make) -> list[Tensor]:
            network = nn.Linear(1, x.shape[1], bias=False).to(x.dtype)  # the weights are the logits of one sample
            network.weight.data = x[:1].T.clone()
            loss = nb.backward(make(), network, torch.ones(len(x), 1, dtype=x.dtype), microbatch_size=5)
            return [loss, *(p.grad for p in network.parameters() if p.grad is not None)]

        for call in (direct, through_backward):
            outcomes[name, str(dtype).removeprefix("torch."), outcome(call)] += 1
    return outcomes


def tables() -> dict[str, NDArray[np.float64]]:
    """Make tables that are difficult for estimators."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    return {
        "duplicates only": np.repeat(X[:1], 60, axis=0),
        "two points, often": np.repeat(X[:2], 30, axis=0),
        "a constant column": np.c_[X, np.ones(60)],
        "a column of 1e30": np.c_[X, 1e30 * rng.normal(size=60)],
        "a column of 1e-30": np.c_[X, 1e-30 * rng.normal(size=60)],
        "all of 1e30": 1e30 * X,
        "all of 1e300": 1e300 * X,
        "a mean of 1e12": X + 1e12,
        "two rows": X[:2],
        "one row": X[:1],
        "with NaN": np.where(np.arange(180).reshape(60, 3) == 7, np.nan, X),
        "with infinity": np.where(np.arange(180).reshape(60, 3) == 7, np.inf, X),
    }


ESTIMATORS: dict[str, Callable[[], nb.ManifoldLabeler | nb.MIMEncoder]] = {
    "ManifoldLabeler": lambda: nb.ManifoldLabeler(2, random_state=0),
    'ManifoldLabeler("auto", standardize=True)': lambda: nb.ManifoldLabeler("auto", standardize=True, random_state=0),
    "MIMEncoder": lambda: nb.MIMEncoder(random_state=0),
}


def estimator_outcomes() -> dict[str, dict[str, str]]:
    """The outcome of each estimator on each table."""
    found: dict[str, dict[str, str]] = {}
    for table, X in tables().items():
        for name, make in ESTIMATORS.items():

            def fit(
                X: NDArray[np.float64] = X, make: Callable[..., nb.ManifoldLabeler | nb.MIMEncoder] = make
            ) -> list[Tensor]:
                estimator = make().fit(X)
                return [torch.from_numpy(np.asarray(estimator.predict_proba(X), dtype=np.float64))]

            found.setdefault(table, {})[name] = outcome(fit)
    return found


def outcome(call: Callable[[], list[Tensor]]) -> str:
    """Return "finite", "error: ..." if the error names what is wrong, or "FAILED: ..." for anything else."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", category=UserWarning, module="neuralbayes")
        warnings.filterwarnings("ignore", category=nb_warning())
        try:
            values = call()
        except (ValueError, FloatingPointError) as error:  # documented errors for bad input
            return f"error: {str(error).splitlines()[0]}"
        except Exception as error:
            return f"FAILED: {type(error).__name__}: {error}"
    bad = [value for value in values if not bool(value.isfinite().all())]
    return "FAILED: not finite" if bad else "finite"


def nb_warning() -> type[Warning]:
    """The warning of the library about poor results."""
    from sklearn.exceptions import ConvergenceWarning

    warning: type[Warning] = ConvergenceWarning
    return warning


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", type=Path)
    arguments = parser.parse_args()
    console = Console()
    objectives, estimators = objective_outcomes(), estimator_outcomes()
    grid = Table(title="Objectives: inputs with a finite value and gradient, errors, failures")
    for heading in ("objective", "type", "outcome", "inputs"):
        grid.add_column(heading)
    for (name, dtype, what), n in sorted(objectives.items()):
        grid.add_row(name, dtype, what, str(n))
    console.print(grid)
    rows = Table(title="Estimators")
    for heading in ("table", *ESTIMATORS):
        rows.add_column(heading)
    for table, found in estimators.items():
        rows.add_row(table, *found.values())
    console.print(rows)
    if arguments.record is not None:
        write_json(
            arguments.record,
            {
                "command": "python benchmarks/guarantees/numerics.py",
                "objectives": [[*key, n] for key, n in sorted(objectives.items())],
                "estimators": estimators,
            },
        )
    failures = [key for key in objectives if key[2].startswith("FAILED")]
    failures += [
        (table, name, what)
        for table, found in estimators.items()
        for name, what in found.items()
        if what.startswith("FAILED")
    ]
    if failures:
        raise SystemExit(f"{len(failures)} different failures")


if __name__ == "__main__":
    main()
