"""The record of `make bench` for each commit, and the ratios that it marks as slower."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from watch import RECORD, append, as_table, grown, key, newest, read_records
from watched import Measured, child, in_turn, measured

FAST, SLOW = Measured("fit", "k-means", 1.0, 2.0, 0.5, (0.9, 0.8)), Measured("help", "pass", 3.0, 1.0, 3.0)


def test_a_ratio_that_has_grown_by_more_than_a_third_is_named_and_a_new_one_is_not():
    assert grown([FAST, SLOW], {"fit / k-means": 0.4, "help / pass": 2.0}) == ["help / pass"]
    assert grown([FAST, SLOW], {"fit / k-means": 0.3}) == ["fit / k-means"]
    assert as_table([FAST, SLOW], {"help / pass": 2.0}).row_count == 2


def test_lines_are_appended_and_read_in_their_order(tmp_path):
    path = tmp_path / "bench" / "ratios.jsonl"
    assert read_records(path) == []
    for number in range(3):
        append({"commit": str(number), "ratios": {key(FAST): float(number)}}, path)
    assert [record["commit"] for record in read_records(path)] == ["0", "1", "2"]


def test_a_ratio_is_compared_with_the_last_line_that_has_it():
    records = [{"ratios": {"a": 1.0, "b": 1.0}}, {"ratios": {"a": 2.0}}]
    assert newest(records) == {"a": 2.0, "b": 1.0}


def test_the_ratio_is_the_median_of_rounds_not_the_ratio_of_medians():
    found = measured("a", "b", [(1.0, 1.0), (6.0, 2.0), (6.0, 3.0)])
    assert (found.ours, found.theirs, found.ratio) == (6.0, 2.0, 2.0)


def test_labels_of_both_are_compared_with_the_classes():
    (found,) = in_turn("a", lambda: [0, 0, 1, 1], {"b": lambda: [0, 1, 0, 1]}, rounds=1, truth=[1, 1, 0, 0])
    assert found.beside == "b"
    assert found.scores == (1.0, pytest.approx(-0.5))


def test_a_child_reports_its_own_peak_and_not_that_of_its_parent(tmp_path):
    large = bytearray(200 * 2**20)
    small, more = (child(f"held = bytearray({megabytes} * 2**20)", tmp_path)[1] for megabytes in (1, 101))
    assert len(large) > 2**20 * more
    assert 90 < more - small < 110


def test_every_line_of_the_record_names_a_commit_and_has_positive_ratios():
    for line in RECORD.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        assert record["commit"]
        assert all(ratio > 0 for ratio in record["ratios"].values())
