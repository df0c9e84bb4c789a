"""Templates, and text that is safe on a page: names of files, columns and cells come from anybody."""

from __future__ import annotations

import base64
import hashlib
import json
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neuralbayes.explain.conditions import as_percent

ASSETS = Path(__file__).parent / "assets"
# Format characters of ordinary writing and of emoji; all others, such as those that change direction, are shown.
JOINERS = "\u200c\u200d\u00ad"


def visible(text: str) -> str:
    r"""Show characters that would be invisible or change the direction of text, and bytes that are not UTF-8.

    Examples
    --------
    >>> print(visible("evil\u202egpj.exe\x00"), visible("a\n b"))
    evil\u202egpj.exe\x00 a  b
    """
    return text if text.isascii() and text.isprintable() else "".join(map(_seen, text))


def _seen(letter: str) -> str:
    code, kind = ord(letter), unicodedata.category(letter)
    if letter in "\n\t\r":
        return " "
    if kind not in ("Cc", "Cf", "Cs", "Zl", "Zp") or letter in JOINERS:
        return letter
    if 0xDC80 <= code <= 0xDCFF:  # a byte of a file name that is not UTF-8
        return f"\\x{code - 0xDC00:02x}"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def packed(array: NDArray[Any], dtype: str) -> str:
    """An array in base64, with a fixed type."""
    return base64.b64encode(np.ascontiguousarray(array, dtype=dtype).tobytes()).decode("ascii")


def safe_json(value: Any) -> str:
    """JSON for a script element: it cannot end the element, open a comment or contain a JavaScript line terminator.

    Examples
    --------
    >>> safe_json({"name": "</script><!--"})
    '{"name":"\\\\u003c/script\\\\u003e\\\\u003c!--"}'
    """
    text = json.dumps(_all_visible(value), allow_nan=False, separators=(",", ":"))  # escapes all beyond ASCII
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _all_visible(value: Any) -> Any:
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, Mapping):
        return {name: _all_visible(one) for name, one in value.items()}
    return [_all_visible(one) for one in value] if isinstance(value, list | tuple) else value


def asset(name: str) -> str:
    """The text of an asset."""
    return (ASSETS / name).read_text(encoding="utf-8")


def render(name: str, **values: Any) -> str:
    """Fill a template; every text is escaped, and its invisible characters are shown."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    def shown(value: Any) -> Any:
        return visible(value) if type(value) is str else value

    environment = Environment(
        loader=FileSystemLoader(ASSETS),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=shown,
    )
    environment.filters["percent"] = percent
    return environment.get_template(name).render(values)


def percent(share: float | None) -> str:
    """A share as a percentage, a dash if it is unknown."""
    return "-" if share is None or share != share else as_percent(share)


def policy(scripts: Sequence[str], styles: Sequence[str]) -> str:
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


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}'"
