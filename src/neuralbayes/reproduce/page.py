"""What the results page says of each experiment, from its records alone."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from neuralbayes.plot.style import save_picture
from neuralbayes.report.reproduced import draw_protocols
from neuralbayes.report.results_page import Claim, Picture, Section, Table, write_results_page
from neuralbayes.reproduce import NAMES, load_experiment
from neuralbayes.reproduce.experiment import Experiment, Record, Scale
from neuralbayes.reproduce.protocols import optimism, pairs
from neuralbayes.reproduce.records import Recorded, read_results
from neuralbayes.reproduce.table_classification import NAME as CLASSIFICATION
from neuralbayes.reproduce.table_classification import missing_data
from neuralbayes.system.files import atomic_write

INTRODUCTION = """Every table and figure of *Neural Bayes* (Arpit, Wang, Xiong, Socher, Bengio 2020, \
[arXiv:2002.09046](https://arxiv.org/abs/2002.09046)), run by this library. Accuracies are given twice. **Honest**: a \
tenth of the training images chooses the epoch of the classifier, and all test images are judged. **The paper's \
protocol**: the best epoch on the first 128 test images, which is what the authors' public code does; all accuracies \
that the paper measured are multiples of 1/128. Published numbers are quoted as published.

A mean stands with half of its 95 % confidence interval over seeds (or over draws of the hyper-parameters, where the \
text says so). A claim *holds* where the whole interval of every difference that it speaks of is on its side, by the \
honest protocol, and *in part* where that of some is. Else it is *undecided* where a mean is on its side. Where none \
is, it *does not hold here* if the authors' own setting was run, and otherwise it is *not seen at this scale*: \
narrower networks, fewer images and epochs may be the reason."""

DECIDE = """Claims whose interval holds 0. *Needed*: runs with which a difference as large as the one measured would \
be told from 0 four times in five, from its standard error here, which falls with the square root of the number of \
runs. Where the true difference is smaller it takes more."""

SCOPES: dict[Scale, str] = {
    "smoke": "Scale smoke: a few seconds on small digits, to see that everything runs. The numbers mean nothing.",
    "laptop": "Scale laptop: narrow encoders, fewer images and epochs than the paper's, on two cores; convolutional "
    "encoders with the settings of this library's preset for it, which whitens images and keeps a running p(z) where "
    "an experiment does not say otherwise.",
    "paper": "Scale paper: the paper's encoder, images and epochs.",
}


def section(name: str, recorded: Recorded | None) -> Section:
    """What is to be said of an experiment; without results, that it was not run."""
    experiment = load_experiment(name)
    if recorded is None or not recorded.records:
        return Section(name, experiment.title, experiment.about, experiment.claims([]), scope="Not run.")
    try:
        return _measured(experiment, recorded)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, ArithmeticError) as error:
        raise ValueError(f"the results of {name} are damaged, or not of this version ({error!r})") from error


def _measured(experiment: Experiment, recorded: Recorded) -> Section:
    records = recorded.records
    claims = experiment.claims(records)
    if recorded.scale != "paper":
        claims = [_at_this_scale(claim) for claim in claims]
    hours = sum(record.about["seconds"] for record in records) / 3600
    done = f"{len(records)} of {recorded.n_runs} runs" if len(records) < recorded.n_runs else f"{len(records)} runs"
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
        command=recorded.command,
        scope=f"{SCOPES[recorded.scale]} {done}, {hours:.1f} hours of computing.",
    )


def _at_this_scale(claim: Claim) -> Claim:
    """What can be said of a claim where not all is as the authors had it."""
    if claim.verdict == "does not hold here" and not claim.authors_setting:
        return replace(claim, verdict="not seen at this scale")
    return claim


def decide_section(sections: Sequence[Section], results: Mapping[str, Recorded]) -> Section | None:
    """How many runs the claims that are not sure would take; None where all are."""
    rows = []
    for one in sections:
        for claim in one.claims:
            if claim.power is None or claim.verdict not in ("undecided", "not seen at this scale"):
                continue
            records = results[one.name].records
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
    head = ("claim", "here", "runs done", "runs needed", "hours for the others")
    return Section("decide", "What it would take to decide", DECIDE, tables=[Table("Runs", head, rows)])


def protocols_section(results: Mapping[str, Recorded]) -> Section | None:
    """The difference between the two protocols over all runs, each counted once; None where nothing was probed."""
    seen: set[str] = set()
    found = {}
    for name, recorded in results.items():
        new: list[Record] = []
        for record in recorded.records:
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
        "The paper's protocol against the honest one",
        f"Over {len(every)} probes the paper's protocol is {mean.text(sign=True)} points above the honest one; it is "
        f"higher in {above} of them. A difference of one test image in 128 is 0.8 points.",
        tables=[
            Table("Points by which the paper's protocol is higher, mean", ("experiment", "probes", "points"), rows)
        ],
        pictures=[
            Picture("protocols", "Each probe by both protocols, and the differences", partial(draw_protocols, found))
        ],
    )


def write_page(folder: Path, out: Path) -> list[Path]:
    """Write results.md and its pictures into `out` from the results in `folder`; return what was written."""
    results = read_results(folder)
    sections = [section(name, results.get(name)) for name in NAMES]
    protocols = protocols_section(results)
    classified = results[CLASSIFICATION].records if CLASSIFICATION in results else []
    missing = [f"{title} (table 2): the data set was not at hand" for title in missing_data(classified)]
    missing += [f"{one.title} (`neuralbayes reproduce {one.name}`)" for one in sections if not one.command]
    decide = decide_section(sections, results)
    return write_results_page(
        [one for one in (decide, protocols) if one is not None] + sections,
        out,
        introduction=INTRODUCTION,
        not_run=missing,
    )


def write_section(recorded: Recorded, folder: Path) -> Section:
    """Write the page and the picture of one experiment beside its record in `folder`."""
    written = section(recorded.experiment, recorded)
    page = recorded.path(folder).with_suffix(".md")
    # The first picture is called after the scale, the others after themselves beside it.
    names = [f"{page.stem}{picture.name.removeprefix(recorded.experiment)}.png" for picture in written.pictures]
    for picture, name in zip(written.pictures, names, strict=True):
        save_picture(picture.draw(), page.with_name(name))
    with atomic_write(page) as temporary:
        text = written.markdown(names, claims=True)
        temporary.write_text(text + "\n", encoding="utf-8")
    return written
