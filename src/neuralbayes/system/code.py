"""Import code named on the command line: ``file.py:name`` or ``package.module:name``."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any


def named_object(reference: str, what: str) -> Any:
    """Import an object by reference. This runs the code of the file or module.

    Parameters
    ----------
    reference : str
        ``path/to/file.py:name`` or ``package.module:name``.
    what : str
        Name of the parameter, for messages.

    Examples
    --------
    >>> named_object("math:tau", "number") > 6
    True
    """
    place, _, name = reference.rpartition(":")
    if not place or not name.isidentifier():
        raise ValueError(f"`{what}` must be written as file.py:name or package.module:name, got {reference!r}")
    module = _module(place, what)
    if not hasattr(module, name):
        raise ValueError(f"`{what}` must be defined in {place}, got {reference!r}")
    return getattr(module, name)


def _module(place: str, what: str) -> ModuleType:
    path = Path(place)
    if path.suffix != ".py":
        try:
            return import_module(place)
        except ModuleNotFoundError as error:
            raise ValueError(f"`{what}` must be in a file.py or an installed module: {error}") from error
    if not path.is_file():
        raise FileNotFoundError(f"`{what}` must be in a file that exists, got {place!r}")
    spec = spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ValueError(f"`{what}` must be in a file that Python can import, got {place!r}")
    module = module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)  # dataclasses look up their module there
    spec.loader.exec_module(module)
    return module
