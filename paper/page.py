"""The sections of the results page, one for each experiment, from its records alone."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from neuralbayes.plot.style import save_picture
from neuralbayes.system.files import atomic_write
from paper import NAMES, load_experiment
from paper.experiment import Experiment, Record, Scale
from paper.protocols import optimism, pairs
from paper.records import Recorded, all_records, read_results
from paper.reproduced import draw_protocols
from paper.results_page import Claim, Picture, Section, Table, write_results_page
from paper.table_classification import NAME as CLASSIFICATION
from paper.table_classification import missing_data

INTRODUCTION = """This page reproduces every table and figure of *Neural Bayes* (Arpit, Wang, Xiong, Socher, Bengio \
2020, [arXiv:2002.09046](https://arxiv.org/abs/2002.09046)) with this library. The table gives the verdict on each \
claim of the paper; accuracies are on all test images unless it says otherwise."""

READING = """Each accuracy is measured under two protocols:

- **Honest**: a held-out tenth of the training images selects the epoch of the classifier, and the accuracy is that on \
all test images.
- **The paper's protocol**: the best epoch on the first 128 test images, as in the authors' public code. Every \
accuracy that the paper measured is a multiple of 1/128.

Published numbers are quoted as published. Our own numbers are means, followed by half the width of their 95 % \
confidence interval over seeds, or over random draws of the hyper-parameters if the text says so. With two seeds, \
both numbers are given.

Each claim gets a verdict, by the honest protocol:

- *holds*: the confidence intervals of all its differences lie on the claimed side of 0;
- *holds in part*: only some of them do;
- *undecided*: none does, but at least one mean is on the claimed side;
- *not seen at this scale*: no mean is on the claimed side, but we did not run the authors' own setting. Narrower \
networks, fewer images and fewer epochs may be the reason;
- *does not hold here*: no mean is on the claimed side, in the authors' own setting.

A claim about most cases holds if more than half of the intervals lie on the claimed side. A claim about a value holds \
if a setting comes within one point of that value."""

DECIDE = """The confidence intervals of these claims contain 0. *Runs needed* is the number of runs at which a \
difference as large as the measured one would be significant in four out of five repetitions. It is extrapolated from \
the standard error, which shrinks with the square root of the number of runs. If the true difference is smaller, more \
runs are needed."""

SCOPES: dict[Scale, str] = {
    "smoke": "Scale `smoke` takes a few seconds on small digits and only checks that everything runs. Its numbers mean "
    "nothing.",
    "laptop": "Scale `laptop` uses narrower encoders, fewer images and fewer epochs than the paper, so that everything "
    "runs on two cores. Convolutional encoders use the settings of this library's `laptop` preset: it whitens the "
    "images and keeps a running average of p(z), unless an experiment says otherwise.",
    "paper": "Scale `paper` uses the paper's encoder, images and number of epochs.",
}


def section(name: str, recorded: Sequence[Recorded]) -> Section:
    """The section of an experiment, from its results at one or more scales; without any, it says so."""
    experiment = load_experiment(name)
    if not all_records(recorded):
        return Section(name, experiment.title, experiment.about, experiment.claims([]), scope="Not run.")
    try:
        return _measured(experiment, recorded)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, ArithmeticError) as error:
        raise ValueError(f"the results of {name} are damaged, or not of this version ({error!r})") from error


def _measured(experiment: Experiment, recorded: Sequence[Recorded]) -> Section:
    records = all_records(recorded)
    claims = experiment.claims(records)
    if any(one.scale != "paper" for one in recorded):
        claims = [_at_this_scale(claim) for claim in claims]
    return Section(
        experiment.name,
        experiment.title,
        experiment.about,
        claims,
        experiment.tables(records),
        [
            Picture(experiment.name, experiment.title, partial(experiment.draw, records)),
            *(
                Picture(f"{experiment.name}-{more.name}", more.caption, partial(more.draw, records))
                for more in experiment.more_pictures
                if more.has_data(records)
            ),
        ],
        command="\n".join(one.command for one in recorded),
        scope=" ".join(map(_scope, recorded)),
    )


def _scope(recorded: Recorded) -> str:
    """How much was run at a scale."""
    n = len(recorded.records)
    hours = sum(record.about["seconds"] for record in recorded.records) / 3600
    runs = f"{n} of {recorded.n_runs} runs" if n < recorded.n_runs else f"{n} runs"
    return f"Scale `{recorded.scale}`, {runs}, {hours:.1f} hours of computation."


def _at_this_scale(claim: Claim) -> Claim:
    """The verdict on a claim that was not tested in the authors' own setting."""
    if claim.verdict == "does not hold here" and not claim.authors_setting:
        return replace(claim, verdict="not seen at this scale")
    return claim


def decide_section(sections: Sequence[Section], results: Mapping[str, Sequence[Recorded]]) -> Section | None:
    """How many runs it would take to settle the open claims; None if there are none."""
    rows = []
    for one in sections:
        for claim in one.claims:
            if claim.power is None or claim.verdict not in ("undecided", "not seen at this scale"):
                continue
            records = all_records(results[one.name])
            hours = sum(record.about["seconds"] for record in records) / len(records) / 3600
            more = claim.power.needed - claim.power.runs
            rows.append(
                (
                    claim.text.removesuffix("."),
                    claim.verdict,
                    str(claim.power.runs),
                    f"{claim.power.needed:,}",
                    f"{more * hours:,.1f}",
                )
            )
    if not rows:
        return None
    head = ("claim", "verdict", "runs done", "runs needed", "hours for the remaining runs")
    return Section("decide", "Runs needed to settle the open claims", DECIDE, tables=[Table("Open claims", head, rows)])


def protocols_section(results: Mapping[str, Sequence[Recorded]]) -> Section | None:
    """The difference between the two protocols over all runs, each counted once; None if nothing was probed."""
    seen: set[str] = set()
    found = {}
    for name, recorded in results.items():
        new: list[Record] = []
        for record in all_records(recorded):
            key = json.dumps(record.settings, sort_keys=True)
            if key not in seen:
                seen.add(key)
                new.append(record)
        if probed := pairs(new):
            found[name] = probed
    if not found:
        return None
    every = [pair for probed in found.values() for pair in probed]
    mean = optimism(every)
    above = sum(paper > honest for honest, paper in every)
    rows = [(name, str(len(probed)), optimism(probed).text(sign=True)) for name, probed in found.items()]
    return Section(
        "protocols",
        "The paper's protocol compared with the honest one",
        f"Over {len(every)} probes, the accuracy under the paper's protocol is {mean.text(sign=True)} points above the "
        f"honest accuracy, and it is higher in {above} of them. One test image in 128 is 0.8 points.",
        tables=[
            Table("Mean excess of the paper's protocol over the honest one", ("experiment", "probes", "points"), rows)
        ],
        pictures=[
            Picture("protocols", "Each probe under both protocols, and the differences", partial(draw_protocols, found))
        ],
    )


def write_page(folder: Path, out: Path) -> list[Path]:
    """Write results.md and its pictures into `out` from the results in `folder`; return what was written."""
    results = read_results(folder)
    sections = [section(name, results.get(name, ())) for name in NAMES]
    protocols = protocols_section(results)
    classified = all_records(results.get(CLASSIFICATION, ()))
    missing = [f"{title} (table 2): the data set was not available" for title in missing_data(classified)]
    missing += [f"{one.title} (`neuralbayes reproduce {one.name}`)" for one in sections if not one.command]
    decide = decide_section(sections, results)
    used = {one.scale for recorded in results.values() for one in recorded}
    scopes = [text for scale, text in SCOPES.items() if scale in used]
    reading = Section("reading", "How to read the numbers", "\n\n".join([READING, *scopes]))
    return write_results_page(
        [one for one in (reading, decide, protocols) if one is not None] + sections,
        out,
        introduction=INTRODUCTION,
        not_run=missing,
    )


def write_section(recorded: Recorded, folder: Path) -> Section:
    """Write the page and the pictures of one experiment next to its record in `folder`."""
    written = section(recorded.experiment, [recorded])
    page = recorded.path(folder).with_suffix(".md")
    # The first picture is named after the scale; the others add their own name.
    names = [f"{page.stem}{picture.name.removeprefix(recorded.experiment)}.png" for picture in written.pictures]
    for picture, name in zip(written.pictures, names, strict=True):
        save_picture(picture.draw(), page.with_name(name))
    with atomic_write(page) as temporary:
        text = "\n\n".join([written.markdown(names, claims=True), SCOPES[recorded.scale]])
        temporary.write_text(text + "\n", encoding="utf-8")
    return written
