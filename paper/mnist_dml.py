"""Appendix H: Neural Bayes-DML with ten states on MNIST, and a linear classifier on its ten outputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from paper.experiment import Experiment, Record, Results, by
from paper.images import Source
from paper.labeling_runs import (
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
from paper.protocols import PROTOCOLS, accuracies, both
from paper.reproduced import Row, draw_rows
from paper.results_page import Claim, Table, Verdict
from paper.statistics import difference, estimate, interval, power, text, verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAPER = {"learnt": 99.22, "random": 42.97}
"""Appendix H, in percent: a linear classifier on the ten outputs of the trained and of the random network."""

TOLERANCE = 0.01
"""How far below the published accuracy a result still counts as reaching it."""

PAPERS_KINDS = ("random", "logits", "posterior")
"""Kinds with published numbers."""

AUTHORS_UPDATES = 1080
"""Updates of appendix H: 100 epochs of 54,000 images in batches of 5,000. We train 90 epochs on all 60,000."""


class Network(NamedTuple):
    """A row of the table: a kind of network and its size.

    Attributes
    ----------
    kind : str
    beta : float
    full : bool
        Whether it is the paper's network at full width.
    updates : int
        Number of updates at full width; 0 for a random or a narrower network.
    """

    kind: str
    beta: float
    full: bool = False
    updates: int = 0

    @property
    def arm(self) -> Arm:
        """Its kind and beta."""
        return self.kind, self.beta

    @property
    def published(self) -> float | None:
        """Accuracy in the paper, in percent."""
        return PAPER["random" if self.kind == "random" else "learnt"] if self.kind in PAPERS_KINDS else None

    @property
    def title(self) -> str:
        """Its name in tables and figures."""
        beta = "" if self.beta == OURS else f", beta {self.beta:g}"
        full = ", full width" if self.full else ""
        updates = f", {self.updates:,} updates" if self.updates else ""
        return f"{KINDS[self.kind].title}{beta}{full}{updates}"


def tables(results: Results) -> list[Table]:
    rows = []
    for network, found in _networks(results).items():
        linear = [cell for probed in PROBED for cell in both(_probed(found, probed), probed)]
        clusters = text([record.values["clusters"] for record in found])
        dead = text([record.values["dead"] for record in found], factor=1.0)
        largest = text([record.values["largest"] for record in found if "largest" in record.values])
        objective = text([record.values["objective"] for record in found if "objective" in record.values], 3, 1.0)
        published = "-" if network.published is None else f"{network.published:.2f}"
        rows.append((network.title, published, *linear, clusters, dead, largest, objective))
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
    for network, found in _networks(results).items():
        honest, paper = (interval(accuracies(found, SOFTMAX, protocol)) for protocol in PROTOCOLS)
        rows.append(Row(network.title, honest, paper, network.published))
    figure = draw_rows(rows, "linear classifier on the softmax: accuracy, %")
    figure.axes[0].set_xlim(0, 104)  # the interval of two seeds may be wider than all accuracies
    return figure


def claims(results: Results) -> list[Claim]:
    networks = _networks(results)
    random = {network.full: found for network, found in networks.items() if network.kind == "random"}
    papers = {network: found for network, found in networks.items() if network.arm in PAPERS}
    mended = {network: found for network, found in networks.items() if network.arm in MENDED + MERGED}
    gains = [
        difference(_honest(found, probed), _honest(random[network.full], probed))
        for network, found in papers.items()
        for probed in PROBED
        if network.full in random and _honest(found, probed) and _honest(random[network.full], probed)
    ]
    several = [gain for gain in gains if gain.half is not None]  # one seed has no interval
    return [
        _reached(
            f"DML correctly labels MNIST: a linear classifier on its ten outputs reaches {PAPER['learnt']} %", papers
        ),
        _reached(f"DML with masses of states, or with merged states, reaches {PAPER['learnt']} %", mended),
        Claim(
            "The ten outputs of the trained network beat those of a random network",
            "appendix H",
            verdict(several or gains),
            _against(networks) if papers and random else "",
            power(several or gains),
        ),
    ]


def _reached(statement: str, networks: dict[Network, list[Record]]) -> Claim:
    """The claim of a value, not of a difference: whether any network nearly reaches it, on the softmax or on the
    logits."""
    best = {network: _best(found) for network, found in networks.items()}
    short = [estimate([value - PAPER["learnt"] / 100 + TOLERANCE for value in values]) for values in best.values()]
    reached: Verdict = "holds" if any(d.mean >= 0 for d in short) else "does not hold here"
    numbers = [
        f"{network.title}: {text(best[network])} % with a linear classifier, "
        f"{text([record.values['clusters'] for record in found])} % as clusters"
        f"{' (one seed)' if len(found) == 1 else ''}"
        for network, found in networks.items()
    ]
    updates = max((network.updates for network in networks if network.arm in PAPERS), default=0)
    if numbers and updates < AUTHORS_UPDATES and any(network.arm in PAPERS for network in networks):
        run = f"{updates:,} were run" if updates else "none was run"
        numbers.append(f"of the {AUTHORS_UPDATES:,} updates of appendix H at full width, {run}")
    return Claim(
        statement,
        "appendix H",
        reached if short else "not run",
        "; ".join(numbers),
        authors_setting=updates >= AUTHORS_UPDATES,
    )


def _best(found: Results) -> list[float]:
    """Honest accuracies on the softmax or on the logits, whichever has the higher mean."""
    return max((values for probed in PROBED if (values := _honest(found, probed))), key=lambda v: estimate(v).mean)


def _against(networks: dict[Network, list[Record]]) -> str:
    """Accuracies of the random and the paper's networks on the softmax and, if probed, on the logits."""
    cells = []
    for network, found in networks.items():
        if network.kind == "random" or network.arm in PAPERS:
            of = {"softmax": _honest(found, SOFTMAX), "logits": _honest(found, LOGITS)}
            values = " and ".join(f"{text(values)} % ({what})" for what, values in of.items() if values)
            cells.append(f"{network.title} {values}")
    return f"{', '.join(cells)}; published for the random network: {PAPER['random']} %"


def _honest(found: Results, probed: str) -> list[float]:
    return accuracies(_probed(found, probed), probed, "validation")


def _probed(found: Results, probed: str) -> list[Record]:
    return [record for record in found if probed in record.values["probes"]]


def _networks(results: Results) -> dict[Network, list[Record]]:
    """The runs of each network, in the order of `KINDS`, the narrower ones first."""
    order = list(KINDS)

    def key(network: Network) -> tuple[int, float, bool, int]:
        return order.index(network.kind), -network.beta, network.full, network.updates

    found: dict[Network, list[Record]] = by(results, _network)
    return {network: found[network] for network in sorted(found, key=key)}


def _network(record: Record) -> Network:
    settings = record.settings
    kind, beta = str(settings["kind"]), float(settings["beta"])
    trained = KINDS[kind].of is not None
    full = settings["width"] == 1.0 and (trained or KINDS[kind].objective is None)
    n_train = len(Source(**settings["train"]))
    return Network(kind, beta, full, settings["epochs"] * n_train // settings["batch_size"] if full and trained else 0)


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
    tells_sizes_apart=True,
)
