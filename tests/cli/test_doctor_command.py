"""`neuralbayes doctor`: its output and its exit code."""

import json
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import neuralbayes.cli.doctor as doctor
from neuralbayes.cli import main
from neuralbayes.features.pretraining import PRESETS, PretrainConfig
from neuralbayes.training.precision import Trial


@pytest.fixture(autouse=True)
def _fast(monkeypatch):
    """Use a small network and one step; other tests check bfloat16."""
    monkeypatch.setenv("NEURALBAYES_DATA", str(Path.home() / "no-such-folder"))
    monkeypatch.setitem(PRESETS, "laptop", PretrainConfig(encoder="tiny", batch_size=4, microbatch_size=4))
    monkeypatch.setattr("neuralbayes.training.precision.try_bfloat16", lambda: Trial(None, "ended by SIGILL"))


def test_it_says_what_a_report_needs(capsys):
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    for text in ("torch  ", "pandas ", "cores  ", "memory  ", "of torch", "~/no-such-folder", "SIGILL", " images/s"):
        assert text in out
    assert "broken" not in out
    assert str(Path.home()) not in out
    assert all(line == line.rstrip() for line in out.splitlines())


def test_json_is_one_object(capsys):
    assert main(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["broken"] == []
    assert found["data"]["folder"].startswith("~/no-such-folder, ")
    assert found["machine"]["bfloat16"] == "ended by SIGILL"
    assert found.keys() == {"broken", "software", "extras", "machine", "data"}


def test_what_is_broken_is_said_even_quietly_and_exits_with_1(monkeypatch, capsys):
    assert main(["doctor", "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(doctor, "required", lambda: [Requirement("no-such-package>=3"), Requirement("torch>=99")])
    assert main(["doctor", "--quiet"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "no-such-package is missing: pip install 'no-such-package>=3'" in err
    assert "torch is 2" in err
    assert main(["doctor", "--json"]) == 1
    assert len(json.loads(capsys.readouterr().out)["broken"]) == 2


def test_what_fails_does_not_keep_the_rest_from_being_looked_at(monkeypatch):
    def fails():
        raise OSError("libcudart.so.12:\n cannot open")

    monkeypatch.setattr(doctor, "_threads", fails)
    found, broken = doctor.examine()
    assert broken == ["threads: OSError: libcudart.so.12: cannot open"]
    assert "pretrain" not in found["machine"]
    assert found["data"]


def test_a_data_folder_that_cannot_be_written_is_broken(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("NEURALBAYES_DATA", str(tmp_path / "file" / "below"))
    _, (problem,) = doctor.examine()
    assert "set NEURALBAYES_DATA" in problem


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("/home/ada/data", "~/data"),
        ("/home/ada", "~"),
        ("/home/adam/data", "/home/adam/data"),
        ("/scratch/ada/data", "/scratch/$USER/data"),
        ("adage", "adage"),
    ],
)
def test_home_and_name_of_the_user_are_left_out(text, shown, monkeypatch):
    monkeypatch.setenv("HOME", "/home/ada")
    monkeypatch.setenv("LOGNAME", "ada")
    assert doctor._anonymous(text) == shown


def test_a_user_whose_home_is_the_root_sees_whole_paths(monkeypatch):
    monkeypatch.setenv("HOME", "/")
    assert doctor._anonymous("/data/x") == "/data/x"
