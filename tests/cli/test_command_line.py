"""The command line as a whole: help, versions, errors, exit codes, completion."""

import errno
import os
import shutil
import subprocess
import sys
import warnings
import zipfile
from pathlib import Path

import pytest

import neuralbayes
from neuralbayes.cli import COMMANDS, app
from neuralbayes.cli.terminal import plain

NAMES = [name for group in COMMANDS.values() for name in group]
HEAVY = "{'torch', 'sklearn', 'scipy', 'lightning_fabric', 'matplotlib', 'pandas', 'numpy', 'pyarrow'}"


def options(name):
    arguments = app[name].assemble_argument_collection() if name else app.meta.assemble_argument_collection()
    return [argument for argument in arguments if argument.parse and argument.name.startswith("-")]


@pytest.mark.parametrize("name", ["", *NAMES])
def test_help_has_examples_and_fits_80_columns(run, monkeypatch, name):
    monkeypatch.setenv("COLUMNS", "80")
    found = run(*[name] * bool(name), "--help")
    assert found.code == 0
    assert f"  neuralbayes {name}" in found.out.split("Examples")[-1]
    assert max(map(len, found.out.splitlines())) <= 80
    assert all(option.name in found.out for option in options(name))


@pytest.mark.parametrize("name", NAMES)
def test_every_example_can_be_parsed(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for owner in (app, app[name]):
        for line in owner.help_epilogue.split("[cyan]")[1:]:
            words = line.split("[/cyan]")[0].split(" > ")[0].replace("'", "").split()
            words = words[words.index("neuralbayes") + 1 :]
            app.parse_args(["./-" if word == "-" else word for word in words], print_error=False, exit_on_error=False)


def test_commands_are_at_most_as_wide_as_promised(run):
    assert len(options("cluster")) <= 17
    assert len(options("predict")) <= 6
    assert run("help", "cluster").out == run("cluster", "--help").out


@pytest.mark.parametrize("name", ["", *NAMES])
def test_every_option_is_used_in_a_test(name):
    tests = "".join(path.read_text() for path in Path(__file__).parents[1].rglob("test_*.py"))
    assert [one.name for one in options(name) if f'"{one.name}' not in tests and f" {one.name}" not in tests] == []


def test_the_documentation_can_be_generated():
    text = app.generate_docs()
    assert all(f"## neuralbayes {name}" in text for name in NAMES)


@pytest.mark.parametrize(
    "words", [["--help"], ["cluster", "--help"], ["cluster", "none.csv"], ["predict", "none/", "x.csv"]]
)
def test_help_and_a_misspelt_name_import_nothing_heavy(words):
    code = (
        "import sys; from neuralbayes.cli import main; main(sys.argv[1:]); "
        f"sys.exit(sorted({HEAVY} & {{name.partition('.')[0] for name in sys.modules}}) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=False)
    assert (done.returncode, "\x1b" in done.stdout + done.stderr) == (0, False), done.stderr


def test_version_says_what_a_bug_report_needs_of_a_broken_installation_too(run):
    lines = dict(line.split(" ", 1) for line in run("--version").out.strip().splitlines())
    assert lines["neuralbayes"] == neuralbayes.__version__
    assert {"python", "torch", "scikit-learn", "platform", "device", "dask"} <= lines.keys()
    program = "import sys; sys.modules['torch'] = None; from neuralbayes.cli import main; main(['--version'])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "device unknown (" in done.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("clutser x.csv", 'Did you mean "cluster"?'),
        ("cluster", "DATA requires an argument. For example: neuralbayes cluster customers.csv --open."),
        ("cluster words.csv --cluster 3", "Did you mean --clusters?"),
        ("cluster words.csv --seed many", "--seed must be a whole number, got 'many'."),
        ("cluster words.csv -k 2.5", "--clusters"),
        ("cluster words.csv -k 0", "--clusters must be"),
        ("cluster words.csv --kind zip", "--kind must be NAME=VALUE, got 'zip'"),
        ("cluster words.csv --read speed=9", "--read must be one of sep=..., decimal=..."),
        ("cluster words.csv --read limit=few", "--read must have a limit"),
        ("cluster words.csv --columns z", "--columns must name columns"),
        ("cluster word.csv", "word.csv does not exist. Did you mean words.csv?"),
        ("cluster empty/wrds.csv", "empty/wrds.csv does not exist. Check the spelling"),
        ("cluster mnits", "Did you mean mnist?"),
        ("pretrain cifar10", "--out requires an argument. For example: neuralbayes pretrain"),
        ("pretrain cifar10 --out", "--out requires an argument."),
        ("pretrain cifar10 --out r --encoder smal", 'Did you mean "small"?'),
        ("pretrain cifar10 --out r --epochs 2.5", "--epochs must be a whole number, got '2.5'."),
        ("demo more", "['more']"),
        ("predict empty words.csv", "empty holds no model"),
        ("cluster words.csv --config none.toml", "none.toml: no such file or directory."),
    ],
)
def test_a_first_mistake_gets_one_paragraph_with_a_hint(run, tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "words.csv").write_text("a,b\n1,2\n3,5\n4,4\n")
    found = run(*words.split())
    assert (found.code, found.out) == (2, "")
    assert message in found.err
    assert "Traceback" not in found.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "words.csv"]


