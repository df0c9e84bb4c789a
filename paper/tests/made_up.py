"""Made-up records of experiments, from what they should show."""

from paper.authors_manifolds import WHOLE
from paper.runs import Record

JITTER = (-0.001, 0.0, 0.001)
"""Differences between three seeds."""


def probed(honest, curve=None):
    """Both protocols of a probe; the paper's is five points better."""
    short = {"n_features": 1, "n_train": 1, "n_test": 1, "epochs": [2], "curves": [curve or [honest - 0.1, honest]]}
    return {p: {"accuracies": [honest + more], **short} for p, more in (("validation", 0.0), ("paper", 0.05))}


def cell(layers, seed=0, method="mim", data="cifar10", curve=None, **training):
    """An encoder with an accuracy for each layer, or for the last one."""
    layers = layers if isinstance(layers, dict) else {"relu4": layers}
    training = {"encoder": "tiny", "normalize": "whiten", "schedule": "cosine", **training}
    if method == "mim":
        training = {"alpha": 2.0, "beta": 0.5, "scales": [1, 2], "version": 2, "batch_size": 100, **training}
    part = {"name": data, "split": "train", "n": 100, "side": None}
    settings = {"experiment": "x", "seed": seed, "method": method, "training": training, "test": part, "learn": part}
    states = {f"relu{i}": {"states": 10, "dead": 0} for i in range(1, 5)}
    probes = {layer: probed(value, curve) for layer, value in layers.items()}
    return Record({**settings, "probe_seeds": 1}, {"probes": probes, "states": states}, {"seconds": 1.0})


def batches(values, seeds=3):
    """Runs of table 1 from (p(z), mini-batch, batch) to accuracy."""
    return [
        cell(value + jitter, seed, marginal=marginal, microbatch_size=size, batch_size=batch)
        for (marginal, size, batch), value in values.items()
        for seed, jitter in enumerate(JITTER[:seeds])
    ]


def random_encoders(accuracy):
    return [cell(accuracy + jitter, seed, "random", batch_norm=True) for seed, jitter in enumerate(JITTER)]


def filters(alpha, beta, version, dead, likeness, seed, batch_norm):
    settings = {"seed": seed, "alpha": alpha, "beta": beta, "version": version, "batch_norm": batch_norm}
    values = {"dead": {"relu1": dead, "relu2": dead}, "likeness": likeness, "test_likeness": likeness}
    return Record(settings, values, {"seconds": 1.0})


def manifold(name, right, seed, setting=WHOLE):
    settings = {"published": name, "setting": setting, "gap": 0.6, "scale": 0.1, "seed": seed}
    return Record(settings, {"right": right, "objective": 0.0}, {"seconds": 1.0})


def digits(kind, accuracy, seed, width=1.0, beta=1.0):
    settings = {"kind": kind, "seed": seed, "beta": beta, "width": width, "epochs": 90, "batch_size": 5000}
    probes = {"output": probed(accuracy), "logits": probed(accuracy - 0.01)}
    return Record({**settings, "train": {"name": "mnist"}}, {"probes": probes, "clusters": 0.5, "dead": 2}, {})
