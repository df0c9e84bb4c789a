"""``neuralbayes pretrain``: learn features of unlabelled images."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from neuralbayes.cli.options import Flag
from neuralbayes.cli.runs import SKIPPED_FILE, DataChoice, data_name, limited, tell_reduced, tell_skipped

EXAMPLES = """DATA is a named data set, a folder of pictures, a .npy or a .npz. If you interrupt a run, the same \
command continues it and gives the same result.

[bold]Examples[/bold]

  Photographs, with the settings for two cores:
  [cyan]neuralbayes pretrain cifar10 --out run[/cyan]

  Your own pictures, cropped and scaled to 32 x 32:
  [cyan]neuralbayes pretrain my_images/ --size 32 --out run[/cyan]

  A trial run of a minute:
  [cyan]neuralbayes pretrain mnist --encoder tiny --limit 2000 --epochs 3 --out trial[/cyan]

  The settings of the paper, with another weight of the smoothness:
  [cyan]neuralbayes pretrain cifar10 --preset paper --beta 2 --out paper[/cyan]

  Your own objective, the class Mine in mine.py:
  [cyan]neuralbayes pretrain cifar10 --objective mine.py:Mine --out mine[/cyan]

  Two processes on this machine:
  [cyan]torchrun --nproc-per-node 2 -m neuralbayes pretrain cifar10 --out run[/cyan]

  Until it stops improving, with curves for TensorBoard:
  [cyan]neuralbayes pretrain cifar10 --epochs 99 --patience 3 --tensorboard --out long[/cyan]
