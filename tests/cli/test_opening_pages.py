"""When a page is opened: with an option, after a yes, or not at all."""

import webbrowser
from types import SimpleNamespace

import pytest

from neuralbayes.cli.browser import open_if_wanted


def stream(terminal=True):
    return SimpleNamespace(isatty=lambda: terminal)


@pytest.fixture
def opened(monkeypatch):
    """Record the addresses that a browser gets."""
    addresses = []
    monkeypatch.setattr(webbrowser, "open", lambda address: addresses.append(address) or True)
    return addresses


@pytest.fixture
def asked(monkeypatch):
    """Pretend to be a person at a terminal with a graphical browser, and record the questions."""
    questions = []

    class Person:
        answer = ""

        def __call__(self, question):
            questions.append(question)
            if isinstance(self.answer, str):
                return self.answer
            raise self.answer

    person = Person()
    person.questions = questions
    monkeypatch.setattr("builtins.input", person)
    person.system = SimpleNamespace(stdin=stream(), stdout=stream(), platform="linux")
    monkeypatch.setattr("neuralbayes.cli.browser.sys", person.system)
    monkeypatch.setattr(webbrowser, "get", lambda: None)
    monkeypatch.setenv("DISPLAY", ":0")
    for name in ("CI", "WAYLAND_DISPLAY", "SSH_CONNECTION"):
        monkeypatch.delenv(name, raising=False)
    return person


@pytest.mark.parametrize(
    ("answer", "opens"), [("", True), ("y", True), (" Yes ", True), ("n", False), ("what?", False)]
)
def test_a_person_is_asked_and_enter_opens(asked, opened, tmp_path, answer, opens):
    asked.answer = answer
    open_if_wanted(tmp_path / "a page.html", None)
    assert asked.questions == ["Open it now? [Y/n] "]
    assert opened == ([(tmp_path / "a page.html").as_uri()] if opens else [])


@pytest.mark.parametrize("end", [KeyboardInterrupt(), EOFError()])
def test_ctrl_c_and_the_end_of_input_are_no(capsys, asked, opened, tmp_path, end):
    asked.answer = end
    open_if_wanted(tmp_path / "page.html", None)
    assert opened == []
    assert len(asked.questions) == 1
    assert capsys.readouterr().out == "\n"


@pytest.mark.parametrize(
    ("name", "value"), [("CI", "true"), ("DISPLAY", ""), ("stdin", False), ("stdout", False), ("get", None)]
)
def test_nobody_is_asked_where_nobody_is_or_nothing_can_be_opened(asked, opened, tmp_path, monkeypatch, name, value):
    if name == "get":

        def none():
            raise webbrowser.Error("none")

        monkeypatch.setattr(webbrowser, "get", none)
    elif isinstance(value, str):
        monkeypatch.setenv(name, value)
    else:
        setattr(asked.system, name, stream(value))
    open_if_wanted(tmp_path / "page.html", None)
    assert asked.questions == opened == []


@pytest.mark.parametrize(
    ("platform", "over_ssh", "asks"), [("darwin", "", True), ("darwin", "1", False), ("win32", "", True)]
)
def test_other_systems_need_no_display(asked, tmp_path, monkeypatch, opened, platform, over_ssh, asks):
    monkeypatch.delenv("DISPLAY")
    monkeypatch.setenv("SSH_CONNECTION", over_ssh)
    asked.system.platform = platform
    open_if_wanted(tmp_path / "page.html", None)
    assert len(asked.questions) == asks


def test_an_option_decides_without_a_question(asked, opened, tmp_path):
    open_if_wanted(tmp_path / "page.html", False)
    assert opened == []
    open_if_wanted(tmp_path / "page.html", True)
    assert len(opened) == 1
    assert asked.questions == []


def test_a_browser_that_does_not_open_is_told(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(webbrowser, "open", lambda address: False)
    open_if_wanted(tmp_path / "page.html", True)
    assert "no browser could be opened here" in capsys.readouterr().err
