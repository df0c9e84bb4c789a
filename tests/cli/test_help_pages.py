"""Help pages: every command has one, with correct examples, that fits a terminal of 80 columns."""

import re

import pytest
from command_lines import parse

from neuralbayes.cli import COMMANDS, app, main

NAMES = [name for group in COMMANDS.values() for name in group]
EXAMPLE = re.compile(r"\[cyan\](.*?)\[/cyan\]", re.DOTALL)


def page(words, capsys):
    assert main([*words, "--help"]) == 0
    return capsys.readouterr().out


def examples(name):
    """The examples on the help page of a command, or of all commands, as written in the source."""
    owner = app[name] if name else app
    return EXAMPLE.findall(owner.help_epilogue)


def test_commands_come_in_the_order_in_which_a_person_meets_them(capsys):
    out = page([], capsys)
    places = [re.search(rf"^│ {name} ", out, re.MULTILINE).start() for name in NAMES]
    assert places == sorted(places)
    assert [title in out for title in COMMANDS] == [True] * len(COMMANDS)
    assert {name for name in app if not name.startswith("-")} == set(NAMES)


@pytest.mark.parametrize("words", [[], *([name] for name in NAMES)], ids=" ".join)
def test_a_page_has_an_example_and_80_columns(words, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    out = page(words, capsys)
    assert f"  neuralbayes {' '.join(words[:1])}" in out.split("Examples")[-1]
    assert max(map(len, out.splitlines())) <= 80
    assert "--config FILE" in out


@pytest.mark.parametrize("name", ["", *NAMES])
def test_no_line_of_an_example_is_broken_in_80_columns(name):
    lines = [line for example in examples(name) for line in example.splitlines()]
    assert [line for line in lines if len(line) > 78] == []


@pytest.mark.parametrize("name", ["", *NAMES])
def test_every_example_is_a_command_line_that_can_be_read(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.toml").write_text('data = "cifar10"\nout = "run"\n')
    for example in examples(name):
        parse(example)
    assert examples(name)


def test_a_description_flows_over_the_line_breaks_of_its_docstring(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    assert "weight of the smoothness" not in page(["pretrain"], capsys).split("Parameters")[0]
    shown = re.sub(r"[\s│|]+", " ", page(["pretrain"], capsys))  # a narrower console would break lines itself
    assert "or remove the correlations between neighbouring pixels (whiten)" in shown


def test_help_is_a_command_too(capsys):
    assert main(["help", "label"]) == 0
    assert "neuralbayes label" in capsys.readouterr().out
