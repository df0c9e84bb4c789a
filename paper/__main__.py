"""``neuralbayes reproduce``: the tables and figures of the paper, measured."""

from __future__ import annotations

from datetime import timedelta
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Parameter
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from neuralbayes.cli.options import Flag
from paper import NAMES

if TYPE_CHECKING:
    from paper.experiment import Run, Scale
    from paper.results_page import Section

    Name = str
    Job = tuple[str, Run]  # the first experiment that needs a run, and the run
else:
    Name = Literal["all", *NAMES]  # for help, completion and spelling suggestions

EXAMPLES = """An interrupted command continues when you run it again. Finished runs are not repeated.

[bold]Examples[/bold]

  Everything at a small scale on digits, as a check:
  [cyan]neuralbayes reproduce all --scale smoke[/cyan]

  One table on CIFAR-10 at a size for two cores, recorded for the results page:
  [cyan]neuralbayes reproduce table-batch --scale laptop --record results/reproduce[/cyan]

  List the runs and their status:
  [cyan]neuralbayes reproduce all --scale laptop --list[/cyan]

  Some of the runs, by name:
  [cyan]neuralbayes reproduce table-classification --only '*rotation*'[/cyan]

  Shared by several machines, with this command on each:
  [cyan]neuralbayes reproduce all --scale laptop --storage postgresql://user@host/name[/cyan]

  The original scale; the cost is estimated first:
  [cyan]neuralbayes reproduce fig-ablation --scale paper --yes[/cyan]
"""

STYLES = {
    "holds": "green",
    "holds in part": "yellow",
    "undecided": "yellow",
    "not seen at this scale": "yellow",
    "does not hold here": "red",
    "not run": "dim",
}

app = App(name="reproduce", help_epilogue=EXAMPLES)


@app.default
def reproduce(
    name: Name,
    /,
    *,
    scale: Literal["smoke", "laptop", "paper"] = "smoke",
    seeds: int | None = None,
    workers: int | None = None,
    storage: Annotated[str | None, Parameter(metavar="FILE|URL")] = None,
    out: Annotated[Path, Parameter(name=["--out", "-o"])] = Path("reproduce"),
    record: Path | None = None,
    only: Annotated[str | None, Parameter(metavar="PATTERN")] = None,
    list_: Annotated[Flag, Parameter(name="--list")] = False,
    yes: Flag = False,
    quiet: Flag = False,
) -> None:
    """Reproduce a table or figure of the paper.

    Parameters
    ----------
    name
        Which one, or all.
    scale
        smoke: a quick trial on digits. laptop: MNIST and CIFAR-10 at a size for two cores. paper: the original size.
    seeds
        Number of runs per setting. By default that of the scale.
    workers
        Number of parallel processes, one per core by default. The same number gives the same results.
    storage
        Database through which all machines with the same command share the runs, such as postgresql://user@host/name,
        or an SQLite file for the processes of one machine. If a process dies, another one takes over its run. All
        machines end with all results.
    out
        Folder for the runs, tables and pictures.
    record
        Folder for a copy of the results, from which `neuralbayes report` writes the results page. Runs whose results it
        already holds are not repeated, and results of more seeds stay in it.
    only
        Only do runs whose name matches, such as '*beta=0*'. --list shows the names.
    list_
        List the runs and their status, and run nothing.
    yes
        Confirm that you want to start a long computation (--scale paper).
    quiet
        Print errors only.
    """
    from neuralbayes.distributed.launch import n_workers

    from paper.images import fetch

    names = NAMES if name == "all" else (name,)
    workers = n_workers(workers)
    if seeds is not None and seeds < 1:
        raise ValueError(f"--seeds must be at least 1, got {seeds}")
    jobs = _jobs(names, scale, seeds, only)
    console = Console(highlight=False)
    if record is not None:
        _restore(names, scale, seeds, out, record)
    if list_:
        _list(jobs, out, console, runs=len(names) == 1)
        return
    from paper.sweep import sweep

    runs = [run for _, run in jobs]
    left = [run for run in runs if not run.finished(out)]
    if scale == "paper" and left:
        estimate = f"{len(left)} runs of about {_duration(_cost(left, workers))} of training on this machine"
        if not yes:
            raise ValueError(f"{estimate}: --yes starts them")
        if not quiet:
            console.print(estimate, soft_wrap=True)
    fetch({data for run in left for data in run.data_names}, progress=not quiet)
    failed: dict[str, str] = {}
    try:
        study = _command(name, scale, seeds) + (f" --only {only}" if only else "")
        failed = sweep(runs, out, workers=workers, verbose=not quiet, storage=storage, study=study)
    except KeyboardInterrupt:
        if not quiet:
            done = sum(run.finished(out) for run in runs)
            kept = f"{done} of {len(runs)} runs are finished; run the same command to continue"
            Console(stderr=True, highlight=False).print(kept, soft_wrap=True)
        if record is not None:
            _record(names, scale, seeds, out, record)
        raise
    _finish(names, scale, seeds, out, record, console, quiet)
    if failed:
        what = "; ".join(f"{run} ({error})" for run, error in failed.items())
        raise ValueError(f"{len(failed)} of {len(runs)} runs failed: {what}")


