"""Extreme inputs give finite numbers, or an error that says why."""

import itertools
import warnings
from contextlib import suppress

import numpy as np
import pytest
import torch
from sklearn.exceptions import ConvergenceWarning
from torch import nn

import neuralbayes as nb

N = 12
OBJECTIVES = {"MIM, version 1": lambda: nb.MIM(version=1), "MIM, version 2": nb.MIM, "DML": nb.DML}
RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
TABLES = {
    "duplicates only": np.repeat(X[:1], 60, axis=0),
    "two points, often": np.repeat(X[:2], 30, axis=0),
    "a constant column": np.c_[X, np.ones(60)],
    "a column of 1e30": np.c_[X, 1e30 * RNG.normal(size=60)],
    "a column of 1e-30": np.c_[X, 1e-30 * RNG.normal(size=60)],
    "all of 1e30": 1e30 * X,
    "all of 1e300": 1e300 * X,
    "a mean of 1e12": X + 1e12,
    "two rows": X[:2],
    "one row": X[:1],
    "with NaN": np.where(np.arange(180).reshape(60, 3) == 7, np.nan, X),
    "with infinity": np.where(np.arange(180).reshape(60, 3) == 7, np.inf, X),
}
ESTIMATORS = {
    "ManifoldLabeler": lambda: nb.ManifoldLabeler(2, random_state=0),
    "standardised": lambda: nb.ManifoldLabeler("auto", standardize=True, random_state=0),
    "InformationClusterer": lambda: nb.InformationClusterer(2, random_state=0),
    "MIMEncoder": lambda: nb.MIMEncoder(max_epochs=3, random_state=0),
}


def logits(kind, n_states, scale, dtype):
    x = scale * torch.randn(N, n_states, generator=torch.Generator().manual_seed(0)).clamp(-1.0, 1.0)
    if kind == "all alike":
        x = x[:1].repeat(N, 1)
    elif kind == "one class":
        x[:] = -scale
        x[:, 0] = scale
    return (x[:1] if kind == "one sample" else x).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("name", OBJECTIVES)
def test_values_and_gradients_of_an_objective_are_finite(name, dtype):
    kinds = ("at random", "all alike", "one class", "one sample")
    for kind, n_states, scale in itertools.product(kinds, (2, 10, 4096), (0.0, 1.0, 1e2, 1e4)):
        x = logits(kind, n_states, scale, dtype)
        leaf = x.clone().requires_grad_()
        network = nn.Linear(1, n_states, bias=False).to(dtype)  # the weights are the logits of every sample
        network.weight.data = x[:1].T.clone()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.filterwarnings("ignore", category=UserWarning, module="neuralbayes")
            value = OBJECTIVES[name]()(leaf)
            value.backward()
            loss = nb.backward(OBJECTIVES[name](), network, torch.ones(len(x), 1, dtype=dtype), microbatch_size=5)
        found = (value, leaf.grad, loss, network.weight.grad)
        assert all(bool(one.isfinite().all()) for one in found), (kind, n_states, scale)


@pytest.mark.slow
@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_estimator_gives_finite_posteriors_or_refuses_the_table(name, table):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", category=UserWarning, module="neuralbayes")
        warnings.filterwarnings("ignore", category=ConvergenceWarning)
        with suppress(ValueError):
            assert np.isfinite(ESTIMATORS[name]().fit(TABLES[table]).predict_proba(TABLES[table])).all()
