"""docs/command-line.md agrees with the help of the commands."""

import re
from pathlib import Path

import pytest
from command_lines import parse

from neuralbayes.cli import COMMANDS, app

TEXT = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text(encoding="utf-8")
LINES = [line for block in re.findall(r"```console\n(.*?)```", TEXT, re.DOTALL) for line in block.splitlines()]
(FILE,) = re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL)


def test_each_command_stands_in_its_group_with_its_sentence():
    for title, commands in COMMANDS.items():
        section = TEXT.split(f"\n## {title}\n")[1].split("\n## ")[0]
        found = re.findall(r"^### ([a-z]+)\n\n(.*)$", section, re.MULTILINE)
        assert found == list(commands.items())


@pytest.mark.parametrize("line", LINES)
def test_an_example_can_be_read(line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.toml").write_text(FILE)
    parse(line)


def test_each_command_has_an_example():
    shown = {line.split()[1] for line in LINES}
    assert shown >= {name for group in COMMANDS.values() for name in group} | {"--install-completion"}


def test_options_that_the_page_names_exist():
    owners = [app[name] for group in COMMANDS.values() for name in group]
    owners += [app["--install-completion"], app.meta]
    known = {name for owner in owners for argument in owner.assemble_argument_collection() for name in argument.names}
    assert set(re.findall(r"`(--[a-z-]+)", TEXT)) <= known | {"--help"}
