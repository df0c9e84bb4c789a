"""The command line as a whole: help, versions, errors, exit codes."""

import errno
import json
import subprocess
import sys

import numpy as np
import pytest

import neuralbayes
from neuralbayes.cli import app, main

HEAVY = {"torch", "sklearn", "scipy", "lightning_fabric", "matplotlib", "pandas", "numpy", "pyarrow"}


def said(capsys):
    captured = capsys.readouterr()
    return captured.out, " ".join(captured.err.split())


@pytest.fixture
def failing(monkeypatch, tmp_path):
    """Command line of a command that reads a table and then fails with a given error."""

    def words(error):
        def labeler(**parameters):
            raise error

        monkeypatch.setattr(neuralbayes, "ManifoldLabeler", labeler, raising=False)
        np.save(tmp_path / "x.npy", np.eye(3))
        return ["label", str(tmp_path / "x.npy"), "--no-picture"]

    return words


def test_help_names_every_command_with_an_example(capsys):
    assert main(["--help"]) == 0
    out = said(capsys)[0]
    for name in app:
        if not name.startswith("-"):
            assert f"  neuralbayes {name}" in out


def test_help_of_a_command_explains_its_options(capsys):
    assert main(["label", "--help"]) == 0
    out = said(capsys)[0]
    assert "neuralbayes label data.csv --clusters 3" in out
    for option in ("--clusters", "--out", "--columns", "--key", "--seed", "--save", "--model", "--picture", "--json"):
        assert option in out


def test_version_is_that_of_the_package(capsys):
    assert main(["--version"]) == 0
    lines = dict(line.split(" ", 1) for line in said(capsys)[0].strip().splitlines())
    assert lines["neuralbayes"] == neuralbayes.__version__
    assert {"python", "torch", "scikit-learn", "platform", "device", "threads", "extra"} <= lines.keys()


def test_version_is_told_of_a_broken_installation_too():
    program = "import sys; sys.modules['torch'] = None; from neuralbayes.cli import main; main(['--version'])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "device unknown (" in done.stdout


@pytest.mark.parametrize("words", [["--help"], ["label", "--help"], ["report", "--help"]])
def test_help_imports_nothing_heavy(words):
    program = (
        "import sys, json; from neuralbayes.cli import main; main(sys.argv[1:]); "
        "print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True, check=True)
    assert HEAVY.isdisjoint(json.loads(done.stderr))


def test_piped_output_is_plain_and_python_m_works(tmp_path):
    words = [sys.executable, "-m", "neuralbayes", "label", str(tmp_path / "none.csv")]
    help_page = subprocess.run([*words, "--help"], capture_output=True, text=True, check=True)
    failed = subprocess.run(words, capture_output=True, text=True, check=False)
    assert failed.returncode == 2
    assert failed.stdout == ""
    assert failed.stderr.count("\n") == 1
    assert "\x1b" not in help_page.stdout + failed.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["lable"], 'Did you mean "label"?'),
        (["label"], "`neuralbayes label` needs FILE. For example: neuralbayes label data.csv --clusters 3."),
        (["label", "x.csv", "--cluster", "3"], "Did you mean --clusters?"),
        (["label", "x.csv", "--seed", "many"], "--seed"),
    ],
)
def test_a_misspelt_command_line_gets_a_hint(capsys, words, message):
    assert main(words) == 2
    out, err = said(capsys)
    assert out == ""
    assert message in err
    assert "--help` shows all options." in err


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ValueError("`beta` must be positive,\n  got -1"), "error: `beta` must be positive, got -1. `neura"),
        (TypeError("wrong"), "error: wrong. `neuralbayes label --help` explains the options; --debug"),
        (FileNotFoundError(errno.ENOENT, "No such file or directory", "m"), "error: m: no such file or directory."),
        (PermissionError(errno.EACCES, "Permission denied", "/etc/x"), "error: /etc/x: permission denied. Choose"),
        (OSError(errno.ENOSPC, "No space left on device", "big"), "error: the disk is full (big: no space left"),
        (OSError("strange disk"), "error: strange disk."),
        (ImportError("needs x: pip install 'neuralbayes[sweep]'"), "error: needs x: pip install 'neuralbayes[sweep]'."),
        (MemoryError(), "error: out of memory. Use fewer"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), "error: out of memory: DefaultCPU"),
    ],
)
def test_what_a_user_can_mend_is_one_paragraph_and_exit_code_2(capsys, failing, error, message):
    assert main(failing(error)) == 2
    out, err = said(capsys)
    assert out == ""
    assert err.startswith(message)
    assert "Traceback" not in err


def test_a_bug_is_called_one_and_exits_with_1(capsys, failing):
    assert main(failing(RuntimeError("[bold]shape[/bold] mismatch"))) == 1
    err = said(capsys)[1]
    assert "RuntimeError: [bold]shape[/bold] mismatch" in err
    assert "please report it" in err
    assert "Traceback" not in err


def test_debug_shows_the_traceback_wherever_it_stands(capsys, failing, monkeypatch):
    words = failing(ValueError("wrong"))
    for debugging in (["--debug", *words], [*words, "--debug"]):
        assert main(debugging) == 2
        assert "Traceback" in said(capsys)[1]
    monkeypatch.setenv("NEURALBAYES_DEBUG", "1")
    assert main(words) == 2
    assert "Traceback" in said(capsys)[1]
    monkeypatch.setenv("NEURALBAYES_DEBUG", "0")
    assert main(words) == 2
    assert "Traceback" not in said(capsys)[1]


def test_ctrl_c_is_one_line_and_exit_code_130(capsys, failing):
    assert main(failing(KeyboardInterrupt())) == 130
    assert said(capsys) == ("", "interrupted")
