"""The half of the page that shows clusters of images, and the states that they are made of."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from neuralbayes.bayes import LOG_2, mutual_information, posterior
from neuralbayes.estimators import InformationClusterer
from neuralbayes.report.explorer.classes import agreement, crosstab_picture
from neuralbayes.report.explorer.commands import label_command
from neuralbayes.report.explorer.places import Method, posterior_places
from neuralbayes.report.explorer.samples import Samples
from neuralbayes.report.explorer.side import Grid, Layer, Side, Watch
from neuralbayes.report.explorer.training import loss_pictures
from neuralbayes.report.explorer.tried import tried_grid
from neuralbayes.report.explorer.words import layer_warnings


def clusters_side(
    folder: Path,
    clusterer: InformationClusterer,
    samples: Samples,
    *,
    data: str,
    split: str = "train",
    method: Method = "tsne",
    watch: Watch = lambda doing: None,
) -> Side:
    """What is to be said of a clusterer of images.

    Parameters
    ----------
    folder : Path
        Where the model is saved.
    clusterer : InformationClusterer
        Fitted on images.
    samples : Samples
        Images of the size that it takes.
    data, split : str
        What the command line calls them.
    method : {"tsne", "pca"}
        Of the map.
    watch : callable, optional
    """
    if samples.pictures is None or list(samples.pictures.shape[1:]) != clusterer.image_shape_:
        got = "rows" if samples.pictures is None else f"images of shape {samples.pictures.shape[1:]}"
        raise ValueError(f"`samples` must be images of the shape {clusterer.image_shape_} of the model, got {got}")
    watch(f"looking at {len(samples):,} images")
    module = clusterer.module_
    with torch.no_grad():
        x = torch.from_numpy(samples.pictures).permute(0, 3, 1, 2).float() / 255.0
        points = module.normalize(x)
        states = posterior(module.network(points))
    p_zx = clusterer.predict_proba(samples.pictures).astype(np.float32)
    watch("the map")
    places = posterior_places(states.numpy(), method)  # the states tell more of what is near what than the clusters
    n = len(samples)
    layers = [
        Layer("small states", states.numpy(), places, float(mutual_information(states)), n),
        Layer(
            "clusters",
            p_zx,
            places,
            float(mutual_information(torch.from_numpy(p_zx))),
            n,
            clusterer.separation_,
            points=points.flatten(1).numpy(),
        ),
    ]
    watch("drawing")
    params, defaults = clusterer.get_params(deep=False), type(clusterer)().get_params()
    part = [] if split == "train" else ["--split", split]
    command = label_command(params, defaults, data, str(folder), part)
    against_classes = agreement(layers, samples)
    return Side(
        title=folder.resolve().name,
        subtitle=f"{clusterer.n_clusters_} clusters, {Path(samples.data).name}",
        samples=samples,
        layers=layers,
        facts=[
            ("data", samples.data),
            ("method", "InformationClusterer"),
            ("images", f"{samples.n_all:,}"),
            ("steps", f"{clusterer.n_iter_:,}"),
        ],
        settings=[(name, str(value)) for name, value in params.items()],
        command=command or repr(clusterer),
        command_note="A model keeps neither the images nor which part of them it was trained on.",
        warnings=layer_warnings(layers, "image"),
        notes=[],
        training=loss_pictures(clusterer),
        labels=[picture] if (picture := crosstab_picture(layers[-1], samples)) else [],
        grids={
            "training": cluster_grids(clusterer, layers[-1]),
            "labels": [against_classes] if against_classes else [],
        },
    )


def cluster_grids(clusterer: InformationClusterer, layer: Layer) -> list[Grid]:
    """Size and separation of each cluster, and the numbers of clusters that could have been."""
    counts = np.bincount(layer.claimed, minlength=layer.n_states)
    n_small = clusterer.module_.membership.sum(dim=0).int().tolist()
    rows = [
        (f"cluster {k}", f"{counts[k]:,}", f"{100 * counts[k] / max(counts.sum(), 1):.1f} %", str(n_small[k]), percent)
        for k, percent in enumerate(f"{100 * value / LOG_2:.0f} %" for value in clusterer.separation_)
    ]
    grids = [
        Grid(
            "Clusters",
            ("", "here", "share", "small states", "separation"),
            rows,
            "Separation: the Jensen-Shannon divergence of a cluster from the rest, of p(z|x) averaged over the "
            "neighbours of x, as a share of log 2: 100 % where no neighbour is in another cluster.",
        )
    ]
    tried = tried_grid(clusterer)
    return [*grids, tried] if tried else grids
