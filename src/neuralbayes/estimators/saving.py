"""Save fitted estimators to a folder with model.json and one safetensors file. Nothing is pickled, so loading a model
from a stranger runs no code."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from neuralbayes.system.files import (
    alone_in,
    inside,
    read_arrays,
    read_json,
    remove_temporaries,
    write_arrays,
    write_json,
)

if TYPE_CHECKING:
    from torch import nn

Arrays = dict[str, NDArray[Any]]

FORMAT = 4
DESCRIPTION, NAMES = "model.json", "names.json"  # the second: names of clusters that a person gave
ESTIMATORS = ("InformationClusterer", "ManifoldLabeler", "MIMEncoder")  # the classes that a model file may name
OWN_NETWORK = "your own"  # placeholder in a model file for a module that was passed as a parameter


class SavingMixin:
    """Saves what a fit found: attributes (``name_``) that are arrays, JSON values, or parts.

    A part has a method `arrays`, or is a module of PyTorch or a vectorizer. `_part` restores it and checks it by
    itself; `_checks` says whether all attributes fit each other.
    """

    n_features_in_: int
    image_shape_: list[int] | None

    def _checks(self) -> dict[str, bool]:
        """Whether each fitted attribute may have its value. Those that are not named are neither saved nor loaded."""
        p, shape = self.n_features_in_, self.image_shape_
        names: Any = getattr(self, "feature_names_in_", None)
        return {
            "n_features_in_": is_count(p),
            "feature_names_in_": names is None or (len(names) == p and all(isinstance(name, str) for name in names)),
            "image_shape_": shape is None or (is_list(shape, is_count) and len(shape) == 3 and math.prod(shape) == p),
        }

    def _part(self, name: str, arrays: Arrays, network: nn.Module | None) -> Any:
        """Restore a part from its arrays; `network` is a user's network."""
        raise NotImplementedError

    def _forget(self) -> None:
        """Remove the fitted attributes of an earlier fit."""
        for name in _fitted_names(self):
            delattr(self, name)

    def save(self, folder: str | Path, *, about: Mapping[str, Any] | None = None) -> None:
        """Save the fitted estimator to `folder`, replacing an existing model, for :func:`neuralbayes.load`.

        Parameters
        ----------
        folder : str or Path
            Created if it does not exist.
        about : dict, optional
            More to keep with the model, as JSON: what a :class:`neuralbayes.Clustering` knows.
        """
        check_is_fitted(self)
        folder = Path(folder)
        if folder.exists() and not (folder.is_dir() and may_hold_model(folder)):
            raise ValueError(f"`folder` must be empty or hold a saved model, got {folder} with other files")
        for path in folder.iterdir() if folder.is_dir() else ():
            inside(folder, path.name)
        values: dict[str, Any] = {}
        arrays: Arrays = {}
        if unknown := set(_fitted_names(self)) - self._checks().keys():
            raise TypeError(f"`_checks` of {type(self).__name__} must say what {min(unknown)!r} holds")
        for name in _fitted_names(self):
            value = getattr(self, name)
            if isinstance(value, np.ndarray) and value.dtype.kind in "fiub":
                arrays[name] = value
                continue
            parts: Mapping[str, Any] = {}
            if name == "vectorizer_":
                values[name], parts = value.state()
            elif hasattr(value, "arrays"):
                parts = value.arrays()
            elif hasattr(value, "state_dict"):
                parts = {key: tensor.cpu().numpy() for key, tensor in value.state_dict().items()}
            else:
                values[name] = value.tolist() if isinstance(value, np.ndarray | np.generic) else value
            arrays |= {f"{name}.{key}": array for key, array in parts.items()}
        params = {name: _plain(value) for name, value in self.get_params(deep=False).items()}  # type: ignore[attr-defined]
        if hasattr(getattr(self, "network", None), "state_dict"):
            params["network"] = OWN_NETWORK
        description = {"format": FORMAT, "library": version("neuralbayes"), "estimator": type(self).__name__}
        description |= {"params": params, "attributes": values} | ({} if about is None else {"about": dict(about)})
        with alone_in(folder):
            temporary = folder / "weights.safetensors"
            write_arrays(temporary, arrays)
            digest = _sha256(temporary)
            # The description names its weights by content and is replaced last, so the old model is valid until then.
            weights = temporary.rename(folder / f"weights-{digest[:16]}.safetensors")
            write_json(folder / DESCRIPTION, description | {"weights": weights.name, "sha256": digest})
            for stale in {folder / NAMES, *folder.glob("weights-*.safetensors")} - {weights}:
                stale.unlink(missing_ok=True)
            remove_temporaries(folder)