def _command(name: str, scale: Scale, seeds: int | None) -> str:
    return f"neuralbayes reproduce {name} --scale {scale}" + (f" --seeds {seeds}" if seeds else "")


def _jobs(names: tuple[str, ...], scale: Scale, seeds: int | None, only: str | None) -> list[Job]:
    """All runs, each once, with the first experiment that needs it."""
    from paper import load_experiment

    jobs: dict[str, Job] = {}
    for name in names:
        for run in load_experiment(name).runs(scale, seeds):
            if only is None or fnmatch(run.label, only):
                jobs.setdefault(run.key, (name, run))
    if not jobs:
        raise ValueError(f"--only must match the name of a run, got {only!r}; --list shows them")
    return list(jobs.values())


def _list(jobs: list[Job], out: Path, console: Console, *, runs: bool) -> None:
    """The experiments, or the runs of a single one."""
    from paper import load_experiment

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    if runs:
        for heading in ("run", "folder", "finished"):
            table.add_column(heading, no_wrap=True)
        for _, run in jobs:
            table.add_row(run.label, f"{run.experiment}/{run.key}", "yes" if run.finished(out) else "no")
    else:
        for heading in ("name", "runs", "finished", "what"):
            table.add_column(heading, no_wrap=heading != "what", justify="right" if heading == "runs" else "left")
        for name in NAMES:
            own = [run for wanted_by, run in jobs if wanted_by == name]
            done = sum(run.finished(out) for run in own)
            table.add_row(name, str(len(own)), str(done), load_experiment(name).title)
        table.caption = "a run that several experiments use is counted once"
    console.print(table)


def _cost(runs: list[Run], workers: int) -> float:
    """Expected seconds of all runs with `workers` processes, from timed steps with the threads of one."""
    import torch
    from neuralbayes.distributed.launch import n_threads, on_its_own

    from paper import load_experiment

    threads = torch.get_num_threads()
    torch.set_num_threads(n_threads(workers))
    try:
        with on_its_own():
            return sum(load_experiment(run.experiment).cost(run) for run in runs) / workers
    finally:
        torch.set_num_threads(threads)


def _duration(seconds: float) -> str:
    """Format a duration, such as "3 days" or "0:20:00".

    Examples
    --------
    >>> _duration(1200), _duration(300_000)
    ('0:20:00', '3.5 days')
    """
    return f"{seconds / 86400:.1f} days" if seconds >= 2 * 86400 else str(timedelta(seconds=round(seconds)))


def _finish(
    names: tuple[str, ...],
    scale: Scale,
    seeds: int | None,
    out: Path,
    record: Path | None,
    console: Console,
    quiet: bool,
) -> None:
    """Write numbers, tables and pictures of each experiment, and print the verdicts."""
    from paper import load_experiment
    from paper.page import write_section
    from paper.records import Recorded

    for name in names:
        command = _command(name, scale, seeds)
        recorded = Recorded.collect(name, scale, command, load_experiment(name).runs(scale, seeds), out)
        if not recorded.records:
            continue
        recorded.write(out)
        section = write_section(recorded, out)
        if not quiet:
            _print(section, recorded.path(out).with_suffix(".md"), console)
    if record is not None:
        _record(names, scale, seeds, out, record)


def _restore(names: tuple[str, ...], scale: Scale, seeds: int | None, out: Path, record: Path) -> None:
    """Copy what the record holds to the folders of the runs."""
    from paper import load_experiment
    from paper.records import restore_results, seeds_of

    runs = [run for name in names for run in load_experiment(name).runs(scale, seeds_of(record, name, scale, seeds))]
    restore_results(record, scale, runs, out)


def _record(names: tuple[str, ...], scale: Scale, seeds: int | None, out: Path, record: Path) -> None:
    """Write the results of all finished runs to the record."""
    from paper import load_experiment
    from paper.records import Recorded, seeds_of

    for name in names:
        n = seeds_of(record, name, scale, seeds)
        runs = load_experiment(name).runs(scale, n)
        recorded = Recorded.collect(name, scale, _command(name, scale, n), runs, out)
        if recorded.records:
            recorded.write(record)


def _print(section: Section, page: Path, console: Console) -> None:
    console.print(Text(section.title, style="bold"), soft_wrap=True)
    for claim in section.claims:
        text = Text.assemble((f"  {claim.verdict}: ", STYLES[claim.verdict]), f"{claim.text}. ", (claim.numbers, "dim"))
        console.print(text, soft_wrap=not console.is_terminal)
    console.print(Text(f"  {page}", style="dim"), soft_wrap=True)
