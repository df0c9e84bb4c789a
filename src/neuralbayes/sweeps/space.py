"""The search space of a sweep: ranges and choices of the settings of `pretrain`, such as "alpha=0:10"."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from types import UnionType
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin, get_type_hints

from neuralbayes.features.pretraining import PretrainConfig

if TYPE_CHECKING:
    from optuna import Trial

UNNAMED = ("seed", "noise_scale")
"""Settings without an option of `neuralbayes pretrain`, and the seed, which belongs to the sweep."""

SHORT = {"batch": "batch_size", "microbatch": "microbatch_size"}
"""Their names in `neuralbayes pretrain`."""

HINTS = {
    name: hint
    for name, hint in get_type_hints(PretrainConfig).items()
    if name in {field.name for field in fields(PretrainConfig)} - set(UNNAMED)
}

DIGITS = 4  # significant digits of drawn numbers: more are meaningless, and people may have to type them


@dataclass(frozen=True)
class Range:
    """Numbers from `low` to `high`, inclusive; uniform in the logarithm with `log`, only integers with `whole`."""

    low: float
    high: float
    log: bool = False
    whole: bool = False

    def suggest(self, name: str, trial: Trial) -> None:
        """Draw a value with the sampler of a trial."""
        if self.whole:
            trial.suggest_int(name, int(self.low), int(self.high), log=self.log)
        else:
            trial.suggest_float(name, self.low, self.high, log=self.log)

    def value(self, drawn: Any) -> float:
        """The setting that a draw stands for."""
        if self.whole:
            return int(drawn)
        return min(max(float(f"{drawn:.{DIGITS}g}"), self.low), self.high)


@dataclass(frozen=True)
class Choice:
    """A choice between values, by their text."""

    values: Mapping[str, Any]

    def suggest(self, name: str, trial: Trial) -> None:
        """Choose a value with the sampler of a trial."""
        trial.suggest_categorical(name, list(self.values))

    def value(self, drawn: Any) -> Any:
        """The setting that a draw stands for."""
        return self.values[drawn]


Space = dict[str, Range | Choice]


def parse(search: Sequence[str], settings: Sequence[str], config: PretrainConfig) -> tuple[Space, PretrainConfig]:
    """Parse the searched settings, and the common settings of all trials.

    Parameters
    ----------
    search : sequence of str
        Each is ``NAME=LOW:HIGH``, ``NAME=LOW:HIGH:log`` or ``NAME=A,B,...``. A tuple is written ``1+2``, None ``none``.
    settings : sequence of str
        Each is ``NAME=VALUE``.
    config : PretrainConfig
        Defaults of the other settings.

    Examples
    --------
    >>> space, config = parse(["learning-rate=1e-4:1e-1:log", "scales=1,1+2"], ["epochs=3"], PretrainConfig())
    >>> space["learning_rate"]
    Range(low=0.0001, high=0.1, log=True, whole=False)
    >>> space["scales"].values
    {'1': (1,), '1+2': (1, 2)}
    >>> config.epochs
    3
    """
    searched, fixed = _named(search, "search"), _named(settings, "set")
    if not searched:
        raise ValueError("`search` must name at least one setting, such as alpha=0:10")
    for name in searched.keys() & fixed.keys():
        raise ValueError(f"`search` and `set` must name different settings, got {name} in both")
    config = replace(config, **{name: _value(name, text) for name, text in fixed.items()})
    return {name: _searched(name, text, config) for name, text in searched.items()}, config


def _named(words: Sequence[str], what: str) -> dict[str, str]:
    """Texts by name of the setting."""
    texts: dict[str, str] = {}
    for word in words:
        name, equals, text = word.partition("=")
        name = name.strip().replace("-", "_")
        name = SHORT.get(name, name)
        if not equals or not text.strip():
            wanted = "NAME=VALUE" if what == "set" else "NAME=LOW:HIGH, NAME=LOW:HIGH:log or NAME=A,B"
            raise ValueError(f"`{what}` must be {wanted}, got {word!r}")
        if name not in HINTS:
            raise ValueError(f"`{what}` must name one of {', '.join(sorted(HINTS))}, got {name!r}")
        if name in texts:
            raise ValueError(f"`{what}` must name {name} once, got {word!r} too")
        texts[name] = text.strip()
    return texts


def _searched(name: str, text: str, config: PretrainConfig) -> Range | Choice:
    found = _range(name, text) if ":" in text else _choice(name, text)
    ends: Iterable[Any] = (found.low, found.high) if isinstance(found, Range) else found.values.values()
    for value in ends:
        replace(config, **{name: value})  # refuses invalid values
    return found


def _range(name: str, text: str) -> Range:
    parts = [part.strip() for part in text.split(":")]
    if HINTS[name] not in (int, float):
        raise ValueError(f"`{name}` must be searched by choices, such as {name}=A,B, got {text!r}")
    if len(parts) > 3 or parts[2:] not in ([], ["log"]):
        raise ValueError(f"a range must be LOW:HIGH or LOW:HIGH:log, got {name}={text}")
    low, high = (_value(name, part) for part in parts[:2])
    log = len(parts) == 3
    if not low < high or (log and low <= 0):
        wanted = "rise from above 0" if log else "rise"
        raise ValueError(f"a range must {wanted}, got {name}={text}")
    return Range(low, high, log, HINTS[name] is int)


def _choice(name: str, text: str) -> Choice:
    values = {part.strip(): _value(name, part.strip()) for part in text.split(",")}
    if len(values) < 2:
        raise ValueError(f"`search` must be a range or at least two choices, got {name}={text}; `set` fixes a setting")
    return Choice(values)


def _value(name: str, text: str) -> Any:
    """Convert the text of a setting to its type."""
    try:
        return _read(HINTS[name], text)
    except (ValueError, KeyError) as error:
        raise ValueError(f"`{name}` must be {_in_words(HINTS[name])}, got {text!r}") from error


def _read(hint: Any, text: str) -> Any:
    if get_origin(hint) is Literal:
        return {str(value): value for value in get_args(hint)}[text]
    if get_origin(hint) is UnionType:
        return None if text == "none" else _read(get_args(hint)[0], text)
    if get_origin(hint) is tuple:
        return tuple(int(part) for part in text.split("+"))
    if hint is bool:
        return {"true": True, "false": False}[text]
    value = hint(text)
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(text)
    return value


def _in_words(hint: Any) -> str:
    if get_origin(hint) is Literal:
        return f"one of {', '.join(map(str, get_args(hint)))}"
    if get_origin(hint) is UnionType:
        return f"{_in_words(get_args(hint)[0])} or none"
    if get_origin(hint) is tuple:
        return "whole numbers with + between them, such as 1+2"
    return {bool: "true or false", int: "a whole number", float: "a number"}.get(hint, "a name")