@pytest.mark.parametrize(
    ("error", "message", "code"),
    [
        (ValueError("`n_clusters` must be\n  positive"), "error: --clusters must be positive. `neuralbayes", 2),
        (ValueError("`sep` must be one character"), "error: --read sep=... must be one character.", 2),
        (TypeError("`data` must be a path"), "error: DATA must be a path.", 2),
        (TypeError("unhashable type: 'dict'"), "error: TypeError: unhashable", 1),
        (FileNotFoundError(errno.ENOENT, "No such file or directory", "m"), "error: m: no such file or directory.", 2),
        (PermissionError(errno.EACCES, "Permission denied", "/etc/x"), "error: /etc/x: permission denied. Choose", 2),
        (OSError(errno.ENOSPC, "No space left on device", "big"), "error: the disk is full (big: no space left", 2),
        (OSError("strange disk"), "error: strange disk.", 2),
        (ImportError("x: pip install 'neuralbayes[text]'"), "error: x: pip install 'neuralbayes[text]'. Install", 2),
        (ModuleNotFoundError("No module named 'torch'", name="torch"), "error: No module named 'torch'. Install", 2),
        (ImportError("cannot import name 'x'"), "error: ImportError: cannot import name", 1),
        (zipfile.BadZipFile("not a zip"), "error: a file is damaged or cut short (not a zip).", 2),
        (MemoryError(), "error: out of memory: ", 2),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), "error: out of memory: ", 2),
        (ConnectionError("a process ended"), "error: a process ended. Run the same command again", 2),
        (RuntimeError("[bold]shape[/bold] mismatch"), "error: RuntimeError: [bold]shape[/bold] mismatch.", 1),
        (KeyboardInterrupt(), "interrupted", 130),
    ],
)
def test_errors_are_a_paragraph_with_an_exit_code(run, table, tmp_path, monkeypatch, error, message, code):
    def fail(*args, **options):
        raise error

    monkeypatch.setattr(neuralbayes, "cluster", fail, raising=False)
    found = run("cluster", table, "--out", tmp_path / "out")
    assert (found.code, found.out) == (code, "")
    assert found.err.startswith(message)
    assert "Traceback" not in found.err
    assert ("report it" in found.err) == (code == 1)
    assert not (tmp_path / "out").exists()


def test_debug_shows_the_traceback_wherever_it_stands(run, monkeypatch):
    words = ["cluster", "none.csv"]
    for debugging in (["--debug", *words], [*words, "--debug"]):
        assert "Traceback" in run(*debugging).err
    monkeypatch.setenv("NEURALBAYES_DEBUG", "1")
    assert "Traceback" in run(*words).err
    monkeypatch.setenv("NEURALBAYES_DEBUG", "0")
    assert "Traceback" not in run(*words).err


def test_a_warning_is_a_line_without_code(run, table, monkeypatch):
    def warns(*args, **options):
        warnings.warn("[bold]look[/bold] here", UserWarning, stacklevel=2)
        raise ValueError("nothing")

    monkeypatch.setattr(neuralbayes, "cluster", warns, raising=False)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert run("cluster", table).err.startswith("warning: [bold]look[/bold] here error: nothing")


def test_names_send_no_escape_sequences_to_the_terminal(run):
    name = "\x1b]0;title\x07\x9b31m\u202egpj.exe"
    assert plain(name) == r"\x1b]0;title\x07\x9b31m\u202egpj.exe"
    assert plain("é 漢 😀\nnext") == r"é 漢 😀\nnext"
    assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(run("cluster", name).err)


def test_output_that_nobody_reads_or_that_cannot_be_encoded():
    command = [sys.executable, "-m", "neuralbayes"]
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([*command, "--help"], stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")
    ascii_only = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run([*command, "cluster", "é\udc80.csv"], capture_output=True, env=ascii_only, check=False)
    assert (done.returncode, rb"\xe9\udc80.csv does not exist" in done.stderr) == (2, True)


ASK = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(( $# - 1 )); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}
_neuralbayes
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_commands_options_and_choices(run, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))  # whose startup file gets a line
    script = tmp_path / "neuralbayes.bash"
    assert run("--install-completion", "--shell", "bash", "--output", script).code == 0
    for words, wanted in ((["pre"], {"predict", "pretrain"}), (["pretrain", "x", "--learn"], {"--learning-rate"})):
        command = ["bash", "-c", ASK, "ask", str(script), "neuralbayes", *words]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert set(done.stdout.split()) == wanted


def test_a_page_is_opened_if_wanted(run, clustered, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", lambda address: opened.append(address))
    data = clustered.with_name("customers.csv")
    found = run("report", clustered, data, "--open", "--quiet")
    assert (found.code, opened) == (0, [(clustered / "report.html").absolute().as_uri()])
    assert "no browser could be opened" in found.err


def test_work_is_shown_in_a_terminal_and_removed(monkeypatch, capsys):
    from neuralbayes.cli import terminal

    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    with terminal.working("clustering a\x1bb", patience=0.0) as doing:
        doing("writing")
    shown = capsys.readouterr().err
    assert r"clustering a\x1bb" in shown or "writing" in shown
