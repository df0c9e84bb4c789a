"""Made-up results of the demo: real points and digits, but untrained states."""

import numpy as np

from neuralbayes.data.digits import read_digits
from neuralbayes.data.toys import make_moons, make_ring
from neuralbayes.demo.digits import FEATURES, DigitsResult, LayerResult, ProbeResult, typical_images
from neuralbayes.demo.manifolds import ManifoldResult
from neuralbayes.demo.result import DemoResult

LAYERS = {"relu1": 16, "relu2": 16, "relu3": 12}


def make_demo_result(*, seed=0, name="moons", n_images=120):
    """A result of a demo; `name` is the name of the first of its two sets."""
    rng = np.random.default_rng(seed)
    return DemoResult(
        seed, 12.3, [_set(name, make_moons, True), _set("one ring", make_ring, False)], _digits(rng, n_images)
    )


def _set(name, make, certified):
    points, labels = make(200, random_state=0)
    half = 1.3 * float(np.abs(points).max())
    left = np.broadcast_to(np.linspace(-half, half, 24) < 0, (24, 24))
    return ManifoldResult(
        name=name,
        n_clusters=2,
        n_points=200,
        n_features=16,
        right=200 if certified else None,
        kmeans_right=150 if certified else None,
        separation_percent=99.4 if certified else 24.1,
        certified=certified,
        n_clusters_auto=2 if certified else 1,
        seconds=0.5,
        points=points,
        labels=labels if certified else (points[:, 0] > 0).astype(np.int64),
        extent=(-half, half, -half, half),
        decision_map=np.stack([left, ~left], axis=-1).astype(np.float64),
    )


def _digits(rng, n):
    data = read_digits()
    images, labels = data["train_images"][:n], data["train_labels"][:n]
    rows = images.reshape(n, -1) / 255.0
    posteriors = {}
    for name, k in LAYERS.items():
        logits = np.exp(2.0 * rows @ rng.normal(size=(64, k)))
        posteriors[name] = (logits / logits.sum(axis=1, keepdims=True)).astype(np.float32)
    layers = [LayerResult(name, k, 1.0, [0.2, 0.7, 1.0]) for name, k in LAYERS.items()]
    shares = (0.77, 0.67, 0.86, 0.84)
    probes = [
        ProbeResult(name, 12, {"3": share, "10": share + 0.05, "all": share + 0.1})
        for name, share in zip(FEATURES, shares, strict=True)
    ]
    states = typical_images(posteriors["relu3"], images[..., 0])
    return DigitsResult(n, 60, probes, layers, states, images, labels, posteriors)
