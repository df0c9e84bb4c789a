"""The demo's page: what was done in plain words, what came out, and an explorer of the states of the digits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from neuralbayes.demo.digits import DRAWS, HIDDEN, LABELS_PER_CLASS, DigitsResult
from neuralbayes.demo.manifolds import ManifoldResult
from neuralbayes.demo.pictures import information, panel
from neuralbayes.demo.result import DemoResult
from neuralbayes.plot.curves import CurvesDisplay
from neuralbayes.report.digits import plot_accuracy
from neuralbayes.report.explorer.classes import agreement, crosstab_picture
from neuralbayes.report.explorer.figures import Picture, drawn, painted
from neuralbayes.report.explorer.page import write_page
from neuralbayes.report.explorer.places import posterior_places
from neuralbayes.report.explorer.samples import Samples
from neuralbayes.report.explorer.sections import Section, Story
from neuralbayes.report.explorer.side import Grid, Layer, Side
from neuralbayes.report.explorer.words import layer_warnings
from neuralbayes.report.manifolds import plot_points

N_STEPS = len(HIDDEN) + 2
"""How often `done` is called: for each map, the pictures, and the file."""

COMMANDS = [
    (
        "Which rows of a table belong together? Let the data say how many groups there are, and keep the model.",
        "neuralbayes label data.csv --clusters auto --save model/",
    ),
    (
        "What is in a folder of pictures? Learn features and states of them, without labels.",
        "neuralbayes pretrain my_images/ --out run/",
    ),
    ("See what was learnt on a page like this one.", "neuralbayes report run/ --open"),
]
"""What to do with one's own data."""


def write_demo_page(result: DemoResult, out: Path, done: Callable[[str], None]) -> Path:
    """Write the page to the file `out`; call `done` after each of its `N_STEPS` steps."""
    side = digits_side(result, done)
    story = Story(
        writer="neuralbayes demo",
        before=[_in_short(result), _manifolds(result.manifolds), _digits(result.digits)],
        after=[Section("yours", "Your own data", commands=COMMANDS)],
    )
    done("pictures")
    write_page([side], out, story)
    done(out.name)
    return out


def digits_side(result: DemoResult, done: Callable[[str], None]) -> Side:
    """The encoder of the digits, with the images that it was trained on; call `done` after each map."""
    digits = result.digits
    samples = Samples(
        data="digits, train",
        noun="image",
        n_all=digits.n_train,
        index=np.arange(digits.n_train),
        pictures=digits.images,
        classes=digits.labels,
        class_names=[str(k) for k in range(10)],
    )
    layers = []
    for found in digits.layers:
        p_zx = digits.posteriors[found.name]
        # t-SNE takes seconds: it is for the layer that is shown first.
        places = posterior_places(p_zx, "tsne" if found is digits.layers[-1] else "pca")
        layers.append(Layer(found.name, p_zx, places, found.information, digits.n_train))
        done(f"map of {found.name}")
    against_classes, picture = agreement(layers, samples), crosstab_picture(layers[-1], samples)
    return Side(
        title="Structure found without labels",
        subtitle=f"{len(result.manifolds)} sets of points and {digits.n_train:,} handwritten digits",
        samples=samples,
        layers=layers,
        facts=[
            ("data", "made-up points, and scikit-learn's digits"),
            ("seed", str(result.seed)),
            ("time", f"{result.seconds:.0f} s, without this page"),
            ("versions", ", ".join(f"{name} {version}" for name, version in result.versions.items())),
        ],
        settings=[(name, str(value)) for name, value in digits.to_dict()["settings"].items()],
        command=f"neuralbayes demo --seed {result.seed}",
        command_note="The same seed gives the same numbers on the same computer. With another number of threads or "
        "another version of torch they differ a little, those of the digits by about a point.",
        warnings=layer_warnings(layers, "image"),
        notes=["The true digits are in this page to be held against the states; the encoder never saw them."],
        labels=[picture] if picture else [],
        grids={"labels": [against_classes] if against_classes else []},
    )


def _in_short(result: DemoResult) -> Section:
    disjoint = [one for one in result.manifolds if one.right is not None]
    connected = [one for one in result.manifolds if one.right is None]
    perfect = sum(one.right == one.n_points and one.certified for one in disjoint)
    refused = sum(not one.certified for one in connected)
    few = str(LABELS_PER_CLASS[0])
    right = {probe.features: f"{100 * probe.accuracy[few]:.1f} %" for probe in result.digits.probes}
    return Section(
        "short",
        "In short",
        [
            "Nobody told the computer what is in these data: it got no names and no right answers. A small neural "
            "network read them and sorted them into states, groups that it made up itself. Of each point or picture "
            "it gives the probability of each state, written p(z|x): z is the state, x what was read.",
            "Two things were tried. Points that lie on separate curves were to be told apart, and the method was to "
            "say by itself whether they truly are apart. And pictures of digits were to be described by states that "
            "say as much about the picture as they can. How much that is has a name, mutual information, and a "
            "unit, nats; K states can say log K nats at most.",
        ],
        [
            ("sets labelled without an error", str(perfect), f"of {len(disjoint)}"),
            (
                "the same by k-means",
                str(sum(one.kmeans_right == one.n_points for one in disjoint)),
                f"of {len(disjoint)}",
            ),
            ("connected sets that were refused", str(refused), f"of {len(connected)}"),
            (f"digits right with {few} labels of each", right["MIM encoder"], ""),
            ("the same by k-means", right["k-means"], ""),
            ("the same without training", right["random encoder"], ""),
        ],
    )


