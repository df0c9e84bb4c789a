"""The page of the demo: results, how it works, and an explorer of the states of the digits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from neuralbayes.demo.digits import DRAWS, HIDDEN, LABELS_PER_CLASS, DigitsResult, ShownState
from neuralbayes.demo.manifolds import ManifoldResult
from neuralbayes.demo.pictures import information, panel
from neuralbayes.demo.result import DemoResult
from neuralbayes.plot.curves import CurvesDisplay
from neuralbayes.plot.filters import tile_wall
from neuralbayes.report.digits import plot_accuracy
from neuralbayes.report.explorer.classes import agreement, crosstab_picture
from neuralbayes.report.explorer.figures import Picture, drawn, painted, pixels
from neuralbayes.report.explorer.page import write_page
from neuralbayes.report.explorer.places import posterior_places
from neuralbayes.report.explorer.samples import Samples
from neuralbayes.report.explorer.sections import Section, Story
from neuralbayes.report.explorer.side import Grid, Layer, Side
from neuralbayes.report.explorer.words import layer_warnings
from neuralbayes.report.manifolds import plot_points

N_STEPS = len(HIDDEN) + 2
"""Number of calls of `done`: for each map, the pictures, and the file."""

COMMANDS = [
    (
        "Cluster the rows of a table and keep the model.",
        "neuralbayes label data.csv --clusters auto --save model/",
    ),
    ("Explain the clusters on a page like this one.", "neuralbayes report model/ data.csv --open"),
    (
        "Cluster a folder of photographs by the features of a pretrained network.",
        "neuralbayes label photos/ --features timm:resnet50 --save model/",
    ),
    ("Learn features of your own images without labels.", "neuralbayes pretrain my_images/ --out run/"),
]
"""Commands for your own data."""


def write_demo_page(result: DemoResult, out: Path, done: Callable[[str], None]) -> Path:
    """Write the page to the file `out`; call `done` after each of its `N_STEPS` steps."""
    side = digits_side(result, done)
    story = Story(
        writer="neuralbayes demo",
        before=[_found(result), _manifolds(result.manifolds), _digits(result.digits), _how()],
        after=[Section("yours", "Your own data", commands=COMMANDS)],
    )
    done("pictures")
    write_page([side], out, story)
    done(out.name)
    return out


def digits_side(result: DemoResult, done: Callable[[str], None]) -> Side:
    """The encoder of the digits with its training images; call `done` after each map."""
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
        # t-SNE takes seconds, so only the first shown layer uses it.
        places = posterior_places(p_zx, "tsne" if found is digits.layers[-1] else "pca")
        layers.append(Layer(found.name, p_zx, places, found.information, digits.n_train))
        done(f"map of {found.name}")
    against_classes, picture = agreement(layers, samples), crosstab_picture(layers[-1], samples)
    return Side(
        title="What neuralbayes finds without labels",
        subtitle=f"{digits.n_train:,} handwritten digits and {len(result.manifolds)} sets of points",
        samples=samples,
        layers=layers,
        facts=[
            ("data", "the digits of scikit-learn, and synthetic points"),
            ("seed", str(result.seed)),
            ("time", f"{result.seconds:.0f} s, without this page"),
            ("versions", ", ".join(f"{name} {version}" for name, version in result.versions.items())),
        ],
        settings=[(name, str(value)) for name, value in digits.to_dict()["settings"].items()],
        command=f"neuralbayes demo --seed {result.seed}",
        command_note="The same seed gives the same results on the same computer. With another number of threads or "
        "another version of torch, accuracies on the digits differ by about a point.",
        warnings=layer_warnings(layers, "image"),
        notes=["The page contains the true digits for comparison. The encoder never saw them."],
        labels=[picture] if picture else [],
        grids={"labels": [against_classes] if against_classes else []},
    )


def _found(result: DemoResult) -> Section:
    """The results in two sentences, above typical images of states."""
    disjoint = [one for one in result.manifolds if one.right is not None]
    connected = [one for one in result.manifolds if one.right is None]
    perfect = sum(one.right == one.n_points and one.certified for one in disjoint)
    k_means = sum(one.kmeans_right == one.n_points for one in disjoint)
    few = str(LABELS_PER_CLASS[0])
    right = {probe.features: f"{100 * probe.accuracy[few]:.1f} %" for probe in result.digits.probes}
    return Section(
        "found",
        "What was found",
        f"From {result.digits.n_train:,} handwritten digits without labels, a network learnt states that stand for "
        f"digits and ways to write them. With {few} labels per digit, a linear classifier on these states gets "
        f"{right['MIM encoder']} of the test images right. On pixels, it gets {right['pixels']}.",
        [
            "Each picture shows the most typical images of one state. A state is one value of a variable z that the "
            "network makes up. It was never told what a digit is.",
            f"The library also labels points on separate curves. It labels {perfect} of {len(disjoint)} such sets "
            f"without an error (k-means: {k_means}). {_connected_sets(connected)}",
        ],
        gallery=[_state_picture(state) for state in result.digits.states],
    )


def _connected_sets(connected: list[ManifoldResult]) -> str:
    wrong = sum(one.certified for one in connected)
    sets = f"connected set{'s'[: len(connected) > 1]}"
    return f"It wrongly certifies {wrong} of {len(connected)} {sets}." if wrong else f"It does not certify the {sets}."


def _state_picture(state: ShownState) -> Picture:
    wall = tile_wall(np.repeat(1.0 - state.images[..., np.newaxis] / 255.0, 3, axis=3), 5, gap=(1.0, 1.0, 1.0))
    return pixels(f"State {state.state}", f"{100 * state.prior:.1f} % of the images", wall)


def _how() -> Section:
    return Section(
        "how",
        "How it works",
        words=[
            "A small network reads a sample x and returns the probability of each state z, written p(z|x). Averaging "
            "over all samples gives p(z), the share of each state. Both objectives of the paper are functions of these "
            "two quantities.",
            "For the digits, training maximises the mutual information between x and z: the states should say as much "
            "about the image as possible. It is measured in nats, and K states can carry at most log K nats.",
            "For the curves, training makes the distributions of the states as different as possible, while "
            "neighbouring points should have the same state. The certificate then tests the result on points that were "
            "held out: a long random walk between neighbouring points must not lead from one state to another.",
        ],
    )


def _manifolds(results: list[ManifoldResult]) -> Section:
    first = results[0]
    return Section(
        "manifolds",
        "Disjoint manifolds",
        "Each set lies on separate curves, except the last one. Colours show the labels that were found. The number "
        "below a picture is the separation, from 0 to 100; a set is certified if it is at least 90.",
        [
            f"Each set has {first.n_points:,} points, which were rotated into {first.n_features} dimensions before "
            "they were labelled. The pale background shows how the network labels the space between the points.",
            "k-means assigns each point to the nearest of a few centres. This works for round clusters and fails for "
            "curves that wind around each other. It always returns an answer and cannot say whether to trust it.",
            *(_refusal(one) for one in results if one.right is None),
        ],
        gallery=[_manifold_picture(one) for one in results],
        grids=[
            Grid(
                f"Points with the correct label, of {first.n_points:,}",
                ("", "manifolds", "ours", "k-means", "certified", "auto"),
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
                "The true labels were used for counting only. Separation is the Jensen-Shannon divergence of a "
                "manifold from the rest, relative to its maximum, for the weakest manifold of a set. Auto: how many "
                "manifolds are found if no number is given.",
            )
        ],
    )


def _refusal(result: ManifoldResult) -> str:
    """The result on a connected set."""
    asked = f"The last set, {result.name}, is connected, but the method was asked for {result.n_clusters} manifolds."
    if result.certified:
        return f"{asked} It certified them, which is an error."
    return (
        f"{asked} It cut the set somewhere, but the separation is only {result.separation_percent:.1f}, so nothing is "
        f"certified. If no number is given, the method finds {result.n_clusters_auto}."
    )


def _manifold_picture(result: ManifoldResult) -> Picture:
    shown = panel(result)
    caption = f"{'certified' if result.certified else 'refused'}: {result.separation_percent:.1f}"
    words = f"{result.name}: {result.n_points:,} points in the colours of {result.n_clusters} manifolds; {caption}."
    return painted(result.name, words, lambda ax: plot_points(shown, ax), caption=caption, verdict=result.certified)


def _digits(digits: DigitsResult) -> Section:
    counts = list(digits.probes[0].accuracy)
    best = {n: max(probe.accuracy[n] for probe in digits.probes) for n in counts}
    return Section(
        "digits",
        "Features of digits",
        _ranking(digits),
        [
            f"A network with {len(digits.layers)} layers was trained on {digits.n_train:,} images without labels. Each "
            "unit of a layer is a state. The curves show the mutual information between image and state (MIM).",
            "To test the features, a linear classifier is trained on them with a few labels and scored on "
            f"{digits.n_test} other images. It is compared with classifiers on pixels, on the features of the same "
            "network before training, and on similarities to as many k-means centres.",
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
                "Accuracy on test images, % (axis cut)",
                f"Bars of the accuracies in the table. {_ranking(digits)}",
                lambda ax: plot_accuracy({probe.features: probe.accuracy for probe in digits.probes}, ax),
                (5.2, 3.3),
            ),
        ],
        grids=[
            Grid(
                f"Accuracy on {digits.n_test} test images, %",
                ("features", "number", *("all labels" if n == "all" else f"{n} labels" for n in counts)),
                [
                    (probe.features, str(probe.n_features), *(f"{100 * probe.accuracy[n]:.1f}" for n in counts))
                    for probe in digits.probes
                ],
                f"A linear classifier on frozen features. With few labels per digit, the mean of {DRAWS} draws. "
                "k-means: the triangle code of Coates et al. 2011, from the same images. Blue marks the best of each "
                "column.",
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
    """All features by accuracy, with few labels and with all."""
    sentences = []
    for n, labels in ((str(LABELS_PER_CLASS[0]), f"{LABELS_PER_CLASS[0]} labels per digit"), ("all", "all labels")):
        ordered = sorted(digits.probes, key=lambda probe: probe.accuracy[n], reverse=True)
        shares = ", ".join(f"{probe.features} {100 * probe.accuracy[n]:.1f} %" for probe in ordered)
        sentences.append(f"Accuracy with {labels}: {shares}.")
    return " ".join(sentences)
