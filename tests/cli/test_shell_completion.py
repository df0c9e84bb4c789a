"""`neuralbayes --install-completion`: the script, run in bash."""

import shutil
import subprocess
import sys

import pytest

from neuralbayes.cli import main

ASK = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(( $# - 1 )); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}
_neuralbayes
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    path = tmp_path_factory.mktemp("completion") / "neuralbayes.bash"
    assert main(["--install-completion", "--shell", "bash", "--out", str(path)]) == 0
    return path


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["pre"], {"pretrain"}),
        (["pretrain", "cifar10", "--learn"], {"--learning-rate"}),
        (["pretrain", "--encoder", ""], {"paper", "small", "tiny"}),
        (["pretrain", "--conf"], {"--config"}),
    ],
)
def test_bash_completes_commands_options_and_choices(script, words, wanted):
    command = ["bash", "-c", ASK, "ask", str(script), "neuralbayes", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == wanted


def test_the_script_asks_no_python(script):
    assert "__complete" not in script.read_text()


def test_writing_it_loads_all_commands_but_nothing_heavy():
    words = ["--install-completion", "--shell", "bash", "--out", "/dev/null"]
    code = (
        "import sys; from neuralbayes.cli import main; main(sys.argv[1:])"
        "; sys.exit(sorted({'torch', 'numpy', 'sklearn', 'matplotlib'} & {*sys.modules}) or 0)"
    )
    assert subprocess.run([sys.executable, "-c", code, *words], check=False).returncode == 0


def test_it_is_installed_once_in_the_home_folder(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HOME", str(tmp_path))
    for _ in range(2):
        assert main(["--install-completion", "--shell", "bash"]) == 0
    installed = tmp_path / ".local/share/bash-completion/completions/neuralbayes"
    assert str(installed) in capsys.readouterr().out
    assert (tmp_path / ".bashrc").read_text().count(". ") == 1
    assert (tmp_path / ".bashrc").read_text().count(str(installed)) == 2


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_scripts_of_other_shells_know_the_commands(shell, tmp_path):
    assert main(["--install-completion", "--shell", shell, "--out", str(tmp_path / "script")]) == 0
    text = (tmp_path / "script").read_text()
    assert all(word in text for word in ("pretrain", "learning-rate", "whiten"))


def test_an_unknown_shell_is_asked_for(monkeypatch, capsys):
    import cyclopts.completion

    def unknown():
        raise cyclopts.completion.detect.ShellDetectionError

    monkeypatch.setattr(cyclopts.completion, "detect_shell", unknown)
    assert main(["--install-completion"]) == 2
    assert "choose one with --shell: bash, zsh, fish, powershell" in capsys.readouterr().err
