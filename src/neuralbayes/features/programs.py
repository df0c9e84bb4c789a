"""Export networks for other programs as ONNX or with torch.export. Neither is a pickle."""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from neuralbayes.system.files import atomic_write

Format = Literal["onnx", "torch"]

MOST = 1 << 20
"""Maximum batch size of a program."""


def export_network(
    network: nn.Module,
    example: NDArray[Any],
    expected: Sequence[NDArray[Any]],
    path: str | Path,
    to: Format,
    *,
    names: tuple[str, Sequence[str]],
    tolerance: Sequence[float],
    metadata: Mapping[str, str],
) -> float:
    """Export a network for any number of samples, after comparing its outputs with the expected ones.

    Parameters
    ----------
    network : nn.Module
        Maps (n, ...) to a tensor or a tuple of tensors.
    example : ndarray of shape (n >= 2, ...)
        Samples in the input type of the program.
    expected : sequence of ndarray
        Expected outputs for these samples.
    path : path
    to : {"onnx", "torch"}
    names : tuple of str and sequence of str
        Names of the input and of the outputs.
    tolerance : sequence of float
        Maximum difference of each output, relative to its largest value or to 1.
    metadata : mapping of str to str
        Metadata of an ONNX file.

    Returns
    -------
    float
        The maximum difference.

    Raises
    ------
    ValueError
        If the difference is too large. Nothing is written then.
    """
    if to not in ("onnx", "torch"):
        raise ValueError(f"`to` must be onnx or torch, got {to!r}")
    if to == "onnx":
        _require_onnx()
    with atomic_write(path) as temporary:
        with _quiet():
            if to == "onnx":
                _write_onnx(network, example, temporary, names, metadata)
                session = import_module("onnxruntime").InferenceSession(
                    str(temporary), providers=["CPUExecutionProvider"]
                )
                found = session.run(None, {names[0]: example})
            else:
                program = io.BytesIO()  # torch's file writer kills the process on a full disk
                torch.export.save(torch.export.export(network, _first(example), dynamic_shapes=_any_number()), program)
                temporary.write_bytes(program.getbuffer())
                given = torch.export.load(temporary).module()(torch.from_numpy(example))
                found = [one.detach().numpy() for one in (given if isinstance(given, tuple) else (given,))]
        largest = 0.0
        for got, right, allowed in zip(found, expected, tolerance, strict=True):
            difference = float(np.abs(got.astype(np.float64) - right).max())
            if not difference <= allowed * max(1.0, float(np.abs(right).max())):  # `not`: NaN fails every comparison
                raise ValueError(
                    f"the exported network differs from the model by {difference:g}; {path} is not written"
                )
            largest = max(largest, difference)
    return largest


def _first(example: NDArray[Any]) -> tuple[torch.Tensor]:
    return (torch.from_numpy(example[:2]),)


def _any_number() -> tuple[dict[int, Any]]:
    return ({0: torch.export.Dim("n_samples", min=1, max=MOST)},)


def _write_onnx(
    network: nn.Module,
    example: NDArray[Any],
    path: Path,
    names: tuple[str, Sequence[str]],
    metadata: Mapping[str, str],
) -> None:
    torch.onnx.export(
        network,
        _first(example),
        str(path),
        input_names=[names[0]],
        output_names=list(names[1]),
        dynamic_shapes=_any_number(),
        dynamo=True,
        external_data=False,
        verbose=False,
    )
    onnx = import_module("onnx")
    model = onnx.load(str(path), load_external_data=False)
    onnx.helper.set_model_props(model, dict(metadata))
    onnx.save(model, str(path))


def _require_onnx() -> None:
    missing = [name for name in ("onnx", "onnxscript", "onnxruntime") if find_spec(name) is None]
    if missing:
        raise ImportError(f"ONNX needs {', '.join(missing)}: pip install 'neuralbayes[export]'")


@contextmanager
def _quiet() -> Iterator[None]:
    """Hide the messages of torch's exporters."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "onnxscript", "onnx_ir")]
    levels = [logger.level for logger in loggers]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for logger in loggers:
            logger.setLevel(logging.ERROR)
        try:
            yield
        finally:
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)
