"""``neuralbayes export``: export a model for other programs."""

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

EXAMPLES = """An exported encoder takes a batch of images as bytes, (n, height, width, channels) from 0 to 255, and \
returns the same features as `neuralbayes embed`. An exported model of `neuralbayes label --save` takes such images, \
or rows of float64 numbers, and returns probabilities, labels and typicality. The export is compared with the original \
before it is written. onnx needs pip install 'neuralbayes\\[export]'; read torch with torch.export.load.

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
    """Export an encoder or a clusterer to ONNX or torch.export.

    Parameters
    ----------
    run
        Folder of a finished run of pretrain, or of a saved model.
    to
        The format.
    out
        Output file: .onnx, or .pt2 for torch.
    layer
        Hidden layer of an encoder: the last one (the default), or a number or name.
    force
        Overwrite an existing file.
    quiet
        Print errors only.
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
    return f"bytes of shape (n, {shape}) to {state}; differs from the original by at most {difference:.1g}"


def _export_model(folder: Path, out: Path, to: Literal["onnx", "torch"]) -> str:
    import neuralbayes

    model = neuralbayes.load(folder)
    if not isinstance(model, neuralbayes.InformationClusterer | neuralbayes.ManifoldLabeler):
        raise ValueError(f"{folder} must hold a clusterer, got {type(model).__name__}")
    difference = neuralbayes.export_clusterer(model, out, to)
    shape = ", ".join(map(str, model.image_shape_ or [model.n_features_in_]))
    kind = "float64 rows" if model.image_shape_ is None else "bytes"
    mapping = f"{kind} of shape (n, {shape}) to {model.n_clusters_} clusters"
    return f"{mapping}; differs from the original by at most {difference:.1g}"