def load(folder: str | Path, *, network: nn.Module | None = None) -> Any:
    """Load an estimator that was saved with its `save` method.

    Parameters
    ----------
    folder : str or Path
    network : nn.Module, optional
        Required if an :class:`neuralbayes.InformationClusterer` was fitted with your own network: a network of the same
        architecture, which is copied and gets the saved weights. Models contain no code, so loading runs none.

    Returns
    -------
    The fitted estimator. A model that is damaged, or has another version of the format, raises a ValueError.

    Examples
    --------
    >>> import neuralbayes as nb
    >>> from neuralbayes.data.toys import make_moons
    >>> X, _ = make_moons(400, random_state=0)
    >>> nb.ManifoldLabeler(n_clusters=2, n_init=2, random_state=0).fit(X).save("moons")
    >>> nb.load("moons").predict([[0.0, 1.0], [1.0, -0.5]])
    array([1, 0])
    """
    folder = Path(folder)
    path = folder / DESCRIPTION
    if not path.is_file():
        other = ", a run, whose encoder ImageEncoder.load reads" if (folder / "encoder.json").is_file() else ""
        raise FileNotFoundError(f"`folder` must hold a saved model with its {DESCRIPTION}, got {folder}{other}")
    description = read_json(path)
    required = {"format", "library", "estimator", "params", "attributes", "weights", "sha256"}
    if not isinstance(description, dict) or not required <= description.keys():
        raise ValueError(f"{path} does not describe a model of this library")
    if description["format"] != FORMAT:
        raise ValueError(
            f"{path} has format {description['format']!r} of version {description['library']}, but this version of "
            f"neuralbayes reads format {FORMAT}: fit the model again, or load it with the version that wrote it"
        )
    name, weights = description["estimator"], str(description["weights"])
    if not isinstance(name, str) or name not in ESTIMATORS:
        raise ValueError(f"{path} names the estimator {name!r}, which must be one of {ESTIMATORS}")
    named = re.fullmatch(r"weights-[0-9a-f]{16}\.safetensors", weights)
    if not named or not (folder / weights).is_file() or _sha256(folder / weights) != description["sha256"]:
        raise ValueError(f"{path} describes weights that are missing or damaged")
    arrays = read_arrays(folder / weights)
    own = "posterior_.head.weight" in arrays
    if own != (network is not None):
        wanted = "the architecture that it was fitted with" if own else "None: the model has a network of the library"
        raise ValueError(f"`network` must be {wanted}, got {None if network is None else type(network).__name__}")
    try:
        return _restored(getattr(import_module("neuralbayes.estimators"), name), description, arrays, network)
    except (LookupError, TypeError, ValueError, AttributeError, RuntimeError, OverflowError) as error:
        raise ValueError(f"{path} does not fit its weights ({error}); it may be damaged") from error


