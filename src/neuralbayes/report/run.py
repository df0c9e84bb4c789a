"""The page of a pretraining: how it went, and what the states of each layer stand for."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from neuralbayes.bayes import posterior
from neuralbayes.data.images import as_source
from neuralbayes.features.encoder import STATES, ImageEncoder, state_use
from neuralbayes.networks.hidden import HiddenStates
from neuralbayes.plot.images import tile_wall
from neuralbayes.report.charts import line_chart
from neuralbayes.report.members import data_url, shrunk, webp
from neuralbayes.report.page import write_html
from neuralbayes.report.template import percent
from neuralbayes.system.files import read_json
from neuralbayes.training.run_folder import read_metrics

MAX_IMAGES = 2_000  # maximum number of images, drawn at random, that states are shown on
N_STATES, N_IMAGES = 24, 6  # number of states of a layer that are shown, the most informative, and of images of each
SIDE, BLOCK, GAP = 48, 250, 2  # pixels of an image; images in a forward pass; pixels between pictures
RESULTS = ("images", "steps", "stop_reason", "seconds", "images_per_second", "peak_memory_mb")


def write_run_page(run: str | Path, images: Any, path: str | Path) -> Path:
    """Write the page of a finished `neuralbayes.pretrain` in the folder `run`; `images` of its size show the states."""
    folder, source = Path(run), as_source(images)
    encoder = ImageEncoder.load(folder)
    if tuple(source.shape) != tuple(encoder.shape):
        raise ValueError(f"`images` must have the shape {tuple(encoder.shape)} of the encoder, got {source.shape}")
    config, result = _object(folder / "config.json"), _object(folder / "result.json")
    metrics = read_metrics(folder / "metrics.jsonl")
    rows = np.sort(np.random.default_rng(0).permutation(len(source))[:MAX_IMAGES])
    typical = _typical(encoder, source.read(rows))
    use = state_use(encoder, source)
    steps = [line.get("step", i) for i, line in enumerate(metrics)]
    information = {
        name: (steps, [line[f"mi/{name}"] for line in metrics])
        for name in STATES
        if metrics and all(f"mi/{name}" in line for line in metrics)
    }
    loss = {"loss": (steps, [line["loss"] for line in metrics])} if all("loss" in line for line in metrics) else {}
    charts = [
        line_chart("Information by update, nats", information, {name: layer.bound for name, layer in use.items()}),
        line_chart("Loss by update", loss),
    ]
    last = use[STATES[-1]]
    share = percent(last.information / last.bound)
    dead = [
        f"{name}: {layer.n_dead:,} of {layer.n_states:,} states are hardly ever used."
        for name, layer in use.items()
        if layer.n_dead
    ]
    given = result.get("warnings")
    return write_html(
        path,
        "run.html",
        title=f"{folder.resolve().name}: features of {len(source):,} images",
        sentence=f"The last layer tells {last.information:.2f} nats about an image, {share} of the most that its "
        f"{last.n_states:,} states can tell.",
        layers=use,
        typical=typical,
        charts=charts,
        filters=_filters(encoder),
        notes=[*(map(str, given) if isinstance(given, list) else ()), *dead],
        facts=_facts(config, result),
        n_shown=len(rows),
        tiny=max(source.shape[:2]) < SIDE,
    )


@torch.no_grad()
def _typical(encoder: ImageEncoder, pictures: NDArray[np.uint8]) -> dict[str, list[tuple[int, float, str]]]:
    """The most informative states of each layer: number, p(z), and a strip of its most typical images."""
    states = HiddenStates(encoder.network, STATES, scales=(1,))
    encoder.eval()
    device = next(states.parameters()).device
    found: dict[str, list[NDArray[np.float32]]] = {name: [] for name in STATES}
    for part in np.array_split(pictures, math.ceil(len(pictures) / BLOCK)):
        for name, logits in states(encoder.prepare(part).to(device)).items():
            found[name].append(posterior(logits).mean(dim=(2, 3)).cpu().numpy())
    return {name: _shown(np.concatenate(parts), pictures) for name, parts in found.items()}


def _shown(p_zx: NDArray[np.float32], pictures: NDArray[np.uint8]) -> list[tuple[int, float, str]]:
    """The most informative states with the images for which p(x|z) / p(x) is largest."""
    p_z = np.maximum(p_zx.mean(axis=0), 1e-12)
    told = (p_zx * np.log(np.maximum(p_zx, 1e-12) / p_z)).mean(axis=0)  # sums to I(x; z)
    shown = []
    for state in np.argsort(-told, kind="stable")[:N_STATES].tolist():
        rows = np.argsort(-p_zx[:, state], kind="stable")[:N_IMAGES]
        edge = ((0, 0), (0, GAP), (0, 0))
        strip = np.concatenate([np.pad(shrunk(pictures[row], SIDE), edge, constant_values=128) for row in rows], axis=1)
        shown.append((state, float(p_z[state]), data_url(webp(strip, quality=75), "image/webp")))
    return shown


def _filters(encoder: ImageEncoder) -> str:
    """The filters of the first layer in one picture, each scaled to its own range."""
    filters = encoder.network.state_dict()["conv1.weight"].cpu().numpy().transpose(0, 2, 3, 1)  # (n, h, w, c)
    if filters.shape[3] != 3:
        filters = filters.mean(axis=3, keepdims=True).repeat(3, axis=3)
    low = filters.min(axis=(1, 2, 3), keepdims=True)
    spread = np.maximum(filters.max(axis=(1, 2, 3), keepdims=True) - low, 1e-12)
    small = (255.0 * (filters - low) / spread).round().astype(np.uint8)
    columns = min(8 if len(small) <= 32 else 16, len(small))
    return data_url(webp(tile_wall(small, columns, 128, GAP), lossless=True), "image/webp")


def _facts(config: Mapping[str, Any], result: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Settings, and the results that people ask for first."""
    versions = result.get("versions")
    known = {name: result[name] for name in RESULTS if result.get(name) is not None} | dict(config)
    if isinstance(versions, Mapping):
        known["versions"] = ", ".join(f"{name} {version}" for name, version in versions.items())
    return [(name.replace("_", " "), str(value)) for name, value in known.items() if value is not None]


def _object(path: Path) -> Mapping[str, Any]:
    """A JSON object; empty if there is no file."""
    found = read_json(path) if path.is_file() else {}
    if not isinstance(found, Mapping):
        raise ValueError(f"{path} must hold a JSON object, got {type(found).__name__}; it may be damaged")
    return found
