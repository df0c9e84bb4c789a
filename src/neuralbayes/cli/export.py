"""``neuralbayes export``: an encoder for other programs."""

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

EXAMPLES = """The network takes any number of images as bytes, (n, height, width, channels) from 0 to 255, normalises \
them, and gives the features that `neuralbayes embed` gives. It is compared with the original before it is kept. \
onnx needs pip install 'neuralbayes\\[export]'; torch is read by torch.export.load.

[bold]Examples[/bold]

  [cyan]neuralbayes export run --to onnx --out encoder.onnx[/cyan]
  [cyan]neuralbayes export run --to torch --out encoder.pt2 --layer 2[/cyan]
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
    layer: Annotated[str, Parameter(metavar="last|1..4|relu1..relu4")] = "last",
    force: Flag = False,
    quiet: Flag = False,
) -> None:
    """Write an encoder for other programs.

    Parameters
    ----------
    run
        Folder of a finished pretraining.
    to
        The format.
    out
        The file: .onnx, or .pt2 for torch.
    layer
        Which hidden layer it gives: the last one, or one by its number or name.
    force
        Replace a file that exists.
    quiet
        Print nothing but errors.
    """
    state = one_layer(layer)
    if out.suffix != SUFFIX[to]:
        raise ValueError(f"--out must end in {SUFFIX[to]} for --to {to}, got {str(out)!r}")
    check_target(out, option="--out", force=force, source=run / "encoder.safetensors")
    with busy("exporting", enabled=not quiet):
        from neuralbayes.features.export import export_encoder

        encoder = load_encoder(run)
        difference = export_encoder(encoder, out, to, state=state)
    if not quiet:
        shape = ", ".join(map(str, encoder.shape))
        text = f"{out}: bytes of shape (n, {shape}) to {state}; off the original by at most {difference:.1g}"
        Console(highlight=False).print(Text(text), soft_wrap=True)
