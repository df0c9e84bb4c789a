"""Find objectives by name, as on the command line, and describe them for the run folder."""

from __future__ import annotations

from torch import nn

from neuralbayes.objectives.base import Objective, WeightedSum


def named_objective(reference: str) -> Objective | WeightedSum:
    """Import an objective. This runs the code of the file or module.

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
    from neuralbayes.system.code import named_object  # only needed for names on the command line

    found = named_object(reference, "objective")
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
    """The class and plain attributes of an objective, as recorded in a run folder.

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


def _is_plain(value: object) -> bool:
    if isinstance(value, tuple | list):
        return all(map(_is_plain, value))
    return isinstance(value, bool | int | float | str | None)
