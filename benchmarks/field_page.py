"""Write docs/clustering.md and its picture from the results of benchmarks/field.py."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from few_labels_page import few_labels_sections
from field_methods import GEMCLUS_ROWS, METHODS, SPECTRAL_ROWS
from field_pictures import draw_field
from field_records import BY_INFORMATION, FIELD, OURS, cost, percent, seconds, values
from field_sets import IMAGES, N_COMPONENTS, TABLES
from image_states_page import image_states_sections
from large_page import large_sections
from missing_page import missing_sections
from pages import table
from real_page import real_sections
from records import Results

from neuralbayes.system.files import atomic_write

PAPER_PROBE, IMSAT_PUBLISHED = 99.22, 98.4
"""Published accuracies on MNIST in percent: a linear classifier on ten outputs (appendix H of the paper, with its
protocol), and the clusters of IMSAT."""

DEC_KERAS, DEC_DA = "https://github.com/XifengGuo/DEC-keras", "https://github.com/XifengGuo/DEC-DA"
FASHION_PUBLISHED = [
    (f"k-means, [Guo]({DEC_KERAS})", "47", "mean of 10"),
    (f"k-means on the code of an autoencoder, [Guo]({DEC_KERAS})", "61", "mean of 10"),
    (f"DEC, [Guo]({DEC_KERAS})", "62", "mean of 10"),
    (f"DEC with augmentation, [Guo et al. 2018]({DEC_DA})", "58.6", ""),
]
"""Clustering accuracies in percent, as published by their authors."""

INTRODUCTION = """<!-- Generated from results/field/*.json by benchmarks/field.py --page: do not edit. -->

# Clustering benchmarks

This page compares [`InformationClusterer`](images.md#how-it-works) with other clusterers on the same images, tables and
sentences, in accuracy and in time. No method sees the classes. To compute the accuracy, clusters are matched with
classes one to one.

The sections on real tables, the number of clusters, sentences, known classes, links and updates were measured with
version 0.3.0. All others were measured with version 0.2.0: its clusters of images are those of 0.3.0, but its clusters
of tables came from a network, which takes longer."""

PEERS = f"""How the methods were run:

- All methods get the first {N_COMPONENTS} principal components of the pixels, except IMSAT and DEC, which get all
  pixels as in their papers. Only `InformationClusterer` transforms the images a little during training.
- IMSAT and DEC are our own implementations. IMSAT has the network and settings of its authors. DEC has the network of
  its authors, but is trained as a whole rather than layer by layer.
- Spectral clustering is fitted to {SPECTRAL_ROWS:,} images and GemClus to {GEMCLUS_ROWS:,}, because their cost is
  quadratic. The remaining images get the label of their neighbours, or of GemClus's network.
- HDBSCAN does not accept a number of clusters. Of five minimum cluster sizes, we use the one whose number of clusters
  is closest to the right one. Noise points go to the nearest cluster.
- `ManifoldLabeler` is made for disjoint manifolds. It is listed to show what happens if there are none."""

BEFORE = """`InformationClusterer`, all but the first seed of IMSAT on Fashion-MNIST, and all methods on Fashion-MNIST
1:10 were measured on a busy machine, so these times are too high."""

KNOW = """- **Settings were chosen on some of these data.** No fit used classes, but the recipe did. The adversarial
  radius and the number of states were chosen by accuracies like these, mostly on MNIST. The merging rule was chosen on
  MNIST, Fashion-MNIST, the imbalanced set and digits. Training the merged clusters was added because it helped on
  Fashion-MNIST. Its length, rate and weight of H(z) were chosen among some ten variants by the accuracy on test images
  with seeds 0 and 1, which are among those above. The method for rows was chosen on the tables and sentences below.
  Four of the six tables above are among them; digits and phishing are not.
- **Image transformations** were adopted after one short training with them and one without, on 9,000 MNIST training
  images of 16 x 16 pixels. Their strength was not tuned. Fashion-MNIST was measured afterwards: one seed gained,
  another fell far below its accuracy without them.
- **Neighbours** are defined by distances between principal components. If these distances say little about the content,
  as with photographs, use the features of a pretrained network or pass your own `network`.
- **Unequal clusters of images.** Three settings were chosen by the accuracy on training images of MNIST, MNIST 1:10 and
  Fashion-MNIST, with seeds 0 and 1. States are merged by transformed images. The target of p(z) is the sizes of merged
  clusters, unless these are nearly equal. There are up to eight states per cluster rather than four, but at most one
  per 100 samples beyond four, which was chosen on digits. About ten variants were compared. Some seeds still merge a
  rare class with another one.
- **The classes of Fashion-MNIST may not be what separates its images best.** In the networks that we looked at, two
  kinds of bags are easier to tell apart than pullovers from coats, so bags get two clusters. Information, training loss
  and agreement between networks preferred such clusters to more accurate ones. Changing the brightness of images in
  training made states purer, but the clusters more accurate only for some seeds. With ten states of equal size, shorter
  adversarial steps and no transformations, two networks were nearly as accurate as IMSAT, but one with classes of
  unequal size fell far below our default. These trials used one to three networks each."""


def write_page(field: Results, docs: Path) -> None:
    """Write clustering.md and its picture into the folder `docs`."""
    draw_field(field, docs / "pictures" / "field.png")
    parts = [
        INTRODUCTION,
        "![Accuracy against processor time, for each method and set of images](pictures/field.png)",
        "*Up and to the left is better. The line connects the most accurate methods at each cost.*",
        "## Images",
        "Methods are trained on the training images and scored on all test images. The table shows the accuracy in % "
        "(mean and standard deviation over seeds, if there are several) and the processor seconds of a fit on one "
        "thread, without reading the data. A dash means not measured.",
        images_table(field),
        BEFORE,
        PEERS,
        "## MNIST",
        "One network is trained on all 60,000 training images without labels, with ten clusters. *Loss* is averaged "
        "over the last tenth of training. *Probe* is a linear classifier on the ten outputs, which uses labels.",
        seeds_table(field),
        mnist_sentence(field),
        "## Fashion-MNIST",
        "The settings are the same as for MNIST.",
        fashion_table(field),
        "Published figures are quoted from their authors and may refer to other images than the test images.",
        "## Classes of unequal size",
        imbalance_sentence(field),
        *image_states_sections(),
        "## Tables",
        "All methods use their defaults on standardised columns and are scored on the rows that they were fitted to. "
        "Four of the tables come with scikit-learn, two with river.",
        accuracy_table(field, [name for name in TABLES if name in field.names(FIELD, "set")]),
        *real_sections(),
        *missing_sections(),
        *few_labels_sections(),
        *large_sections(),
        "## Where it loses, and caveats",
        "\n".join([*losses(field), KNOW, left_out(field)]),
        f"These results come from `{field.command}` with {field.packages()}. The machine was "
        "also doing other work, so times are approximate.",
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
    accuracy = values(results, "MNIST", OURS)
    probe = values(results, "MNIST", OURS, "probe")
    return (
        f"The median accuracy is {100 * np.median(accuracy):.2f} %. The published accuracy of IMSAT is "
        f"{IMSAT_PUBLISHED} %. "
        f"The paper reports {PAPER_PROBE} % for a linear classifier on ten outputs, in the best epoch on 128 test "
        f"images. Ours has {percent(probe)} % on all test images. [The paper, measured](results.md) repeats that "
        "experiment with the paper's own method."
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
    def found(name: str, method: str) -> str:
        shares = values(results, name, method)
        return f"{percent(shares)} %{' (one seed)' * (len(shares) == 1)}"

    digits, clothes = "MNIST 1:10", "Fashion-MNIST 1:10"
    seeds = len(values(results, digits, OURS))
    return (
        "In these versions of MNIST and Fashion-MNIST, each class keeps a smaller share of its images than the one "
        f"before, and the last keeps a tenth. With {_seeds(seeds)}, `{OURS}` reaches {found(digits, OURS)} on the "
        f"digits, IMSAT {found(digits, 'IMSAT')} and k-means {found(digits, 'k-means')}. On the clothes, it reaches "
        f"{found(clothes, OURS)}, IMSAT {found(clothes, 'IMSAT')} and k-means {found(clothes, 'k-means')}. HDBSCAN "
        f"on UMAP reaches {found(clothes, 'HDBSCAN on UMAP')} there. The unequal "
        "clothes were measured after all settings had been chosen.\n\n"
        "IMSAT has one state per cluster, and its objective prefers states of equal size. That helps if the classes "
        f"have equal sizes, as in Fashion-MNIST, where it reaches {found('Fashion-MNIST', 'IMSAT')} and `{OURS}` "
        f"{found('Fashion-MNIST', OURS)}. It hurts if they do not. `{OURS}` cannot know the sizes. Several small "
        "states per cluster make room for unequal clusters, which then keep their sizes, but some seeds merge a rare "
        "class with another one."
    )


def left_out(results: Results) -> str:
    """Describe what another rule for merging images gains and loses."""
    names = ("Fashion-MNIST", "MNIST 1:10", "MNIST")
    found = []
    for name in names:
        theirs, ours = values(results, name, BY_INFORMATION), values(results, name, OURS)
        found.append(f"{percent(theirs)} % on {name} instead of {percent(ours)} % ({_seeds(len(theirs))})")
    times = [cost(results, names[0], method) or 0.0 for method in (BY_INFORMATION, OURS)]
    return (
        "- **No rule for merging images is the best on all sets.** We also trained two more networks for half as many "
        "steps, and merged the states of all three so that the least information is lost about the states of "
        f"transformed images. Clusters become more equal in size. The accuracy was {found[0]}, {found[1]} and "
        f"{found[2]}. It takes {times[0] / times[1]:.1f} times as long. This was left out because it may lose rare "
        "classes, and because it is less reliable on MNIST. It was chosen on training images of the first two sets and "
        "of digits, and this version of the library cannot repeat it."
    )


def losses(results: Results) -> list[str]:
    """List the sets on which another method has a higher mean accuracy."""
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
            lines.append(f"- **{name}** ({100 * ours:.1f} %): these methods are more accurate: {names}.")
    return lines
