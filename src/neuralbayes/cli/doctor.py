"""``neuralbayes doctor``: information about this computer for bug reports, and problems."""

from __future__ import annotations

import getpass
import json
import os
import platform
import re
import shutil
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter
from rich.console import Console
from rich.text import Text

from neuralbayes.cli.busy import busy
from neuralbayes.cli.extras import extras, installed_version, required
from neuralbayes.cli.options import Flag

EXAMPLES = """Shows versions, cores, memory, devices and data sets, and trains for a few seconds on random images. \
It changes nothing and sends nothing anywhere. The exit code is 1 if something is broken. Include the output in bug \
reports: it does not contain your name or home folder.

[bold]Examples[/bold]

  [cyan]neuralbayes doctor[/cyan]
  [cyan]neuralbayes doctor --json > doctor.json[/cyan]
"""

N_STEPS = 3  # training images for the speed test
Rows = dict[str, str]

app = App(name="doctor", help_epilogue=EXAMPLES)


@app.default
def doctor(*, json_: Annotated[Flag, Parameter(name="--json")] = False, quiet: Flag = False) -> int:
    """Check the installation, the hardware and the training speed.

    Parameters
    ----------
    json_
        Print one JSON object and nothing else.
    quiet
        Print problems only.
    """
    with busy("looking at this computer", enabled=not (quiet or json_)):
        found, broken = examine()
    if json_:
        print(_anonymous(json.dumps({"broken": broken, **found}, indent=2)))
        return 1 if broken else 0
    console = Console(stderr=quiet, highlight=False)
    for heading, rows in {} if quiet else found.items():
        console.print(Text(heading.capitalize(), style="bold"))
        for name, value in rows.items():
            # soft_wrap: a broken line cannot be copied
            console.print(Text.assemble((f"  {name:<18}", "dim"), _anonymous(value)), soft_wrap=True)
    for problem in broken:
        console.print(Text(f"broken: {_anonymous(problem)}", style="bold red"), soft_wrap=True)
    return 1 if broken else 0


def examine() -> tuple[dict[str, Rows], list[str]]:
    """Findings under headings, and problems. A failing check does not stop the others."""
    broken: list[str] = []

    def look(name: str, function: Callable[[], str]) -> Rows:
        try:
            return {name: function()}
        except Exception as error:  # any error is a finding
            problem = " ".join(f"{type(error).__name__}: {error}".split())
            broken.append(f"{name}: {problem}")
            return {name: problem}

    software = {"neuralbayes": installed_version("neuralbayes") or "not installed", "python": platform.python_version()}
    for requirement in required():
        there = installed_version(requirement.name)
        software[requirement.name] = there or "missing"
        if there is None or not requirement.specifier.contains(there, prereleases=True):
            broken.append(f"{requirement.name} is {there or 'missing'}: pip install '{requirement}'")
    machine = look("cores", _cores) | look("memory", _memory) | look("threads", _threads)
    if machine["threads"].endswith("of torch"):  # it can be imported
        machine |= look("devices", _devices) | look("bfloat16", _bfloat16) | look("pretrain", _speed)
    system = {"system": f"{platform.system()} {platform.release()} {platform.machine()}", "processor": _processor()}
    found = {
        "software": software,
        "extras": {name: _versions([one.name for one in packages]) for name, packages in extras().items()},
        "machine": system | machine,
        "data": look("folder", _data_folder) | look("data sets", _data_sets),
    }
    return found, broken


def _versions(packages: list[str]) -> str:
    return ", ".join(f"{name} {installed_version(name) or 'missing'}" for name in packages)


def _processor() -> str:
    from neuralbayes.system.limits import system_file

    name = re.search(r"^model name\s*: (.*)$", system_file(Path("/proc/cpuinfo")), re.MULTILINE)
    return name.group(1) if name else platform.processor()


def _cores() -> str:
    """Cores of the machine, and limits of a container or batch system."""
    from neuralbayes.distributed.launch import n_cores

    return f"{os.cpu_count() or 1}, of which this process may use {n_cores()}"


def _memory() -> str:
    from neuralbayes.system.limits import memory

    total, free = ("unknown" if size is None else f"{size / 1e9:.1f} GB" for size in memory())
    return f"{total}, free: {free}"


def _threads() -> str:
    import torch

    from neuralbayes.distributed.launch import THREAD_VARIABLES

    given = "".join(f"{name}={os.environ[name]}, " for name in THREAD_VARIABLES if name in os.environ)
    return f"{given}{torch.get_num_threads()} of torch"


def _devices() -> str:
    """Devices of torch besides the CPU, each tested with a product."""
    import torch

    kind = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    if kind is None:
        card = shutil.which("nvidia-smi") is not None
        return "only the CPU" + ("; nvidia-smi exists, but this torch cannot use CUDA" if card else "")
    devices = [f"{kind.type}:{index}" for index in range(torch.accelerator.device_count())]
    for device in devices:
        x = torch.ones(64, 64, device=device)
        if float((x @ x).sum()) != 64.0**3:
            raise ArithmeticError(f"a matrix product on {device} is wrong")
    return ", ".join(f"{one} {torch.cuda.get_device_name(one)}" if kind.type == "cuda" else one for one in devices)


def _bfloat16() -> str:
    from neuralbayes.training.precision import try_bfloat16

    trial = try_bfloat16()
    return trial.problem if trial.speedup is None else f"works, {trial.speedup:.2f} times as fast as float32"


def _speed() -> str:
    """Images per second of `pretrain` with default settings, including the creation of the network."""
    import numpy as np
    from lightning_fabric import Fabric

    from neuralbayes.features.pretraining import PRESETS, pretrain

    config = replace(PRESETS["laptop"], epochs=1)
    images = np.random.default_rng(0).integers(0, 256, (N_STEPS * config.batch_size, 32, 32, 3), dtype=np.uint8)
    fabric = Fabric(accelerator="auto", devices=1)
    fabric.launch()
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # noise has no structure, so training may warn
        pretrain(images, config, fabric=fabric)
    return f"about {len(images) / (time.perf_counter() - start):.0f} images/s of 32 x 32 pixels"


def _data_folder() -> str:
    from neuralbayes.data.places import VARIABLE, data_folder

    folder = data_folder()
    there = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not (there.is_dir() and os.access(there, os.W_OK)):
        raise PermissionError(f"{folder} cannot be written: set {VARIABLE} to a folder that can be")
    return f"{folder}, {shutil.disk_usage(there).free / 1e9:.1f} GB free"


def _data_sets() -> str:
    from neuralbayes.data.inventory import inventory

    return ", ".join(state.entry.name for state in inventory() if state.present) or "none yet"


def _anonymous(text: str) -> str:
    """Replace the home folder in `text` by ~, and other folders named after the user by $USER."""
    home = Path.home()
    if home != Path(home.anchor):
        text = re.sub(rf"{re.escape(str(home))}(?![\w.-])", "~", text)
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a user without a name
        return text
    return re.sub(rf"(?<=[/\\]){re.escape(user)}(?=[/\\])", "$USER", text)
