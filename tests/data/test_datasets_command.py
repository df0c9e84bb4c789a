"""``neuralbayes data list | get | check | where``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from neuralbayes.cli.data import app


def run(*words: str) -> None:
    app(list(words), exit_on_error=False, print_error=False, result_action="return_value")


def test_get_list_where_and_check_work_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = ["--root", str(tmp_path)]
    run("get", "digits", *root)
    out = capsys.readouterr().out
    assert "digits: 1,437 train, 360 test, from scikit-learn" in out
    run("list", *root)
    out = capsys.readouterr().out
    assert "60,000 + 10,000" in out
    assert "5,000 + 8,000 + 100,000" in out
    assert next(line for line in out.splitlines() if "digits" in line).split()[-1] == "scikit-learn"
    run("where", *root)
    assert capsys.readouterr().out.strip() == str(tmp_path)
    run("where", "Digits", *root)
    folder = Path(capsys.readouterr().out.strip())
    assert (folder / "train_images.npy").is_file()
    run("check", *root)
    assert capsys.readouterr().out.count(" ok") == 4
    run("check", "digits", "--quiet", *root)
    assert capsys.readouterr().out == ""

    labels = np.load(folder / "test_labels.npy")
    np.save(folder / "test_labels.npy", labels[::-1])
    with pytest.raises(
        ValueError, match=r"digits test_labels: damaged on the disk; `neuralbayes data get NAME --force`"
    ):
        run("check", *root)
    assert "WRONG" in capsys.readouterr().out
    run("get", "digits", "--force", "--quiet", *root)
    assert capsys.readouterr().out == ""
    run("check", *root)


def test_what_cannot_be_had_ends_with_advice_and_code_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        run("get", "cifar100", "--offline", "--root", str(tmp_path))
    assert caught.value.code == 2
    err = capsys.readouterr().err
    assert "Put cifar-100-binary.tar.gz into" in err
    assert len(err.splitlines()) > 4


def test_a_misspelt_name_is_told_before_anything_is_fetched(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="did you mean 'cifar10'"):
        run("get", "digits", "cifra10", "--root", str(tmp_path))
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ValueError, match="at least one"):
        run("get", "--root", str(tmp_path))


def test_the_command_imports_nothing_heavy() -> None:
    code = "import sys, neuralbayes.cli.data; print(sorted({'torch', 'numpy', 'sklearn', 'PIL'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
