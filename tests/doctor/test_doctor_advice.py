"""Advice of the doctor on machines that are not this one."""

from dataclasses import replace
from pathlib import Path

import pytest

from neuralbayes.doctor.advice import advise
from neuralbayes.doctor.devices import Device
from neuralbayes.doctor.examination import DataFolder, Examination, examine
from neuralbayes.doctor.machine import Machine
from neuralbayes.doctor.software import InstalledExtra, Package
from neuralbayes.doctor.speed import Speed

MACHINE = Machine("Linux", "a processor", 8, 8, None, 0.1, int(16e9), int(8e9), {})
WELL = Examination(
    python="3.12.0",
    neuralbayes="1.0",
    packages=[Package("torch", "2.6", ">=2.6", True)],
    extras=[InstalledExtra("report", "pictures", {"matplotlib": "3.9"})],
    machine=MACHINE,
    threads=8,
    devices=[],
    gloo_problem="",
    data=DataFolder(Path("data"), True, int(50e9), {"mnist": "somewhere"}, ("stl10",)),
    speed=Speed(100.0, 500.0, 1200.0),
)


def machine(**changes):
    return replace(WELL, machine=replace(MACHINE, **changes.pop("machine", {})), **changes)


def test_nothing_is_to_be_done_where_all_is_well():
    assert advise(WELL) == []


@pytest.mark.parametrize(
    ("found", "level", "text"),
    [
        (
            replace(WELL, packages=[Package("torch", None, ">=2.6", False)]),
            "broken",
            "torch is missing: pip install 'torch>=2.6'",
        ),
        (replace(WELL, packages=[Package("numpy", "1.0", ">=1.26", False)]), "broken", "numpy is 1.0: pip install"),
        (
            replace(WELL, problems={"importing torch": "OSError: libgomp"}),
            "broken",
            "importing torch failed: OSError: libgomp",
        ),
        (replace(WELL, devices=[Device("cuda:0 Card", "no kernel image")]), "broken", "cuda:0 Card does not work"),
        (replace(WELL, gloo_problem="no name"), "broken", "several processes does not work: no name"),
        (replace(WELL, data=replace(WELL.data, writable=False)), "broken", "set NEURALBAYES_DATA"),
        (replace(WELL, idle_nvidia_card=True), "change", "install the CUDA build"),
        (machine(machine={"quota": 2.0}), "change", "set OMP_NUM_THREADS=2"),
        (
            machine(machine={"threads": {"OMP_NUM_THREADS": "1"}}, threads=1),
            "change",
            "1 of 8 cores: unset OMP_NUM_THREADS",
        ),
        (machine(machine={"threads": {"OMP_NUM_THREADS": "64"}}, threads=64), "change", "set OMP_NUM_THREADS=8"),
        (machine(machine={"threads": {"OMP_NUM_THREADS": "all"}}), "change", "must be a number of threads, got 'all'"),
        (machine(machine={"load": 7.5}), "change", "other programs want 7.5 of the 8 cores"),
        (machine(machine={"free_memory": int(5e8)}), "change", "only 0.5 GB of memory are free"),
        (replace(WELL, data=replace(WELL.data, free_bytes=int(2e8))), "change", "only 0.2 GB are free for data sets"),
        (replace(WELL, speed=Speed(1.0, 5.0, 120_000.0)), "change", "would take 33 hours"),
        (replace(WELL, data=replace(WELL.data, present={"digits": "x"})), "wish", "neuralbayes data get mnist"),
        (
            replace(WELL, extras=[InstalledExtra("report", "pictures", {"m": None})]),
            "wish",
            "for pictures: pip install",
        ),
    ],
)
def test_advice_on_one_thing(found, level, text):
    (advice,) = advise(found)
    assert advice.level == level
    assert text in advice.text


def test_beside_other_programs_fewer_threads_are_not_advised_against():
    few = machine(machine={"load": 7.5, "threads": {"OMP_NUM_THREADS": "1"}}, threads=1)
    (advice,) = advise(few)
    assert "OMP_NUM_THREADS" not in advice.text
    (advice,) = advise(machine(machine={"load": 7.5}))
    assert "OMP_NUM_THREADS=1 may be faster" in advice.text


def test_what_is_broken_comes_first():
    found = replace(WELL, idle_nvidia_card=True, gloo_problem="no name", extras=[InstalledExtra("a", "b", {"c": None})])
    assert [advice.level for advice in advise(found)] == ["broken", "change", "wish"]


def test_what_fails_does_not_keep_the_rest_from_being_looked_at(monkeypatch):
    import neuralbayes.doctor.examination as examination

    def fails():
        raise OSError("libcudart.so.12:\n cannot open")

    monkeypatch.setattr(examination, "_threads", fails)
    doings = []
    found = examine(doings.append)
    assert found.problems == {"importing torch": "OSError: libcudart.so.12: cannot open"}
    assert found.speed is None
    assert found.data is not None
    assert doings == ["looking for data sets", "importing torch"]
