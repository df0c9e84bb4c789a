"""Imports only point down, along the layers of the design."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import neuralbayes

ROOT = Path(neuralbayes.__file__).parent
FILES = sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")

LAYERS = [
    "__main__",
    "cli",  # one file per command: parses, calls one public function, prints
    "demo",  # computations of `neuralbayes demo`
    "predicting",  # labels of data larger than memory, with Dask
    "loading",  # nb.load: what was saved
    "clustering",  # nb.cluster(anything) -> Clustering: the front door
    "report",  # pages on results and models; never trains
    "plot",  # displays for notebooks and reports
    "estimators",  # scikit-learn classes: validation, fit, predict, save and load; no mathematics
    "explain",  # what a cluster is: columns, differences, rules, key phrases, names; from arrays and labels alone
    "clusters",  # clusters that may touch: states, merging, training
    "manifolds",  # disjoint rows: graph, modes, descent, certificate, choice of K
    "features",  # MIM features of rows and of images: encoder, pretraining, presets, probe, export
    "neighbors",  # nearest neighbours
    "datasets",  # the public interface of data
    "data",  # tables, pictures, named data sets, toy data; no training
    "training",  # fit(), the training loop on Lightning Fabric, run folders, checkpoints, inference in blocks
    "gradients",  # backward(): micro-batches, passes, replay
    "objectives",  # Objective, MIM, DML, smoothness, virtual adversarial; no optimiser, no network
    "networks",  # MLP, the CNNs of the paper, hidden states of any module, sine networks, merged states
    "distributed",  # sums over processes, launching
    "bayes",  # p(z|x), p(z), p(x|z)/p(x), information, divergences; tensors only
    "system",  # files, memory, devices, half precision
]
"""Layers from top to bottom. A layer may import itself and the layers below it."""


def public_names() -> dict[str, str]:
    """Each public name with its layer."""
    stub = ast.parse((ROOT / "__init__.pyi").read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    return {
        alias.asname or alias.name: (node.module or alias.name).split(".")[0]
        for node in imports
        for alias in node.names
    }


def imported_layers(source: str, package: tuple[str, ...], names: dict[str, str]) -> Iterator[tuple[int, str]]:
    """Line and layer of every import from this library, those inside functions and TYPE_CHECKING too.

    `package` is the file's package below `neuralbayes`, against which relative imports are resolved.
    """
    for node in ast.walk(ast.parse(source)):
        modules = []
        if isinstance(node, ast.Import):
            modules = [alias.name.split(".") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = ["neuralbayes", *package][: len(package) + 2 - node.level] if node.level else []
            base += node.module.split(".") if node.module else []
            # `from neuralbayes import x`: x is a module or a public name; otherwise, the first part below is the layer
            modules = [[*base, alias.name] for alias in node.names] if len(base) == 1 else [base]
        for module in modules:
            if module[0] != "neuralbayes":
                continue
            # The package as a whole includes everything, so only the command line may import it.
            layer = names.get(module[1], module[1]) if len(module) > 1 else "cli"
            if not layer.startswith("__version"):
                yield node.lineno, layer


def upward(source: str, package: tuple[str, ...], layer: str, names: dict[str, str]) -> list[str]:
    """Imports of a file of `layer` from layers above it."""
    rank = LAYERS.index(layer)
    found = imported_layers(source, package, names)
    return [f"line {line}: {other}" for line, other in found if LAYERS.index(other) < rank]


def test_every_file_belongs_to_a_layer() -> None:
    """A new file at the top of the package is a decision about the design: add it to the list above."""
    assert {path.relative_to(ROOT).parts[0].removesuffix(".py") for path in FILES} <= set(LAYERS)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_imports_point_down(path: Path) -> None:
    parts = path.relative_to(ROOT).with_suffix("").parts
    assert upward(path.read_text(encoding="utf-8"), parts[:-1], parts[0], public_names()) == []


@pytest.mark.parametrize(
    "source",
    [
        "from neuralbayes.gradients.exact import backward",
        "import neuralbayes.gradients.exact",
        "from neuralbayes import gradients",
        "from neuralbayes import backward",
        "import neuralbayes as nb",
        "from .. import gradients",
        "from ..gradients import backward",
        "def late():\n    from neuralbayes.gradients.exact import backward",
        "if TYPE_CHECKING:\n    from neuralbayes.gradients.exact import backward",
    ],
)
def test_an_import_that_points_up_is_found(source: str) -> None:
    assert len(upward(source, ("objectives",), "objectives", {"backward": "gradients"})) == 1


@pytest.mark.parametrize(
    "source",
    [
        "from neuralbayes.bayes import prior",
        "from neuralbayes.objectives.base import Objective",
        "from .base import Objective",
        "from ..bayes import prior",
        "from neuralbayes import __version__",
        "import torch",
    ],
)
def test_an_import_that_points_down_or_sideways_is_fine(source: str) -> None:
    assert upward(source, ("objectives",), "objectives", {}) == []
