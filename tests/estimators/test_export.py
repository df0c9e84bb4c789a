"""Export for other languages, from raw samples to probabilities and typicality, or from images to features."""

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
from neuralbayes.data.normalize import Normalization
from neuralbayes.data.sources import ArraySource
from neuralbayes.data.toys import make_unequal
from neuralbayes.estimators.export import export
from neuralbayes.features.encoder import ImageEncoder

RNG = np.random.default_rng(0)
IRIS = load_iris().data
IMAGES = np.concatenate([RNG.integers(0, 90, (40, 6, 7, 3)), RNG.integers(160, 256, (40, 6, 7, 3))]).astype(np.uint8)
WORDS = RNG.poisson(0.05 + 0.8 * (np.arange(300) // 100 == np.arange(120)[:, None] % 3), (120, 300)).astype(float)
SAMPLES = {
    "near": IRIS.astype(np.float32),
    "rows": pd.DataFrame(IRIS + 1e7, columns=["a", "b", "c", "d"]),
    "words": sp.csr_array(WORDS),
    "images": IMAGES,
    "manifolds": make_unequal(600, random_state=0)[0].astype(np.float32),
}
SETTINGS = {
    "words": {"n_components": 20, "metric": "cosine", "max_iter": 40, "n_hidden": 16},
    "images": {"n_clusters": 2, "max_iter": 400, "n_hidden": 16},
}


def opened(path: Path, to: str) -> Callable[[np.ndarray], list[np.ndarray]]:
    if to == "torch":
        program = torch.export.load(path).module()

        def run(X):
            found = program(torch.from_numpy(X))
            return [one.detach().numpy() for one in (found if isinstance(found, tuple) else (found,))]

        return run
    session = pytest.importorskip("onnxruntime").InferenceSession(str(path))
    return lambda X: session.run(None, {session.get_inputs()[0].name: X})


@pytest.mark.parametrize(
    ("name", "to"),
    [("rows", "onnx"), ("images", "onnx"), ("near", "onnx"), ("words", "torch"), ("manifolds", "torch")],
)
def test_a_program_says_what_the_clusterer_says(name, to, tmp_path):
    pytest.importorskip("onnxscript")
    X, path = SAMPLES[name], tmp_path / "program"
    if name == "manifolds":
        clusterer = nb.ManifoldLabeler(2, n_init=2, random_state=0).fit(X)
    else:
        clusterer = nb.InformationClusterer(**{"n_clusters": 3, "random_state": 0} | SETTINGS.get(name, {})).fit(X)
    described = export(clusterer, path, to=to)
    precision = "float64" if name == "rows" else "float32"  # float32 cannot tell flowers apart at 1e7
    shape = {"images": "6, 7, 3", "words": "300", "manifolds": "2"}.get(name, "4")
    assert described["input"] == f"{'uint8 images' if name == 'images' else f'{precision} rows'} (n, {shape})"
    outputs = opened(path, to)
    for some in (X[:1], X[7:], X[::3]):
        given = some.to_numpy() if name == "rows" else some.toarray().astype(np.float32) if name == "words" else some
        found = outputs(given)
        some = given.astype(float) if name == "near" else some
        np.testing.assert_allclose(found[0], clusterer.predict_proba(some), atol=1e-5)
        np.testing.assert_array_equal(found[1], clusterer.predict(some))
        if name != "manifolds":
            one = clusterer.typicality_.smallest_level
            np.testing.assert_allclose(found[2], clusterer.typicality(some), atol=2.01 * one)
            assert (np.abs(found[2] - clusterer.typicality(some)) < 1e-5).mean() > 0.9
    if name == "rows":  # samples unlike all training samples are atypical in the exported program, too
        np.testing.assert_allclose(outputs(IRIS + 1e9)[2], clusterer.typicality_.smallest_level, rtol=1e-6)
    if to == "onnx":
        kept = {entry.key: entry.value for entry in pytest.importorskip("onnx").load(path).metadata_props}
        assert kept.items() <= described.items()
        assert json.loads(kept["columns"]) == (["a", "b", "c", "d"] if name == "rows" else None)
        assert ("BOX" in kept["resizing"]) == (name == "images")


@pytest.fixture(scope="module", params=["channel", "dimension", "whiten"])
def encoder(request):
    images = RNG.integers(0, 256, (30, 22, 26, 3), dtype=np.uint8)
    encoder = ImageEncoder("tiny", (22, 26, 3), Normalization.fit(images, per=request.param)).eval()
    for module in encoder.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.running_mean.normal_()
            module.running_var.uniform_(0.5, 2.0)
    return encoder


@pytest.mark.parametrize(("to", "state"), [("onnx", "relu4"), ("torch", "relu1")])
def test_a_program_gives_the_features_of_any_number_of_images(encoder, tmp_path, to, state):
    pytest.importorskip("onnxscript")
    if to == "onnx" and encoder.normalization.whitening is not None:
        pytest.skip("one whitening suffices")
    path = tmp_path / "encoder.bin"
    described = export(encoder, path, to=to, state=state)
    assert float(described["difference"]) < 1e-4
    assert described["output"] == state
    for n in (1, 9):
        images = RNG.integers(0, 256, (n, 22, 26, 3), dtype=np.uint8)
        expected = encoder.features(ArraySource(images), state)
        np.testing.assert_allclose(opened(path, to)(images)[0], expected, atol=1e-4)
    assert [p.name for p in tmp_path.iterdir()] == ["encoder.bin"]  # no other file next to it


def test_a_saved_model_is_exported_from_its_folder(tmp_path):
    nb.ManifoldLabeler(2, n_init=2, random_state=0).fit(SAMPLES["manifolds"]).save(tmp_path / "model")
    assert export(tmp_path / "model", tmp_path / "p.pt2", to="torch")["model"].startswith("ManifoldLabeler")


@pytest.mark.parametrize(
    ("model", "to", "error", "words"),
    [
        (nb.InformationClusterer(2), "torch", NotFittedError, "not fitted"),
        (nb.InformationClusterer(2), "tflite", ValueError, "`to`"),
        (nb.MIMEncoder(), "torch", TypeError, "`model`"),
    ],
)
def test_what_cannot_be_exported_is_refused_and_nothing_is_written(tmp_path, model, to, error, words):
    with pytest.raises(error, match=words):
        export(model, tmp_path / "p", to=to)
    assert not list(tmp_path.iterdir())
