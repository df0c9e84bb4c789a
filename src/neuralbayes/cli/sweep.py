"""``neuralbayes sweep``: search the settings of `pretrain`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Parameter
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from neuralbayes.cli.options import Flag
from neuralbayes.cli.runs import DataChoice, data_name

if TYPE_CHECKING:
    from neuralbayes.sweeps.search import Outcome, Plan

EXAMPLES = """DATA is what `neuralbayes pretrain` takes, and settings have the names of its options. An \
interrupted command continues when you run it again, also with more --trials. The test part of DATA is never used.

[bold]Examples[/bold]

  Twenty short trainings, each chosen by the results so far:
  [cyan]neuralbayes sweep cifar10 --search alpha=0:10 learning_rate=1e-4:1e-1:log \\
      --set epochs=3 --out sweep[/cyan]

  Discrete choices, and images scaled up:
  [cyan]neuralbayes sweep digits --size 24 --out sweep \\
      --search beta=0,0.5,2 encoder=tiny,small scales=1,1+2[/cyan]

  Pictures without labels, with pruning of poor trials:
  [cyan]neuralbayes sweep my_images/ --size 32 --metric information --prune \\
      --search alpha=0:10 --out sweep[/cyan]

  The same sweep on several machines, with this command on each:
  [cyan]neuralbayes sweep cifar10 --search alpha=0:10 --trials 100 \\
      --storage postgresql://user@host/name --out sweep[/cyan]
