"""The demo: both of the paper's objectives on data that need no download, with one page, pictures and a JSON file."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from neuralbayes.demo import digits, manifolds
from neuralbayes.demo.digits import learn_digits
from neuralbayes.demo.manifolds import label_manifolds
from neuralbayes.demo.result import DemoResult
from neuralbayes.files import write_json

Watch = Callable[[str, str, int, int], None]
"""Called with the part of the demo, what was just done in it, the steps done and the steps of the part."""


def run(out: Path, *, seed: int = 0, watch: Watch = lambda part, what, done, total: None) -> DemoResult:
    """Run the demo and write demo.html, two pictures and result.json into the folder `out`.

    Nothing is written before everything is computed. Without matplotlib there are no pictures, without it or jinja2
    there is no page.

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
    labelled = label_manifolds(seed, _counted(watch, "manifolds", len(manifolds.SETS)))
    learnt = learn_digits(seed, _counted(watch, "digits", digits.EPOCHS + len(digits.FEATURES)))
    result = DemoResult(seed, time.perf_counter() - start, labelled, learnt)
    files: dict[str, Path] = {}
    if find_spec("matplotlib"):
        from neuralbayes.demo.pictures import write_pictures

        if find_spec("jinja2"):
            from neuralbayes.demo.page import N_STEPS, write_demo_page

            files["page"] = write_demo_page(result, out / "demo.html", _counted(watch, "page", N_STEPS))
        files |= write_pictures(result, out)
    files["result"] = out / "result.json"
    result = replace(result, files=files)
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
