"""``neuralbayes doctor``: what works on this computer, how fast, and what to change."""

from __future__ import annotations

import getpass
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

if TYPE_CHECKING:
    from neuralbayes.doctor.advice import Advice
    from neuralbayes.doctor.examination import Examination

EXAMPLES = """Looks at versions, cores, memory, devices and data sets, trains for some seconds on made-up images, and \
ends with advice. Nothing is changed and nothing is sent anywhere. The exit code is 1 where something is broken. Put \
what it prints into a report of a bug: your home folder and your name are left out.

[bold]Examples[/bold]

  [cyan]neuralbayes doctor[/cyan]
  [cyan]neuralbayes doctor --json > doctor.json[/cyan]
"""

SHOWN = ("torch", "numpy", "scikit-learn", "lightning-fabric")
"""Required packages that are named even if nothing is wrong with them."""

HEADINGS = {"broken": "Broken:", "change": "To change:", "wish": "If you like:"}
STYLES = {"broken": "bold red", "change": "yellow", "wish": "dim"}

Flag = Annotated[bool, Parameter(negative="", show_default=False)]
app = App(name="doctor", help_epilogue=EXAMPLES)


@app.default
def doctor(*, json_: Annotated[Flag, Parameter(name="--json")] = False, quiet: Flag = False) -> int:
    """Tell what works on this computer, how fast, and what to change.

    Parameters
    ----------
    json_
        Print one JSON object and nothing else.
    quiet
        Print nothing but what is broken.
    """
    from neuralbayes.doctor.advice import advise
    from neuralbayes.doctor.examination import examine

    with _shown(enabled=not (quiet or json_)) as watch:
        found = examine(watch)
    advice = advise(found)
    broken = [item for item in advice if item.level == "broken"]
    if json_:
        summary = {"ok": not broken, "advice": [asdict(item) for item in advice], **found.to_dict()}
        print(_anonymous(json.dumps(summary, indent=2, allow_nan=False)))
    elif quiet:
        _print_advice(broken, Console(stderr=True, highlight=False))
    else:
        console = Console(highlight=False)
        for heading, rows in _sections(found).items():
            _print_section(heading, rows, console)
        if all(item.level == "wish" for item in advice):
            console.print(Text("Nothing to do: everything works.", style="bold green"))
        _print_advice(advice, console)
    return 1 if broken else 0


@contextmanager
def _shown(*, enabled: bool) -> Iterator[Callable[[str], None]]:
    """Say what is being done while the block runs, in a terminal only; then no trace of it."""
    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not (enabled and console.is_terminal)) as progress:
        task = progress.add_task("", total=None)
        yield lambda doing: progress.update(task, description=doing)


def _anonymous(text: str) -> str:
    """`text` with ~ for the home folder, and $USER where a folder is named after the user."""
    home = Path.home()
    if home != Path(home.anchor):
        text = re.sub(rf"{re.escape(str(home))}(?![\w.-])", "~", text)
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a user without a name
        return text
    return re.sub(rf"(?<=[/\\]){re.escape(user)}(?=[/\\])", "$USER", text)


def _sections(found: Examination) -> dict[str, dict[str, str]]:
    """What is printed, by heading and name."""
    return {
        "Software": _software(found),
        "Extras": {
            extra.name: ", ".join(f"{name} {there}" for name, there in extra.versions.items())
            if extra.complete
            else f"not installed; {extra.purpose}"
            for extra in found.extras
        },
        "Machine": _machine(found),
        "Data": _data(found),
        "Speed": _speed(found),
    }


def _software(found: Examination) -> dict[str, str]:
    rows = {"neuralbayes": found.neuralbayes, "python": found.python}
    for package in found.packages:
        if package.name in SHOWN or not package.fits:
            rows[package.name] = (package.version or "missing") + ("" if package.fits else f", wanted {package.wanted}")
    return rows


def _machine(found: Examination) -> dict[str, str]:
    machine = found.machine
    cores = str(machine.cores)
    if machine.allowed < machine.cores:
        cores += f", of which this process may use {machine.allowed}"
    if machine.quota is not None:
        cores += f", for {machine.quota:g} cores' worth of time"
    rows = {"system": machine.system, "processor": machine.processor, "cores": cores}
    rows["threads"] = "unknown" if found.threads is None else f"{found.threads} of torch"
    if machine.threads:
        rows["threads"] += f" ({', '.join(f'{name}={value}' for name, value in machine.threads.items())})"
    if machine.load is not None:
        rows["load"] = f"{machine.load:.1f} in the last minute"
    if machine.memory is not None:
        free = "" if machine.free_memory is None else f", {machine.free_memory / 1e9:.1f} GB free"
        rows["memory"] = f"{machine.memory / 1e9:.1f} GB{free}"
    if found.devices is not None:
        names = [f"{device.name}{', broken' if device.problem else ''}" for device in found.devices]
        rows["devices"] = ", ".join(names) or "the processor alone"
    if found.bfloat16 is not None:
        speedup = found.bfloat16.speedup
        rows["bfloat16"] = (
            found.bfloat16.problem if speedup is None else f"works, {speedup:.2f} times as fast as float32"
        )
    if found.gloo_problem is not None:
        rows["processes"] = found.gloo_problem or "can work together (gloo)"
    return rows


def _data(found: Examination) -> dict[str, str]:
    if found.data is None:
        return {}
    data = found.data
    rows = {"folder": f"{data.folder}, {data.free_bytes / 1e9:.1f} GB free"}
    rows |= {name: f"from {source}" for name, source in data.present.items()}
    return rows | {"not there": ", ".join(data.absent) or "none"}


def _speed(found: Examination) -> dict[str, str]:
    if found.speed is None:
        return {}
    speed = found.speed
    took = timedelta(seconds=round(speed.cifar10_seconds))
    return {
        "convolution": f"{speed.gflops:.0f} GFLOPS",
        "pretrain": f"{speed.images_per_second:.0f} images/s of 32 x 32 pixels",
        "pretrain cifar10": f"would take {took}",
    }


def _print_section(heading: str, rows: dict[str, str], console: Console) -> None:
    if not rows:
        return
    console.print(Text(heading, style="bold"))
    for name, value in rows.items():
        # soft_wrap: a line that is broken over two cannot be copied
        console.print(Text.assemble((f"  {name:<18}", "dim"), _anonymous(value)), soft_wrap=True)


def _print_advice(advice: list[Advice], console: Console) -> None:
    level: Any = None
    for item in advice:
        if item.level != level:
            console.print(Text(HEADINGS[item.level], style=STYLES[item.level]))
            level = item.level
        console.print(Text(f"  {_anonymous(item.text)}"), soft_wrap=not console.is_terminal)
