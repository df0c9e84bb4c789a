import math

import pytest

from neuralbayes.training import read_metrics
from neuralbayes.training.run_folder import cut_metrics, write_metrics


def test_lines_come_back_with_nan_for_what_json_cannot_say(tmp_path):
    path = tmp_path / "metrics.jsonl"
    write_metrics(path, {"step": 1, "loss": 0.1})
    write_metrics(path, {"step": 2, "loss": math.inf})
    first, second = read_metrics(path)
    assert first == {"step": 1, "loss": 0.1}
    assert second["step"] == 2
    assert math.isnan(second["loss"])
    assert '"loss": null' in path.read_text()


@pytest.mark.parametrize("rest", ['{"step": 2, "lo', '{"st', "\x00\x00\x00", "{}"])
def test_a_last_line_cut_short_is_left_out(tmp_path, rest):
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 1}\n' + rest)
    assert read_metrics(path) == [{"step": 1}]


def test_damage_in_the_middle_is_named(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 1}\n{"step"\n{"step": 3}\n')
    with pytest.raises(ValueError, match=r"metrics\.jsonl, line 2"):
        read_metrics(path)


def test_cut_keeps_the_lines_up_to_the_step(tmp_path):
    path = tmp_path / "metrics.jsonl"
    for step in (2, 4, 6):
        write_metrics(path, {"step": step, "loss": math.nan})
    lines = path.read_text().splitlines()
    with open(path, "a") as handle:
        handle.write('{"step": 8, "lo')
    assert [record["step"] for record in cut_metrics(path, 4)] == [2, 4]
    assert path.read_text().splitlines() == lines[:2]
    write_metrics(path, {"step": 5})
    assert [record["step"] for record in read_metrics(path)] == [2, 4, 5]
