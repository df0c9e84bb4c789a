"""`import neuralbayes` is fast: heavy modules are loaded on demand."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import neuralbayes as nb

STUB = Path(nb.__file__).with_name("__init__.pyi")
PUBLIC = [
    alias.asname or alias.name
    for node in ast.parse(STUB.read_text(encoding="utf-8")).body
    if isinstance(node, ast.ImportFrom)
    for alias in node.names
]


def modules_after(code: str) -> set[str]:
    """Modules that a new interpreter has loaded after `code`."""
    command = f"{code}\nimport sys\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def loaded(code: str) -> set[str]:
    """Top-level packages that a new interpreter has loaded after `code`."""
    return {name.split(".")[0] for name in modules_after(code)}


def test_the_package_loads_nothing_heavy() -> None:
    heavy = {"torch", "numpy", "scipy", "sklearn", "lightning_fabric", "matplotlib", "pandas", "cyclopts", "rich"}
    assert loaded("import neuralbayes") & heavy == set()


def test_an_objective_loads_torch_but_not_what_training_and_pictures_need() -> None:
    modules = loaded("import neuralbayes as nb, neuralbayes.training; nb.DML()")
    assert "torch" in modules
    assert modules & {"lightning_fabric", "rich", "sklearn", "matplotlib", "pandas", "cyclopts"} == set()


ESTIMATORS = {"MIMEncoder": 39, "ManifoldLabeler": 41, "InformationClusterer": 45}
"""Modules of this library that each name may load."""

EACH = f"""
import sys
for name in {list(ESTIMATORS)}:
    for module in [module for module in sys.modules if module.startswith("neuralbayes")]:
        del sys.modules[module]  # what others need stays: torch and scikit-learn are loaded once
    import neuralbayes
    getattr(neuralbayes, name)
    print(name, *[module for module in sys.modules if module.startswith("neuralbayes")])
"""


def test_an_estimator_loads_what_it_needs_and_training_when_it_fits() -> None:
    done = subprocess.run([sys.executable, "-c", EACH], capture_output=True, text=True, check=True)
    for line, (name, most) in zip(done.stdout.splitlines(), ESTIMATORS.items(), strict=True):
        said, *modules = line.split()
        assert said == name
        assert "neuralbayes.estimators.persistence" in modules
        assert len(modules) <= most, name
        assert "neuralbayes.training.loop" not in modules


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_resolves(name: str) -> None:
    assert getattr(nb, name) is not None
    assert name in dir(nb)


def test_public_names_are_unique_and_sorted_out_by_star() -> None:
    assert len(PUBLIC) == len(set(PUBLIC))
    assert set(nb.__all__) >= set(PUBLIC)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="NoSuchThing"):
        nb.NoSuchThing  # noqa: B018


def test_the_version_is_that_of_the_distribution() -> None:
    assert nb.__version__.count(".") == 2
