"""Objectives in words: found by a name on the command line, recorded in the folder of a run."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from torch import nn

from neuralbayes.objectives.base import Objective
from neuralbayes.objectives.weighted import WeightedSum


def named_objective(reference: str) -> Objective | WeightedSum:
    """Import the objective that `reference` names. This runs the code of the file or module.

    Parameters
    ----------
    reference : str
        ``path/to/file.py:Name`` or ``package.module:Name``; a class that takes no arguments, or an instance.

    Returns
    -------
    Objective or WeightedSum

    Examples
    --------
    >>> named_objective("neuralbayes.objectives:MIM").alpha
    2.0
    """
    place, _, name = reference.rpartition(":")
    if not place or not name.isidentifier():
        raise ValueError(f"`objective` must be written as file.py:Name or package.module:Name, got {reference!r}")
    module = _module(place)
    if not hasattr(module, name):
        raise ValueError(f"`objective` must name what {place} defines, got {reference!r}")
    found = getattr(module, name)
    if isinstance(found, type):
        try:
            found = found()
        except TypeError as error:
            raise ValueError(
                f"`objective` must be a class that takes no arguments, or an instance, got {reference!r}: {error}"
            ) from error
    if not isinstance(found, Objective | WeightedSum):
        raise ValueError(f"`objective` must be a neuralbayes.Objective, got {reference!r}, a {type(found).__name__}")
    return found


def described(module: nn.Module) -> str:
    """The class of an objective with its plain attributes: what a run folder records of it.

    Examples
    --------
    >>> from neuralbayes.objectives import MIM
    >>> described(MIM(alpha=4.0))
    'neuralbayes.objectives.mim.MIM(alpha=4.0, version=2)'
    """
    values = {name: value for name, value in vars(module).items() if name != "training" and not name.startswith("_")}
    plain = [f"{name}={value!r}" for name, value in values.items() if _is_plain(value)]
    parts = [described(part) for part in module.modules() if isinstance(part, Objective) and part is not module]
    return f"{type(module).__module__}.{type(module).__qualname__}({', '.join([*parts, *plain])})"


def _module(place: str) -> ModuleType:
    path = Path(place)
    if path.suffix != ".py":
        try:
            return import_module(place)
        except ModuleNotFoundError as error:
            raise ValueError(f"`objective` must be in a file.py or an installed module: {error}") from error
    if not path.is_file():
        raise FileNotFoundError(f"`objective` must be in a file that exists, got {place!r}")
    spec = spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ValueError(f"`objective` must be in a file that Python can import, got {place!r}")
    module = module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)  # where dataclasses and the like look their own module up
    spec.loader.exec_module(module)
    return module


def _is_plain(value: object) -> bool:
    if isinstance(value, tuple | list):
        return all(map(_is_plain, value))
    return isinstance(value, bool | int | float | str | None)
