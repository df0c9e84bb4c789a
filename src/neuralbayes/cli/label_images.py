"""``neuralbayes label`` on images: clusters, a contact sheet, and the agreement with known classes."""

from __future__ import annotations

import json
import math
import shlex
import warnings
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rich.console import Console
from rich.text import Text

from neuralbayes.cli.features_option import (
    ImageFeatures,
    features_file,
    features_name,
    image_features,
    load_fitting_features,
)
from neuralbayes.cli.image_size import check_memory, parsed_size
from neuralbayes.cli.label_images_summary import Cluster, ImagesSummary, agreement
from neuralbayes.cli.label_oddities import odd_file, odd_images
from neuralbayes.cli.label_outliers import labels_and_typicality
from neuralbayes.cli.label_summary import LabelOutputs, label_outputs, with_picture
from neuralbayes.cli.outputs import beside
from neuralbayes.cli.runs import (
    data_name,
    image_paths,
    limited,
    load_fitting,
    skipped_file,
    tell_reduced,
    tell_skipped,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from neuralbayes.data.sources import Images, ImageSource

SHOWN = 20
"""Images per row of the contact sheet."""

RANKED = 200
"""Random images of a cluster, from which the most and least typical are shown."""

COMPARED = 60
"""Maximum number of images per cluster to look for near-duplicates in, which are shown once."""

SHEET_SIDE = 128
"""Maximum side length of an image in the contact sheet, in pixels."""


@dataclass(frozen=True)
class Sorting:
    """The new folder for sorted pictures, and whether they are copied or linked."""

    folder: Path
    copy: bool


@dataclass(frozen=True)
class ImageOrder:
    """The request."""

    data: str
    split: str
    limit: int | None
    size: tuple[int, int] | None
    features: ImageFeatures | None
    settings: dict[str, Any]  # parameters of the estimator
    reject: float | None  # images with at most this typicality are outliers
    model: Path | None
    outputs: LabelOutputs
    sorting: Sorting | None = None

    def load(self, *, verbose: bool) -> tuple[Any, Images]:
        """The model, or None, and the images in its size."""
        import neuralbayes

        if self.features is not None:
            features = self.features
            model = None if self.model is None else load_fitting_features(self.model, features.name, features.network)
            return model, features.load(self.data, self.split, verbose=verbose)
        if self.model is None:
            from neuralbayes.data.images import load_images

            def check(n_images: int, shape: tuple[int, int, int]) -> None:
                check_memory(n_images if self.limit is None else min(n_images, self.limit), shape)

            return None, load_images(self.data, split=self.split, size=self.size, progress=verbose, check=check)
        estimator = neuralbayes.load(self.model)
        shape = getattr(estimator, "image_shape_", None)
        if not isinstance(estimator, neuralbayes.InformationClusterer) or shape is None:
            raise ValueError(f"{self.model} must hold an InformationClusterer of images, got another kind of model")
        return estimator, load_fitting(shape, self.data, self.split, progress=verbose)


def image_order(
    data: Path,
    *,
    split: str,
    limit: int | None,
    size: str | None,
    features: str | None,
    settings: dict[str, Any],
    reject: float | None,
    model: Path | None,
    save: Path | None,
    out: Path | None,
    picture: Path | None,
    draw: bool,
    force: bool,
    sorting: Sorting | None = None,
) -> ImageOrder:
    """Prepare the job, and check all outputs before anything is computed."""
    from neuralbayes.data.catalog import is_name

    name = str(data)
    source = None if is_name(name) else data
    if out is None:
        out = Path(f"{name}-labels.csv") if source is None else beside(source, "-labels", ".csv")
    outputs = label_outputs(out, source, save, picture, draw=draw, force=force)
    pixels = parsed_size(size)
    wanted = None if features is None else image_features(features, pixels, features_file(outputs.table))
    return ImageOrder(name, split, limit, pixels, wanted, settings, reject, model, outputs, sorting)


def label_images(order: ImageOrder, *, draw: bool, output: Literal["text", "json", "none"]) -> None:
    """Cluster the images, or label them with a model; write labels, model and contact sheet, and print a summary."""
    import neuralbayes
    from neuralbayes.data.path_text import path_cell

    verbose = output == "text"
    estimator, images = order.load(verbose=verbose)
    tell_reduced(images, quiet=not verbose)
    tell_skipped(images, kept_in=skipped_file(order.outputs.table), quiet=not verbose)
    oddities = odd_images(images, order.limit, odd_file(order.outputs.table))
    source = limited(images, order.limit)
    classes = None if images.labels is None else images.labels[: len(source)]
    X: Any = source if order.features is None else order.features.rows(images, order.limit, verbose=verbose)
    notes = [] if oddities is None else [oddities]
    if order.model is None:
        estimator = neuralbayes.InformationClusterer(**order.settings, verbose=verbose)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            estimator.fit(X)
        notes += [str(warning.message) for warning in caught]
        if order.features is not None:
            estimator.features_from_ = features_name(order.features.name, order.features.network)
    p_zx = estimator.predict_proba(X)
    labeled = LabeledImages(p_zx, *labels_and_typicality(estimator, X, p_zx.argmax(axis=1), order.reject))
    if order.outputs.model is not None:  # first, because it took the time
        estimator.save(order.outputs.model)
    paths = image_paths(images, order.limit)
    _write(order.outputs.table, labeled, [path_cell(path) for path in paths], _named(classes, images.class_names))
    if order.sorting is not None:
        from neuralbayes.data.sorted_folders import sort_files

        sort_files(paths, labeled.labels, Path(order.data), order.sorting.folder, copy=order.sorting.copy)
    if draw:
        outputs = with_picture(
            order.outputs, lambda path: _draw(path, estimator, X, labeled.labels, source, images.name), notes
        )
        order = replace(order, outputs=outputs)
    summary = _summary(order, estimator, labeled, source.shape, classes, len(images.skipped), notes)
    if output == "json":
        Console().out(json.dumps(asdict(summary), indent=2, allow_nan=False), highlight=False)
    elif output == "text":
        console = Console(highlight=False)
        summary.print(console, Console(stderr=True, highlight=False))
        if order.outputs.model is not None:
            split = [] if order.split == "train" else ["--split", order.split]
            split += [] if order.limit is None else ["--limit", str(order.limit)]
            features = [] if order.features is None else ["--features", order.features.name]
            features += ["--size", "x".join(map(str, order.size))] if features and order.size is not None else []
            words = ["neuralbayes", "report", str(order.outputs.model), order.data, *split, *features, "--open"]
            console.print(Text.assemble((f"{'next':<9}", "dim"), shlex.join(words)), soft_wrap=True)


@dataclass(frozen=True)
class LabeledImages:
    """Probabilities (n, n_clusters), labels (n,), -1 for outliers, and, with ``--reject``, typicality (n,)."""

    p_zx: NDArray[Any]
    labels: NDArray[Any]
    typicality: NDArray[np.float64] | None = None


def _named(classes: NDArray[np.int64] | None, names: tuple[str, ...] | None) -> NDArray[Any] | None:
    """Class names of the images, if there are any."""
    import numpy as np

    from neuralbayes.data.path_text import path_cell

    return classes if classes is None or names is None else np.array(list(map(path_cell, names)), object)[classes]


def _write(path: Path, labeled: LabeledImages, names: list[str], classes: NDArray[Any] | None) -> None:
    import numpy as np

    from neuralbayes.data.table_writing import write_table
    from neuralbayes.data.written import TYPICALITY

    labels, p_zx = labeled.labels, labeled.p_zx
    typical = {} if labeled.typicality is None else {TYPICALITY: labeled.typicality}
    match path.suffix.lower():
        case ".npy":
            write_table(path, {"labels": labels})
        case ".npz":
            write_table(path, {"labels": labels, "probabilities": p_zx} | typical)
        case _:
            columns: dict[str, NDArray[Any]] = {"index": np.arange(len(labels))}
            columns |= {"path": np.array(names, dtype=object)} if names else {}
            columns |= {} if classes is None else {"class": classes}
            write_table(path, columns | {"label": labels, "p": p_zx} | typical)


def _draw(path: Path, estimator: Any, X: Any, labels: NDArray[Any], source: ImageSource, title: str) -> None:
    """Draw a row per cluster, from its most typical image to its least typical, without outliers; `X` is the clustered
    data."""
    import numpy as np

    from neuralbayes.data.oddities import distinct
    from neuralbayes.data.sources import CHANNELS, FittedSource, SubsetSource
    from neuralbayes.estimators.inputs import read
    from neuralbayes.explain.prototypes import some
    from neuralbayes.plot import MembersDisplay, save_picture
    from neuralbayes.plot.members import evenly, from_typical_to_odd
    from neuralbayes.plot.style import literal

    rng = np.random.default_rng(0)
    counts = np.bincount(labels[labels >= 0])
    if not len(counts):
        raise ValueError("all images are outliers")
    drawn = np.concatenate([some(np.flatnonzero(labels == k), RANKED, rng) for k in range(len(counts))])
    points = estimator._points(read(X, drawn))
    height, width, channels = source.shape
    reduction = max(height, width) / SHEET_SIDE
    if reduction > 1 and channels in CHANNELS:
        source = FittedSource(source, (math.ceil(height / reduction), math.ceil(width / reduction)), channels)
    members = []
    for rows in from_typical_to_odd(points, labels[drawn], COMPARED):
        different = np.array(distinct(source.read(drawn[rows]), range(len(rows)), len(rows)), np.intp)
        members.append(drawn[rows[different[evenly(len(different), SHOWN)]]])
    shown = [k for k in range(len(members)) if len(members[k])]
    of_images = estimator.image_shape_ is not None
    typicality = [
        100.0 * estimator.typicality(SubsetSource(X, members[k]) if of_images else X[members[k]]) for k in shown
    ]
    display = MembersDisplay(
        [source.read(members[k]) for k in shown],
        [f"{k}: {counts[k]:,}" for k in shown],
        [values.tolist() for values in typicality],
    ).plot()
    heading = (
        f"{Path(data_name(title)).name}: each cluster from its most typical image to its least; right, typicality in %"
    )
    display.ax_.set_title(literal(heading), fontsize=8)
    save_picture(display.figure_, path)


def _summary(
    order: ImageOrder,
    estimator: Any,
    labeled: LabeledImages,
    shape: tuple[int, int, int],
    classes: NDArray[np.int64] | None,
    n_skipped: int,
    notes: list[str],
) -> ImagesSummary:
    import numpy as np

    from neuralbayes.report.verdict import cluster_stability_of, result_words, stability_of

    labels = labeled.labels
    kept = labels >= 0
    counts = np.bincount(labels[kept], minlength=labeled.p_zx.shape[1])
    stability = cluster_stability_of(estimator)
    clusters = [
        Cluster(
            k,
            int(n),
            int(n) / len(labels),
            float(estimator.separation_[k]),
            None if stability is None else float(stability[k]),
        )
        for k, n in enumerate(counts)
    ]
    return ImagesSummary(
        input=data_name(order.data),
        images=len(labels),
        size=list(shape),
        features=None if order.features is None else order.features.name,
        n_clusters=len(counts),
        result=result_words(estimator, "image"),
        verdict=getattr(estimator, "verdict_", None),
        stability=stability_of(estimator),
        clusters=clusters,
        trained=order.model is None,
        agreement=None if classes is None or not kept.any() else agreement(labels[kept], classes[kept]),
        out=str(order.outputs.table),
        picture=None if order.outputs.picture is None else str(order.outputs.picture),
        model=None if order.outputs.model is None else str(order.outputs.model),
        skipped=n_skipped,
        skipped_list=str(skipped_file(order.outputs.table)) if n_skipped else None,
        sorted_into=None if order.sorting is None else str(order.sorting.folder),
        notes=notes,
        rejected=None if labeled.typicality is None else int((~kept).sum()),
    )
