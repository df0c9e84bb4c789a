"""Messages of the first errors that newcomers meet, output without a reader, and characters that cannot be shown."""

import errno
import os
import subprocess
import sys
import warnings
import zipfile

import numpy as np
import pytest

from neuralbayes.cli import main
from neuralbayes.cli.errors import explain


def err(capsys):
    return " ".join(capsys.readouterr().err.split())


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Make a folder with typical files."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "words.csv").write_text("a,b\nx,y\nz,w\n")
    np.savez(tmp_path / "whole.npz", X=np.eye(50))
    content = (tmp_path / "whole.npz").read_bytes()
    (tmp_path / "cut.npz").write_bytes(content[: len(content) // 2])
    return tmp_path


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("pretran cifar10", 'Did you mean "pretrain"?'),
        (
            "pretrain cifar10",
            "`neuralbayes pretrain` needs --out. For example: neuralbayes pretrain cifar10 --out run.",
        ),
        ("pretrain cifar10 --out", "--out needs a value."),
        ("pretrain cifar10 --otu r", "needs --out. Did you mean --out instead of --otu?"),
        ("pretrain cifar10 --out r --learnig-rate 3", "Did you mean --learning-rate?"),
        ("pretrain cifar10 --out r --encoder smal", 'Did you mean "small"?'),
        ("pretrain cifar10 --out r --epochs 2.5", "--epochs must be a whole number, got '2.5'."),
        ("pretrain cifar11 --out r", "Did you mean cifar10?"),
        ("pretrain empty --out r", "empty must contain readable pictures"),
        ("demo more", "`neuralbayes demo` does not accept 'more'."),
        ("label word.csv", "word.csv does not exist. Did you mean words.csv?"),
        ("label empty/wrds.csv", "empty/wrds.csv does not exist. Check the spelling and the folder you are in."),
        ("label cut.npz", "cut.npz is not a valid NPZ file"),
        ("embed empty digits --out f.npy", "got empty."),
        ("embed emty digits --out f.npy", "Did you mean empty?"),
        ("--debug label words.csv -k 1", "got '1'. `neuralbayes label --help` explains the options"),
    ],
)
def test_a_first_mistake_gets_one_paragraph_with_a_hint(folder, capsys, words, message):
    assert main(words.split()) == 2
    out = err(capsys)
    assert message in out
    assert ("Traceback" in out) == ("--debug" in words)
    assert not (folder / "r").exists()


class DistNetworkError(RuntimeError):
    """The name that torch uses."""


class DistStoreError(RuntimeError):
    """The name that torch uses."""


BUSY = "The server socket has failed to listen on any local network address. port: 29500, code: -98, name: EADDRINUSE"


@pytest.mark.parametrize(
    ("error", "words", "message", "hint"),
    [
        (
            DistNetworkError(BUSY),
            ["pretrain"],
            "port 29500 is in use",
            "torchrun takes --master-port 29501",
        ),
        (OSError(errno.EADDRINUSE, "Address already in use"), ["pretrain"], "is in use on this machine", "MASTER_PORT"),
        (
            DistStoreError("1/2 clients joined"),
            ["pretrain"],
            "could not connect to each other (1/2 clients joined)",
            "MASTER_ADDR",
        ),
        (
            ConnectionError("another of the 2 processes ended"),
            ["pretrain"],
            "another of the 2",
            "Run the same command to continue",
        ),
        (ModuleNotFoundError("No module named 'torch'", name="torch"), ["label"], "torch", "neuralbayes --version"),
        (zipfile.BadZipFile("not a zip"), ["label"], "a file is damaged or cut short (not a zip)", "again"),
        (
            PermissionError(13, "Permission denied", "out/.x.a_c1e5g7.tmp.npz"),
            ["label"],
            "out/x.npz: permission",
            "Choose",
        ),
        (MemoryError(), ["pretrain"], "out of memory", "--microbatch"),
        (MemoryError(), [], "out of memory", "part of the data"),
        (IsADirectoryError("x is a folder"), ["embed"], "x is a folder", "`neuralbayes embed --help` explains"),
    ],
)
def test_errors_from_below_say_what_to_do(error, words, message, hint, monkeypatch):
    monkeypatch.delenv("MASTER_PORT", raising=False)
    found = explain(error, words)
    assert message in found.message
    assert hint in found.hint
    assert found.exit_code == 2


def test_a_warning_is_a_line_without_code(monkeypatch, tmp_path, capsys):
    from neuralbayes.features.encoder import ImageEncoder

    def warns(folder):
        warnings.warn("[bold]look[/bold] here", UserWarning, stacklevel=2)
        raise ValueError("no encoder")

    monkeypatch.setattr(ImageEncoder, "load", warns)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert main(["embed", str(tmp_path), "digits", "--out", str(tmp_path / "f.npy")]) == 2
    assert capsys.readouterr().err.startswith("warning: [bold]look[/bold] here\nerror: no encoder")


def test_a_bug_asks_for_a_report():
    found = explain(KeyError("x"), ["label"])
    assert found.exit_code == 1
    assert "neuralbayes --version" in found.hint


def test_nothing_is_said_when_nobody_reads():
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "neuralbayes", "--help"], stdout=writer, stderr=subprocess.PIPE, check=False
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


def test_characters_that_cannot_be_shown_are_spelled():
    code = (
        "from neuralbayes.cli.characters import never_fail_to_print as f; f(); print('1 \\xb1 2 \\u2026 \\xe9 \\udc80')"
    )
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, env=environment, check=True)
    assert done.stdout.split() == [b"1", b"+-", b"2", b"...", rb"\xe9", rb"\udc80"]
