"""Save fitted estimators to a folder with model.json and one safetensors file. Nothing is pickled, so loading a model
from a stranger runs no code."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from neuralbayes.estimators.attributes import Check
from neuralbayes.system.files import inside, read_arrays, read_json, remove_temporaries, write_arrays, write_json

if TYPE_CHECKING:
    from torch import nn

FORMAT = 3
"""Version of the format. Formats 1 and 2 belong to the versions 0.1 and 0.2, whose clusterers had other parts."""
DESCRIPTION = "model.json"
ESTIMATORS = {
    "InformationClusterer": "neuralbayes.estimators.information_clusterer",
    "ManifoldLabeler": "neuralbayes.estimators.manifold_labeler",
    "MIMEncoder": "neuralbayes.estimators.mim_encoder",
}
"""The classes that a model file may name, and their modules."""

OWN_NETWORK = "your own"
"""Placeholder in a model file for a module that was passed as a parameter."""


class SavedEstimator(BaseEstimator):  # type: ignore[misc]
    """A scikit-learn estimator that can be saved to a folder.

    Fitted attributes (``name_``) may be arrays, JSON values, parts with a method `arrays`, and one module, `module_`.
    `_make_part` builds parts, and `_make_module` the module, from the other fitted attributes. `_fitted` or
    `_fitted_sometimes` lists each attribute with its check, and `_parts` lists the parts; other attributes are neither
    saved nor loaded.
    """

    _parts: ClassVar[tuple[str, ...]] = ()

    _fitted: ClassVar[dict[str, Check]] = {}
    _fitted_sometimes: ClassVar[dict[str, Check]] = {}

    def _make_module(self, body: nn.Module | None) -> nn.Module:
        """Create a module of the fitted shape, without its weights; `body` is a user's network."""
        raise NotImplementedError

    def _make_part(self, name: str, arrays: dict[str, NDArray[Any]], network: nn.Module | None) -> Any:
        """Restore a part from its arrays; `network` is a user's network."""
        raise NotImplementedError

    def _check_fitted(self, weights: Mapping[str, Any]) -> None:
        """Raise a ValueError unless the fitted attributes are consistent with each other and with the names in
        `weights`."""

    def _forget(self) -> None:
        """Remove the fitted attributes of an earlier fit."""
        for name in _fitted_names(self):
            delattr(self, name)

    def save(self, folder: str | Path) -> None:
        """Save the fitted estimator to `folder`, replacing an existing model.

        Parameters
        ----------
        folder : str or Path
            Created if it does not exist. Load the model with :func:`neuralbayes.load`.
        """
        check_is_fitted(self)
        folder = Path(folder)
        if folder.exists() and not folder.is_dir():
            raise ValueError(f"`folder` must be a folder, got the file {folder}")
        if folder.is_dir() and not may_hold_model(folder):
            raise ValueError(f"`folder` must be empty or hold a saved model, got {folder} with other files in it")
        for path in folder.iterdir() if folder.is_dir() else ():
            inside(folder, path.name)
        arrays: dict[str, NDArray[Any]] = {}
        values: dict[str, Any] = {}
        for name in _fitted_names(self):
            value = getattr(self, name)
            if name not in {"module_", *self._parts, *self._fitted, *self._fitted_sometimes}:
                raise TypeError(f"`_fitted` of {type(self).__name__} must say what {name!r} holds")
            if name == "vectorizer_":
                values[name], own = value.state()
                arrays |= {f"{name}.{key}": array for key, array in own.items()}
            elif name in self._parts:
                arrays |= {f"{name}.{key}": array for key, array in value.arrays().items()}
            elif name == "module_":
                arrays |= {f"{name}.{key}": tensor.cpu().numpy() for key, tensor in value.state_dict().items()}
            elif isinstance(value, np.ndarray) and value.dtype.kind in "fiub":
                arrays[name] = value
            else:
                values[name] = value.tolist() if isinstance(value, np.ndarray | np.generic) else value
        temporary = folder / "weights.safetensors"
        write_arrays(temporary, arrays)
        digest = _sha256(temporary)
        # The description names its weights by content and is replaced last, so the old model stays valid until then.
        weights = temporary.rename(folder / f"weights-{digest[:16]}.safetensors")
        params = {name: _plain(value) for name, value in self.get_params(deep=False).items()}
        if hasattr(getattr(self, "network", None), "state_dict"):
            params["network"] = OWN_NETWORK
        description = {
            "format": FORMAT,
            "library": version("neuralbayes"),
            "estimator": type(self).__name__,
            "params": params,
            "attributes": values,
            "weights": weights.name,
            "sha256": digest,
        }
        write_json(folder / DESCRIPTION, description)
        for stale in folder.glob("weights-*.safetensors"):
            if stale != weights:
                stale.unlink()
        remove_temporaries(folder)

    @classmethod
    def _restore(
        cls, description: dict[str, Any], arrays: dict[str, NDArray[Any]], network: nn.Module | None = None
    ) -> Self:
        params = {k: tuple(v) if isinstance(v, list) else v for k, v in description["params"].items()}
        if params.get("network") == OWN_NETWORK:
            params["network"] = network
        if "device" in params:
            params["device"] = "auto"  # chosen on this machine, which may lack the other's device
        estimator = cls(**params)
        attributes = dict(description["attributes"])
        if "feature_names_in_" in attributes:
            attributes["feature_names_in_"] = np.array(attributes["feature_names_in_"], dtype=object)
        if "vectorizer_" in attributes:
            from neuralbayes.data.vectorizer import TableVectorizer

            own = _taken(arrays, "vectorizer_")
            attributes["vectorizer_"] = TableVectorizer.restored(attributes["vectorizer_"], own)
        of_module = _taken(arrays, "module_")
        of_parts = {name: own for name in cls._parts if (own := _taken(arrays, name))}
        attributes |= arrays
        checks = cls._fitted | cls._fitted_sometimes
        for name in {**attributes, **cls._fitted}:
            if name not in attributes or name not in checks:
                raise ValueError(
                    f"{name!r} is {'missing' if name in checks else f'not a fitted attribute of {cls.__name__}'}"
                )
            value = attributes[name]
            if isinstance(value, np.ndarray) and value.dtype.kind == "f" and (bad := int((~np.isfinite(value)).sum())):
                raise ValueError(
                    f"{name!r} must be finite, got {bad} value{'s' * (bad > 1)} that {'are' if bad > 1 else 'is'} not"
                )
            if not checks[name](value):
                raise ValueError(f"{name!r} has an invalid value")
            setattr(estimator, name, attributes[name])
        for name, own in of_parts.items():
            setattr(estimator, name, estimator._make_part(name, own, network))
        estimator._check_fitted(of_module)
        if of_module:
            estimator.module_ = filled(estimator._make_module, of_module, network)
        return estimator


