"""The side of the page for clusters of images and of texts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import softmax

from neuralbayes.bayes import LOG_2, mutual_information
from neuralbayes.estimators import InformationClusterer
from neuralbayes.estimators.inputs import read
from neuralbayes.report.explorer.classes import agreement, crosstab_picture
from neuralbayes.report.explorer.commands import label_command
from neuralbayes.report.explorer.gallery import members_gallery
from neuralbayes.report.explorer.places import Method, Places, feature_places, posterior_places
from neuralbayes.report.explorer.samples import Samples
from neuralbayes.report.explorer.side import Grid, Layer, Side, Watch
from neuralbayes.report.explorer.training import loss_pictures
from neuralbayes.report.explorer.tried import tried_grid
from neuralbayes.report.explorer.words import layer_warnings
from neuralbayes.report.verdict import cluster_stability_of, result_words


def clusters_side(
    folder: Path,
    clusterer: InformationClusterer,
    samples: Samples,
    *,
    data: str,
    X: Any = None,
    by: str = "the features",
    options: Sequence[str] = (),
    method: Method = "tsne",
    watch: Watch = lambda doing: None,
) -> Side:
    """Describe clusters of images or of texts.

    Parameters
    ----------
    folder : Path
        Folder of the saved model.
    clusterer : InformationClusterer
    samples : Samples
        Texts, or images. A model of images takes images of its own size.
    data : str
        Name of the data on the command line.
    X : array or DataFrame of shape (n_samples, n_features), optional
        The features of `samples`, unless the model was fitted to images.
    by : str
        Description of `X` for the caption of the map.
    options : sequence of str
        Options of `neuralbayes label` that select the data and its features.
    method : {"tsne", "pca"}
        Method of the map.
    watch : callable, optional
    """
    watch(f"looking at {len(samples):,} {samples.noun}s")
    layers = _image_layers(clusterer, samples, method, watch) if X is None else []
    layers = layers or [_feature_layer(clusterer, X, samples, method, by, watch)]
    watch("drawing")
    params, defaults = clusterer.get_params(deep=False), type(clusterer)().get_params()
    command = label_command(params, defaults, data, str(folder), options)
    against_classes = agreement(layers, samples)
    trained = clusterer.labels_
    same = len(trained) == samples.n_all and np.array_equal(trained[samples.index], layers[-1].claimed)
    sizes = np.bincount(trained[trained >= 0], minlength=layers[-1].n_states) if same else None
    gallery = members_gallery(samples, layers[-1], sizes)
    poor = [f"{gallery.verdict} Try other features or another number of clusters."]
    return Side(
        title=folder.resolve().name,
        subtitle=f"{Path(samples.data).name}: {result_words(clusterer, samples.noun)}",
        samples=samples,
        layers=layers,
        facts=[
            ("data", samples.data),
            ("method", "InformationClusterer"),
            *([] if X is None else [("by", by)]),
            (f"{samples.noun}s", f"{samples.n_all:,}"),
            ("steps", f"{clusterer.n_iter_:,}"),
        ],
        settings=[(name, str(value)) for name, value in params.items()],
        command=command or repr(clusterer),
        command_note=f"A model does not contain its training {samples.noun}s.",
        warnings=[*(poor if gallery.poor else []), *layer_warnings(layers, samples.noun)],
        notes=[] if same else [f"The model may have been trained on other {samples.noun}s than the ones on this page."],
        training=loss_pictures(clusterer),
        labels=[picture] if (picture := crosstab_picture(layers[-1], samples)) else [],
        grids={
            "training": cluster_grids(clusterer, layers[-1]),
            "labels": [against_classes] if against_classes else [],
        },
        gallery=gallery,
    )


def _image_layers(clusterer: InformationClusterer, samples: Samples, method: Method, watch: Watch) -> list[Layer]:
    """The layers of a model of images: its small states, and the clusters that merge them."""
    if samples.pictures is None or list(samples.pictures.shape[1:]) != clusterer.image_shape_:
        got = "no images" if samples.pictures is None else f"images of shape {samples.pictures.shape[1:]}"
        raise ValueError(f"`samples` must be images of the shape {clusterer.image_shape_} of the model, got {got}")
    points = _points(clusterer, samples.pictures)
    states = softmax(clusterer._state_logits(points), axis=1).astype(np.float32)
    p_zx = clusterer.predict_proba(samples.pictures).astype(np.float32)
    watch("the map")
    places = posterior_places(states, method)  # states describe neighbourhoods in more detail than clusters
    information = float(mutual_information(torch.from_numpy(states)))
    small = Layer("small states", states, places, information, len(samples))
    return [small, _clusters(clusterer, p_zx, places, points)]


def _feature_layer(
    clusterer: InformationClusterer, X: Any, samples: Samples, method: Method, by: str, watch: Watch
) -> Layer:
    """The clusters on a map of the features."""
    p_zx = clusterer.predict_proba(X).astype(np.float32)
    points = _points(clusterer, X)
    watch("the map")
    return _clusters(clusterer, p_zx, feature_places(points, method, by, samples.noun), points)


def _points(clusterer: InformationClusterer, X: Any) -> NDArray[np.floating]:
    """The coordinates that clusters are found in."""
    samples = clusterer._samples(X)
    points: NDArray[np.floating] = clusterer._points(read(samples, np.arange(len(X)))).astype(np.float32)
    return points


def _clusters(
    clusterer: InformationClusterer, p_zx: NDArray[np.float32], places: Places, points: NDArray[np.floating]
) -> Layer:
    information = float(mutual_information(torch.from_numpy(p_zx)))
    return Layer(
        "clusters",
        p_zx,
        places,
        information,
        len(p_zx),
        clusterer.separation_,
        cluster_stability_of(clusterer),
        points=points,
        thing="cluster",
    )


def cluster_grids(clusterer: InformationClusterer, layer: Layer) -> list[Grid]:
    """Size and separation of each cluster, and the numbers of clusters that were considered."""
    counts = np.bincount(layer.claimed, minlength=layer.n_states)
    n_small = clusterer.membership_.sum(axis=0).astype(int).tolist()
    rows = [
        (f"cluster {k}", f"{counts[k]:,}", f"{100 * counts[k] / max(counts.sum(), 1):.1f} %", str(n_small[k]), percent)
        for k, percent in enumerate(f"{100 * value / LOG_2:.0f}" for value in clusterer.separation_)
    ]
    grids = [
        Grid(
            "Clusters",
            ("", "here", "share", "states", "separation, of 100"),
            rows,
            "Separation is the Jensen-Shannon divergence between a cluster and the rest, with p(z|x) averaged over the "
            "neighbours of x. It is 100 if no neighbour belongs to another cluster.",
        )
    ]
    tried = tried_grid(clusterer)
    return [*grids, tried] if tried else grids
