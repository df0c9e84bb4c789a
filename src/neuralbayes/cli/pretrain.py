"""``neuralbayes pretrain``: learn features of unlabelled images."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Parameter

from neuralbayes.cli.files import check_exists
from neuralbayes.cli.options import Device, OutFile, Quiet
from neuralbayes.cli.runs import keep_choice, some, tell_skipped
from neuralbayes.cli.terminal import say, say_paths, say_table

if TYPE_CHECKING:
    from neuralbayes.objectives import Objective, WeightedSum

EXAMPLES = """If you interrupt a run, the same command continues it and gives the same result. Settings that have no \
option are attributes of `nb.PretrainConfig`.

[bold]Examples[/bold]

  [cyan]neuralbayes pretrain my_images/ --size 32 --out run[/cyan]
  [cyan]neuralbayes pretrain mnist --encoder tiny --limit 2000 --epochs 3 --out trial[/cyan]
  [cyan]neuralbayes pretrain cifar10 --preset paper --beta 2 --out paper[/cyan]
  [cyan]neuralbayes pretrain cifar10 --objective mine.py:Mine --out mine[/cyan]
  [cyan]torchrun --nproc-per-node 2 -m neuralbayes pretrain cifar10 --out run[/cyan]
"""

app = App(name="pretrain", help_epilogue=EXAMPLES)


@app.default
def pretrain(
    data: str,
    /,
    *,
    out: OutFile,
    preset: Literal["laptop", "paper"] = "laptop",
    encoder: Literal["paper", "small", "tiny"] | None = None,
    objective: Annotated[str | None, Parameter(metavar="FILE.py:NAME")] = None,
    alpha: float | None = None,
    beta: float | None = None,
    batch_size: Annotated[int | None, Parameter(name="--batch")] = None,
    microbatch_size: Annotated[int | None, Parameter(name="--microbatch")] = None,
    epochs: int | None = None,
    learning_rate: float | None = None,
    seed: int | None = None,
    device: Device = "auto",
    limit: int | None = None,
    size: int | None = None,
    quiet: Quiet = False,
) -> None:
    """Learn features of unlabelled images.

    Args:
        data: A named data set, a folder of pictures, a .npy or a .npz.
        out: Folder for the encoder, metrics and checkpoints of the run.
        preset: Defaults for settings that are not given.
        encoder: Width: 200-500-700-1000 channels (paper), a quarter of it (small), or a twelfth (tiny).
        objective: Your own objective in place of MIM: a class, or an instance. The file is executed.
        alpha: Weight of the prior term of MIM.
        beta: Weight of the smoothness R_c.
        batch_size: Images per update.
        microbatch_size: Images that pass through the network at once. Fewer need less memory.
        epochs: Passes over the data.
        learning_rate: Learning rate of Adam.
        seed: Random seed. The same seed gives the same encoder.
        limit: Use only N images, evenly spaced.
        size: Crop and scale images to this many pixels per side, at least 22. By default, pictures in a folder
            are reduced to 64 pixels on the shorter side.
    """
    given: dict[str, Any] = {
        **{"encoder": encoder, "alpha": alpha, "beta": beta, "epochs": epochs, "learning_rate": learning_rate},
        **{"batch_size": batch_size, "microbatch_size": microbatch_size, "seed": seed},
    }
    check_exists(data)
    import neuralbayes
    from neuralbayes.distributed import default_fabric, rank_zero_result
    from neuralbayes.features.pretraining import PRESETS

    config = replace(PRESETS[preset], **{name: value for name, value in given.items() if value is not None})
    minimised = None if objective is None else named_objective(objective)
    fabric = default_fabric(device=device)
    quiet = quiet or not fabric.is_global_zero
    with fabric.rank_zero_first(local=True):  # this process downloads missing data
        images = some(neuralbayes.load_images(data, size=size, progress=not quiet), limit)
    place = str(Path(data).absolute()) if Path(data).exists() else data
    rank_zero_result(fabric, lambda: keep_choice(out, {"data": place, "limit": limit, "size": size}))
    tell_skipped(images, quiet=quiet)
    try:
        neuralbayes.pretrain(images, config, objective=minimised, out=out, verbose=not quiet, fabric=fabric)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"{out} keeps the progress; run the same command to continue") from None
    if not quiet:
        _show(out, data)


def named_objective(reference: str) -> Objective | WeightedSum:
    """The objective FILE.py:NAME or MODULE:NAME, an instance or a class without arguments. This runs its code."""
    from neuralbayes.objectives import Objective, WeightedSum
    from neuralbayes.system.code import named_object

    found = named_object(reference, "objective")
    if isinstance(found, type):
        try:
            found = found()
        except TypeError as error:
            raise ValueError(
                f"`objective` must be a class that takes no arguments, or an instance, got {reference!r}: {error}"
            ) from error
    if not isinstance(found, Objective | WeightedSum):
        raise ValueError(f"`objective` must be a neuralbayes.Objective, got {reference!r}, a {type(found).__name__}")
    return found


def _show(run: Path, data: str) -> None:
    from neuralbayes.system.files import read_json

    result = read_json(run / "result.json")
    say(f"{result['images']:,} images, {result['steps']:,} updates, {result['seconds']:.0f} s", style="bold")
    rows = []
    for name, layer in result["layers"].items():
        share = layer["information"] / layer["bound"]
        rows.append([name, layer["states"], f"{layer['information']:.2f} nats", f"{100 * share:.0f} %", layer["dead"]])
    headings = ["layer", "states", "I(x; z)", "of log K", "dead states"]
    say_table(headings, rows, numbers=headings[1:])
    words = f"{shlex.quote(str(run))} {shlex.quote(data)}"
    say_paths(encoder=run / "encoder.safetensors", next=f"neuralbayes report {words} --open")