def _restored(kind: type[Any], description: dict[str, Any], arrays: Arrays, network: nn.Module | None) -> Any:
    params = {k: tuple(v) if isinstance(v, list) else v for k, v in description["params"].items()}
    if params.get("network") == OWN_NETWORK:
        params["network"] = network
    if "device" in params:
        params["device"] = "auto"  # this machine may lack the other's device
    estimator = kind(**params)
    values = dict(description["attributes"])
    if "feature_names_in_" in values:
        values["feature_names_in_"] = np.array(values["feature_names_in_"], dtype=object)
    parts: dict[str, Arrays] = {}
    for name, array in arrays.items():
        whole, dot, rest = name.partition(".")
        if dot:
            parts.setdefault(whole, {})[rest] = array
        elif array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ValueError(f"{name!r} must be finite")
        else:
            values[name] = array
    if odd := [name for name in (*values, *parts) if not re.fullmatch(r"[a-z]\w*_", name)]:
        raise ValueError(f"{odd[0]!r} is not a fitted attribute")
    if "vectorizer_" in values:
        from neuralbayes.data.vectorizer import TableVectorizer

        values["vectorizer_"] = TableVectorizer.restored(values["vectorizer_"], parts.pop("vectorizer_", {}))
    for name, value in values.items():
        setattr(estimator, name, value)
    for name, own in parts.items():
        setattr(estimator, name, estimator._part(name, own, network))
    checks = estimator._checks()
    if unknown := set(_fitted_names(estimator)) - checks.keys():
        raise ValueError(f"{min(unknown)!r} is not a fitted attribute of {kind.__name__}")
    if wrong := [name for name, right in checks.items() if not right]:
        raise ValueError(f"{wrong[0]!r} has an invalid value")
    return estimator


def given_names(folder: Path, n_clusters: int) -> dict[int, str]:
    """The names that a person gave on the page, by cluster."""
    path = folder / NAMES
    if not path.is_file():
        return {}
    given = read_json(path)
    if not isinstance(given, dict) or not all(isinstance(name, str) and name.strip() for name in given.values()):
        raise ValueError(f"{path} must map numbers of clusters to names")
    if odd := [key for key in given if key not in map(str, range(n_clusters))]:
        raise ValueError(f"{path} must name clusters from 0 to {n_clusters - 1}, got {odd[0]!r:.50}")
    return {int(key): name for key, name in given.items()}


def filled(module: nn.Module, arrays: Arrays, network: nn.Module | None = None) -> nn.Module:
    """A module made on the device "meta", with its weights, which must be finite, except those of a user's network."""
    import torch

    from neuralbayes.networks.filling import check_finite, fill

    state = {name: torch.from_numpy(array) for name, array in arrays.items()}
    check_finite(state, own="body." if network is not None else None)
    fill(module, state)
    return module.eval().requires_grad_(False)


def is_count(value: Any) -> bool:
    """Whether a value is an integer from 0 that fits into 64 bits."""
    return type(value) is int and 0 <= value < 2**63


def is_number(value: Any) -> bool:
    """Whether a value is a finite number."""
    return type(value) in (int, float) and math.isfinite(value)


def is_list(value: Any, check: Any = is_number) -> bool:
    """Whether a value is a list of what a check allows."""
    return isinstance(value, list) and all(map(check, value))


def is_table(value: Any) -> bool:
    """Whether a value maps names to lists of one length, of finite numbers and None."""
    if not isinstance(value, dict):
        return False
    columns = list(value.values())
    return all(is_list(c, lambda v: v is None or is_number(v)) and len(c) == len(columns[0]) for c in columns)


def is_array(value: Any, kind: str, *shape: int | None, low: float = -math.inf, high: float = math.inf) -> bool:
    """Whether a value is an array of a NumPy kind such as "f", of a shape (None: any length), and within bounds."""
    if not isinstance(value, np.ndarray) or value.dtype.kind != kind or value.ndim != len(shape):
        return False
    fits = all(wanted in (None, got) for wanted, got in zip(shape, value.shape, strict=True))
    return fits and bool((value >= low).all() and (value <= high).all())


def may_hold_model(folder: Path) -> bool:
    """Whether `folder` contains only a model, or the remains of an interrupted save."""
    return all(
        path.name in (DESCRIPTION, NAMES)
        or re.fullmatch(r"weights.*\.safetensors|\.(weights|model)\..*\.tmp.*", path.name)
        for path in folder.iterdir()
    )


def _fitted_names(estimator: Any) -> list[str]:
    return [name for name in vars(estimator) if name.endswith("_") and not name.startswith("_")]


def _plain(value: Any) -> Any:
    """Convert a parameter to JSON types, tuples to lists; None if impossible, as for a random generator."""
    if hasattr(value, "sample_term") or hasattr(value, "terms"):
        from neuralbayes.objectives.base import described

        return described(value)  # an objective, which only training needs: a loaded model only describes it
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value if isinstance(value, str | int | float | None) else None


def _sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
