"""What is typed from the paper, its authors' code and no run of ours: numbers and settings, with their places."""

from __future__ import annotations

from typing import Any

PAPER_URL = "https://arxiv.org/abs/2002.09046"
AUTHORS_URL = "https://github.com/salesforce/NeuralBayes"

TABLE_1: dict[int, dict[int, float]] = {
    50: {50: 40.62, 250: 42.97, 500: 41.41, 2000: 75.0, 3000: 78.91},
    100: {250: 67.97, 500: 66.41, 2000: 78.12, 3000: 78.91},
    250: {250: 76.56, 500: 78.91, 2000: 82.03, 3000: 84.38},
    500: {500: 82.03, 2000: 78.91, 3000: 79.69},
}
"""Accuracy in percent by mini-batch, then batch size."""

TABLE_2: dict[tuple[str, str], dict[str, float]] = {
    ("random", "relu4"): {"cifar10": 67.97, "cifar100": 42.97, "stl10": 53.91},
    ("rotation", "relu4"): {"cifar10": 33.59, "cifar100": 6.25, "stl10": 25.78},
    ("infomax", "relu4"): {"cifar10": 80.95, "cifar100": 49.74},
    ("mim", "relu4"): {"cifar10": 82.81, "cifar100": 55.47, "stl10": 64.84},
    ("rotation", "relu2"): {"cifar10": 84.38, "cifar100": 64.06, "stl10": 70.31},
    ("mim", "relu2"): {"cifar10": 84.38, "cifar100": 57.03, "stl10": 67.19},
}
"""Accuracy in percent by method and layer. The row of Deep InfoMax is quoted there from that method's paper."""

FIGURE_2 = {"random": 67.97, "random, lowest": 58.59, "best": 83.59}
"""Section 5.1.1 and the caption of figure 2, in percent."""

FIGURE_3 = {"MIM": 65.0, "random encoder": 47.0}
"""Approximate mean accuracy at the start, in percent, from the caption of figure 3."""

APPENDIX_H = {"learnt": 99.22, "random": 42.97}
"""A linear classifier on the ten outputs of the trained and of the random network, in percent."""

TEXT, H = "section 5.1", "appendix H"
_ENCODER = {"encoder": ("200-500-700-1000", "-"), "normalisation": ("each dimension", "each dimension")}
_MIM = _ENCODER | {
    "images": ("cifar10, 50,000", "-"),
    "version": ("2", "-"),
    "scales": ("1 and 2", "1 and 2"),
    "p(z)": ("minibatch", "minibatch"),
    "share of a mini-batch in R_c": ("1", "1"),
    "epochs of mim": ("100", "-"),
    "learning rate": ("0.001", "0.001"),
    "schedule of the learning rate": ("none", "none"),
}
_DRAWS = {
    "alpha": ("[0, 10], 5 of 42 are 0", "-"),
    "beta": ("[0, 5], 5 of 42 are 0", "-"),
    "mini-batch": ("500", "500"),
    "batch": ("2000", "-"),
    "seeds of the classifier": ("1", "-"),
}

SETTINGS: dict[str, dict[str, tuple[str, str]]] = {
    "table-classification": _MIM
    | {
        "scales": ("all hidden states, 1 and 2", "1 and 2"),
        "alpha": ("2", "4 (README)"),
        "beta": ("4", "2 (README)"),
        "mini-batch": ("500", "500"),
        "batch": ("4000", "4000"),
        "learning rate": ("best of 0.001 and 0.0001", "0.001"),
        "weight decay": ("best of 0 and 0.00001", "-"),
        "epochs of rotation": ("-", "-"),
        "epochs of infomax": ("quoted from another paper", "-"),
        "seeds of the classifier": ("best of two learning rates", "-"),
    },
    "table-batch": _MIM
    | {"alpha": ("2", "-"), "beta": ("4", "-"), "mini-batch": ("50 to 500", "500"), "batch": ("50 to 3000", "-")},
    "fig-ablation": _MIM | {"scales": ("1; 1 and 2", "1 and 2")} | _DRAWS,
    "fig-convergence": _MIM | _DRAWS,
    "fig-v1-v2": _MIM | {"version": ("1, 2", "-")} | _DRAWS,
    "fig-filters": {
        "images": ("mnist", "-"),
        "hidden units": ("500-500-500", "-"),
        "alpha and beta": ("0 and 4, 4 and 0, 4 and 4", "-"),
        "batch normalisation": ("not said", "-"),
        "batch": ("500", "-"),
        "epochs": ("50", "-"),
    },
    "fig-manifolds": {
        "units": ("400-400-400-400", "400-400-400-400"),
        "dimensions": ("512", "512"),
        "points": ("not said", "400; spirals 1,200"),
        "batch": ("400", "all points"),
        "updates": ("until convergence", "51 circles, 41 moons, 101 blobs, 601 spirals"),
        "beta": ("chosen from [0.5, 6] for each set", "1, for twice the mean over states: 0.5 here"),
        "argument of R_c": ("p(z|x)", "logits"),
        "directions of R_c": ("v Gaussian, X as it is", "v in {0, 1}, X centred"),
        "standard deviation of zeta": ("0.1", "0.1"),
        "scale of the points": ("unit variance in each of 512 dimensions", "unit variance in the plane; spirals none"),
    },
    "mnist-dml": {
        "images": ("mnist, 54,000", "-"),
        "channels": ("100-100-200-500", "-"),
        "batch normalisation": ("not said", "-"),
        "argument of R_c": ("p(z|x)", "logits"),
        "beta": ("1", "-"),
        "batch": ("5000", "-"),
        "micro-batch of batch normalisation and R_c": ("5000", "-"),
        "epochs": ("100", "-"),
        "updates": ("1,080", "-"),
    },
}
"""Settings by experiment: what the paper says (sections 5.1 and 5.2, appendices B and H), and what its authors' public
code does (README, defaults and notebook); "-" where neither says."""


def summary(values: list[Any]) -> str:
    """Distinct values of a setting in a few words.

    Examples
    --------
    >>> summary([2, 1, 2]), summary([0.5, 0.1, 2, 3, 0.2, 9.0]), summary([[1, 2], [1]]), summary([])
    ('1, 2', '0.1 to 9 (6 values)', '1 and 2; 1', '-')
    """
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    if len(numbers) == len(values):
        values = sorted(set(numbers))
    found = list(dict.fromkeys(map(_word, values)))
    if len(found) > 5 and numbers:
        return f"{min(numbers):g} to {max(numbers):g} ({len(found)} values)"
    return ("; " if any(" and " in word or "," in word for word in found) else ", ").join(found) or "-"


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return " and ".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
