import math

import pytest

from neuralbayes.training import read_metrics
from neuralbayes.training.metrics import MetricsFile
from neuralbayes.training.run_folder import Means


def test_lines_come_back_with_nan_for_what_json_cannot_say(tmp_path):
    file = MetricsFile(tmp_path / "metrics.jsonl")
    file.append({"step": 1, "loss": 0.1})
    file.append({"step": 2, "loss": math.inf})
    first, second = read_metrics(file.path)
    assert first == {"step": 1, "loss": 0.1}
    assert second["step"] == 2
    assert math.isnan(second["loss"])
    assert '"loss": null' in file.path.read_text()


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
    file = MetricsFile(tmp_path / "metrics.jsonl")
    for step in (2, 4, 6):
        file.append({"step": step, "loss": math.nan})
    lines = file.path.read_text().splitlines()
    with open(file.path, "a") as handle:
        handle.write('{"step": 8, "lo')
    assert [record["step"] for record in file.cut(4)] == [2, 4]
    assert file.path.read_text().splitlines() == lines[:2]
    file.append({"step": 5})
    assert [record["step"] for record in read_metrics(file.path)] == [2, 4, 5]


def test_a_file_that_is_not_there_has_no_lines(tmp_path):
    assert read_metrics(tmp_path / "none.jsonl") == []


def test_means_go_on_from_their_state():
    means = Means()
    means.add({"loss": 1.0})
    again = Means()
    again.load_state_dict(means.state_dict())
    for both in (means, again):
        both.add({"loss": 2.0, "rare": 5.0})
        assert both.compute() == {"loss": 1.5, "rare": 5.0}
    means.clear()
    assert means.compute() == {}


def test_a_file_that_is_too_large_is_refused_before_it_is_read(tmp_path):
    with open(tmp_path / "metrics.jsonl", "wb") as file:
        file.truncate(2**33)
    with pytest.raises(ValueError, match=r"metrics\.jsonl must have at most 67108864 bytes"):
        read_metrics(tmp_path / "metrics.jsonl")
