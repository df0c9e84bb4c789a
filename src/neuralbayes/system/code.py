"""Import code named by the user: ``file.py:name`` or ``package.module:name``."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any


def named_object(reference: str, what: str) -> Any:
    """Import an object by reference. This runs the code of the file or module; no bytecode is written beside the file.

    `what` is the name of the parameter, for messages.

    Examples
    --------
    >>> named_object("math:tau", "number") > 6
    True
    """
    place, _, name = reference.rpartition(":")
    if not place or not name.isidentifier():
        raise ValueError(f"`{what}` must be written as file.py:name or package.module:name, got {reference!r}")
    path = Path(place)
    if path.suffix != ".py":
        try:
            module = import_module(place)
        except ModuleNotFoundError as error:
            raise ValueError(f"`{what}` must be in a file.py or an installed module: {error}") from error
    elif not path.is_file():
        raise FileNotFoundError(f"`{what}` must be in a file that exists, got {place!r}")
    else:
        module = ModuleType(path.stem)
        module.__file__ = str(path)
        sys.modules.setdefault(path.stem, module)  # dataclasses look up their module there
        # Python's own loader trusts bytecode beside the file, which somebody else may have put there.
        exec(compile(path.read_bytes(), str(path), "exec"), module.__dict__)
    if not hasattr(module, name):
        raise ValueError(f"`{what}` must be defined in {place}, got {reference!r}")
    return getattr(module, name)
