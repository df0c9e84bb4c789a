import io

import pytest
from rich.console import Console

from neuralbayes.training import progress


def run(**options):
    with progress(4, description="epoch", **options) as display:
        for step in range(display.completed, 4):
            display.advance(samples=32, metrics={"loss": 1 / (step + 1)})


def test_nothing_is_shown_when_off(capsys):
    run(enabled=False)
    assert capsys.readouterr() == ("", "")


def test_plain_lines_where_output_is_no_terminal(capsys):
    run(interval=0.0, completed=2)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("epoch 3/4  loss 0.3333  ")
    assert "samples/s" in lines[0]
    assert lines[1].startswith("epoch 4/4  loss 0.25  ")
    assert lines[1].endswith("0:00:00 left")


def test_lines_come_now_and_then_but_the_last_always(capsys):
    run(interval=3600.0)
    assert [line.split()[1] for line in capsys.readouterr().out.splitlines()] == ["4/4"]


def test_a_bar_in_a_terminal():
    screen = io.StringIO()
    run(console=Console(file=screen, force_terminal=True, width=120))
    last = screen.getvalue()
    assert "4/4" in last
    assert "loss 0.25" in last
    assert "samples/s" in last


def test_bad_total_is_named():
    with pytest.raises(ValueError, match="`total` must be at least 0, got -1"), progress(-1):
        pass
