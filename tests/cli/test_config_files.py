"""`--config FILE`: numbers, choices and flags from a TOML file, and nothing that names code or a path."""

from functools import wraps

import pytest

from neuralbayes.cli import COMMANDS, app
from neuralbayes.cli.options import FROM_FILE

NAMES = [name for group in COMMANDS.values() for name in group]
ARGUMENTS = [
    (name, argument) for name in NAMES for argument in app[name].assemble_argument_collection() if argument.parse
]
NEEDED = {"pretrain": "digits --out r", "embed": "r digits --out f.npy", "probe": "r digits", "export": "r --out e.pt2"}
NEEDED |= {"cluster": "digits", "predict": "m digits", "report": "m", "demo": ""}

REFUSED = {"data", "model", "run", "out", "columns", "kind", "text", "features", "known", "describe", "read"}
REFUSED |= {"objective", "scheduler", "force", "open"}


@pytest.fixture
def given(monkeypatch):
    """Arguments that a stand-in for `neuralbayes pretrain` was called with."""
    seen = {}
    pretrain = app["pretrain"]

    @wraps(pretrain.default_command)
    def stand_in(*args, **options):
        seen.clear()
        seen.update(options, data=args[0])

    monkeypatch.setattr(pretrain, "default_command", stand_in)
    return seen


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(text):
        (tmp_path / "a.toml").write_text(text)
        return "a.toml"

    return write


def test_a_file_gives_what_the_command_line_would(run, given, file):
    text = "alpha = 3\nlearning-rate = 1e-3\nepochs = 4\npreset = 'paper'\nquiet = true\n"
    assert run("pretrain", "digits", "--out", "r", "--config", file(text)).code == 0
    assert {"alpha": 3.0, "learning_rate": 1e-3, "epochs": 4}.items() <= given.items()
    assert {"preset": "paper", "quiet": True}.items() <= given.items()
    assert run("pretrain", "digits", "--out", "r", "--config", "a.toml", "--epochs", "9").code == 0
    assert (given["epochs"], given["alpha"]) == (9, 3.0)
    assert run("pretrain", "digits", "--out", "r").code == 0  # the file is forgotten
    assert "alpha" not in given


def test_each_option_is_either_allowed_or_refused(run, file):
    known = {argument.name.lstrip("-").lower() for _, argument in ARGUMENTS}
    assert known == FROM_FILE | REFUSED
    assert not FROM_FILE & REFUSED
    for key in ("config", "debug"):
        assert "give it on the command line" in run("cluster", "digits", "--config", file(f"{key} = 'b.toml'")).err


@pytest.mark.parametrize("value", ['"evil.py:f"', "true", '["a"]', "{a = 1}"])
@pytest.mark.parametrize(
    ("name", "argument"), ARGUMENTS, ids=[f"{name}-{argument.name}" for name, argument in ARGUMENTS]
)
def test_no_option_of_any_command_takes_code_or_a_path_from_a_file(run, file, tmp_path, name, argument, value):
    key = argument.name.lstrip("-").lower()
    if key in FROM_FILE:
        return
    (tmp_path / "evil.py").write_text("open('ran', 'w')")
    for spelling in {key, key.replace("-", "_"), key.upper()}:
        found = run(name, *NEEDED[name].split(), "--config", file(f"{spelling} = {value}"))
        assert found.code == 2
        assert f"a.toml must not set {spelling}: give it on the command line." in found.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.toml", "evil.py"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("alphaa = 2", 'Unknown option: "alphaa" from a.toml. Did you mean --alpha?'),
        ('epochs = "many"', "epochs] in a.toml must be a whole number, got 'many'."),
        ("epochs = 2.5", "epochs] in a.toml must be a whole number, got '2.5'."),
        ("epochs = [1, 2]", "epochs"),
        ("alpha = 2020-01-01", "alpha"),
        ('encoder = "smal"', '"smal"'),
        ("batch_size = 3", "Unknown option"),
        ("[pretrain]\nepochs = 1", 'Unknown option: "pretrain" from a.toml.'),
        ("encoder = tiny", "a.toml is not valid TOML, in which text needs quotes"),
        (f"{'.'.join('a' * 9000)} = 1", "a.toml must have at most 10000 bytes"),  # gigabytes for a longer one
    ],
)
def test_a_mistake_in_a_file_is_named_with_the_file(run, file, tmp_path, text, message):
    found = run("pretrain", "digits", "--out", "r", "--config", file(text))
    assert found.code == 2
    assert message in found.err
    assert not (tmp_path / "r").exists()
