"""The side of the page for rows: certified manifolds, clusters, or the states of an encoder."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from neuralbayes.bayes import LOG_2
from neuralbayes.estimators import InformationClusterer, ManifoldLabeler, MIMEncoder
from neuralbayes.estimators.mim_encoder import WATCHED
from neuralbayes.estimators.saving import DESCRIPTION
from neuralbayes.plot.plane import plane, standardizes
from neuralbayes.plot.regions import Regions
from neuralbayes.plot.style import COLORS
from neuralbayes.report.explorer.classes import agreement, crosstab_picture
from neuralbayes.report.explorer.clusters import cluster_grids
from neuralbayes.report.explorer.commands import label_command
from neuralbayes.report.explorer.described import Described, described
from neuralbayes.report.explorer.figures import png_address
from neuralbayes.report.explorer.places import Method, Places, posterior_places
from neuralbayes.report.explorer.samples import Samples, standardized
from neuralbayes.report.explorer.side import Grid, Layer, Side, Watch
from neuralbayes.report.explorer.training import information_grid, loss_pictures, training_pictures
from neuralbayes.report.explorer.tried import tried_grid
from neuralbayes.report.explorer.words import certificate_warnings, layer_warnings, separation_words
from neuralbayes.report.verdict import cluster_stability_of, result_words
from neuralbayes.system.files import read_json

if TYPE_CHECKING:
    import pandas as pd


def rows_side(
    folder: Path,
    estimator: Any,
    X: Any,
    samples: Samples,
    *,
    frame: pd.DataFrame | None = None,
    classes: str | None = None,
    options: Sequence[str] = (),
    method: Method = "tsne",
    watch: Watch = lambda doing: None,
) -> Side:
    """Describe a model of rows.

    Parameters
    ----------
    folder : Path
        Folder of the saved model.
    estimator : ManifoldLabeler, InformationClusterer or MIMEncoder
        Fitted on rows.
    X : array or DataFrame of shape (n_samples, n_features)
        The rows of `samples` as input of the estimator.
    samples : Samples
    frame : DataFrame, optional
        All columns of the rows of `samples`, fitted or not. They explain the clusters.
    classes : str, optional
        The column of `frame` with true classes, which are not used in explanations.
    options : sequence of str
        Options of `neuralbayes label` that select the part of the table.
    method : {"tsne", "pca"}
        Method of the maps of an encoder's layers.
    watch : callable, optional
    """
    if not isinstance(estimator, ManifoldLabeler | InformationClusterer | MIMEncoder):
        raise TypeError(f"`estimator` must be a clusterer or a MIMEncoder, got {type(estimator).__name__}")
    if samples.values is None:
        raise ValueError("`samples` must be rows, got images")
    watch(f"looking at {len(samples):,} rows")
    explained = None
    if isinstance(estimator, ManifoldLabeler | InformationClusterer):
        layers, background = _cluster_layers(estimator, X, samples.values, samples.columns)
        if isinstance(estimator, ManifoldLabeler):
            warnings = certificate_warnings(layers[0])
            grids = {"certificate": _certificate(estimator, layers[0])}
        else:
            warnings = layer_warnings(layers, "row")
            grids = {"training": cluster_grids(estimator, layers[0])}
        training = loss_pictures(estimator)
        if frame is not None:
            watch("explaining the clusters")
            explained = _explained(estimator, frame, samples, layers[0], classes)
    else:
        layers, background = _encoder_layers(estimator, X, method, watch), None
        warnings = layer_warnings(layers, "row")
        grids = {"training": [information_grid(layers)]}
        training = [*training_pictures(layers, []), *loss_pictures(estimator)]
    watch("drawing")
    against_classes = agreement(layers, samples)
    grids["labels"] = [against_classes] if against_classes else []
    params = estimator.get_params()
    defaults = type(estimator)().get_params()
    what = result_words(estimator) if isinstance(estimator, InformationClusterer) else type(estimator).__name__
    command = label_command(params, defaults, samples.data, str(folder), options) if "n_clusters" in params else ""
    return Side(
        title=folder.resolve().name,
        subtitle=f"{Path(samples.data).name}: {what}",
        samples=samples,
        layers=layers,
        facts=_facts(folder, estimator, samples),
        settings=[(name, str(value)) for name, value in params.items()],
        command=command or repr(estimator),
        command_note=(
            "The model folder already exists. Add --force to replace it, or choose another one."
            if command
            else "This is Python, because the command line has no options for these settings."
        ),
        warnings=warnings,
        notes=_notes(estimator, layers[-1], samples),
        training=training,
        labels=[picture] if (picture := crosstab_picture(layers[-1], samples)) else [],
        grids=grids,
        background=background,
        described=explained,
    )


def _explained(
    clusterer: ManifoldLabeler | InformationClusterer,
    frame: pd.DataFrame,
    samples: Samples,
    layer: Layer,
    classes: str | None,
) -> Described:
    trained = clusterer.labels_
    same = len(trained) == samples.n_all and np.array_equal(trained[samples.index], layer.claimed)
    return described(
        frame,
        layer.p_zx,
        index=samples.index,
        sizes=np.bincount(trained, minlength=layer.n_states) if same else None,
        fitted=set(clusterer.vectorizer_.encoders_ if hasattr(clusterer, "vectorizer_") else samples.columns),
        left_out=[] if classes is None else [classes],
        verdict=_verdict(clusterer),
        stability=layer.stability,
    )


def _verdict(clusterer: ManifoldLabeler | InformationClusterer) -> str:
    """A sentence on the separation of the clusters."""
    if isinstance(clusterer, ManifoldLabeler):
        if clusterer.disjoint_.all():
            return "They are certified disjoint."
        return "They are not certified disjoint: see the certificate below."
    return separation_words(clusterer.separation_)[0]


def _cluster_layers(
    clusterer: ManifoldLabeler | InformationClusterer, X: Any, values: NDArray[np.float64], columns: Sequence[str]
) -> tuple[list[Layer], tuple[str, tuple[float, float, float, float]] | None]:
    """The clusters of a model, with a picture of their regions if the rows have two columns."""
    p_zx = np.asarray(clusterer.predict_proba(X), dtype=np.float32)
    vectorizer = getattr(clusterer, "vectorizer_", None)
    raw = vectorizer is None or list(vectorizer.encoders_) == list(columns)  # otherwise they share a unit already
    scale = raw and (standardizes(clusterer) if vectorizer is None else vectorizer.standardize)
    order = np.random.default_rng(0).permutation(len(values))
    drawn_in = plane(values[order], columns, np.random.default_rng(0), standardize=scale)
    points = np.empty_like(drawn_in.points)
    points[order] = drawn_in.points
    places = Places(points, np.ones(len(values), bool), drawn_in.axis_names, f"{len(values):,} rows{drawn_in.how}")
    disjoint = np.asarray(clusterer.disjoint_, dtype=bool) if isinstance(clusterer, ManifoldLabeler) else None
    where = standardized(values) if scale else values
    layer = Layer(
        "clusters",
        p_zx,
        places,
        separation=clusterer.separation_,
        stability=cluster_stability_of(clusterer),
        disjoint=disjoint,
        points=where,
        thing="cluster",
    )
    if not raw or values.shape[1] != 2 or not 2 <= layer.n_states <= len(COLORS):  # with more, two would look alike
        return [layer], None
    names = getattr(clusterer, "feature_names_in_", None)

    def predict_proba(grid: NDArray[Any]) -> NDArray[Any]:
        return clusterer.predict_proba(grid if names is None else type(X)(grid, columns=names))

    regions = Regions.of(predict_proba, values)
    image = (255.0 * regions.image(values)[::-1]).round().astype(np.uint8)
    return [layer], (png_address(image), regions.extent)


def _encoder_layers(encoder: MIMEncoder, X: Any, method: Method, watch: Watch) -> list[Layer]:
    layers = []
    for i, information in enumerate(encoder.mutual_information_):
        watch(f"the map of layer {i}")
        chosen = copy.copy(encoder).set_params(layer=i)
        p_zx = np.asarray(chosen.predict_proba(X), dtype=np.float32)
        n = min(WATCHED, len(X))
        layers.append(Layer(f"layer {i}", p_zx, posterior_places(p_zx, method), float(information), n))
    return layers


def _certificate(labeler: ManifoldLabeler, layer: Layer) -> list[Grid]:
    counts = np.bincount(layer.claimed, minlength=layer.n_states)
    rows = []
    for k, (separation, disjoint) in enumerate(zip(labeler.separation_, labeler.disjoint_, strict=True)):
        percent = "unknown" if not math.isfinite(separation) else f"{100 * separation / LOG_2:.1f}"
        share = f"{100 * counts[k] / max(counts.sum(), 1):.1f} %"
        rows.append((f"cluster {k}", f"{counts[k]:,}", share, percent, "yes" if disjoint else "no"))
    grids = [
        Grid(
            "Certificate of separation",
            ("", "rows here", "share", "separation, of 100", "certified"),
            rows,
            "Separation is the Jensen-Shannon divergence between a manifold and the rest after a long random walk "
            "between neighbouring rows, measured on held-out rows. It is 100 if no walk leaves the manifold, and must "
            "be at least 90 for a certificate.",
        )
    ]
    tried = tried_grid(labeler)
    return [*grids, tried] if tried else grids


def _facts(folder: Path, estimator: Any, samples: Samples) -> list[tuple[str, str]]:
    description = read_json(folder / DESCRIPTION)
    return [
        ("data", samples.data),
        ("method", type(estimator).__name__),
        ("rows", f"{samples.n_all:,}"),
        ("columns", f"{estimator.n_features_in_:,}"),
        ("iterations", f"{estimator.n_iter_:,}" if estimator.n_iter_ else "none: no network was trained"),
        ("time, memory", "not recorded in a model"),
        ("versions", f"neuralbayes {description['library']}"),
    ]


def _notes(estimator: Any, layer: Layer, samples: Samples) -> list[str]:
    trained = getattr(estimator, "labels_", ())
    if len(trained) == samples.n_all and np.array_equal(trained[samples.index], layer.claimed):
        return []  # the training rows, or rows that are indistinguishable from them
    notes = ["The model may have been trained on other rows than the ones on this page."]
    prior = getattr(estimator, "prior_", None)
    if prior is not None and len(prior) > 1:
        k = int(np.argmax(np.abs(layer.p_z - prior)))
        if abs(layer.p_z[k] - prior[k]) > 0.1:
            notes.append(
                f"Shares differ from the training data: cluster {k} has {100 * layer.p_z[k]:.0f} % of the rows here, "
                f"and had {100 * prior[k]:.0f} % in training."
            )
    return notes
