"""``neuralbayes demo``: clusters of a table, of images and of points, and features learnt without labels, on one page.

Nothing is downloaded. True groups and digits are used only to count what was found.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from neuralbayes import plot
from neuralbayes.clustering import Clustering, cluster
from neuralbayes.plot.style import new_picture, quiet_frame, state_color
from neuralbayes.system.files import atomic_write

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from neuralbayes.report.story import Section

SEED = 0
N_MEMBERS = 800
N_POINTS = 1000
HIDDEN = (256, 256, 128)  # widths of the layers of the encoder of the digits
LABELS_PER_DIGIT = (3, 10)
DRAWS = 20  # draws of few labels over which accuracies are averaged
GREYS = ("#c4c4c4", "#999999", "#6e6e6e")  # of what is compared with


def run_demo(out: Path, *, progress: Callable[[str], object] = print) -> Path:
    """Compute everything, and write demo.html, what it links to, and the data into the folder `out`; returns the page.

    Parameters
    ----------
    out : Path
        Created if needed. Files of an earlier demo are replaced.
    progress : callable, default=print
        Called with what is being done.
    """
    from neuralbayes.report.story import write_story

    out.mkdir(parents=True, exist_ok=True)
    sections = []
    for doing, part in (
        ("clustering a table", members_of_a_gym),
        ("clustering images of digits", digits),
        ("certifying that clusters are disjoint", manifolds),
        ("learning features of digits", features),
    ):
        progress(doing)
        sections.append(part(out))
    progress("writing the page")
    return Path(write_story(out / "demo.html", "What neuralbayes finds without labels", sections))


def members_of_a_gym(out: Path) -> Section:
    """A table with columns of several kinds, made up from four groups of people."""
    from neuralbayes.report.story import Section

    table, groups = make_members(N_MEMBERS, SEED)
    path = out / "members.csv"
    with atomic_write(path) as temporary:
        table.to_csv(temporary, index=False)
    result = cluster(path)
    found = "; ".join(f"{card.name} ({card.size} rows, {card.rule})" for card in result.clusters.itertuples())
    places, rows = result.coordinates()
    proba = result.proba[rows]
    map_of_rows = plot.StateMapDisplay(places, proba.argmax(axis=1), proba=proba, standardize=False).plot()
    by_group = plot.CrosstabDisplay.from_labels(result.labels, groups)
    return Section(
        "Clusters of a table",
        f"{len(table)} members of a climbing gym: numbers, words, dates and missing values in a CSV file. "
        f"{result.sentence} Their names and rules: {found}. The table was made up from four groups of people, which "
        f"are not among its columns. {_share_of_most_common(result, groups):.1%} of the members are in a cluster of "
        f"mostly their group. {result.report(out / 'members.html').name}, beside this page, describes each cluster.",
        [map_of_rows.figure_, by_group.figure_],
        f"neuralbayes cluster {path}",
    )


def digits(out: Path) -> Section:
    """The handwritten digits that come with scikit-learn."""
    from neuralbayes.data.named import load
    from neuralbayes.report.story import Section

    train = load("digits").train
    images, labels = train.images, np.asarray(train.labels)
    result = cluster(images, random_state=SEED)
    order = np.argsort([np.bincount(labels[result.labels == k]).argmax() for k in range(len(result.names))])
    members = plot.MembersDisplay.from_posterior(result.proba, images[..., 0], states=order.tolist(), n_members=14)
    by_digit = plot.CrosstabDisplay.from_labels(result.labels, labels)
    return Section(
        "Clusters of images",
        f"{len(images):,} handwritten digits of 8x8 pixels, without their labels and without a pretrained network. "
        f"{result.sentence} Each row shows the images that are most typical of a cluster, and how much more frequent "
        f"they are in it than in all. {_share_of_most_common(result, labels):.1%} of the images are in a cluster of "
        "mostly their digit; a digit that people write in two ways may get two clusters. "
        f"{result.report(out / 'digits.html').name}, beside this page, shows more of them.",
        [members.figure_, by_digit.figure_],
        "neuralbayes cluster digits",
    )


def manifolds(out: Path) -> Section:
    """Points on curves: disjoint ones, which are certified, and a ring, which must not be divided."""
    from sklearn.cluster import KMeans

    from neuralbayes.clusters.accuracy import clustering_accuracy
    from neuralbayes.data.toys import make_circles, make_moons, make_ring, make_spirals
    from neuralbayes.report.story import Section

    figure, first = new_picture(11.0, 3.0)
    first.remove()
    found = []
    makers: Mapping[str, Any] = {"moons": make_moons, "circles": make_circles, "spirals": make_spirals}
    makers = {**makers, "ring": make_ring}
    for ax, (name, make) in zip(figure.subplots(1, len(makers)), makers.items(), strict=True):
        X, truth = make(N_POINTS, random_state=SEED)
        result = cluster(X, method="manifolds", random_state=SEED)
        n_clusters = len(result.names)
        plot.StateMapDisplay.from_estimator(result.model, X, ax=ax)
        ax.get_legend().remove()
        ax.set(xlabel="", ylabel="", xticks=[], yticks=[])
        verdict = "certified" if result.verdict == "disjoint" else "no division certified"
        ax.set_title(f"{name}: {n_clusters} cluster{'s'[: n_clusters > 1]}\n{verdict}", loc="left", fontsize=9)
        if n_clusters > 1:
            k_means = KMeans(n_clusters, n_init=10, random_state=SEED).fit_predict(X)
            ours, theirs = (clustering_accuracy(labels, truth) for labels in (result.labels, k_means))
            found.append(f"{name} {ours:.1%} (k-means, told their number: {theirs:.1%})")
    path = out / "spirals.csv"
    with atomic_write(path) as temporary:
        np.savetxt(temporary, make_spirals(N_POINTS, random_state=SEED)[0], "%.6f", ",", header="x,y", comments="")
    return Section(
        "Clusters that are certified to be disjoint",
        f"{N_POINTS:,} points each, and the number of clusters is not told. Share of points in the right cluster: "
        f"{'; '.join(found)}. The pale background is p(z|x). A certificate says that no path through the data leads "
        "from one cluster to another; the ring is one piece, so a division of it is refused.",
        [figure],
        f"neuralbayes cluster {path}",
    )


def features(out: Path) -> Section:
    """Features of the digits by maximising the information of hidden states, judged by a linear classifier."""
    from neuralbayes.data.named import load
    from neuralbayes.estimators.mim_encoder import MIMEncoder
    from neuralbayes.report.story import Section

    data = load("digits")
    y, y_test = np.asarray(data.train.labels), np.asarray(data.test.labels)
    train, test = (part.images.astype(np.float64).reshape(-1, 64) / 255.0 for part in (data.train, data.test))
    encoder = MIMEncoder(HIDDEN, standardize=False, random_state=SEED).fit(train)
    # A step this small leaves the weights as they were drawn, with the statistics of the data in batch normalisation.
    untrained = MIMEncoder(HIDDEN, standardize=False, random_state=SEED, max_epochs=1, learning_rate=1e-12).fit(train)
    kinds = {
        "pixels": (train, test),
        "an untrained network": (untrained.transform(train), untrained.transform(test)),
        "MIM features": (encoder.transform(train), encoder.transform(test)),
    }
    accuracy = {name: _probe(*arrays, y, y_test) for name, arrays in kinds.items()}
    members = plot.MembersDisplay.from_posterior(encoder.predict_proba(train), data.train.images[..., 0])
    first = f"{LABELS_PER_DIGIT[0]} labels per digit"
    numbers = ", ".join(f"{values[first]:.1%} from {name}" for name, values in accuracy.items())
    by_others = f"of {len(test)} test images by other writers right"
    information = f"{encoder.mutual_information_[-1]:.2f} of at most {np.log(HIDDEN[-1]):.2f} nats"
    return Section(
        "Features learnt without labels",
        f"A network of {len(HIDDEN)} layers learns to keep information about the image in the states of each layer: "
        f"{information} in the last one, after {encoder.n_iter_} epochs. With {first}, a linear classifier gets this "
        f"share {by_others}: {numbers} (mean of {DRAWS} draws of the labels). The images are typical of the states of "
        "the last layer that say most. The command learns features of your own images of at least 22x22 pixels.",
        [_draw_accuracy(accuracy), members.figure_],
        "neuralbayes pretrain my_images/ --out run/",
    )


def make_members(n: int, seed: int) -> tuple[pd.DataFrame, NDArray[Any]]:
    """A table of `n` members of a climbing gym, and the group that each was drawn from: (n,)."""
    import pandas as pd

    rng = np.random.default_rng(seed)
    # Mean and deviation of age, visits a month, usual hour, share of visits at weekends in % and best grade; odds of
    # each plan; odds of bringing children.
    groups: Mapping[str, Any] = {
        "students": ([(22, 2.5), (9, 3), (19, 2), (35, 14), (5.5, 0.8)], (0.3, 0.65, 0.05, 0.0), 0.02),
        "before work": ([(39, 7), (10, 3), (8, 1.8), (12, 9), (5.5, 0.8)], (0.0, 0.15, 0.8, 0.05), 0.1),
        "families": ([(41, 5), (4, 1.5), (14, 2.2), (75, 14), (4.2, 0.7)], (0.2, 0.05, 0.05, 0.7), 0.9),
        "competitors": ([(26, 4), (19, 3.5), (16, 2), (40, 12), (8, 0.6)], (0.0, 0.1, 0.9, 0.0), 0.02),
    }
    group = rng.choice(list(groups), n, p=[0.3, 0.3, 0.25, 0.15])
    numbers = np.array([[rng.normal(*one) for one in groups[name][0]] for name in group])
    table = pd.DataFrame(numbers.clip(0, 100), columns=["age", "visits", "hour", "weekend", "grade"])
    table = table.round({"age": 0, "visits": 0, "hour": 1, "weekend": 0, "grade": 1})
    plans = ["pay as you go", "monthly", "yearly", "family"]
    table["plan"] = [rng.choice(plans, p=groups[name][1]) for name in group]
    table["children"] = np.where(rng.random(n) < [groups[name][2] for name in group], "yes", "no")
    table["joined"] = np.datetime64("2019-01-01") + rng.integers(0, 2000, n)
    table = table.mask(rng.random(table.shape) < 0.02)  # what nobody asked for
    table.insert(0, "member", [f"M{number:05d}" for number in rng.permutation(n)])
    return table, group


def _share_of_most_common(result: Clustering, classes: NDArray[Any]) -> float:
    """Share of the samples that are of the most common class in their cluster."""
    found = [np.unique(classes[result.labels == k], return_counts=True)[1].max() for k in np.unique(result.labels)]
    return float(np.sum(found) / len(classes))


def _probe(train: NDArray[Any], test: NDArray[Any], y: NDArray[Any], y_test: NDArray[Any]) -> dict[str, float]:
    """Test accuracy of logistic regression on features of length 1, by the number of labels."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import normalize

    rng = np.random.default_rng(SEED)
    x, x_test = normalize(train), normalize(test)

    def accuracy(rows: NDArray[Any]) -> float:
        return float(LogisticRegression(C=100.0, max_iter=1000).fit(x[rows], y[rows]).score(x_test, y_test))

    found = {}
    for n in LABELS_PER_DIGIT:
        of_digits = [np.flatnonzero(y == digit) for digit in np.unique(y)]
        draws = [np.concatenate([rng.choice(rows, n, replace=False) for rows in of_digits]) for _ in range(DRAWS)]
        found[f"{n} labels per digit"] = float(np.mean([accuracy(rows) for rows in draws]))
    return found | {"all labels": accuracy(np.arange(len(y)))}


def _draw_accuracy(accuracy: Mapping[str, Mapping[str, float]]) -> Figure:
    """Bars by the number of labels, ours in colour."""
    figure, ax = new_picture(7.2, 3.2)
    colors = [*GREYS[: len(accuracy) - 1], state_color(0)]
    for i, ((name, values), color) in enumerate(zip(accuracy.items(), colors, strict=True)):
        places = np.arange(len(values)) + 0.27 * (i - 1)
        bars = ax.bar(places, [100 * value for value in values.values()], 0.25, color=color, label=name, zorder=2)
        ax.bar_label(bars, fmt="%.1f", fontsize=8, padding=1)
    names = list(next(iter(accuracy.values())))
    ax.set_xticks(range(len(names)), names)
    ax.set_title("linear classifier, % of test images right", loc="left", fontsize=10)
    ax.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    quiet_frame(ax)
    return figure
