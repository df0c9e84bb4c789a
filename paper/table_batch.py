"""Table 1: mini-batch and batch size, with the paper's estimate of p(z), a running one and the exact one."""

from __future__ import annotations

from functools import partial
from itertools import product

from paper import fig_ablation
from paper.accuracy import accuracies
from paper.cells import IMAGES, LAST, Cell, ImageScale, preset
from paper.cells import settings as settings
from paper.claims import Claim, every, listed, most
from paper.experiment import Picture
from paper.pictures import draw_lines
from paper.published import TABLE_1
from paper.runs import Results, Scale, by
from paper.statistics import Estimate, difference, text
from paper.tables import Table

NAME = "table-batch"
TITLE = "Table 1: mini-batch and batch size"
AT_FULL_SCALE = "four days on two cores"
ABOUT = (
    "All sizes train for the same number of epochs, so a larger batch gets fewer updates. Batch normalisation always "
    "sees the mini-batch. The narrow encoder has 80 states in its last layer, the paper's 1,000."
)
MARGINALS = ("minibatch", "running", "exact")

SHORT = ImageScale("cifar10", preset("laptop", encoder="tiny", epochs=4), n_train=10_000)
SCALES: dict[Scale, tuple[ImageScale, tuple[int, ...], tuple[int, ...], int]] = {
    "smoke": (IMAGES["smoke"], (20, 60), (60, 120), 2),
    "laptop": (SHORT, (10, 50, 250), (50, 250, 1000), 3),
    "paper": (IMAGES["paper"], tuple(TABLE_1), (50, 250, 500, 2000, 3000), 3),
}
"""Images, mini-batches, batches and seeds at each scale."""

Cells = dict[tuple[str, int, int], Results]
"""Records by p(z), mini-batch and batch."""


def runs(scale: Scale, seeds: int | None) -> list[Cell]:
    """Every mini-batch with every batch of at least its size, for each estimate of p(z); and random encoders."""
    images, microbatches, batches, default = SCALES[scale]
    learnt = [
        images.cell(NAME, seed, batch_size=batch, microbatch_size=microbatch, marginal=marginal)
        for seed in range(default if seeds is None else seeds)
        for marginal in MARGINALS
        for microbatch in microbatches
        for batch in batches
        # If the batch is a single mini-batch, its p(z) is already exact.
        if microbatch < batch or (microbatch == batch and marginal != "exact")
    ]
    return learnt + fig_ablation.random_encoders(scale)


def tables(results: Results) -> list[Table]:
    cells = _cells(results)
    sizes, batches = _sizes(cells)
    rows = [
        (
            f"{size}, {marginal}",
            *("" if batch < size else text(_honest(cells, marginal, size, batch)) for batch in batches),
        )
        for size, marginal in product(sizes, MARGINALS)
    ]
    note = (
        f"Published, for other sizes and under the paper's protocol: from {TABLE_1[50][50]} % with mini-batches and "
        f"batches of 50 to {TABLE_1[250][3000]} % with mini-batches of 250 and batches of 3,000."
    )
    head = ("mini-batch, p(z)", *(f"batch {batch}" for batch in batches))
    return [Table("Honest accuracy in %", head, rows, note)]


def pictures(results: Results) -> list[Picture]:
    cells = _cells(results)
    sizes, batches = _sizes(cells)
    panels = {
        f"batch {batch}": {
            marginal: {float(size): values for size in sizes if (values := _honest(cells, marginal, size, batch))}
            for marginal in MARGINALS
        }
        for batch in batches
    }
    return [Picture(NAME, TITLE, partial(draw_lines, panels, "mini-batch", "honest accuracy, %"))]


def claims(results: Results) -> list[Claim]:
    cells = _cells(results)
    random = accuracies(fig_ablation.of_random(results), LAST)
    sizes, batches = _sizes(cells)
    minibatch, exact = (_gains_of_minibatches(cells, marginal) for marginal in ("minibatch", "exact"))
    worse = {
        f"batch {batch}": difference(random, values)
        for batch in batches
        if random and (values := _honest(cells, "minibatch", sizes[0], batch))
    }
    larger = {}
    for size in sizes:
        found = [values for batch in batches if (values := _honest(cells, "minibatch", size, batch))]
        if len(found) > 1:
            larger[f"mini-batch {size}"] = difference(found[-1], found[0])
    reason = {batch: _minus(gain, exact[batch]) for batch, gain in minibatch.items() if batch in exact}
    where = "section 5.1.1, table 1"
    return [
        Claim(
            "using very small MBS […] typically results in poor [performance], while larger MBS significantly improves "
            "performance",
            where,
            "largest minus smallest mini-batch, with its own p(z), is above 0 for every batch",
            every(minibatch),
            listed(minibatch),
        ),
        Claim(
            "(even worse than that of a random encoder)",
            where,
            "a random encoder minus the smallest mini-batch is above 0 for every batch",
            every(worse),
            listed(worse),
        ),
        Claim(
            "using a larger BS further improves performance in most cases (even when MBS is small)",
            where,
            "largest minus smallest batch is above 0 for more than half of the mini-batches; *reversed* if below",
            most(larger),
            listed(larger),
            "A larger batch makes fewer updates",
        ),
        Claim(
            "a sufficiently large MBS is needed for computing high fidelity gradients due to [the] E[L(x)] term",
            "caption of table 1",
            "the smallest mini-batch loses more with its own p(z) than with that of the batch, for every batch",
            every(reason),
            listed(reason, "points lost in excess"),
        ),
    ]


def not_run(results: Results) -> list[str]:
    widths = {record.settings["training"]["encoder"] for record in results if record.settings["method"] == "mim"}
    missing = "table 1 with the paper's encoder and settings"
    return [] if "paper" in widths else [missing]


def _cells(results: Results) -> Cells:
    learnt = [record for record in results if record.settings["method"] == "mim"]
    names = ("marginal", "microbatch_size", "batch_size")
    return dict(by(learnt, lambda record: tuple(record.settings["training"][name] for name in names)))


def _sizes(cells: Cells) -> tuple[list[int], list[int]]:
    """All mini-batches, and all batches."""
    return sorted({size for _, size, _ in cells}), sorted({batch for _, _, batch in cells})


def _found(cells: Cells, marginal: str, size: int, batch: int) -> Results:
    """The runs of a cell. If the batch is a single mini-batch, the p(z) of the mini-batch is exact."""
    return cells.get(("minibatch" if size == batch and marginal == "exact" else marginal, size, batch), [])


def _honest(cells: Cells, marginal: str, size: int, batch: int) -> list[float]:
    return accuracies(_found(cells, marginal, size, batch), LAST)


def _gains_of_minibatches(cells: Cells, marginal: str) -> dict[str, Estimate]:
    """Gain of the largest mini-batch over the smallest, for each batch."""
    gains = {}
    sizes, batches = _sizes(cells)
    for batch in batches:
        found = [values for size in sizes if (values := _honest(cells, marginal, size, batch))]
        if len(found) > 1:
            gains[f"batch {batch}"] = difference(found[-1], found[0])
    return gains


def _minus(a: Estimate, b: Estimate) -> Estimate:
    """The difference of two independent differences."""
    half = None if a.half is None or b.half is None else (a.half**2 + b.half**2) ** 0.5
    return Estimate(a.mean - b.mean, half, min(a.n, b.n))
