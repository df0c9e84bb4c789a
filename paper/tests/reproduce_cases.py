"""Made-up results of experiments."""

from paper.experiment import Record

JITTER = (-0.001, 0.0, 0.001)
"""Differences between three seeds."""


def probed(honest, paper=None, curve=None):
    paper = honest + 0.05 if paper is None else paper
    curves = [curve or [honest - 0.1, honest]]
    short = {"n_features": 1, "n_train": 1, "n_test": 1, "epochs": [2], "curves": curves}
    return {"validation": {"accuracies": [honest], **short}, "paper": {"accuracies": [paper], **short}}


def cell(accuracy, seed=0, method="mim", dead=0, data="cifar10", layers=None, curve=None, **training):
    settings = {"experiment": "x", "seed": seed, "method": method, "training": training, "test": {"name": data}}
    layers = layers or {"relu4": accuracy}
    states = {f"relu{i}": {"states": 10, "dead": dead} for i in range(1, 5)}
    probes = {layer: probed(value, curve=curve) for layer, value in layers.items()}
    return Record(settings, {"probes": probes, "states": states}, {"seconds": 1.0})


def batch_results(accuracies):
    """Runs from (marginal, mini-batch, batch) to accuracy, with three seeds."""
    return [
        cell(value + jitter, seed, marginal=marginal, microbatch_size=size, batch_size=batch)
        for (marginal, size, batch), value in accuracies.items()
        for seed, jitter in enumerate(JITTER)
    ]


def ablation_results(*, scaling=0.1, alpha=0.1, beta=0.1, version=0.0, dead=0):
    """Draws in which each of the settings adds to the accuracy, and random encoders."""
    draws = [(a, b) for a in (0.0, 2.0) for b in (0.0, 1.0) if a or b] + [(3.0, 0.5), (0.0, 0.7), (4.0, 0.0)]
    results = [
        cell(
            0.4 + scaling * (s == [1, 2]) + alpha * (a > 0) + beta * (b > 0) + version * (v == 2) + 0.001 * i,
            i,
            alpha=a,
            beta=b,
            scales=s,
            version=v,
            dead=0 if v == 2 else dead,
        )
        for i, (a, b) in enumerate(draws)
        for s, v in (([1], 2), ([1, 2], 2), ([1, 2], 1))
    ]
    return results + [cell(0.3 + jitter, seed, "random", batch_norm=True) for seed, jitter in enumerate(JITTER)]


def classification_results(mim=0.6, rotation=(0.3, 0.7), data="cifar10"):
    values = {
        "random": ({"batch_norm": False}, 0.4, 0.4),
        "random-bn": ({"batch_norm": True}, 0.45, 0.4),
        "rotation": ({}, *rotation),
        "infomax": ({}, 0.55, 0.5),
        "mim": ({}, mim, 0.6),
        "mim-authors": ({"alpha": 4.0, "beta": 2.0}, 0.55, 0.5),
        "supervised": ({}, 0.8, 0.7),
    }
    return [
        cell(0.0, seed, key.split("-")[0], data=data, layers={"relu4": a + jitter, "relu2": b + jitter}, **setting)
        for key, (setting, a, b) in values.items()
        for seed, jitter in enumerate(JITTER)
    ]


def filters(alpha, beta, version, dead, likeness, seed=0, batch_norm=False):
    settings = {"seed": seed, "alpha": alpha, "beta": beta, "version": version, "batch_norm": batch_norm}
    values = {"dead": {"relu1": dead, "relu2": dead}, "likeness": likeness, "test_likeness": likeness}
    return Record(settings, values, {})


def manifold(points, method, right, objective, beta=None, seed=0):
    settings = {"points": points, "method": method, "beta": beta, "seed": seed}
    return Record(settings, {"right": right, "objective": objective}, {})


def authors_manifold(name, setting, right, seed=0, gap=0.6, scale=0.1):
    settings = {"published": name, "setting": setting, "gap": gap, "scale": scale, "seed": seed}
    return Record(settings, {"right": right, "objective": 0.0}, {})


def digits(kind, accuracy, seed=0, beta=1.0, **values):
    settings = {"kind": kind, "seed": seed, "beta": beta, "width": 0.3, "epochs": 8, "batch_size": 1000}
    return Record(
        {**settings, "train": {"name": "mnist"}},
        {
            "probes": {"output": probed(accuracy), "logits": probed(accuracy - 0.1)},
            "clusters": 0.5,
            "dead": 2,
            **values,
        },
        {},
    )
