"""Required packages and extras are the ones in pyproject.toml."""

import re
import tomllib
from pathlib import Path

from neuralbayes.cli.extras import extras, required

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]


def test_extras_are_those_that_all_is_made_of():
    declared = PROJECT["optional-dependencies"]
    (everything,) = declared["all"]
    names = re.findall(r"\w+", everything)[1:]
    wanted = {name: {re.match(r"[\w-]+", requirement)[0] for requirement in declared[name]} for name in names}
    assert {name: {one.name for one in members} for name, members in extras().items()} == wanted


def test_required_packages_come_with_their_bounds():
    torch = next(requirement for requirement in required() if requirement.name == "torch")
    assert f"torch{torch.specifier}" in PROJECT["dependencies"]
    names = {requirement.name for requirement in required()}
    assert "pandas" in names
    assert "dask" not in names
