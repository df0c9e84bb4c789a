"""``neuralbayes export``: export a model for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from cyclopts import App

from neuralbayes.cli.files import check_exists, check_target, model_folder
from neuralbayes.cli.options import Force, Layer, OutFile, Quiet
from neuralbayes.cli.runs import hidden_state, is_run
from neuralbayes.cli.terminal import say, working

EXAMPLES = """An exported encoder takes a batch of images as bytes, (n, height, width, channels) from 0 to 255, and \
returns the same features as `neuralbayes embed`. An exported model of `neuralbayes cluster` takes such images, or \
rows of numbers, and returns probabilities, labels and typicality. The export is compared with the original before it \
is written. .onnx needs pip install 'neuralbayes\\[export]'; read .pt2 with torch.export.load.

[bold]Examples[/bold]

  [cyan]neuralbayes export run --out encoder.onnx[/cyan]
  [cyan]neuralbayes export run --out encoder.pt2 --layer 2[/cyan]
  [cyan]neuralbayes export customers-clusters --out clusters.onnx[/cyan]
"""

FORMATS: dict[str, Literal["onnx", "torch"]] = {".onnx": "onnx", ".pt2": "torch"}

app = App(name="export", help_epilogue=EXAMPLES)


@app.default
def export(model: Path, /, *, out: OutFile, layer: Layer = "last", force: Force = False, quiet: Quiet = False) -> None:
    """Export an encoder or a clusterer to ONNX or torch.export.

    Args:
        model: Folder of a finished run of pretrain, or a result of cluster.
        out: Output file: .onnx, or .pt2 for torch.export.
    """
    check_exists(model)
    if out.suffix not in FORMATS:
        raise ValueError(f"--out must end in .onnx or .pt2, got {str(out)!r}")
    check_target(out, force=force)
    folder = model if is_run(model) else model_folder(model)
    with working("exporting", quiet=quiet):
        import neuralbayes

        state = hidden_state(layer) if is_run(model) else "relu4"
        found = neuralbayes.export(folder, out, to=FORMATS[out.suffix], state=state)
    if not quiet:
        say(f"{out}: {found['input']} to {found['output']}; differs from the original by at most {found['difference']}")
