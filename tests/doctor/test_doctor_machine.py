"""Limits of control groups, as containers and batch systems set them; what is installed; processes."""

import re
import tomllib
from pathlib import Path

import pytest

from neuralbayes.doctor.machine import Machine, this_machine
from neuralbayes.doctor.processes import gloo_problem
from neuralbayes.doctor.software import EXTRAS, installed_extras, required_packages
from neuralbayes.system.limits import cpu_quota, memory_limit

MACHINE = Machine("Linux", "a processor", 8, 8, None, 0.0, None, None, {})


def write(folder, **files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)


def test_the_smallest_quota_on_the_way_up_counts(tmp_path):
    write(tmp_path, cpu__max="max 100000\n")
    write(tmp_path / "job", cpu__max="150000 100000\n")
    write(tmp_path / "job" / "step", cpu__max="400000 100000\n")
    assert cpu_quota(tmp_path, "/job/step") == 1.5
    assert cpu_quota(tmp_path, "/") is None


def test_quotas_of_version_1_count_too(tmp_path):
    write(tmp_path, cpu__cfs_quota_us="200000\n", cpu__cfs_period_us="100000\n")
    assert cpu_quota(tmp_path, "/docker/not-seen-from-inside") == 2.0
    write(tmp_path, cpu__cfs_quota_us="-1\n")
    assert cpu_quota(tmp_path, "/") is None


def test_the_memory_of_a_container_is_its_limit(tmp_path):
    write(tmp_path / "job", memory__max="1000\n", memory__current="400\n")
    assert memory_limit(tmp_path, "/job") == (1000, 400)
    write(tmp_path / "job", memory__max="max\n")
    assert memory_limit(tmp_path, "/job") is None


@pytest.mark.parametrize(("quota", "usable"), [(None, 8), (0.5, 1), (2.5, 3), (64.0, 8)])
def test_a_quota_bounds_the_threads_that_can_run(quota, usable):
    from dataclasses import replace

    assert replace(MACHINE, quota=quota).usable == usable


def test_this_machine_has_cores_and_a_system():
    machine = this_machine()
    assert 1 <= machine.usable <= machine.allowed <= machine.cores
    assert machine.system


def test_extras_are_those_of_the_installation_and_say_what_they_are_for():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    (everything,) = extras["all"]
    for name in re.findall(r"\w+", everything)[1:]:
        packages = {re.match(r"[\w-]+", requirement)[0].lower() for requirement in extras[name]}
        assert {package.lower() for package in EXTRAS[name].modules.values()} == packages
    assert all(extra.purpose for extra in installed_extras())


def test_required_packages_are_here_in_versions_that_fit():
    packages = {package.name: package for package in required_packages()}
    assert packages["torch"].fits
    assert packages["torch"].wanted.startswith(">=")


def test_two_members_of_a_group_find_each_other():
    assert gloo_problem() == ""
