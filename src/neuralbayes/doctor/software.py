"""What is installed: required packages, and those of the extras."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version

REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)(?P<wanted>>=(?P<least>[\d.]+))?")


@dataclass(frozen=True)
class Extra:
    """What an extra is for, and its packages: the name of each module with that of its distribution."""

    purpose: str
    modules: Mapping[str, str]


EXTRAS = {
    "table": Extra("tables with column names, .parquet files", {"pandas": "pandas", "pyarrow": "pyarrow"}),
    "report": Extra("pictures and pages", {"matplotlib": "matplotlib", "jinja2": "Jinja2"}),
    "sweep": Extra("neuralbayes sweep", {"optuna": "optuna"}),
    "cluster": Extra(
        "--workers and --scheduler of neuralbayes embed and label",
        {"dask": "dask", "distributed": "distributed", "cryptography": "cryptography"},
    ),
    "export": Extra(
        "neuralbayes export --to onnx",
        {"onnx": "onnx", "onnxscript": "onnxscript", "onnxruntime": "onnxruntime"},
    ),
    "track": Extra("curves for TensorBoard", {"tensorboard": "tensorboard"}),
    "yaml": Extra("config files in YAML", {"yaml": "PyYAML"}),
}


@dataclass(frozen=True)
class Package:
    """A package that the library needs: which version is there, if any, and which is wanted."""

    name: str
    version: str | None
    wanted: str
    fits: bool


@dataclass(frozen=True)
class InstalledExtra:
    """An extra with the versions of its packages, None for one that is missing."""

    name: str
    purpose: str
    versions: Mapping[str, str | None]

    @property
    def complete(self) -> bool:
        """Whether all of it is there."""
        return None not in self.versions.values()


def required_packages() -> list[Package]:
    """The packages that the library cannot do without, as its installation names them."""
    found = []
    for line in requires("neuralbayes") or []:
        match = REQUIREMENT.fullmatch(line)
        if match is None:  # a marker follows: it belongs to an extra
            continue
        name, wanted, least = match["name"], match["wanted"] or "", match["least"] or "0"
        there = installed_version(name)
        found.append(Package(name, there, wanted, there is not None and _numbers(there) >= _numbers(least)))
    return found


def _numbers(text: str) -> tuple[int, ...]:
    """The numbers of a version, for comparing.

    Examples
    --------
    >>> _numbers("2.13.0+cpu") > _numbers("2.6")
    True
    """
    return tuple(map(int, re.findall(r"\d+", text.partition("+")[0])))


def installed_extras() -> list[InstalledExtra]:
    """Each extra, and what there is of it."""
    return [
        InstalledExtra(name, extra.purpose, {package: installed_version(package) for package in extra.modules.values()})
        for name, extra in EXTRAS.items()
    ]


def installed_version(package: str) -> str | None:
    """The version of a package, None where it is not installed.

    Examples
    --------
    >>> installed_version("no-such-package") is None
    True
    """
    try:
        return version(package)
    except PackageNotFoundError:
        return None
