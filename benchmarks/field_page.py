"""docs/clustering.md and its pictures, from what benchmarks/field.py and benchmarks/tried.py measured."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from few_labels_page import few_labels_sections
from field_methods import GEMCLUS_ROWS, METHODS, SPECTRAL_ROWS
from field_pictures import draw_field, draw_tried
from field_records import FIELD, OTHER_SETS, OURS, TRIED, changes, cost, percent, seconds, values
from field_sets import IMAGES, N_COMPONENTS, TABLES
from large_page import large_sections
from missing_page import missing_sections
from pages import table
from real_page import real_sections
from records import Results
from tried_mergings import MERGINGS

from neuralbayes.system.files import atomic_write

PAPER_PROBE, IMSAT_PUBLISHED = 99.22, 98.4
"""On MNIST, in percent: a linear classifier on ten outputs (appendix H of the paper, by its protocol), and clusters."""

DEC_KERAS, DEC_DA = "https://github.com/XifengGuo/DEC-keras", "https://github.com/XifengGuo/DEC-DA"
FASHION_PUBLISHED = [
    (f"k-means, [Guo]({DEC_KERAS})", "47", "mean of 10"),
    (f"k-means on the code of an autoencoder, [Guo]({DEC_KERAS})", "61", "mean of 10"),
    (f"DEC, [Guo]({DEC_KERAS})", "62", "mean of 10"),
    (f"DEC with augmentation, [Guo et al. 2018]({DEC_DA})", "58.6", ""),
]
"""Clustering accuracies in percent, as their authors give them."""

INTRODUCTION = """<!-- Generated from results/field/*.json by benchmarks/field.py --page: not to be edited. -->

# Clusters of images, measured

[`InformationClusterer`](images.md#clusters) trains a network by mutual information. Images start from states, four for
each cluster, which are merged where they are neighbours most often, and are to keep their cluster when they are turned,
stretched, slanted or shifted a little; rows start from the consensus of simple methods. Here it stands beside other
clusterers on the same data, with what each costs. No fit gets to see classes: clusters are matched with them one to one
for the score."""

PEERS = f"""Peers get what our own network gets, the first {N_COMPONENTS} principal components of the pixels, IMSAT and
DEC all pixels as in their papers. Ours alone moves images a little while it trains; peers see them as they
are. IMSAT and DEC are implementations of our own: IMSAT with its authors' network and settings, DEC with its authors'
network but trained at once rather than layer by layer. Spectral clustering is fitted to {SPECTRAL_ROWS:,} of the images
and GemClus to {GEMCLUS_ROWS:,}, since their cost grows with the square; the others get the label of their neighbours,
or of GemClus's network. HDBSCAN takes no number of clusters: of five least sizes it gets the one that comes nearest to
the right number, and points it calls noise go to the nearest cluster. `ManifoldLabeler` is for groups with a gap
between them."""

BEFORE = """InformationClusterer was measured while other work took most of the machine: its processor seconds on images
are too many, and its seeds on them fewer than those of some peers."""

KNOW = """- That images are moved was settled on 9,000 training images of MNIST, reduced to 16 x 16 pixels, in one short
  training with moves and one without; how far they are moved was not tuned. Fashion-MNIST was looked at
  afterwards: one seed gained, another fell far below what it had without moves.
  On a sample of MNIST with classes of unequal size, with one seed, a weight of H(z) that falls, together
  with the sizes of the merged states as the target of p(z), gained little; merging by the joint over the root of
  the product of the sizes was better there and worse on the 16 x 16 images. Neither is in the recipe.
- The radius of the worst step and the number of states were chosen while looking at such accuracies, mostly
  on MNIST, and the way of merging on MNIST, Fashion-MNIST, the imbalanced set and digits; clusters are trained on since
  that was better on Fashion-MNIST. How long, at which rate and with which weight of H(z) was chosen among some ten ways
  on these images, by accuracies on the test images and with seeds 0 and 1, which are among those above. So classes were
  used for no fit, but for the recipe, and these are the numbers of one that suits them. The way of rows was chosen on
  the tables and sentences below; four of the six above are among these, digits and phishing are not.
- What makes two images neighbours is their distance in principal components. Where that says little about their kind,
  as with photographs, give features of another network, or a `network` that is right for them.
- Of images: merging asks which states touch, not how large they are, and the objective would have states of equal
  size: a class with a tenth of the images of the others can end up in a cluster of two."""


def write_page(field: Results, tried: Results, docs: Path) -> None:
    """Write clustering.md and its pictures into the folder `docs`."""
    draw_field(field, docs / "pictures" / "field.png")
    draw_tried(tried, docs / "pictures" / "tried.png")
    versions = ", ".join(f"{name} {number}" for name, number in field.versions.items())
    parts = [
        INTRODUCTION,
        "![Accuracy against processor time, for each method and set of images](pictures/field.png)",
        "*Up and left is better. The line is the best accuracy to be had for a cost.*",
        "## Images",
        "Trained on the training images, scored on all test images: accuracy in %, mean and standard deviation over "
        "seeds, where there is more than one, and the processor seconds of a fit on one thread, reading excluded. A "
        "dash: not measured.",
        images_table(field),
        BEFORE,
        PEERS,
        "## MNIST",
        "All 60,000 training images, ten clusters, one network, no label. The loss is that of the "
        "last tenth of training; the probe is a linear classifier on the ten outputs, which uses labels.",
        seeds_table(field),
        mnist_sentence(field),
        "## Fashion-MNIST",
        "With the defaults that MNIST got.",
        fashion_table(field),
        "Published figures are as their authors give them, perhaps for other images than the test images.",
        "## Classes of unequal size",
        imbalance_sentence(field),
        "## Tables",
        "One default for all: columns of unit variance. The rows that are labelled are "
        "those that were fitted. Four of the sets come with scikit-learn, two with river.",
        accuracy_table(field, [name for name in TABLES if name in field.names(FIELD, "set")]),
        *real_sections(),
        *missing_sections(),
        *few_labels_sections(),
        *large_sections(),
        "## What was tried on MNIST",
        tried_text(tried),
        "![Errors with one change at a time](pictures/tried.png)",
        tried_table(tried),
        tried_summary(tried),
        restarts_text(field),
        restarts_table(field),
        "The same states, of images that were not moved, merged in other ways, on other sets too; ours takes the pair "
        "that are neighbours most often against chance. The last row is what becomes of that when the clusters are "
        "trained on.",
        mergings_table(tried),
        "## Where it loses, and what to know",
        "\n".join([*losses(field), KNOW]),
        f"Measured by `{field.command}` and `{tried.command}` with {versions}. The machine had other work at the same "
        "time: take seconds as rough.",
    ]
    with atomic_write(docs / "clustering.md") as temporary:
        temporary.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def images_table(results: Results) -> str:
    names = [name for name in IMAGES if name in results.names(FIELD, "set")]
    rows = []
    for method in METHODS:
        cells = []
        for name in names:
            cells += [percent(values(results, name, method)), seconds(cost(results, name, method))]
        rows.append([method, *cells])
    return table(["", *(head for name in names for head in (f"{name}, %", "s"))], rows)


def accuracy_table(results: Results, names: list[str]) -> str:
    rows = [[method, *(percent(values(results, name, method)) for name in names)] for method in METHODS]
    return table(["", *names], rows)


def seeds_table(results: Results) -> str:
    rows = [
        [
            record["seed"],
            f"{100 * record['accuracy']:.2f}",
            f"{100 * record['train_accuracy']:.2f}",
            f"{record['objective']:.4f}",
            f"{100 * record['probe']:.2f}",
            seconds(record["processor_seconds"]),
        ]
        for record in results.records[FIELD]
        if record["set"] == "MNIST" and record["method"] == OURS
    ]
    return table(["seed", "accuracy, test", "training", "loss", "probe, test", "s"], rows)


def mnist_sentence(results: Results) -> str:
    accuracy = results.column(FIELD, "accuracy", set="MNIST", method=OURS)
    loss = results.column(FIELD, "objective", set="MNIST", method=OURS)
    selected = min(loss, key=lambda seed: loss[seed])
    probe = values(results, "MNIST", OURS, "probe")
    return (
        f"The median is {100 * np.median(list(accuracy.values())):.2f} %, and the seed with the least loss, seed "
        f"{selected}, has {100 * accuracy[selected]:.2f} %. IMSAT is published with "
        f"{IMSAT_PUBLISHED} %. The paper gives {PAPER_PROBE} % for a linear classifier on ten outputs, the best epoch "
        f"on 128 test images; ours, on all of them, has {percent(probe)} %. [What became of that claim](results.md) "
        "with the paper's own method is another page."
    )


def fashion_table(results: Results) -> str:
    name = "Fashion-MNIST"
    rows = [
        [f"**{OURS}**", f"**{percent(values(results, name, OURS))}**", _seeds(len(values(results, name, OURS)))],
        *(
            [f"{method}, here", percent(values(results, name, method)), _seeds(len(values(results, name, method)))]
            for method in METHODS
            if method != OURS and values(results, name, method)
        ),
        *FASHION_PUBLISHED,
    ]
    return table(["", "accuracy, %", ""], rows)


def _seeds(n_seeds: int) -> str:
    return f"{n_seeds} seed{'s' * (n_seeds > 1)}"


def imbalance_sentence(results: Results) -> str:
    name = "MNIST 1:10"
    ours, k_means = values(results, name, OURS), values(results, name, "k-means")
    return (
        "MNIST with fewer of each digit than of the one before, from all of the 0s to a tenth of the 9s, in training "
        f"and in test: {percent(ours)} % with {_seeds(len(ours))}, {percent(k_means)} % by k-means. The objective has "
        "a term that would have states of equal size; small states make room for unequal clusters, but not for all."
    )


def tried_text(results: Results) -> str:
    seeds = _seeds(len(results.names(TRIED, "seed")))
    return (
        f"The recipe for images that are not moved, with one change at a time, {seeds} each, all training images, "
        "accuracy on all test images. Steps are half for the states, half for the clusters. Purity is the share of "
        "images in the class of most of their state, before states are merged: about what the best merging would have. "
        "Merged is the accuracy when they are, before the clusters are trained on. R_c is the paper's smoothness, in "
        "the place of the worst step."
    )


def tried_table(results: Results) -> str:
    default = float(np.mean(list(results.column(TRIED, "accuracy", change="default").values())))
    rows = []
    for name in changes(results):
        columns = {
            field: list(results.column(TRIED, field, change=name).values())
            for field in ("accuracy", "merged by ours", "purity", "processor_seconds")
        }
        rows.append(
            [
                name,
                ", ".join(f"{100 * value:.2f}" for value in columns["accuracy"]),
                ""
                if name == "default"
                else f"{round(100 * (float(np.mean(columns['accuracy'])) - default), 1) + 0.0:+.1f}",
                percent(columns["merged by ours"]),
                percent(columns["purity"]),
                seconds(float(np.median(columns["processor_seconds"]))),
            ]
        )
    return table(["", "accuracy, %", "against the default", "merged, %", "purity, %", "s"], rows)


def tried_summary(results: Results) -> str:
    """What carries the recipe, and what is to be had beyond it."""
    mean, merged = (
        {
            name: 100 * float(np.mean(list(results.column(TRIED, field, change=name).values())))
            for name in changes(results)
        }
        for field in ("accuracy", "merged by ours")
    )
    best = max(mean, key=lambda name: mean[name])
    rough = max(value for name, value in mean.items() if name.startswith("R_c"))
    return (
        f"What carries it: the worst step ({mean['no smoothness']:.1f} % without, {rough:.1f} at best with R_c), "
        f"looked for from far off ({mean['small step 0.1']:.1f} with a small step of 0.1), enough updates "
        f"({mean['1500 steps']:.1f} with 1500, {mean['batches of 5000, as many images']:.1f} with as many images in "
        f"batches of 5000), and more states than clusters ({mean['10 states, as many as clusters']:.1f} with ten). "
        f"When its states are merged it has {merged['default']:.1f}; the rest comes from training the clusters on, "
        f"which also mends what was spoilt before, with all pixels from {merged['all pixels']:.1f} to "
        f"{mean['all pixels']:.1f}. The best of all, {best}, has {mean[best]:.2f}; averaged weights, self-training, "
        "DML beside MIM and a running p(z) do not help, and are not in the recipe. Differences of a few tenths are "
        "within what seeds do."
    )


def restarts(results: Results) -> dict[str, tuple[list[float], float]]:
    """By set, where there are several: the accuracies of the seeds, and that of the one with the least loss."""
    found = {}
    for name in [*IMAGES, *TABLES]:
        accuracy = results.column(FIELD, "accuracy", set=name, method=OURS)
        loss = results.column(FIELD, "objective", set=name, method=OURS)
        if len(accuracy) > 1:
            found[name] = list(accuracy.values()), accuracy[min(loss, key=lambda seed: loss[seed])]
    return found


def restarts_text(results: Results) -> str:
    found = restarts(results).values()
    better = sum(selected > np.mean(accuracy) for accuracy, selected in found)
    return (
        "Restarts, of which the one with the least loss is taken, as `n_init` does: what that has beside the mean and "
        f"the best of the seeds. It is above the mean on {better} of {len(found)} sets."
    )


def restarts_table(results: Results) -> str:
    rows = [
        [name, len(accuracy), *(f"{100 * share:.1f}" for share in (np.mean(accuracy), selected, max(accuracy)))]
        for name, (accuracy, selected) in restarts(results).items()
    ]
    return table(["accuracy, %", "seeds", "mean", "least loss", "best"], rows)


def mergings_table(results: Results) -> str:
    sets = {"default": "MNIST", **{name: name for name in OTHER_SETS if results.column(TRIED, "accuracy", change=name)}}
    ways = {name: f"merged by {name}" for name in ("ours", *MERGINGS)} | {"ours, trained on": "accuracy"}
    rows = []
    for name, field in ways.items():
        columns = (results.column(TRIED, field, change=change) for change in sets)
        rows.append([name, *(percent(list(column.values())) for column in columns)])
    return table(["accuracy, %", *sets.values()], rows)


def losses(results: Results) -> list[str]:
    """Where another method has the higher mean, found in the numbers."""
    lines = []
    for name in results.names(FIELD, "set"):
        ours = float(np.mean(values(results, name, OURS)))
        better = {
            method: float(np.mean(measured))
            for method in METHODS
            if method != OURS and (measured := values(results, name, method)) and np.mean(measured) > ours
        }
        if better:
            names = ", ".join(f"{method} ({100 * mean:.1f})" for method, mean in better.items())
            lines.append(f"- {name}, {100 * ours:.1f} %: more accurate are {names}.")
    return lines
