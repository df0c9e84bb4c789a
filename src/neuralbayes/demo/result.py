"""What the demo found, and where it wrote it."""

from __future__ import annotations

import platform
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from neuralbayes.demo.digits import DigitsResult
from neuralbayes.demo.manifolds import ManifoldResult

MEASURED = ("neuralbayes", "torch", "numpy", "scikit-learn")
"""Packages whose versions go into the result."""


@dataclass(frozen=True)
class DemoResult:
    """What was labelled and learnt, in which time, and the files: "page", "manifolds", "digits", "result"."""

    seed: int
    seconds: float  # of labelling and learning
    manifolds: list[ManifoldResult]
    digits: DigitsResult
    files: dict[str, Path] = field(default_factory=dict)

    @property
    def versions(self) -> dict[str, str]:
        """Of Python and of the packages that the numbers depend on."""
        return {"python": platform.python_version()} | {name: version(name) for name in MEASURED}

    def to_dict(self) -> dict[str, Any]:
        """What result.json holds."""
        return {
            "seed": self.seed,
            "seconds": self.seconds,
            "versions": self.versions,
            "manifolds": [result.to_dict() for result in self.manifolds],
            "digits": self.digits.to_dict(),
            "files": {name: str(path) for name, path in self.files.items()},
        }
