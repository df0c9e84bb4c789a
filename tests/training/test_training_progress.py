import io

import pytest
from rich.console import Console

from neuralbayes.training import progress


def run(interval=10.0, **options):
    with progress(4, description="epoch", **options) as display:
        for step in range(display.completed, 4):
            display.advance(samples=32, metrics={"loss": 1 / (step + 1)}, interval=interval)


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


@pytest.mark.parametrize("width", [50, 100])
def test_a_terminal_of_any_width_shows_all_of_it(width):
    screen = io.StringIO()
    metrics = {"loss": 17.53412} | {f"{kind}/relu{i}": i / 7 for i in range(1, 5) for kind in ("mi", "dead")}
    with progress(9, console=Console(file=screen, force_terminal=True, width=width, color_system=None)) as display:
        for _ in range(3):
            display.advance(samples=100, metrics=metrics)
    last = " ".join(screen.getvalue().rsplit("step ", 1)[1].split())
    assert "3/9" in last
    assert "left" in last
    assert "loss 17.53 mi 0.1429 0.2857 0.4286 0.5714 dead 0.1429 0.2857 0.4286 0.5714" in last
    assert "samples/s" in last
