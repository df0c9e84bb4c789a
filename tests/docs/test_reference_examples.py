"""Everything in the reference has an example in its docstring; the doctests of `src` run them all."""

import re
from importlib import import_module
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "api.md").read_text(encoding="utf-8")
NAMES = re.findall(r"^   ([\w.]+)$", PAGE, re.MULTILINE)


def test_the_reference_is_found() -> None:
    assert {"MIM", "training.train", "data.toys.make_moons", "plot.save_picture"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_it_has_an_example(name: str) -> None:
    module, _, attribute = f"neuralbayes.{name}".rpartition(".")
    assert ">>> " in (getattr(import_module(module), attribute).__doc__ or "")
