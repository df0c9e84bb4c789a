"""The demo: both of the paper's objectives on data that need no download, with a table, pictures and a JSON file."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from neuralbayes.demo import digits, manifolds
from neuralbayes.demo.digits import DigitsResult, learn_digits
from neuralbayes.demo.manifolds import ManifoldResult, label_manifolds
from neuralbayes.files import write_json

MEASURED = ("neuralbayes", "torch", "numpy", "scikit-learn")
"""Packages whose versions go into the result."""

Watch = Callable[[str, str, int, int], None]
"""Called with the part of the demo, what was just done in it, the steps done and the steps of the part."""


@dataclass(frozen=True)
class DemoResult:
    """What the demo found, and the files that it wrote."""

    seed: int
    seconds: float
    manifolds: list[ManifoldResult]
    digits: DigitsResult
    files: dict[str, Path]  # "manifolds", "digits" (pictures, where matplotlib is installed), "result"

    def to_dict(self) -> dict[str, Any]:
        """What result.json holds."""
        return {
            "seed": self.seed,
            "seconds": self.seconds,
            "versions": {"python": platform.python_version()} | {name: version(name) for name in MEASURED},
            "manifolds": [result.to_dict() for result in self.manifolds],
            "digits": self.digits.to_dict(),
            "files": {name: str(path) for name, path in self.files.items()},
        }


def run(out: Path, *, seed: int = 0, watch: Watch = lambda part, what, done, total: None) -> DemoResult:
    """Run the demo and write its pictures and result.json into the folder `out`.

    Parameters
    ----------
    out : Path
        Made if it is not there; files of an earlier demo in it are replaced.
    seed : int, default=0
    watch : callable, optional
        Told after each step how far the demo is.

    Returns
    -------
    DemoResult
    """
    start = time.perf_counter()
    out.mkdir(parents=True, exist_ok=True)
    labelled = label_manifolds(seed, _counted(watch, "manifolds", len(manifolds.SETS)))
    learnt = learn_digits(seed, _counted(watch, "digits", digits.EPOCHS + 3))
    files = _draw(out, labelled, learnt) if find_spec("matplotlib") else {}
    files["result"] = out / "result.json"
    result = DemoResult(seed, time.perf_counter() - start, labelled, learnt, files)
    write_json(files["result"], result.to_dict())
    return result


def _counted(watch: Watch, part: str, total: int) -> Callable[[str], None]:
    """A function that counts its calls and passes them on to `watch`; the first, with nothing done, is made here."""
    count = 0
    watch(part, "", 0, total)

    def done(what: str) -> None:
        nonlocal count
        count += 1
        watch(part, what, count, total)

    return done


def _draw(out: Path, labelled: list[ManifoldResult], learnt: DigitsResult) -> dict[str, Path]:
    from neuralbayes.plot.style import save_picture
    from neuralbayes.report.digits import draw_digits
    from neuralbayes.report.manifolds import Panel, draw_manifolds

    panels = [
        Panel(
            title=r.name,
            caption=f"{'certified' if r.certified else 'refused'}: {r.separation_percent:.1f} % of log 2",
            certified=r.certified,
            points=r.points,
            labels=r.labels,
            extent=r.extent,
            decision_map=r.decision_map,
        )
        for r in labelled
    ]
    pictures = {
        "manifolds": draw_manifolds(panels),
        "digits": draw_digits(
            information={f"{layer.name}, {layer.n_states} states": layer.curve for layer in learnt.layers},
            bounds=[layer.bound for layer in learnt.layers],
            accuracy={probe.features: probe.accuracy for probe in learnt.probes},
            members=[(f"state {s.state}", s.images, s.ratio) for s in learnt.states],
        ),
    }
    files = {name: out / f"{name}.png" for name in pictures}
    for name, figure in pictures.items():
        save_picture(figure, files[name])
    return files