def filled(
    make: Callable[[nn.Module | None], nn.Module], arrays: dict[str, NDArray[Any]], network: nn.Module | None
) -> nn.Module:
    """A module with its weights, which must be finite, except those of a user's network."""
    import torch

    from neuralbayes.networks.filling import check_finite, fill

    state = {name: torch.from_numpy(array) for name, array in arrays.items()}
    check_finite(state, own="body." if network is not None else None)
    with torch.device("meta"):
        module = make(network)
    fill(module, state)
    return module


def _taken(arrays: dict[str, NDArray[Any]], name: str) -> dict[str, NDArray[Any]]:
    """Remove the arrays of a part, and return them."""
    return {key.removeprefix(f"{name}."): arrays.pop(key) for key in list(arrays) if key.startswith(f"{name}.")}


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
    The fitted estimator.

    Raises
    ------
    FileNotFoundError
        If there is no model in `folder`.
    ValueError
        If the model is damaged or was written by a newer version of the library.

    Examples
    --------
    >>> import neuralbayes as nb
    >>> from neuralbayes.data.toys import make_unequal
    >>> X, _ = make_unequal(400, random_state=0)
    >>> nb.ManifoldLabeler(n_clusters=2, n_init=2, random_state=0).fit(X).save("moons")
    >>> nb.load("moons").predict([[0.0, 1.0], [1.0, -0.5]])
    array([0, 1])
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
    name, weights = description["estimator"], Path(str(description["weights"])).name
    if not isinstance(name, str) or name not in ESTIMATORS:
        raise ValueError(f"{path} names the estimator {name!r}, which must be one of {sorted(ESTIMATORS)}")
    if not (folder / weights).is_file() or _sha256(folder / weights) != description["sha256"]:
        raise ValueError(f"{folder / weights} is missing or damaged: it is not what {DESCRIPTION} describes")
    arrays = read_arrays(folder / weights)
    attributes = description["attributes"]
    own = isinstance(attributes, dict) and bool(attributes.get("n_network_features_"))
    if own != (network is not None):
        wanted = "the architecture that it was fitted with" if own else "None: the model has a network of the library"
        raise ValueError(f"`network` must be {wanted}, got {None if network is None else type(network).__name__}")
    try:
        return getattr(import_module(ESTIMATORS[name]), name)._restore(description, arrays, network)
    except (KeyError, TypeError, ValueError, AttributeError, RuntimeError, OverflowError) as error:
        raise ValueError(f"{path} does not fit its weights ({error}); it may be damaged") from error


def _fitted_names(estimator: BaseEstimator) -> list[str]:
    return [name for name in vars(estimator) if name.endswith("_") and not name.startswith("_")]


def _plain(value: Any) -> Any:
    """Convert a parameter to JSON types, tuples to lists; None if impossible, as for a random generator."""
    if hasattr(value, "sample_term") or hasattr(value, "terms"):
        from neuralbayes.objectives.description import described

        return described(value)  # an objective, which only training needs: a loaded model only describes it
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value if isinstance(value, str | int | float | None) else None


def may_hold_model(folder: Path) -> bool:
    """Whether `folder` contains only a model, or the remains of an interrupted save."""
    return all(
        path.name in (DESCRIPTION, "source.json", "names.json")
        or re.fullmatch(r"weights.*\.safetensors|\.(weights|model)\..*\.tmp.*", path.name)
        for path in folder.iterdir()
    )


def _sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
