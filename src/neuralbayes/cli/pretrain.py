"""``neuralbayes pretrain``: learn features of unlabelled images."""

from __future__ import annotations

import shlex
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter

from neuralbayes.cli.files import check_exists
from neuralbayes.cli.options import Device, Flag
from neuralbayes.cli.runs import SKIPPED, first, keep_data, tell_skipped
from neuralbayes.cli.terminal import say, say_paths, say_table, tell

EXAMPLES = """If you interrupt a run, the same command continues it and gives the same result. Settings that have no \
option are attributes of `nb.PretrainConfig`.

[bold]Examples[/bold]

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
    batch_size: Annotated[int | None, Parameter(name="--batch")] = None,
    microbatch_size: Annotated[int | None, Parameter(name="--microbatch")] = None,
    marginal: Literal["minibatch", "running", "exact"] | None = None,
    epochs: int | None = None,
    patience: int | None = None,
    learning_rate: float | None = None,
    normalize: Literal["dimension", "channel", "whiten"] | None = None,
    augment: bool | None = None,
    seed: int | None = None,
    device: Device = "auto",
    split: Literal["train", "test", "unlabeled"] = "train",
    limit: int | None = None,
    size: int | None = None,
    tensorboard: Flag = False,
    quiet: Flag = False,
) -> None:
    """Learn features of unlabelled images.

    Parameters
    ----------
    data
        A named data set, a folder of pictures, a .npy or a .npz.
    out
        Folder for the encoder, metrics and checkpoints of the run.
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
    batch_size
        Images per update.
    microbatch_size
        Images that pass through the network at once.
    marginal
        How p(z) is computed: over the micro-batch, as a running mean, or over the whole batch.
    epochs
        Passes over the data.
    patience
        Stop after this many epochs without improvement. By default, never.
    learning_rate
        Learning rate of Adam.
    normalize
        Scale each pixel or each channel to mean 0 and variance 1, or remove the correlations between neighbouring
        pixels (whiten), which helps with photographs.
    augment
        Flip and shift images at random.
    seed
        Random seed. The same seed gives the same encoder.
    device
        Device: cpu, cuda, cuda:1 or mps; auto uses the best one available.
    split
        Which part of DATA to learn from.
    limit
        Use only N images, evenly spaced.
    size
        Crop and scale images to this many pixels per side, at least 22. By default, pictures in a folder are reduced to
        64 pixels on the shorter side, and other images stay as they are.
    tensorboard
        Also write the metrics for TensorBoard, into the run folder.
    quiet
        Print errors only.
    """
    check_exists(Path(data), sets=True)
    import neuralbayes
    from neuralbayes.distributed import default_fabric, rank_zero_result
    from neuralbayes.features.pretraining import PRESETS
    from neuralbayes.objectives.description import named_objective

    given: dict[str, Any] = {
        "encoder": encoder,
        "alpha": alpha,
        "beta": beta,
        "batch_size": batch_size,
        "microbatch_size": microbatch_size,
        "marginal": marginal,
        "epochs": epochs,
        "patience": patience,
        "learning_rate": learning_rate,
        "normalize": normalize,
        "augment": augment,
        "seed": seed,
    }
    config = replace(PRESETS[preset], **{name: value for name, value in given.items() if value is not None})
    fabric = default_fabric(device=device, loggers=[_tensorboard(out)] if tensorboard else [])
    quiet = quiet or not fabric.is_global_zero
    with fabric.rank_zero_first(local=True):  # this process downloads missing data
        images = first(neuralbayes.load_images(data, split=split, size=size, progress=not quiet), limit)
    options = {"split": split, "limit": limit, "size": size}
    rank_zero_result(fabric, lambda: keep_data(out, data, options))
    if fabric.is_global_zero:
        tell_skipped(images, out / SKIPPED, quiet=quiet)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore" if quiet else "always", UserWarning)  # a collapse is told at once
            neuralbayes.pretrain(
                images,
                config,
                objective=None if objective is None else named_objective(objective),
                out=out,
                verbose=not quiet,
                fabric=fabric,
            )
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"{out} keeps the progress; run the same command to continue") from None
    except FloatingPointError as error:  # other settings can fix this
        raise ValueError(f"{error}; in another folder, try a smaller --learning-rate") from error
    if not quiet:
        _show(out)


def _tensorboard(out: Path) -> Any:
    from importlib.util import find_spec

    from neuralbayes.system.files import inside

    if find_spec("tensorboard") is None:
        raise ImportError("--tensorboard needs tensorboard: pip install 'neuralbayes[track]'")
    from lightning_fabric.loggers.tensorboard import TensorBoardLogger

    return TensorBoardLogger(inside(out, "tensorboard").parent, name="tensorboard", version="")


def _show(run: Path) -> None:
    from neuralbayes.system.files import read_json

    result = read_json(run / "result.json")
    say(
        f"{result['images']:,} images, {result['steps']:,} updates, {result['seconds']:.0f} s, "
        f"{result['images_per_second']:,.0f} images/s",
        style="bold",
    )
    if result["ended"] == "early stop":
        say(f"ended early: {result['stop_reason']}")
    rows = [
        [
            name,
            layer["states"],
            f"{layer['information']:.2f} nats",
            f"{100 * layer['information'] / layer['bound']:.0f} %",
            layer["dead"],
        ]
        for name, layer in result["layers"].items()
    ]
    headings = ["layer", "states", "I(x; z)", "of log K", "dead states"]
    say_table(headings, rows, numbers=headings[1:])
    for warning in result["warnings"]:
        tell(warning, style="yellow")
    folder = shlex.quote(str(run))
    say_paths([("encoder", run / "encoder.safetensors"), ("numbers", run / "result.json")])
    say_paths([("next", f"neuralbayes report {folder} --open"), ("", f"neuralbayes probe {folder} --baselines")])
