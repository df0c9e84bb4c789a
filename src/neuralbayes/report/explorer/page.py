"""The page: template, style and script in one self-contained file."""

from __future__ import annotations

import base64
import hashlib
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from neuralbayes.report.explorer.figures import Sheet, sheet
from neuralbayes.report.explorer.payload import (
    MEMBERS,
    TOP,
    columns_shown,
    described_payload,
    gallery_payload,
    layer_payload,
    safe_json,
    samples_payload,
)
from neuralbayes.report.explorer.samples import MAX_COLUMNS, Samples
from neuralbayes.report.explorer.sections import REPORT, Story
from neuralbayes.report.explorer.side import Side
from neuralbayes.system.files import atomic_write

ASSETS = Path(__file__).parent / "assets"
SCRIPTS = (
    "data.js",
    "elements.js",
    "zoom.js",
    "lasso.js",
    "map.js",
    "states.js",
    "members.js",
    "sample.js",
    "explorer.js",
    "rows.js",
    "gallery.js",
    "compare.js",
    "boot.js",
)
GENERATOR = b'name="generator" content="neuralbayes'
"""Identifies a page of this library, near its beginning."""

SHEET_BUDGET = 2_400_000
"""Maximum size of all thumbnails in bytes, which keeps the page below 5 MB."""


def write_page(sides: Sequence[Side], out: Path, story: Story = REPORT) -> Path:
    """Write a page with one side, or with two next to each other.

    Parameters
    ----------
    sides : sequence of one or two Side
        If both share the same `samples` object, the page shows the samples that the two assign differently.
    out : Path
        File to write.
    story : Story, optional
        Sections before and after the sides.
    """
    if len(sides) not in (1, 2):
        raise ValueError(f"`sides` must be one or two, got {len(sides)}")
    with atomic_write(out) as temporary:
        temporary.write_text(page_text(sides, story), encoding="utf-8", errors="backslashreplace")
    return out


def page_text(sides: Sequence[Side], story: Story = REPORT) -> str:
    """The HTML of the page."""
    groups = _sample_groups(sides)
    sheets = _sheets(groups)
    own = [next(i for i, group in enumerate(groups) if group is side.samples) for side in sides]
    shown = [columns_shown(group, sides[own.index(i)].layers[-1]) for i, group in enumerate(groups)]
    payload = {
        "samples": [
            samples_payload(group, columns, found) for group, columns, found in zip(groups, shown, sheets, strict=True)
        ],
        "sides": [
            {
                "title": side.title,
                "samples": i,
                "layers": [layer_payload(layer, side.samples, shown[i]) for layer in side.layers],
                "background": None if side.background is None else {"extent": side.background[1]},
                "described": None if side.described is None else described_payload(side.described),
                "gallery": None if side.gallery is None else gallery_payload(side.gallery),
            }
            for side, i in zip(sides, own, strict=True)
        ],
    }
    style, theme = _asset("page.css") + _asset("described.css") + _asset("gallery.css"), _asset("theme.js")
    script = "(() => {\n'use strict';\n" + "\n".join(_asset(name) for name in SCRIPTS) + "\n})();\n"
    template = _environment().get_template("page.html")
    return str(
        template.render(
            sides=sides,
            story=story,
            sheets=sheets,
            payload=_markup(safe_json(payload)),
            style=_markup(style),
            theme=_markup(theme),
            script=_markup(script),
            policy=policy(scripts=(theme, script), styles=(style,)),
            version=version("neuralbayes"),
            written=time.strftime("%Y-%m-%d %H:%M"),
            same_samples=len(sides) == 2 and len(groups) == 1,
            n_top=TOP,
            n_members=MEMBERS,
            max_columns=MAX_COLUMNS,
        )
    )


def policy(*, scripts: Sequence[str], styles: Sequence[str]) -> str:
    """A Content-Security-Policy that allows only these inline texts and embedded pictures."""
    return "; ".join(
        [
            "default-src 'none'",
            f"script-src {' '.join(map(_hash, scripts))}",
            f"style-src {' '.join(map(_hash, styles))}",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )


def is_page(path: Path) -> bool:
    """Whether this module wrote the file, which may then be overwritten."""
    with open(path, "rb") as file:
        return GENERATOR in file.read(4096)


def _sample_groups(sides: Sequence[Side]) -> list[Samples]:
    groups: list[Samples] = []
    for side in sides:
        if not any(group is side.samples for group in groups):
            groups.append(side.samples)
    return groups


def _sheets(groups: Sequence[Samples]) -> list[Sheet | None]:
    budget = SHEET_BUDGET // len(groups)
    return [None if group.pictures is None else sheet(group.pictures, budget) for group in groups]


def _environment() -> Any:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(ASSETS),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _markup(text: str) -> Any:
    from markupsafe import Markup

    return Markup(text)  # our own files and escaped JSON


def _asset(name: str) -> str:
    return (ASSETS / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}'"
