"""``neuralbayes --version``: what a bug report needs. It imports torch alone, and nothing that is missing stops it."""

from __future__ import annotations

import platform
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, requires

from packaging.requirements import Requirement

from neuralbayes.cli.extras import installed_version

FOR_DEVELOPERS = {"all", "test", "docs", "bench", "browser", "fuzz", "mutants"}


def version_report() -> str:
    """Versions, platform, device, threads and the extras that can be used, one to a line.

    Examples
    --------
    >>> version_report().splitlines()[0]
    'neuralbayes ...'
    """
    packages = {"": [], **_packages()}
    lines = {"neuralbayes": installed_version("neuralbayes") or "not installed", "python": platform.python_version()}
    lines |= {requirement.name: _state(requirement) for requirement in packages.pop("")}
    lines["platform"] = f"{platform.system()} {platform.release()} {platform.machine()}"
    lines |= {"device": _found(_device), "threads": _found(_threads)}
    for extra, requirements in packages.items():
        states = [f"{requirement.name} {_state(requirement)}" for requirement in requirements]
        works = not any("missing" in state or "needs" in state for state in states)
        lines[f"extra {extra}:"] = f"{'works' if works else 'not usable'} ({', '.join(states)})"
    return "\n".join(f"{name} {value}" for name, value in lines.items())


def _packages() -> dict[str, list[Requirement]]:
    """The packages of each extra for users; the required ones have the name ""."""
    try:
        requirements = [Requirement(line) for line in requires("neuralbayes") or []]
    except PackageNotFoundError:
        return {}
    found: dict[str, list[Requirement]] = {}
    for requirement in requirements:
        name = "" if requirement.marker is None else str(requirement.marker).rpartition(" ")[2].strip("\"'")
        if name not in FOR_DEVELOPERS:
            found.setdefault(name, []).append(requirement)
    return found


def _state(requirement: Requirement) -> str:
    """The installed version of a package, and the one that it should have."""
    version = installed_version(requirement.name)
    if version is None:
        return "missing"
    fits = requirement.specifier.contains(version, prereleases=True)
    return version if fits else f"{version}, needs {requirement.specifier}"


def _found(look: Callable[[], str]) -> str:
    """What `look` finds, or why it cannot: a broken installation is what a report is about."""
    try:
        return look()
    except Exception as error:
        return f"unknown ({type(error).__name__}: {error})"


def _device() -> str:
    import torch

    kind = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    if kind is None:
        return "cpu"
    name = f" {torch.cuda.get_device_name()}" if kind.type == "cuda" else ""
    return f"{kind.type}{name}, {torch.accelerator.device_count()} of them"


def _threads() -> str:
    import joblib  # type: ignore[import-untyped]
    import torch

    return f"{torch.get_num_threads()} of torch, {joblib.cpu_count()} cores"
