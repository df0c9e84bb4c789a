"""Results and files of the demo."""

from __future__ import annotations

import platform
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from neuralbayes.demo.digits import DigitsResult
from neuralbayes.demo.manifolds import ManifoldResult

MEASURED = ("neuralbayes", "torch", "numpy", "scikit-learn")
"""Packages whose versions are recorded."""


@dataclass(frozen=True)
class DemoResult:
    """Results, times, and the files "page", "manifolds", "digits" and "result"."""

    seed: int
    seconds: float  # for labelling and learning
    manifolds: list[ManifoldResult]
    digits: DigitsResult
    files: dict[str, Path] = field(default_factory=dict)

    @property
    def versions(self) -> dict[str, str]:
        """Versions of Python and of the packages that affect the numbers."""
        return {"python": platform.python_version()} | {name: version(name) for name in MEASURED}

    def to_dict(self) -> dict[str, Any]:
        """The content of result.json."""
        return {
            "seed": self.seed,
            "seconds": self.seconds,
            "versions": self.versions,
            "manifolds": [result.to_dict() for result in self.manifolds],
            "digits": self.digits.to_dict(),
            "files": {name: str(path) for name, path in self.files.items()},
        }
