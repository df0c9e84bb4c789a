"""Export of clusterers for other languages, from raw samples to probabilities and typicality."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError

import neuralbayes as nb
from neuralbayes.data.toys import make_unequal

RNG = np.random.default_rng(0)
IRIS = load_iris().data
IMAGES = np.concatenate([RNG.integers(0, 90, (40, 6, 7, 3)), RNG.integers(160, 256, (40, 6, 7, 3))]).astype(np.uint8)
WORDS = RNG.poisson(0.05 + 0.8 * (np.arange(300) // 100 == np.arange(120)[:, None] % 3), (120, 300)).astype(float)
SAMPLES = {
    "rows": pd.DataFrame(IRIS + 1e7, columns=["a", "b", "c", "d"]),
    "words": sp.csr_array(WORDS),
    "images": IMAGES,
    "manifolds": make_unequal(400, random_state=0)[0],
}
SETTINGS = {
    "words": {"n_components": 20, "metric": "cosine", "max_iter": 40, "n_hidden": 16},
    "images": {"n_clusters": 2, "max_iter": 400, "n_hidden": 16},
}


def opened(path: Path, to: str) -> Callable[[np.ndarray], list[np.ndarray]]:
    if to == "torch":
        program = torch.export.load(path).module()
        return lambda X: [one.detach().numpy() for one in program(torch.from_numpy(X))]
    session = pytest.importorskip("onnxruntime").InferenceSession(str(path))
    return lambda X: session.run(None, {session.get_inputs()[0].name: X})


@pytest.mark.parametrize(
    ("name", "to"), [("rows", "onnx"), ("images", "onnx"), ("words", "torch"), ("manifolds", "torch")]
)
def test_a_program_says_what_the_clusterer_says(name, to, tmp_path):
    pytest.importorskip("onnxscript")
    X, path = SAMPLES[name], tmp_path / "program"
    if name == "manifolds":
        clusterer = nb.ManifoldLabeler(2, n_init=2, random_state=0).fit(X)
    else:
        clusterer = nb.InformationClusterer(**{"n_clusters": 3, "random_state": 0} | SETTINGS.get(name, {})).fit(X)
    nb.export_clusterer(clusterer, path, to)
    outputs = opened(path, to)
    for some in (X[:1], X[7:], X[::3]):
        found = outputs(some.to_numpy() if name == "rows" else some.toarray() if name == "words" else some)
        np.testing.assert_allclose(found[0], clusterer.predict_proba(some), atol=1e-5)
        np.testing.assert_array_equal(found[1], clusterer.predict(some))
        if name != "manifolds":
            one = clusterer.typicality_.smallest_level
            np.testing.assert_allclose(found[2], clusterer.typicality(some), atol=2.01 * one)
            assert (np.abs(found[2] - clusterer.typicality(some)) < 1e-5).mean() > 0.9
    if name == "rows":  # samples unlike all training samples are atypical in the exported program, too
        np.testing.assert_allclose(outputs(IRIS + 1e9)[2], clusterer.typicality_.smallest_level, rtol=1e-6)
    if to == "onnx":
        described = {entry.key: entry.value for entry in pytest.importorskip("onnx").load(path).metadata_props}
        assert described["n_clusters"] == str(clusterer.n_clusters_)
        assert json.loads(described["columns"]) == (["a", "b", "c", "d"] if name == "rows" else None)
        assert described["input"] == ("float64 rows (n, 4)" if name == "rows" else "uint8 images ('n', 6, 7, 3)")


def test_a_clusterer_that_is_not_fitted_is_refused(tmp_path):
    with pytest.raises(NotFittedError):
        nb.export_clusterer(nb.InformationClusterer(2), tmp_path / "p", "torch")
    assert not list(tmp_path.iterdir())