def _manifolds(results: list[ManifoldResult]) -> Section:
    first = results[0]
    return Section(
        "manifolds",
        "Manifolds",
        [
            f"Each picture shows {first.n_points:,} points. What was labelled were these points turned into "
            f"{first.n_features} dimensions, where nobody can look at them. A colour is a state that was found, the "
            "pale ground how the network would label what lies between the points.",
            "k-means, the usual method, gives each point to the nearest of a few centres: right for round groups, "
            "wrong for groups that wind around each other. It has an answer always, and cannot say whether to "
            "believe it. Here each answer has a certificate: a walker who goes from point to neighbouring point, for "
            "a long time, must never get from one state into another.",
            *(_refusal(one) for one in results if one.right is None),
        ],
        gallery=[_manifold_picture(one) for one in results],
        grids=[
            Grid(
                f"Points right, of {first.n_points:,}",
                ("", "states", "ours", "k-means", "certified", "auto"),
                [
                    (
                        one.name,
                        str(one.n_clusters),
                        "" if one.right is None else f"{one.right:,}",
                        "" if one.kmeans_right is None else f"{one.kmeans_right:,}",
                        "yes" if one.certified else "no",
                        str(one.n_clusters_auto),
                    )
                    for one in results
                ],
                "Right: points whose state is that of their curve; the true answers were used for counting alone. "
                "Certified: the percentage below each picture, the smallest of its states, is at least 90. It is the "
                "Jensen-Shannon divergence of a state from the rest, 100 where no walk leaves the state. Auto: how "
                "many states are found where no number is given.",
            )
        ],
    )


def _refusal(result: ManifoldResult) -> str:
    """What happened to a set that is connected."""
    asked = (
        f"The last set, {result.name}, is a trap: it is in one piece, but {result.n_clusters} states were asked for."
    )
    if result.certified:
        return f"{asked} They were certified all the same, which is a mistake of the certificate."
    return (
        f"{asked} So it was cut somewhere, and the certificate says so: {result.separation_percent:.1f} % where at "
        f"least 90 % are needed. The answer is refused. Left to choose, the method finds {result.n_clusters_auto}."
    )


def _manifold_picture(result: ManifoldResult) -> Picture:
    shown = panel(result)
    caption = f"{'certified' if result.certified else 'refused'}: {result.separation_percent:.1f} %"
    words = f"{result.name}: {result.n_points:,} points in the colours of {result.n_clusters} states; {caption}."
    return painted(result.name, words, lambda ax: plot_points(shown, ax), caption=caption, verdict=result.certified)


def _digits(digits: DigitsResult) -> Section:
    counts = list(digits.probes[0].accuracy)
    best = {n: max(probe.accuracy[n] for probe in digits.probes) for n in counts}
    return Section(
        "digits",
        "Digits",
        [
            f"A network of {len(digits.layers)} layers read {digits.n_train:,} pictures of handwritten digits, without "
            "being told which digit is which. Each unit of a layer is a state; training by mutual information "
            "maximisation (MIM) makes them say more and more about the picture, as the curves show.",
            "Are such features of use? A simple classifier gets them with a few labels and is tried on "
            f"{digits.n_test} other pictures. For comparison it gets the pixels themselves, the "
            "features of the same network before training, and nearness to as many centres of k-means as the network "
            "has features.",
            _ranking(digits),
        ],
        pictures=[
            drawn(
                "Information while training",
                "I(x; z) of each layer in nats against epochs, and its bound log K dotted: "
                + "; ".join(f"{one.name} {one.information:.2f} of {one.bound:.2f}" for one in digits.layers)
                + ".",
                lambda ax: CurvesDisplay(
                    {name: (range(len(curve)), curve) for name, curve in information(digits).items()},
                    bounds=dict(zip(information(digits), (one.bound for one in digits.layers), strict=True)),
                    xlabel="epoch",
                    ylabel="nats; dotted: log K",
                ).plot(ax=ax, legend="below"),
                (5.2, 3.3),
            ),
            drawn(
                "Test images right, % (axis cut)",
                f"The numbers of the table below as bars. {_ranking(digits)}",
                lambda ax: plot_accuracy({probe.features: probe.accuracy for probe in digits.probes}, ax),
                (5.2, 3.3),
            ),
        ],
        grids=[
            Grid(
                f"Test images right, %, of {digits.n_test}",
                ("features", "number", *("all labels" if n == "all" else f"{n} labels" for n in counts)),
                [
                    (probe.features, str(probe.n_features), *(f"{100 * probe.accuracy[n]:.1f}" for n in counts))
                    for probe in digits.probes
                ],
                f"A linear classifier on frozen features, with labels for so many images of each digit: the mean of "
                f"{DRAWS} draws. k-means: the triangle code of Coates et al. 2011, from the same pictures. Blue: the "
                "best of each column.",
                {
                    (i, 2 + j)
                    for i, probe in enumerate(digits.probes)
                    for j, n in enumerate(counts)
                    if probe.accuracy[n] == best[n]
                },
            ),
        ],
    )


def _ranking(digits: DigitsResult) -> str:
    """All features in the order of their accuracy, with few labels and with all."""
    sentences = []
    for n, labels in ((str(LABELS_PER_CLASS[0]), f"{LABELS_PER_CLASS[0]} labels of each digit"), ("all", "all labels")):
        ordered = sorted(digits.probes, key=lambda probe: probe.accuracy[n], reverse=True)
        shares = ", ".join(f"{probe.features} {100 * probe.accuracy[n]:.1f} %" for probe in ordered)
        sentences.append(f"Right with {labels}: {shares}.")
    return " ".join(sentences)
