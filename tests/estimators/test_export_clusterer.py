"""Export of clusterers for other languages, from raw samples to probabilities and typicality."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError

import neuralbayes as nb
from neuralbayes.data.toys import make_unequal

RNG = np.random.default_rng(0)
IRIS = load_iris().data
FRAME = pd.DataFrame(IRIS, columns=["a", "b", "c", "d"])
MOONS = make_unequal(400, random_state=0)[0]
IMAGES = np.concatenate([RNG.integers(0, 90, (40, 6, 7, 3)), RNG.integers(160, 256, (40, 6, 7, 3))]).astype(np.uint8)
EMBEDDINGS = RNG.normal(size=(300, 12)) + 4 * np.eye(12)[np.arange(300) % 3]
EMBEDDINGS /= np.linalg.norm(EMBEDDINGS, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def clusterers():
    settings = {"max_iter": 40, "n_hidden": 16, "random_state": 0}
    return {
        "rows": (nb.InformationClusterer(3, **settings).fit(FRAME), FRAME),
        "far rows": (nb.InformationClusterer(3, **settings).fit(IRIS + 1e7), IRIS + 1e7),
        "embeddings": (nb.InformationClusterer(3, **settings).fit(EMBEDDINGS), EMBEDDINGS),
        "images": (nb.InformationClusterer(2, **{**settings, "max_iter": 400}).fit(IMAGES), IMAGES),
        "manifolds": (nb.ManifoldLabeler(2, n_init=2, random_state=0).fit(MOONS), MOONS),
    }


def outputs(path: Path, to: str, X: np.ndarray) -> list[np.ndarray]:
    X = X if X.dtype == np.uint8 else X.astype(np.float64)
    if to == "torch":
        return [one.detach().numpy() for one in torch.export.load(path).module()(torch.from_numpy(X))]
    session = pytest.importorskip("onnxruntime").InferenceSession(str(path))
    return session.run(None, {session.get_inputs()[0].name: X})


@pytest.mark.parametrize(
    ("name", "to"),
    [("rows", "onnx"), ("images", "onnx"), ("far rows", "torch"), ("embeddings", "torch"), ("manifolds", "torch")],
)
def test_a_program_says_what_the_clusterer_says(clusterers, name, to, tmp_path):
    pytest.importorskip("onnxscript")
    clusterer, X = clusterers[name]
    path = tmp_path / "program"
    nb.export_clusterer(clusterer, path, to)
    for some in (X[:1], X[7:], X[::3]):
        given = some if isinstance(some, np.ndarray) else some.to_numpy()
        found = outputs(path, to, given)
        np.testing.assert_allclose(found[0], clusterer.predict_proba(some), atol=1e-5)
        np.testing.assert_array_equal(found[1], clusterer.predict(some))
        if name != "manifolds":
            one = clusterer.typicality_.smallest_level
            np.testing.assert_allclose(found[2], clusterer.typicality(some), atol=2.01 * one)
            assert (np.abs(found[2] - clusterer.typicality(some)) < 1e-5).mean() > 0.9
    if name == "embeddings":  # samples unlike all training samples are atypical in the exported program, too
        far = X[:3] + 1e6
        np.testing.assert_allclose(outputs(path, to, far)[2], clusterer.typicality(far), atol=1e-6)
    if to == "onnx":
        described = {entry.key: entry.value for entry in pytest.importorskip("onnx").load(path).metadata_props}
        assert described["n_clusters"] == str(clusterer.n_clusters_)
        assert json.loads(described["columns"]) == (["a", "b", "c", "d"] if name == "rows" else None)
        assert described["input"] == ("float64 rows (n, 4)" if name == "rows" else "uint8 images ('n', 6, 7, 3)")


def test_a_clusterer_that_is_not_fitted_is_refused(tmp_path):
    with pytest.raises(NotFittedError):
        nb.export_clusterer(nb.InformationClusterer(2), tmp_path / "p", "torch")
    assert not list(tmp_path.iterdir())
