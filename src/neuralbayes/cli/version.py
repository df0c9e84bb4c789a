"""``neuralbayes --version``: what a bug report needs. Nothing that is missing stops it."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, requires, version

from packaging.requirements import Requirement

FOR_DEVELOPERS = ("test", "docs", "bench", "browser", "fuzz", "mutants")


def version_report() -> str:
    """Versions, platform, device, threads and extras, one to a line."""
    lines = {"neuralbayes": _version("neuralbayes"), "python": platform.python_version()}
    lines |= {"platform": f"{platform.system()} {platform.release()} {platform.machine()}", "device": _device()}
    for requirement in map(Requirement, requires("neuralbayes") or []):
        extra = str(requirement.marker or "").rpartition(" ")[2].strip("\"'")
        if requirement.name != "neuralbayes" and extra not in FOR_DEVELOPERS:
            lines[requirement.name] = _version(requirement.name) + f" (extra {extra})" * bool(extra)
    return "\n".join(f"{name} {value}" for name, value in lines.items())


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "missing"


def _device() -> str:
    try:
        import torch

        kind = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
        return f"{kind or 'cpu'}, {torch.get_num_threads()} threads"
    except Exception as error:  # a broken installation is what a report is about
        return f"unknown ({type(error).__name__}: {error})"
