"""``neuralbayes export``: a model for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter
from rich.console import Console
from rich.text import Text

from neuralbayes.cli.busy import busy
from neuralbayes.cli.options import Flag
from neuralbayes.cli.outputs import check_target
from neuralbayes.cli.runs import load_encoder, one_layer

EXAMPLES = """A pretrained encoder takes any number of images as bytes, (n, height, width, channels) from 0 to 255, \
normalises them, and gives the features that `neuralbayes embed` gives. A model of `neuralbayes label --save` takes \
such images, or rows of numbers in float64, and gives probabilities, labels and typicality. Each is compared with the \
original before it is kept. onnx needs pip install 'neuralbayes\\[export]'; torch is read by torch.export.load.

[bold]Examples[/bold]

  [cyan]neuralbayes export run --to onnx --out encoder.onnx[/cyan]
  [cyan]neuralbayes export run --to torch --out encoder.pt2 --layer 2[/cyan]
  [cyan]neuralbayes export model --to onnx --out clusters.onnx[/cyan]
"""

SUFFIX = {"onnx": ".onnx", "torch": ".pt2"}

app = App(name="export", help_epilogue=EXAMPLES)


@app.default
def export(
    run: Path,
    /,
    *,
    to: Literal["onnx", "torch"],
    out: Annotated[Path, Parameter(name=["--out", "-o"])],
    layer: Annotated[str | None, Parameter(metavar="last|1..4|relu1..relu4")] = None,
    force: Flag = False,
    quiet: Flag = False,
) -> None:
    """Write an encoder or a clusterer for other programs.

    Parameters
    ----------
    run
        Folder of a finished pretraining, or of a saved model.
    to
        The format.
    out
        The file: .onnx, or .pt2 for torch.
    layer
        Which hidden layer an encoder gives: the last one, the default, or one by its number or name.
    force
        Replace a file that exists.
    quiet
        Print nothing but errors.
    """
    if out.suffix != SUFFIX[to]:
        raise ValueError(f"--out must end in {SUFFIX[to]} for --to {to}, got {str(out)!r}")
    is_model = (run / "model.json").is_file()
    if is_model and layer is not None:
        raise ValueError(f"--layer is for encoders, but {run} holds a model of clusters")
    state = one_layer(layer or "last")
    check_target(out, option="--out", force=force, source=run / ("model.json" if is_model else "encoder.safetensors"))
    with busy("exporting", enabled=not quiet):
        text = _export_model(run, out, to) if is_model else _export_encoder(run, out, to, state)
    if not quiet:
        Console(highlight=False).print(Text(f"{out}: {text}"), soft_wrap=True)


def _export_encoder(run: Path, out: Path, to: Literal["onnx", "torch"], state: str) -> str:
    from neuralbayes.features.export import export_encoder

    encoder = load_encoder(run)
    difference = export_encoder(encoder, out, to, state=state)
    shape = ", ".join(map(str, encoder.shape))
    return f"bytes of shape (n, {shape}) to {state}; off the original by at most {difference:.1g}"


def _export_model(folder: Path, out: Path, to: Literal["onnx", "torch"]) -> str:
    import neuralbayes

    model = neuralbayes.load(folder)
    if not isinstance(model, neuralbayes.InformationClusterer | neuralbayes.ManifoldLabeler):
        raise ValueError(f"{folder} must hold a clusterer, got {type(model).__name__}")
    difference = neuralbayes.export_clusterer(model, out, to)
    shape = ", ".join(map(str, model.image_shape_ or [model.n_features_in_]))
    kind = "float64 rows" if model.image_shape_ is None else "bytes"
    return f"{kind} of shape (n, {shape}) to {model.n_clusters_} clusters; off the original by at most {difference:.1g}"
