"""Types of options: descriptions for messages and example files, and checks of values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, Literal, ParamSpec, TypeVar, get_args, get_origin

from cyclopts import CycloptsError, Parameter

if TYPE_CHECKING:
    from cyclopts import App, Argument, ArgumentCollection

Flag = Annotated[bool, Parameter(negative="", show_default=False)]
"""A flag without a --no- form."""

Device = Annotated[str, Parameter(metavar="NAME")]
"""The option --device of a command under :func:`on_device`."""

P = ParamSpec("P")
R = TypeVar("R")

WORDS: dict[Any, str] = {str: "text", Path: "a path", int: "a whole number", float: "a number", bool: "true or false"}


def on_device(command: Callable[P, R]) -> Callable[P, R]:
    """Make everything in a command use the device of its option --device."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        from neuralbayes.system.devices import computing_on

        with computing_on(str(kwargs.get("device", "auto"))):
            return command(*args, **kwargs)

    return run


@dataclass(frozen=True)
class Kind:
    """The type of an option.

    Attributes
    ----------
    type : type
        str, Path, int, float or bool.
    choices : tuple
        Possible values; empty if any value is allowed.
    many : bool
        Whether it accepts several values.
    """

    type: Any
    choices: tuple[Any, ...] = ()
    many: bool = False

    @classmethod
    def of(cls, hint: Any) -> Kind:
        """From the annotation of a parameter.

        Examples
        --------
        >>> Kind.of(int | None).words()
        'a whole number'
        >>> Kind.of(Literal["train", "test"]).words()
        'one of train, test'
        """
        if get_origin(hint) is Literal:
            choices = get_args(hint)
            return cls(type(choices[0]), choices)
        if get_origin(hint) in (list, tuple):
            return cls(Kind.of(get_args(hint)[0]).type, many=True)
        members = [member for member in get_args(hint) if member is not NoneType]
        return cls.of(members[0]) if members else cls(hint)

    def words(self) -> str:
        """A description such as "a whole number"."""
        one = f"one of {', '.join(map(str, self.choices))}" if self.choices else WORDS[self.type]
        return f"a list, each {one}" if self.many else one


def key_of(argument: Argument) -> str:
    """The name of an argument in a config file: without leading dashes, with underscores."""
    return argument.name.lstrip("-").replace("-", "_").lower()


def check_numbers(app: App, commands: tuple[str, ...], arguments: ArgumentCollection) -> None:
    """Raise unless all given numbers are valid. Without this check, cyclopts would round 2.5 to an integer."""
    for argument in arguments:
        kind = Kind.of(argument.hint)
        if kind.type not in (int, float) or kind.choices:
            continue
        for token in argument.tokens:
            try:
                kind.type(token.value)
            except ValueError as error:
                name = argument.name if token.source == "cli" else f"{token.keyword} in {token.source}"
                raise CycloptsError(msg=f"{name} must be {kind.words()}, got {token.value!r}") from error
