"""What to do about an examination, most important first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from neuralbayes.doctor.examination import Examination

GIGABYTE = 1e9
LITTLE_DISK = 1 * GIGABYTE
LITTLE_MEMORY = 1.5 * GIGABYTE  # `pretrain` with its usual settings takes about 1 GB
LONG = 24 * 3600.0

Level = Literal["broken", "change", "wish"]
LEVELS: tuple[Level, ...] = ("broken", "change", "wish")


@dataclass(frozen=True)
class Advice:
    """What to do: something is broken, could be better, or is there for who wants it."""

    level: Level
    text: str


def advise(found: Examination) -> list[Advice]:
    """All advice on what was found; none where all is well and everything is installed."""
    given = [*_broken(found), *_changes(found), *_wishes(found)]
    return sorted(given, key=lambda advice: LEVELS.index(advice.level))


def _broken(found: Examination) -> Iterator[Advice]:
    for package in found.packages:
        if not package.fits:
            state = "is missing" if package.version is None else f"is {package.version}"
            yield Advice("broken", f"{package.name} {state}: pip install '{package.name}{package.wanted}'")
    for doing, problem in found.problems.items():
        yield Advice("broken", f"{doing} failed: {problem}")
    for device in found.devices or []:
        if device.problem:
            yield Advice("broken", f"{device.name} does not work: {device.problem}; CUDA_VISIBLE_DEVICES='' hides it")
    if found.gloo_problem:
        yield Advice(
            "broken",
            f"training over several processes does not work: {found.gloo_problem}; if the machine does not know its "
            "own name, GLOO_SOCKET_IFNAME=lo helps",
        )
    if found.data is not None and not found.data.writable:
        yield Advice(
            "broken",
            f"{found.data.folder} cannot be written: set NEURALBAYES_DATA to a folder that can be, for data sets",
        )


def _changes(found: Examination) -> Iterator[Advice]:
    if found.idle_nvidia_card:
        yield Advice(
            "change",
            "there is a graphics card of NVIDIA, but this torch cannot use it: install the CUDA build of torch",
        )
    yield from _threads(found)
    machine, speed = found.machine, found.speed
    if machine.free_memory is not None and machine.free_memory < LITTLE_MEMORY:
        free = f"{machine.free_memory / GIGABYTE:.1f} GB of memory are free"
        yield Advice("change", f"only {free}: close other programs, or train with a smaller --microbatch")
    if found.data is not None and found.data.writable and found.data.free_bytes < LITTLE_DISK:
        free = f"{found.data.free_bytes / GIGABYTE:.1f} GB are free"
        yield Advice("change", f"only {free} for data sets: make room, or set NEURALBAYES_DATA to another disk")
    if speed is not None and speed.cifar10_seconds > LONG:
        hours = speed.cifar10_seconds / 3600
        yield Advice(
            "change", f"`neuralbayes pretrain cifar10` would take {hours:.0f} hours: try --encoder tiny, or --limit"
        )


def _threads(found: Examination) -> Iterator[Advice]:
    """On the number of threads: as many as cores that may be used are best, and fewer where others use the cores too.

    A step waits for its last thread. Beside other programs, two threads on two cores were far slower than one.
    """
    machine = found.machine
    busy = machine.load is not None and machine.load > machine.usable * 0.75
    for name, value in machine.threads.items():
        if not (value.isdecimal() and int(value) > 0):
            yield Advice("change", f"{name} must be a number of threads, got {value!r}: unset it")
            return
    if found.threads is not None and found.threads > machine.usable:
        yield Advice(
            "change",
            f"torch computes with {found.threads} threads, but {machine.usable} can run at a time: they wait for each "
            f"other; set OMP_NUM_THREADS={machine.usable}",
        )
    elif found.threads is not None and found.threads < machine.usable and machine.threads and not busy:
        names = " and ".join(machine.threads)
        yield Advice(
            "change", f"torch computes with {found.threads} of {machine.usable} cores: unset {names} to use them all"
        )
    if busy:
        yield Advice(
            "change",
            f"other programs want {machine.load:.1f} of the {machine.usable} cores: the speed is what they leave"
            + ("" if found.threads == 1 else "; while they run, OMP_NUM_THREADS=1 may be faster"),
        )


def _wishes(found: Examination) -> Iterator[Advice]:
    if found.data is not None and found.data.writable and set(found.data.present) <= {"digits"}:
        yield Advice("wish", "for images to train on: neuralbayes data get mnist")
    for extra in found.extras:
        if not extra.complete:
            yield Advice("wish", f"for {extra.purpose}: pip install 'neuralbayes[{extra.name}]'")
