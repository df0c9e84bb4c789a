"""`--config FILE`: options of any command from a TOML or YAML file."""

import sys
from functools import wraps

import numpy as np
import pytest

import neuralbayes.cli
from neuralbayes.cli import main


@pytest.fixture
def given(monkeypatch):
    """Arguments that a stand-in for `neuralbayes pretrain` was called with."""
    seen = {}
    pretrain = neuralbayes.cli.app["pretrain"]

    @wraps(pretrain.default_command)
    def stand_in(*args, **options):
        seen.clear()
        seen.update(options, data=args[0])

    monkeypatch.setattr(pretrain, "default_command", stand_in)
    return seen


@pytest.fixture
def file(tmp_path):
    def write(text, name="run.toml"):
        (tmp_path / name).write_text(text)
        return str(tmp_path / name)

    return write


def err(capsys):
    return " ".join(capsys.readouterr().err.split())


TOML = 'data = "digits"\nout = "run"\nalpha = 3\nlearning-rate = 1e-3\nepochs = 4\nrecompute = false\nscales = "1,2"\n'
YAML = "data: digits\nout: run\nalpha: 3\nlearning_rate: 1e-3\nepochs: 4\nrecompute: no\nscales: 1,2\nseed: null\n"


@pytest.mark.parametrize(("text", "name"), [(TOML, "run.toml"), (YAML, "run.yaml"), (YAML, "run.yml")])
def test_a_file_gives_what_the_command_line_would(given, file, text, name):
    assert main(["pretrain", "--config", file(text, name)]) == 0
    assert {
        "data": "digits",
        "alpha": 3.0,
        "learning_rate": 1e-3,
        "epochs": 4,
        "scales": "1,2",
    }.items() <= given.items()
    assert str(given["out"]) == "run"
    assert given["recompute"] is False
    assert "seed" not in given


def test_the_command_line_wins(given, file):
    path = file(TOML)
    assert main(["pretrain", "mnist", "--config", path, "--epochs", "9", "--recompute"]) == 0
    assert (given["data"], given["epochs"], given["recompute"], given["alpha"]) == ("mnist", 9, True, 3.0)


def test_a_file_is_forgotten_after_its_command(given, file, capsys):
    assert main(["pretrain", "--config", file(TOML)]) == 0
    assert main(["pretrain"]) == 2
    assert "needs DATA" in err(capsys)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "a.toml",
            "alphaa = 2",
            'Unknown option: "alphaa" from a.toml. Did you mean --alpha?',
        ),
        ("a.toml", 'epochs = "many"', "epochs in a.toml must be a whole number, got 'many'."),
        ("a.toml", "epochs = 2.5", "epochs in a.toml must be a whole number, got '2.5'."),
        ("a.toml", "epochs = true", "epochs in a.toml must be a whole number, got 'True'."),
        ("a.toml", "epochs = [1, 2]", "epochs in a.toml must be a whole number, got a list."),
        ("a.toml", "alpha = 2020-01-01", "alpha in a.toml must be a number, got '2020-01-01'."),
        ("a.toml", "recompute = 2", 'Invalid value for recompute from a.toml: unable to convert "2" into bool.'),
        ("a.toml", "out = {a = 1}", "out in a.toml must be a path, got a dict."),
        (
            "a.toml",
            'encoder = "smal"',
            'Invalid value "smal" for encoder from a.toml. Choose from: "paper", "small", "tiny".',
        ),
        ("a.toml", "[pretrain]\nout = 'x'", 'Unknown option: "pretrain" from a.toml.'),
        (
            "a.toml",
            "out = run",
            "a.toml is not valid TOML, in which text needs quotes: Invalid value (at line 1, column 7).",
        ),
        ("a.yaml", "epochs: 1\nepochs: 2", "a.yaml is not valid YAML: the key 'epochs' appears twice."),
        ("a.yaml", "- 1", "a.yaml must contain keys and values, got a list."),
        ("a.yaml", "out: !!python/name:os.system", "a.yaml is not valid YAML: could not determine a constructor"),
        ("a.yaml", "epochs: &a [*a]", "a.yaml is not valid YAML: *aliases are not supported: write the value out."),
        ("a.yaml", "a: {", "a.yaml is not valid YAML: while parsing"),
        ("a.json", "{}", "--config must be a file that ends in .toml, .yaml, .yml, got a.json."),
        ("a.toml", None, "a.toml: no such file or directory."),
    ],
)
def test_a_mistake_in_a_file_is_named_with_the_file(tmp_path, monkeypatch, capsys, name, text, message):
    monkeypatch.chdir(tmp_path)
    if text is not None:
        (tmp_path / name).write_text(text)
    assert main(["pretrain", "digits", "--out", "run", "--config", name]) == 2
    assert message in err(capsys)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", ["run.toml", "run.yaml"])
def test_a_file_cannot_name_code_to_run(given, file, capsys, tmp_path, name):
    mine = tmp_path / "mine.py"
    mine.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    line = f"objective = '{mine}:Mine'" if name == "run.toml" else f"objective: {mine}:Mine"
    assert main(["pretrain", "digits", "--out", "run", "--config", file(line, name)]) == 2
    assert "would run code; give it on the command line, with --objective" in err(capsys)
    assert not (tmp_path / "ran").exists()


def test_a_file_holds_no_variables_of_the_environment(given, file):
    assert main(["pretrain", "--config", file("data: $HOME\nout: ${HOME}/run", "a.yaml")]) == 0
    assert (given["data"], str(given["out"])) == ("$HOME", "${HOME}/run")


def test_yaml_without_its_package_names_the_extra(file, monkeypatch, capsys):
    path = file(YAML, "run.yaml")
    monkeypatch.setitem(sys.modules, "yaml", None)
    assert main(["pretrain", "--config", path]) == 2
    assert "pip install 'neuralbayes[yaml]'" in err(capsys)


def test_lists_positions_and_flags_come_from_files_too(file, tmp_path, capsys):
    np.save(tmp_path / "x.npy", np.eye(3))
    text = f'file = "{tmp_path}/x.npy"\nclusters = 1\nno_picture = true\n'
    assert main(["label", "--config", file(text)]) == 2
    assert "--clusters must be a whole number of at least 2, or auto, got '1'" in err(capsys)
