"""The side of the page for an image encoder: its run, and its states on some images."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from neuralbayes.bayes import posterior
from neuralbayes.data.sources import ArraySource
from neuralbayes.estimators import MIMEncoder
from neuralbayes.features.encoder import STATES, ImageEncoder, state_use
from neuralbayes.networks.hidden import HiddenStates
from neuralbayes.plot.filters import FiltersDisplay
from neuralbayes.report.explorer.classes import agreement, crosstab_picture
from neuralbayes.report.explorer.commands import pretrain_command
from neuralbayes.report.explorer.figures import Picture, pixels
from neuralbayes.report.explorer.places import Method, posterior_places
from neuralbayes.report.explorer.probed import is_number, probe_grid, probe_pictures
from neuralbayes.report.explorer.samples import Samples
from neuralbayes.report.explorer.side import Layer, Side, Watch
from neuralbayes.report.explorer.training import information_grid, loss_pictures, training_pictures
from neuralbayes.report.explorer.words import layer_warnings
from neuralbayes.system.files import read_json
from neuralbayes.training.run_folder import read_metrics

BATCH = 250  # images per forward pass

RESULT: dict[str, Callable[[Any], bool]] = {
    "layers": lambda value: isinstance(value, Mapping) and all(map(_is_layer, value.values())),
    "warnings": lambda value: isinstance(value, list),
    "versions": lambda value: isinstance(value, Mapping),
    **dict.fromkeys(("images", "seconds", "images_per_second", "peak_memory_mb"), is_number),
}
"""Entries of result.json that are used."""


@dataclass(frozen=True)
class RunRecord:
    """The recorded settings and results of a run, as far as they exist."""

    config: Mapping[str, Any]
    result: Mapping[str, Any]
    data: Mapping[str, Any] | None
    metrics: list[dict[str, float]]

    @classmethod
    def read(cls, folder: Path) -> RunRecord:
        """Read from the files in `folder`."""

        def known(name: str) -> Any:
            return read_json(folder / name) if (folder / name).is_file() else None

        for name in ("config.json", "result.json", "data.json"):
            if not isinstance(known(name), Mapping | None):
                raise ValueError(f"{folder / name} must hold a JSON object")
        result = known("result.json") or {}
        for name, fits in RESULT.items():
            if name in result and not fits(result[name]):
                raise ValueError(f"{folder / 'result.json'} is not the result of a run: its {name!r} is damaged")
        return cls(known("config.json") or {}, result, known("data.json"), read_metrics(folder / "metrics.jsonl"))


def encoder_side(
    folder: Path,
    encoder: ImageEncoder,
    samples: Samples,
    *,
    own_data: bool,
    method: Method = "tsne",
    watch: Watch = lambda doing: None,
) -> Side:
    """Describe an encoder.

    Parameters
    ----------
    folder : Path
        Folder of its run.
    encoder : ImageEncoder
    samples : Samples
        Images of the encoder's size.
    own_data : bool
        Whether the encoder was trained on these images.
    method : {"tsne", "pca"}
        Method of the maps.
    watch : callable, optional
    """
    if samples.pictures is None or tuple(samples.pictures.shape[1:]) != tuple(encoder.shape):
        got = "rows" if samples.pictures is None else f"images of shape {samples.pictures.shape[1:]}"
        raise ValueError(f"`samples` must be images of the shape {encoder.shape} of the encoder, got {got}")
    record = RunRecord.read(folder)
    watch(f"encoding {len(samples):,} images")
    posteriors = image_posteriors(encoder, samples.pictures)
    known: Mapping[str, Any] = record.result.get("layers", {}) if own_data else {}
    if set(known) != set(STATES):
        use = state_use(encoder, ArraySource(samples.pictures, channels_first=False), len(samples))
        known = {name: {"information": layer.information} for name, layer in use.items()}
        n_informed = len(samples)
    else:
        n_informed = min(2048, int(record.result.get("images", 2048)))
    layers = []
    for name in STATES:
        watch(f"the map of {name}")
        places = posterior_places(posteriors[name], method)
        layers.append(Layer(name, posteriors[name], places, float(known[name]["information"]), n_informed))
    written = [str(text) for text in record.result.get("warnings", [])]
    watch("drawing")
    grids = [information_grid(layers)]
    probes = probe_grid(folder)
    against_classes = agreement(layers, samples)
    return Side(
        title=folder.resolve().name,
        subtitle=f"{encoder.size} encoder, {Path(samples.data).name}",
        samples=samples,
        layers=layers,
        facts=_facts(record, samples),
        settings=[(name, _value(value)) for name, value in record.config.items()],
        command=pretrain_command(record.config, record.data, str(folder)),
        command_note=_command_note(record),
        warnings=[*written, *layer_warnings(layers, "image")],
        notes=_notes(folder, record, samples, own_data),
        training=training_pictures(layers, record.metrics),
        labels=[
            *([picture] if (picture := crosstab_picture(layers[-1], samples)) else []),
            *probe_pictures(folder, samples.class_names),
        ],
        grids={"training": grids, "labels": [grid for grid in (against_classes, probes) if grid]},
        filters=filters_picture(encoder),
    )


def image_model_side(folder: Path, estimator: MIMEncoder, samples: Samples, **options: Any) -> Side:
    """Describe a saved estimator of images; options as in :func:`encoder_side`."""
    side = encoder_side(folder, estimator.module_, samples, own_data=False, **options)
    return replace(
        side,
        facts=[("data", samples.data), ("method", "MIMEncoder"), ("epochs", f"{estimator.n_iter_:,}")],
        settings=[(name, str(value)) for name, value in estimator.get_params().items()],
        command=repr(estimator),
        command_note="This is Python. A model does not keep its images, and does not record time and memory.",
        training=[*side.training, *loss_pictures(estimator)],
    )


@torch.no_grad()
def image_posteriors(encoder: ImageEncoder, pictures: NDArray[np.uint8]) -> dict[str, NDArray[np.float32]]:
    """p(z|x) of each layer, averaged over positions: name -> (n, n_states)."""
    states = HiddenStates(encoder.network, STATES, scales=(1,))
    encoder.eval()
    device = next(states.parameters()).device
    found: dict[str, list[NDArray[np.float32]]] = {name: [] for name in STATES}
    for part in np.array_split(pictures, math.ceil(len(pictures) / BATCH)):
        for name, logits in states(encoder.prepare(part).to(device)).items():
            found[name].append(posterior(logits).mean(dim=(2, 3)).cpu().numpy())
    return {name: np.concatenate(parts) for name, parts in found.items()}


def filters_picture(encoder: ImageEncoder) -> Picture:
    """Filters of the first layer."""
    display = FiltersDisplay(encoder.network.state_dict()["conv1.weight"].cpu().numpy())
    caption = f"{display.caption[0].upper()}{display.caption[1:]}."
    return pixels("Filters of the first layer", caption, display.wall(clear=True))


def _facts(record: RunRecord, samples: Samples) -> list[tuple[str, str]]:
    result, config = record.result, record.config
    versions = result.get("versions", {})
    facts = {
        "data": samples.data,
        "method": config.get("method"),
        "objective": config.get("objective"),
        "images": _number(result.get("images")),
        "epochs": _number(config.get("epochs")),
        "updates": _number(result.get("steps")),
        "ended": result.get("stop_reason") or result.get("ended"),
        "time": _duration(result.get("seconds")),
        "speed": f"{result['images_per_second']:,.0f} images/s" if "images_per_second" in result else None,
        "peak memory": f"{result['peak_memory_mb']:,} MB" if "peak_memory_mb" in result else None,
        "processes": _number(result.get("processes")),
        "versions": ", ".join(f"{name} {version}" for name, version in versions.items()) or None,
    }
    return [(name, str(value)) for name, value in facts.items() if value is not None]


def _command_note(record: RunRecord) -> str:
    if not record.config:
        return "The folder contains only an encoder, and no record of its training."
    if record.config.get("method") != "mim":
        return f"Trained by the method {record.config.get('method')!r}, which no single command runs."
    if record.data is None:
        return "The folder does not say which images were used; name them in place of DATA."
    return "A finished run is not changed. To run it again, choose another folder with --out."


def _notes(folder: Path, record: RunRecord, samples: Samples, own_data: bool) -> list[str]:
    notes = []
    if not own_data and record.config:
        notes.append(f"The encoder may have been trained on other images than the ones on this page, {samples.data}.")
    if record.result.get("ended") == "early stop":
        notes.append("The run stopped early, because the loss no longer improved.")
    if (folder / "skipped.txt").is_file():
        lines = (folder / "skipped.txt").read_text(encoding="utf-8", errors="replace").splitlines()
        notes.append(
            f"Files that could not be read and were skipped: {len(lines):,}, listed in skipped.txt of the run."
        )
    return notes


def _is_layer(value: Any) -> bool:
    return isinstance(value, Mapping) and is_number(value.get("information"))


def _number(value: Any) -> str | None:
    return f"{value:,}" if isinstance(value, int) else None


def _duration(seconds: Any) -> str | None:
    """Format seconds for people.

    Examples
    --------
    >>> _duration(42.3), _duration(3660)
    ('42 s', '1 h 01 min')
    """
    if not isinstance(seconds, int | float):
        return None
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


def _value(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