"""

SHOWN = 8  # trials in the table
MEANINGS = {"probe": "accuracy of a linear probe", "information": "I(x; z) of the last layer in nats"}
OPTIONS = {"batch_size": "batch", "microbatch_size": "microbatch"}

app = App(name="sweep", help_epilogue=EXAMPLES)


@app.default
def sweep(
    data: str,
    /,
    *,
    out: Annotated[Path, Parameter(name=["--out", "-o"])],
    search: Annotated[list[str], Parameter(consume_multiple=True, negative="", metavar="NAME=VALUES")],
    set_: Annotated[
        list[str] | None, Parameter(name="--set", consume_multiple=True, negative="", metavar="NAME=VALUE")
    ] = None,
    preset: Literal["laptop", "paper"] = "laptop",
    objective: Annotated[str | None, Parameter(metavar="FILE.py:NAME")] = None,
    trials: int = 20,
    metric: Literal["probe", "information"] = "probe",
    prune: Flag = False,
    workers: int | None = None,
    storage: Annotated[str | None, Parameter(metavar="FILE|URL")] = None,
    seed: int = 0,
    split: Literal["train", "test", "unlabeled"] = "train",
    limit: int | None = None,
    size: int | None = None,
    channels: Literal[1, 3] | None = None,
    quiet: Flag = False,
) -> None:
    """Search for the settings of `pretrain` that learn the best features.

    Parameters
    ----------
    data
        A data set (see `neuralbayes data list`), a folder of pictures, a .npy or a .npz.
    out
        Folder of the sweep, with a folder for each trial, sweep.db, sweep.json and sweep.png.
    search
        Search space: NAME=LOW:HIGH, NAME=LOW:HIGH:log or NAME=A,B,... Write a tuple as 1+2.
    set_
        Settings for all trials that differ from the preset.
    preset
        Defaults for all other settings.
    objective
        Your own objective in place of MIM, as for `neuralbayes pretrain`. The file is executed.
    trials
        Total number of trials.
    metric
        What to maximise: the accuracy of a linear probe of the last layer on a fifth of the labelled training images,
        or I(x; z) of the last layer. The second needs no labels but says less: training maximises it anyway, and wider
        encoders can reach more of it.
    prune
        Stop a trial that is worse than the median of the others after the same number of epochs.
    workers
        Number of parallel processes, one per core by default.
    storage
        Database through which all machines with the same command share the trials, such as
        postgresql://user@host/name, or an SQLite file for the processes of one machine. By default sweep.db in the
        output folder.
    seed
        Random seed of the search and of each training.
    split
        Which part of DATA to learn from; the labels are those of its training part.
    limit
        Use only the first N images.
    size
        Crop and scale images to this many pixels per side, at least 22. By default, pictures in a folder are reduced to
        64 pixels on the shorter side, and other images stay as they are.
    channels
        1 for grey, 3 for colour. By default as in the data.
    quiet
        Print errors only.
    """
    from dataclasses import replace

    from neuralbayes.distributed.launch import n_workers
    from neuralbayes.features.pretraining import PRESETS
    from neuralbayes.sweeps.search import Plan
    from neuralbayes.sweeps.search import search as run
    from neuralbayes.sweeps.space import parse
    from neuralbayes.sweeps.trial import Pictures

    space, config = parse(search, set_ or [], replace(PRESETS[preset], seed=seed))
    plan = Plan(Pictures(data_name(data), split, limit, size, channels), space, config, metric, prune, objective)
    try:
        outcomes = run(plan, out, trials=trials, workers=n_workers(workers), storage=storage, verbose=not quiet)
    except KeyboardInterrupt:
        if not quiet:
            kept = f"{out} keeps the finished trials; run the same command to continue"
            Console(stderr=True, highlight=False).print(kept, soft_wrap=True)
        raise
    for outcome in outcomes:
        if (out / outcome.trial / "config.json").is_file():  # otherwise it was done on another machine
            DataChoice(plan.pictures.data, split, limit, size, channels).keep(out / outcome.trial)
    if outcomes[0].value is None:
        raise ValueError(f"no trial was finished; {outcomes[0].trial}: {outcomes[0].note}")
    picture = _draw(out, outcomes, plan)
    if not quiet:
        console = Console(highlight=False)
        _table(outcomes, plan, console)
        again = " ".join(map(shlex.quote, _again(data, preset, plan, outcomes[0].settings)))
        for name, text in {"numbers": str(out / "sweep.json"), "picture": picture, "the best": again}.items():
            console.print(Text.assemble((f"{name:<10}", "dim"), text), soft_wrap=True)


def _draw(out: Path, outcomes: list[Outcome], plan: Plan) -> str:
    from neuralbayes.plot.style import problem_of, save_picture
    from neuralbayes.report.sweeps import draw_sweep

    path = out / "sweep.png"
    problem = problem_of(lambda: save_picture(draw_sweep(outcomes, plan.space, MEANINGS[plan.metric]), path))
    return str(path) if problem is None else f"none: {problem}"


def _table(outcomes: list[Outcome], plan: Plan, console: Console) -> None:
    """The best trials, and the number of failed ones."""
    finished = [outcome for outcome in outcomes if outcome.value is not None]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, caption_justify="left")
    for name in ("trial", MEANINGS[plan.metric], *plan.space, "seconds"):
        table.add_column(name, justify="left" if name == "trial" else "right")
    for outcome in finished[:SHOWN]:
        percent = f"{100 * (outcome.value or 0.0):.2f} %" if plan.metric == "probe" else f"{outcome.value:.3f}"
        chosen = [_text(outcome.settings[name]) for name in plan.space]
        table.add_row(outcome.trial, percent, *chosen, f"{outcome.seconds:.0f}")
    others = {state: sum(outcome.state == state for outcome in outcomes) for state in ("ended early", "failed")}
    table.caption = ", ".join([f"{len(finished)} finished", *(f"{n} {state}" for state, n in others.items() if n)])
    console.print(table)
    for outcome in outcomes:
        if outcome.state == "failed":
            console.print(Text(f"{outcome.trial} failed: {outcome.note}", style="yellow"), soft_wrap=True)


def _again(data: str, preset: str, plan: Plan, settings: dict[str, Any]) -> list[str]:
    """The command that trains with `settings` on all images, with the epochs of the preset."""
    from dataclasses import asdict

    from neuralbayes.features.pretraining import PRESETS

    usual = asdict(PRESETS[preset])
    given = {name: value for name, value in asdict(plan.config).items() if value != usual[name]}
    if given.get("epochs", usual["epochs"]) < usual["epochs"]:
        del given["epochs"]
    given |= settings
    given |= {"split": plan.pictures.split} if plan.pictures.split != "train" else {}
    given |= {"size": plan.pictures.size, "channels": plan.pictures.channels}
    words = ["neuralbayes", "pretrain", data, *(["--preset", preset] if preset != "laptop" else [])]
    words += [] if plan.objective is None else ["--objective", plan.objective]
    for name, value in given.items():
        option = OPTIONS.get(name, name).replace("_", "-")
        if isinstance(value, bool):
            words.append(f"--{option}" if value else f"--no-{option}")
        elif value is not None:
            words += [f"--{option}", _text(value)]
    return [*words, "--out", "best"]


def _text(value: Any) -> str:
    """Format a setting as an option of `neuralbayes pretrain`.

    Examples
    --------
    >>> _text(0.03), _text((1, 2)), _text("tiny")
    ('0.03', '1,2', 'tiny')
    """
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
