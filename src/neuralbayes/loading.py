"""Load what was saved: a clustering, or an estimator alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from neuralbayes.clustering import Clustering
from neuralbayes.data.points import Points
from neuralbayes.estimators.choice import Settings
from neuralbayes.estimators.saving import DESCRIPTION, given_names
from neuralbayes.estimators.saving import load as load_estimator
from neuralbayes.system.files import read_json


def load(folder: str | Path, *, network: Any = None) -> Any:
    """Load what `save` of a clustering or an estimator wrote, which opens and runs nothing that the folder names.

    `network` is the architecture of your own network, if the model was fitted with one.
    """
    folder = Path(folder)
    model = load_estimator(folder, network=network)
    about = read_json(folder / DESCRIPTION).get("about")
    if about is None:
        return model
    try:
        names, cards = list(map(str, about["names"])), list(about["summary"]["clusters"])
        if about["noun"] not in ("row", "image", "text") or len(names) != model.n_clusters_:
            raise ValueError(f"it must name {model.n_clusters_} clusters of rows, images or texts")
        if [card["cluster"] for card in cards] != [*range(len(names))]:
            raise ValueError(f"it must describe clusters 0 to {len(names) - 1}")
        points = Points(
            about["noun"],
            str(about["title"]),
            None,
            features_from=about["features_from"],
            identity=about["identity"],
            recipe=dict(about["recipe"]),
            notes=list(map(str, about["summary"]["notes"])),
        )
        settings, named_by = Settings(answers=tuple(map(str, about["answers"]))), about["named_by"]
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{folder / DESCRIPTION} does not describe a clustering ({error})") from error
    if own := given_names(folder, len(names)):
        names, named_by = [own.get(k, name) for k, name in enumerate(names)], "you"
    return Clustering(points, model, settings, saved={"clusters": cards, "names": names, "named_by": named_by})