"""

app = App(name="pretrain", help_epilogue=EXAMPLES)


@app.default
def pretrain(
    data: str,
    /,
    *,
    out: Annotated[Path, Parameter(name=["--out", "-o"])],
    preset: Literal["laptop", "paper"] = "laptop",
    encoder: Literal["paper", "small", "tiny"] | None = None,
    objective: Annotated[str | None, Parameter(metavar="FILE.py:NAME")] = None,
    alpha: float | None = None,
    beta: float | None = None,
    version: Annotated[Literal[1, 2] | None, Parameter(name="--version")] = None,
    scales: Annotated[str | None, Parameter(metavar="A,B,...")] = None,
    smooth_fraction: float | None = None,
    batch: int | None = None,
    microbatch: int | None = None,
    marginal: Literal["minibatch", "running", "exact"] | None = None,
    recompute: bool | None = None,
    epochs: int | None = None,
    patience: int | None = None,
    learning_rate: float | None = None,
    weight_decay: float | None = None,
    schedule: Literal["constant", "cosine"] | None = None,
    normalize: Literal["dimension", "channel", "whiten"] | None = None,
    augment: bool | None = None,
    precision: Literal["32-true", "bf16-mixed"] = "32-true",
    seed: int | None = None,
    device: Annotated[str, Parameter(metavar="NAME")] = "auto",
    split: Literal["train", "test", "unlabeled"] = "train",
    limit: int | None = None,
    size: int | None = None,
    channels: Literal[1, 3] | None = None,
    tensorboard: Flag = False,
    quiet: Flag = False,
) -> None:
    """Learn features of unlabelled images.

    Parameters
    ----------
    data
        A named data set, a folder of pictures, a .npy or a .npz.
    out
        Folder for the encoder, metrics, checkpoints and pictures of the run.
    preset
        Defaults for settings that are not given.
    encoder
        Width of the encoder: 200-500-700-1000 channels (paper), a quarter (small), or a twelfth (tiny).
    objective
        Your own objective in place of MIM, as file.py:Name or package.module:Name: a class without required arguments,
        or an instance. The file is executed.
    alpha
        Weight of the prior term of MIM.
    beta
        Weight of the smoothness R_c.
    version
        Version of MIM: 1 is the mutual information itself, 2 the variant of the paper that is easier to optimise.
    scales
        Average pooling sizes of the hidden states, separated by commas, such as 1,2.
    smooth_fraction
        Share of the images on which R_c is computed. A smaller share is faster.
    batch
        Images per update.
    microbatch
        Images that pass through the network at once.
    marginal
        How p(z) is computed: over the micro-batch, as a running mean, or over the whole batch.
    recompute
        Use less memory and more time.
    epochs
        Passes over the data.
    patience
        Stop after this many epochs without improvement. By default, never.
    learning_rate
        Learning rate of Adam.
    weight_decay
        Weight decay of Adam.
    schedule
        Schedule of the learning rate.
    normalize
        Scale each pixel or each channel to mean 0 and variance 1, or remove the correlations between neighbouring
        pixels (whiten), which helps with photographs.
    augment
        Flip and shift images at random.
    precision
        Floating-point precision, in the words of Lightning Fabric. bf16-mixed needs --beta 0: the smoothness R_c would
        be lost in it.
    seed
        Random seed. The same seed gives the same encoder.
    device
        Device: cpu, cuda, cuda:1 or mps; auto uses the best one available.
    split
        Which part of DATA to learn from.
    limit
        Use only the first N images.
    size
        Crop and scale images to this many pixels per side, at least 22. By default, pictures in a folder are reduced to
        64 pixels on the shorter side, and other images stay as they are.
    channels
        1 for grey, 3 for colour. By default as in the data.
    tensorboard
        Also write the metrics for TensorBoard, into the run folder.
    quiet
        Print errors only.
    """
    import neuralbayes
    from neuralbayes.data.images import load_images
    from neuralbayes.distributed import default_fabric, rank_zero_result
    from neuralbayes.features.pretraining import PRESETS
    from neuralbayes.objectives.description import named_objective
    from neuralbayes.system.files import inside

    given: dict[str, Any] = {
        "encoder": encoder,
        "alpha": alpha,
        "beta": beta,
        "version": version,
        "scales": None if scales is None else _scales(scales),
        "smooth_fraction": smooth_fraction,
        "batch_size": batch,
        "microbatch_size": microbatch,
        "marginal": marginal,
        "recompute": recompute,
        "epochs": epochs,
        "patience": patience,
        "learning_rate": learning_rate,
        "weight_decay": weight_decay,
        "schedule": schedule,
        "normalize": normalize,
        "augment": augment,
        "seed": seed,
    }
    config = replace(PRESETS[preset], **{name: value for name, value in given.items() if value is not None})
    minimised = None if objective is None else named_objective(objective)
    loggers = [_tensorboard(inside(out, "tensorboard"))] if tensorboard else []
    fabric = default_fabric(device=device, precision=precision, loggers=loggers)
    quiet = quiet or not fabric.is_global_zero
    with fabric.rank_zero_first(local=True):  # this process downloads missing data
        images = load_images(data, split=split, size=size, channels=channels, progress=not quiet)
    choice = DataChoice(data_name(data), split, limit, size, channels)
    rank_zero_result(fabric, lambda: choice.keep(out))
    if fabric.is_global_zero:
        tell_reduced(images, quiet=quiet)
        tell_skipped(images, kept_in=out / SKIPPED_FILE, quiet=quiet)
    with _failures_explained(out, quiet):
        neuralbayes.pretrain(
            limited(images, limit), config, objective=minimised, out=out, verbose=not quiet, fabric=fabric
        )
    if not fabric.is_global_zero:
        return
    from neuralbayes.plot.style import problem_of  # only now: matplotlib takes memory
    from neuralbayes.report.run import draw_run

    drawn: list[Path] = []
    problem = problem_of(lambda: drawn.extend(draw_run(out)))
    if not quiet:
        _summarize(out, ", ".join(map(str, drawn)) if problem is None else f"none: {problem}")


def _scales(text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and int(part) >= 1 for part in parts):
        raise ValueError(f"--scales must be whole numbers of at least 1 with commas between them, got {text!r}")
    return tuple(int(part) for part in parts)


@contextmanager
def _failures_explained(out: Path, quiet: bool) -> Iterator[None]:
    """Show warnings at once, so that users see a collapse early, and say what to do after a failure."""
    console = Console(stderr=True, highlight=False, quiet=quiet)

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        console.print(Text(f"warning: {message}", style="yellow"), soft_wrap=True)

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = show
            yield
    except KeyboardInterrupt:
        console.print(f"{out} keeps the progress; run the same command to continue.")
        raise
    except FloatingPointError as error:  # training diverged; other settings can fix this
        raise ValueError(f"{error}; in another folder, try a smaller --learning-rate") from error


def _tensorboard(folder: Path) -> Any:
    from importlib.util import find_spec

    if find_spec("tensorboard") is None:
        raise ImportError("--tensorboard needs tensorboard: pip install 'neuralbayes[track]'")
    from lightning_fabric.loggers.tensorboard import TensorBoardLogger

    return TensorBoardLogger(folder.parent, name=folder.name, version="")


def _summarize(out: Path, drawn: str) -> None:
    from neuralbayes.system.files import read_json

    console = Console(highlight=False)
    result = read_json(out / "result.json")
    heading = (
        f"{result['images']:,} images, {result['steps']:,} updates, {result['seconds']:.0f} s, "
        f"{result['images_per_second']:,.0f} images/s"
    )
    if "peak_memory_mb" in result:  # unknown on Windows
        heading += f", {result['peak_memory_mb']:,} MB"
    console.print(Text(heading, style="bold"), soft_wrap=True)
    if result["ended"] == "early stop":
        console.print(Text(f"ended early: {result['stop_reason']}"), soft_wrap=True)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, caption_justify="left")
    for name in ("layer", "states", "I(x; z)", "of log K", "dead states"):
        table.add_column(name, justify="left" if name == "layer" else "right", no_wrap=True)
    for name, layer in result["layers"].items():
        share = layer["information"] / layer["bound"]
        dead = Text(str(layer["dead"]), style="yellow" if layer["dead"] else "green")
        table.add_row(name, str(layer["states"]), f"{layer['information']:.2f} nats", f"{100 * share:.0f} %", dead)
    console.print(table)
    where = {"encoder": out / "encoder.safetensors", "numbers": out / "result.json"}
    for name, path in where.items():
        console.print(Text.assemble((f"{name:<10}", "dim"), str(path)), soft_wrap=True)
    console.print(Text.assemble((f"{'pictures':<10}", "dim"), drawn), soft_wrap=True)
    run = shlex.quote(str(out))
    for name, command in (("next", f"neuralbayes report {run} --open"), ("", f"neuralbayes probe {run} --baselines")):
        console.print(Text.assemble((f"{name:<10}", "dim"), command), soft_wrap=True)
