"""The demo: both objectives of the paper on data without a download, with one page, pictures and a JSON file."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from neuralbayes.demo import digits, manifolds
from neuralbayes.demo.digits import learn_digits
from neuralbayes.demo.manifolds import label_manifolds
from neuralbayes.demo.result import DemoResult
from neuralbayes.plot.style import problem_of
from neuralbayes.system.files import write_json

Watch = Callable[[str, str, int, int], None]
"""Called with the part of the demo, its last step, the number of finished steps and the total."""


def run(out: Path, *, seed: int = 0, watch: Watch = lambda part, what, done, total: None) -> DemoResult:
    """Run the demo and write demo.html, two pictures and result.json into the folder `out`.

    Files are written after everything is computed. If the page or a picture cannot be drawn, a warning says why.

    Parameters
    ----------
    out : Path
        Created if needed. Files of an earlier demo are replaced.
    seed : int, default=0
    watch : callable, optional
        Called after each step with the progress.
    """
    start = time.perf_counter()
    labelled = label_manifolds(seed, _counted(watch, "manifolds", len(manifolds.SETS)))
    learnt = learn_digits(seed, _counted(watch, "digits", digits.EPOCHS + len(digits.FEATURES)))
    result = DemoResult(seed, time.perf_counter() - start, labelled, learnt)
    record = out / "result.json"
    files: dict[str, Path] = {}
    if problem := problem_of(lambda: files.update(_drawn(result, out, watch))):
        warnings.warn(f"the page and the pictures could not be drawn ({problem})", stacklevel=2)
    result = replace(result, files=files | {"result": record})
    write_json(record, result.to_dict())
    return result


def _drawn(result: DemoResult, out: Path, watch: Watch) -> dict[str, Path]:
    """Write the page and the pictures."""
    from neuralbayes.demo.page import N_STEPS, write_demo_page
    from neuralbayes.demo.pictures import write_pictures

    page = write_demo_page(result, out / "demo.html", _counted(watch, "page", N_STEPS))
    return {"page": page} | write_pictures(result, out)


def _counted(watch: Watch, part: str, total: int) -> Callable[[str], None]:
    """A function that counts its calls and reports them to `watch`. The first report, with nothing done, is made
    here."""
    count = 0
    watch(part, "", 0, total)

    def done(what: str) -> None:
        nonlocal count
        count += 1
        watch(part, what, count, total)

    return done
