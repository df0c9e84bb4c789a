"""`neuralbayes doctor`: what it prints, and its exit code."""

import json
from pathlib import Path

import pytest

import neuralbayes.doctor.examination as examination
from neuralbayes.cli import main
from neuralbayes.cli.doctor import _anonymous
from neuralbayes.doctor.speed import Speed, training_rate
from neuralbayes.training.precision import Trial


@pytest.fixture(autouse=True)
def _fast(monkeypatch, tmp_path):
    """Nothing is measured."""
    monkeypatch.setenv("NEURALBAYES_DATA", str(Path.home() / "no-such-folder"))
    monkeypatch.setattr(examination, "_speed", lambda: Speed(50.0, 100.0, 6000.0))
    monkeypatch.setattr(examination, "_bfloat16", lambda: Trial(None, "a test of it ended by SIGILL"))
    monkeypatch.setattr(examination, "_gloo_problem", lambda: "")


def test_it_says_what_there_is_and_ends_with_advice(capsys):
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    for text in ("torch  ", "cores  ", "~/no-such-folder", "cifar10", "SIGILL", "100 images/s", "would take 1:40:00"):
        assert text in out
    assert "Nothing to do" in out or "To change:" in out
    assert str(Path.home()) not in out
    assert all(line == line.rstrip() for line in out.splitlines())


def test_json_is_one_object(capsys):
    assert main(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["ok"] is True
    assert found["data"]["folder"] == "~/no-such-folder"
    assert found["bfloat16"] == {"speedup": None, "problem": "a test of it ended by SIGILL"}
    assert {"advice", "packages", "extras", "machine", "threads", "devices", "speed", "problems"} <= found.keys()


def test_what_is_broken_is_said_even_quietly_and_exits_with_1(monkeypatch, capsys):
    assert main(["doctor", "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(examination, "_gloo_problem", lambda: "no name")
    assert main(["doctor", "--quiet"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "several processes does not work: no name" in err
    assert main(["doctor", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["ok"] is False


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
    assert _anonymous(text) == shown


def test_a_user_whose_home_is_the_root_sees_whole_paths(monkeypatch):
    monkeypatch.setenv("HOME", "/")
    assert _anonymous("/data/x") == "/data/x"


def test_the_speed_is_that_of_training():
    assert training_rate(0.0, encoder="tiny", batch_size=4, microbatch_size=4) > 0
