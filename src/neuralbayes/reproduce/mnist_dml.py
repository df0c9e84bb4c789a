"""Appendix H: Neural Bayes-DML with ten states on MNIST, and a linear classifier on its ten outputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuralbayes.report.reproduced import Row, draw_rows
from neuralbayes.report.results_page import Claim, Table, Verdict
from neuralbayes.reproduce.experiment import Experiment, Record, Results, by
from neuralbayes.reproduce.images import Source
from neuralbayes.reproduce.labeling_runs import (
    KINDS,
    LOGITS,
    MENDED,
    MERGED,
    NAME,
    OURS,
    PAPERS,
    PROBED,
    SOFTMAX,
    Arm,
    cost,
    run_one,
    runs,
)
from neuralbayes.reproduce.protocols import PROTOCOLS, accuracies, both
from neuralbayes.reproduce.statistics import difference, estimate, interval, power, text, verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAPER = {"learnt": 99.22, "random": 42.97}
"""Appendix H, in percent: a linear classifier on the ten outputs of the trained and of the random network."""

TOLERANCE = 0.01
"""How far below the published accuracy a result still counts as reaching it."""

PAPERS_KINDS = ("random", "logits", "posterior")
"""Kinds with published numbers."""

AUTHORS_UPDATES = 1080
"""Updates of appendix H: 100 epochs of 54,000 images in batches of 5,000."""


def tables(results: Results) -> list[Table]:
    rows = []
    for arm, found in _arms(results).items():
        linear = [cell for probed in PROBED for cell in both(_probed(found, probed), probed)]
        clusters = text([record.values["clusters"] for record in found])
        dead = text([record.values["dead"] for record in found], factor=1.0)
        largest = text([record.values["largest"] for record in found if "largest" in record.values])
        objective = text([record.values["objective"] for record in found if "objective" in record.values], 3, 1.0)
        published = f"{PAPER['random' if arm[0] == 'random' else 'learnt']:.2f}" if arm[0] in PAPERS_KINDS else "-"
        rows.append((_title(arm), published, *linear, clusters, dead, largest, objective))
    head = (
        "network",
        "published",
        "softmax, paper's protocol",
        "softmax, honest",
        "logits, paper's protocol",
        "logits, honest",
        "clusters, honest",
        "dead states",
        "largest state, %",
        "DML loss",
    )
    note = (
        "Softmax and logits: accuracy of a linear classifier on the ten probabilities or the ten logits. Clusters: "
        "accuracy after matching each state to a digit. Dead states: how many of the ten states have p(z) below a "
        "tenth of 1/10. DML loss: 0 if no two states share an image and 0.693 if all states are alike, whatever their "
        "masses; it is below 0.1 even for networks with dead states. Beta is relative to the mean over states: 1, or "
        "0.1 if appendix H refers to the sum of theorem 3. States merged: `InformationClusterer(10, objective=...)` "
        "with 40 states and virtual adversarial smoothness instead of R_c."
    )
    return [Table("MNIST: accuracy in %", head, rows, note)]


def draw(results: Results) -> Figure:
    rows = []
    for arm, found in _arms(results).items():
        honest, paper = (interval(accuracies(found, SOFTMAX, protocol)) for protocol in PROTOCOLS)
        published = PAPER["random" if arm[0] == "random" else "learnt"] if arm[0] in PAPERS_KINDS else None
        rows.append(Row(_title(arm), honest, paper, published))
    return draw_rows(rows, "MNIST, a linear classifier on the softmax of ten outputs: accuracy, %")


def claims(results: Results) -> list[Claim]:
    arms = _arms(results)
    random = arms.get(("random", OURS), [])
    papers = {arm: arms[arm] for arm in PAPERS if arm in arms}
    gains = [
        difference(_honest(found, probed), _honest(random, probed))
        for found in papers.values()
        for probed in PROBED
        if _honest(found, probed) and _honest(random, probed)
    ]
    mended = {arm: found for arm, found in arms.items() if arm in MENDED + MERGED}
    return [
        _reached(
            f"DML correctly labels MNIST: a linear classifier on its ten outputs reaches {PAPER['learnt']} %", papers
        ),
        _reached(f"DML with masses of states, or with merged states, reaches {PAPER['learnt']} %", mended),
        Claim(
            "The ten outputs of the trained network beat those of a random network",
            "appendix H",
            verdict(gains),
            _against(papers, random) if papers and random else "",
            power(gains),
        ),
    ]


def _reached(statement: str, arms: dict[Arm, list[Record]]) -> Claim:
    """The claim of a value, not of a difference: whether any arm nearly reaches it, on the softmax or on the logits."""
    best = {arm: _best(found) for arm, found in arms.items()}
    short = [estimate([value - PAPER["learnt"] / 100 + TOLERANCE for value in values]) for values in best.values()]
    reached: Verdict = "holds" if any(d.mean >= 0 for d in short) else "does not hold here"
    numbers = [
        f"{_title(arm)}: {text(best[arm])} % with a linear classifier, "
        f"{text([record.values['clusters'] for record in found])} % as clusters"
        f"{' (one seed)' if len(found) == 1 else ''}"
        for arm, found in arms.items()
    ]
    authors = any(
        record.settings["width"] == 1.0
        and record.settings["epochs"] * _n_train(record) >= AUTHORS_UPDATES * record.settings["batch_size"]
        and KINDS[record.settings["kind"]].of is not None
        for found in arms.values()
        for record in found
    )
    if numbers and not authors and PAPERS[0][0] in {kind for kind, _ in arms}:
        numbers.append(
            f"the full setting of appendix H ({AUTHORS_UPDATES:,} updates of 5,000 images, full width) was not run"
        )
    return Claim(statement, "appendix H", reached if short else "not run", "; ".join(numbers), authors_setting=authors)


def _n_train(record: Record) -> int:
    """Number of training images of a run."""
    return len(Source(**record.settings["train"]))


def _best(found: Results) -> list[float]:
    """Honest accuracies on the softmax or on the logits, whichever has the higher mean."""
    return max((values for probed in PROBED if (values := _honest(found, probed))), key=lambda v: estimate(v).mean)


def _against(papers: dict[Arm, list[Record]], random: Results) -> str:
    """Accuracies of all networks on the softmax and, if probed, on the logits."""
    arms = {"random network": random, **{_title(arm): found for arm, found in papers.items()}}
    cells = []
    for name, found in arms.items():
        of = {"softmax": _honest(found, SOFTMAX), "logits": _honest(found, LOGITS)}
        cells.append(f"{name} {' and '.join(f'{text(values)} % ({what})' for what, values in of.items() if values)}")
    return f"{', '.join(cells)}; published for the random network: {PAPER['random']} %"


def _honest(found: Results, probed: str) -> list[float]:
    return accuracies(_probed(found, probed), probed, "validation")


def _probed(found: Results, probed: str) -> list[Record]:
    return [record for record in found if probed in record.values["probes"]]


def _arms(results: Results) -> dict[Arm, list[Record]]:
    """The runs of each arm, in the order of `KINDS`."""
    found = by(results, lambda record: (str(record.settings["kind"]), float(record.settings["beta"])))
    order = list(KINDS)
    return dict(sorted(found.items(), key=lambda item: (order.index(item[0][0]), -item[0][1])))


def _title(arm: Arm) -> str:
    kind, beta = arm
    return KINDS[kind].title if beta == OURS else f"{KINDS[kind].title}, beta {beta:g}"


EXPERIMENT = Experiment(
    name=NAME,
    title="Appendix H: labelling MNIST",
    about=(
        "The paper's network for MNIST with ten states, trained by DML with the gradient of the whole batch. A linear "
        "classifier is then trained on the softmax of its ten outputs, and another on the logits. In the paper's text "
        "R_c acts on the softmax, in the authors' code on the logits; we run both. DML ignores how much mass a state "
        "has, so one state with nearly all images and a few slivers score as well as ten digits. The table also lists "
        "variants that avoid this."
    ),
    runs=runs,
    run_one=run_one,
    cost=cost,
    tables=tables,
    draw=draw,
    claims=claims,
)
