"""Data for the script of the page: arrays as base64, in JSON that is safe inside a script element."""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neuralbayes.explain.prototypes import rank_members
from neuralbayes.plot.crosstab import crosstab
from neuralbayes.plot.members import borderline, posterior_entropy, telling_states, typical
from neuralbayes.report.explorer.described import Described
from neuralbayes.report.explorer.figures import Sheet
from neuralbayes.report.explorer.gallery import Gallery, shortened
from neuralbayes.report.explorer.samples import Samples, standardized, telling_columns
from neuralbayes.report.explorer.side import Layer

TOP = 8
"""Number of most probable states stored per sample."""

MEMBERS = 12
"""Number of typical and of borderline samples stored per state."""

CLASSES = 3
"""Number of classes stored per state."""

FEW_STATES = 7
"""Up to this many states have their own colours; with more, the page opens with the most informative one."""

WHOLE = 65535  # represents 1 in 16-bit integers
NONE = 65535  # represents a missing sample


def safe_json(value: Any) -> str:
    """JSON for a script element: it cannot end the element, open a comment or contain a JavaScript line terminator.

    Examples
    --------
    >>> safe_json({"name": "</script><!--"})
    '{"name":"\\\\u003c/script\\\\u003e\\\\u003c!--"}'
    """
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))  # escapes all beyond ASCII, including U+2028
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def samples_payload(samples: Samples, shown: NDArray[np.intp], sheet: Sheet | None) -> dict[str, Any]:
    """The samples, with the values of the columns `shown`."""
    payload: dict[str, Any] = {
        "noun": samples.noun,
        "nAll": samples.n_all,
        "index": _packed(samples.index, "<u4"),
        "names": samples.names,
        "classes": None if samples.classes is None else _packed(samples.classes, "<u2"),
        "classNames": list(samples.class_names),
        "texts": None if samples.texts is None else [shortened(text) for text in samples.texts],
        "textColumn": samples.columns[0] if samples.texts is not None else None,
        "sheet": None,
        "columns": [],
    }
    if sheet is not None:
        payload["sheet"] = {
            "columns": sheet.columns,
            "cell": sheet.cell,
            "width": sheet.width,
            "height": sheet.height,
        }
    if samples.values is not None:
        values = samples.values[:, shown]
        payload["values"] = _packed(values, "<f4")
        payload["columns"] = [
            {"name": samples.columns[j], "mean": float(values[:, i].mean()), "std": float(values[:, i].std())}
            for i, j in enumerate(shown.tolist())
        ]
    return payload


def layer_payload(layer: Layer, samples: Samples, shown: NDArray[np.intp]) -> dict[str, Any]:
    """A layer: p(z), the most probable states of each sample, the members of each state, the map."""
    p_zx = layer.p_zx
    k = layer.n_states
    top = np.argsort(-p_zx, axis=1, kind="stable")[:, :TOP]
    best = typical(p_zx, MEMBERS) if layer.points is None else _midmost(layer)
    unsure = np.full((k, MEMBERS), NONE)
    for state, found in enumerate(borderline(p_zx, MEMBERS)):
        unsure[state, : len(found)] = found
    low, high = layer.places.points.min(axis=0), layer.places.points.max(axis=0)
    extent = np.where(high > low, high - low, 1.0)
    payload: dict[str, Any] = {
        "name": layer.name,
        "thing": layer.thing,
        "nStates": k,
        "bound": layer.bound,
        "information": layer.information,
        "first": 0 if k <= FEW_STATES else int(telling_states(p_zx)[0]),
        "prior": _packed(layer.p_z, "<f4"),
        "dead": np.flatnonzero(layer.dead).tolist(),
        "nTop": top.shape[1],
        "top": _packed(top, "<u2"),
        "topP": _packed(np.round(WHOLE * np.take_along_axis(p_zx, top, axis=1)), "<u2"),
        "entropy": _packed(np.round(WHOLE * posterior_entropy(p_zx) / max(layer.bound, 1e-12)).clip(0, WHOLE), "<u2"),
        "nTypical": best.shape[1],
        "typical": _packed(best, "<u2"),
        "typicalP": _packed(np.round(WHOLE * np.take_along_axis(p_zx.T, best % len(p_zx), axis=1)), "<u2"),
        "midmost": layer.points is not None,
        "nBorderline": MEMBERS,
        "borderline": _packed(unsure, "<u2"),
        "places": _packed(np.round(WHOLE * (layer.places.points - low) / extent), "<u2"),
        "extent": [float(low[0]), float(low[0] + extent[0]), float(low[1]), float(low[1] + extent[1])],
        "mapped": _packed(layer.places.mapped, "u1"),
        "axes": list(layer.places.axis_names),
        "caption": layer.places.caption,
        "separation": None if layer.separation is None else [_finite(value) for value in layer.separation],
        "disjoint": None if layer.disjoint is None else [bool(value) for value in layer.disjoint],
        "classes": None,
        "profile": None,
    }
    if samples.classes is not None:
        counts = crosstab(layer.claimed, samples.classes, k, len(samples.class_names))
        common = np.argsort(-counts, axis=1, kind="stable")[:, :CLASSES]
        shares = np.take_along_axis(counts, common, axis=1) / np.maximum(counts.sum(axis=1, keepdims=True), 1)
        payload["nClasses"] = common.shape[1]
        payload["classes"] = _packed(common, "<u2")
        payload["classShares"] = _packed(np.round(WHOLE * shares), "<u2")
    if samples.values is not None:
        scaled = standardized(samples.values[:, shown])
        profile = np.zeros((k, len(shown)))
        for state in np.unique(layer.claimed):
            profile[state] = scaled[layer.claimed == state].mean(axis=0)
        payload["profile"] = _packed(profile, "<f4")
    return payload


def described_payload(found: Described) -> dict[str, Any]:
    """The rows of a table with the reasons for their labels; cells are text, one per line."""
    return {
        "clusters": found.names,
        "names": found.row_names,
        "columns": [
            {"name": column.name, "cells": "\n".join(" ".join(text.split()) for text in cells)}
            for column, cells in found.cells
        ],
        "runnerUp": _packed(found.runner_up, "<u2"),
        "reasons": _packed(found.reasons, "<i2"),
    }


def gallery_payload(found: Gallery) -> dict[str, Any]:
    """The names of the clusters, and the second most probable cluster of each sample."""
    return {"clusters": found.names, "runnerUp": _packed(found.runner_up, "<u2")}


def columns_shown(samples: Samples, layer: Layer) -> NDArray[np.intp]:
    """The columns of a table in which the states of `layer` differ most."""
    if samples.values is None:
        return np.arange(0)
    return telling_columns(samples.values, layer.claimed)


def _midmost(layer: Layer) -> NDArray[np.intp]:
    """The members in the middle of each state, most typical first: (n_states, MEMBERS), padded with NONE."""
    found = np.full((layer.n_states, MEMBERS), NONE, np.intp)
    if layer.points is not None:
        for state, members in enumerate(rank_members(layer.points, layer.claimed, layer.n_states)):
            found[state, : min(MEMBERS, len(members))] = members[:MEMBERS]
    return found


def _packed(array: NDArray[Any], dtype: str) -> str:
    return base64.b64encode(np.ascontiguousarray(array, dtype=dtype).tobytes()).decode("ascii")


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
