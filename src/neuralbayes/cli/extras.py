"""Required packages and extras, from the metadata of the installation."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, requires, version

from packaging.requirements import Requirement


def required() -> list[Requirement]:
    """The required packages."""
    return [requirement for requirement in _requirements() if requirement.marker is None]


def extras() -> dict[str, list[Requirement]]:
    """The extras for users with their packages: the parts of "all", without those for developers.

    Examples
    --------
    >>> sorted(requirement.name for requirement in extras()["export"])
    ['onnx', 'onnxruntime', 'onnxscript']
    """
    members: dict[str, list[Requirement]] = {}
    for requirement in _requirements():
        if requirement.marker is not None:
            _, _, name = str(requirement.marker).rpartition(" ")  # extra == "export"
            members.setdefault(name.strip("\"'"), []).append(requirement)
    everything = {requirement.name for requirement in members.pop("all", [])}
    return {name: found for name, found in members.items() if {one.name for one in found} <= everything}


def installed_version(package: str) -> str | None:
    """The version of a package; None if it is not installed.

    Examples
    --------
    >>> installed_version("no-such-package") is None
    True
    """
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _requirements() -> list[Requirement]:
    return [Requirement(line) for line in requires("neuralbayes") or []]
