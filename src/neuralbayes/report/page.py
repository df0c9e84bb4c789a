"""The page of a clustering: one file that works offline and allows nothing but itself."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from neuralbayes.report.cards import MANY, Card, make_cards, plain_cards, said
from neuralbayes.report.charts import hierarchy_chart
from neuralbayes.report.map import Places, place
from neuralbayes.report.members import Clustering, Members
from neuralbayes.report.template import asset, packed, policy, render, safe_json
from neuralbayes.system.files import atomic_write

SHEET_BYTES = 2_000_000  # of the thumbnails on the map, at most, which keeps the page below 5 MB
PACKAGES = ("neuralbayes", "torch", "scikit-learn", "numpy")


def write_page(result: Clustering, path: str | Path, *, others: Mapping[int, Clustering] | None = None) -> Path:
    """Write the page of a clustering, which can show the same data at `others`, by their numbers of clusters."""
    members = Members(result)
    cards = make_cards(result, members)
    coordinates, known = result.coordinates()
    places = place(
        np.asarray(coordinates, np.float64),
        np.asarray(known, np.int64),
        len(result.labels),
        members.noun,
        [one.row for card in cards for one in card.typical],
        straight=result.verdict == "none",  # t-SNE shows clumps even where there is nothing
    )
    sheet = members.sheet(places.rows.tolist(), SHEET_BYTES)
    k = len(result.clusters)
    others = {n: other for n, other in (others or {}).items() if n != k}
    divisions = [_division(result, cards, places)]
    tables = []
    for n, other in sorted(others.items()):
        listed = plain_cards(other)
        tables.append({"k": n, "cards": listed, "sentence": other.sentence, "place": len(divisions)})
        divisions.append(_division(other, listed, places))
    certainty = np.asarray(result.proba)[places.rows].max(axis=1, initial=0.0)
    payload = {
        "noun": members.noun,
        "rows": packed(places.rows, "<u4"),
        "nAll": len(result.labels),
        "points": packed(_scaled(places), "<u2"),
        "axes": list(places.axes),
        "names": [members.name(row) for row in places.rows.tolist()],
        "texts": None if members.texts is None else [members.text(row) for row in places.rows.tolist()],
        "columns": [{"name": name, "cells": members.cells(places.rows, name)} for name in members.columns],
        "proba": packed(np.round(255 * np.nan_to_num(certainty)), "u1"),
        "sheet": sheet and {name: value for name, value in vars(sheet).items() if name != "address"},
        "divisions": divisions,
    }
    return write_html(
        path,
        "page.html",
        payload,
        cards=cards,
        many=len(cards) > MANY,
        tables=tables,
        picks=_picks(result, others),
        hierarchy=hierarchy_chart(result),
        caption=places.caption,
        sheet=sheet,
        tiny=members.tiny,
        n_all=len(result.labels),
        n_drawn=len(places.rows),
        columns=result.points.columns or [],
        notes=list(result.notes),
        made=_made(result),
        **said(result),
    )


def write_html(path: str | Path, template: str, payload: Any = None, **values: Any) -> Path:
    """Fill a template with style, scripts and the policy that allows these alone, and write the file."""
    from markupsafe import Markup

    style, theme = asset("cards.css") + asset("page.css"), asset("theme.js")
    script = "(() => {\n'use strict';\n" + asset("map.js") + asset("page.js") + "})();\n" if payload else ""
    scripts = [theme, script] if script else [theme]
    text = render(
        template,
        style=Markup(style),
        theme=Markup(theme),
        script=Markup(script),
        payload=Markup(safe_json(payload) if payload else ""),
        policy=policy(scripts, [style]),
        version=version("neuralbayes"),
        day=time.strftime("%d %B %Y").lstrip("0"),
        **values,
    )
    with atomic_write(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return Path(path)


def _division(result: Clustering, cards: Sequence[Card], places: Places) -> dict[str, Any]:
    """The clusters of the drawn members, for the script."""
    return {
        "k": len(result.clusters),
        "names": [card.name for card in cards if card.number >= 0],
        "labels": packed(np.asarray(result.labels)[places.rows], "<i2"),
    }


def _picks(result: Clustering, others: Mapping[int, Clustering]) -> list[dict[str, Any]]:
    """The chart of stability by the number of clusters, each with its place among the divisions, if it has one."""
    found = getattr(result.model, "selection_", None) or {}
    chosen_from = zip(found.get("n_clusters", ()), found.get("agreement", ()), strict=False)
    stability: dict[int, float | None] = {int(k): value for k, value in chosen_from}
    stability |= {k: other.stability for k, other in others.items()} | {len(result.clusters): result.stability}
    places = {len(result.clusters): 0} | {k: 1 + i for i, k in enumerate(sorted(others))}
    picks = []
    for k, value in sorted(stability.items()):
        measured = k > 1 and value is not None and math.isfinite(value)
        if k > 1 or others:
            picks.append({"k": k, "stability": value if measured else None, "place": places.get(k)})
    return picks if len(stability) > 1 else []


def _made(result: Clustering) -> list[tuple[str, str]]:
    """How the clusters were made: the recipe of the data, the parameters of the model, versions."""
    model = result.model
    facts = [("data", result.points.title), ("features", result.points.features_from or "")]
    facts += [(f"read: {name}", _value(value)) for name, value in result.points.recipe.items()]
    facts += [("model", type(model).__name__)]
    parameters = model.get_params(deep=False) if hasattr(model, "get_params") else {}
    facts += [(name, _value(value)) for name, value in parameters.items()]
    facts += [("versions", ", ".join(f"{name} {version(name)}" for name in PACKAGES))]
    return [(name, value) for name, value in facts if value not in ("", "None")]


def _value(value: Any) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return text if len(text) <= 400 else f"{text[:399]}…"


def _scaled(places: Places) -> Any:
    """Points as 16-bit integers; both axes have the same unit."""
    points = places.points
    if not len(points):
        return np.zeros((0, 2))
    low, spread = points.min(axis=0), np.ptp(points, axis=0)
    unit = float(spread.max()) or 1.0
    return np.round(65535.0 * ((points - low + (unit - spread) / 2.0) / unit)).clip(0, 65535)
