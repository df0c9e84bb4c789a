"""The command that repeats a run or a fit, from its recorded settings."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from neuralbayes.features.pretraining import PRESETS

OPTIONS = {"batch_size": "batch", "microbatch_size": "microbatch"}
"""Options whose names differ from the settings."""

NO_OPTION = ("noise_scale",)
LABEL_OPTIONS = {"n_neighbors": "--neighbors", "random_state": "--seed"}
LABEL_DEFAULTS = {"n_neighbors": 15, "random_state": 0}


def pretrain_command(config: Mapping[str, Any], choice: Mapping[str, Any] | None, out: str) -> str:
    """The command that trains an encoder with the settings of a config.json on the images of a data.json.

    Parameters
    ----------
    config : mapping
    choice : mapping, optional
        With "data", "split", "limit", "size" and "channels". Without it, the command contains the placeholder DATA.
    out : str
        Folder of the run.

    Returns
    -------
    str
        Empty if there is no such command: another method, or a setting without an option.

    Examples
    --------
    >>> config = {"method": "mim"} | asdict(PRESETS["laptop"]) | {"epochs": 2}
    >>> choice = {"data": "mnist", "split": "train", "limit": 5000, "size": None, "channels": None}
    >>> pretrain_command(config, choice, "run")
    'neuralbayes pretrain mnist --epochs 2 --limit 5000 --out run'
    """
    if config.get("method") != "mim":
        return ""
    full = {"precision": "32-true"}
    presets = {name: _plain(asdict(preset)) | full for name, preset in PRESETS.items()}
    given = full | _plain({name: value for name, value in config.items() if name != "method"})
    if any(set(given) != set(preset) for preset in presets.values()):
        return ""  # written by another version
    changes = {name: [k for k in given if given[k] != preset[k]] for name, preset in presets.items()}
    name = min(("laptop", "paper"), key=lambda name: len(changes[name]))
    if set(changes[name]) & set(NO_OPTION):
        return ""
    chosen = choice or {"data": "DATA"}
    words = ["neuralbayes", "pretrain", str(chosen["data"])]
    words += [] if name == "laptop" else ["--preset", name]
    for setting in changes[name]:
        words += _option(OPTIONS.get(setting, setting), given[setting])
    words += [] if chosen.get("split") in (None, "train") else ["--split", str(chosen["split"])]
    for setting in ("limit", "size", "channels"):
        words += _option(setting, chosen.get(setting))
    return shlex.join([*words, "--out", out])


def label_command(
    params: Mapping[str, Any], defaults: Mapping[str, Any], data: str, model: str, options: Sequence[str] = ()
) -> str:
    """The command that fits a clusterer with `params` to a table; empty if a parameter has no option.

    `options` select the part of the table to use.

    Examples
    --------
    >>> label_command({"n_clusters": 3, "random_state": 0}, {"n_clusters": 2, "random_state": None}, "a b.csv", "model")
    "neuralbayes label 'a b.csv' --clusters 3 --save model"
    """
    words = ["neuralbayes", "label", data, *options, "--clusters", str(params["n_clusters"])]
    for name, value in params.items():
        if name in LABEL_OPTIONS:
            if not isinstance(value, int):
                return ""
            words += [] if value == LABEL_DEFAULTS[name] else [LABEL_OPTIONS[name], str(value)]
        elif name == "standardize":
            words += ["--standardize"] if value else []
        elif name not in ("n_clusters", "vectorizer", "verbose") and value != defaults[name]:
            return ""
    return shlex.join([*words, "--save", model])


def _option(name: str, value: Any) -> list[str]:
    option = f"--{name.replace('_', '-')}"
    if value is None:
        return []
    if isinstance(value, bool):
        return [option if value else f"--no-{name.replace('_', '-')}"]
    return [option, ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)]


def _plain(settings: dict[str, Any]) -> dict[str, Any]:
    """As JSON gives them back."""
    return {name: list(value) if isinstance(value, tuple) else value for name, value in settings.items()}
