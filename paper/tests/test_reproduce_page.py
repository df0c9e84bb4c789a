"""The results page from recorded numbers."""

from dataclasses import replace
from pathlib import Path

import pytest
from paper import load_experiment
from paper.experiment import Record
from paper.page import decide_section, section
from paper.records import Recorded, read_results, seeds_of
from paper.results_page import Claim, Power, Section, Table, write_results_page
from reproduce_cases import ablation_results, authors_manifold, classification_results, digits

from neuralbayes.cli import main

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results" / "reproduce"


@pytest.fixture
def recorded():
    results = classification_results()
    return Recorded("table-classification", "laptop", "neuralbayes reproduce table-classification", 40, results)


def test_what_is_written_is_read_again(recorded, tmp_path):
    recorded.write(tmp_path)
    assert read_results(tmp_path) == {"table-classification": [recorded]}


def test_the_largest_scale_counts(recorded, tmp_path):
    for scale in ("paper", "smoke", "laptop"):
        replace(recorded, scale=scale).write(tmp_path)
    assert [one.scale for one in read_results(tmp_path)["table-classification"]] == ["paper"]


@pytest.mark.parametrize(("asked", "recorded_seeds", "kept"), [(1, 2, None), (1, 3, 3), (4, 3, 4), (None, 1, None)])
def test_fewer_seeds_do_not_remove_results_from_the_record(asked, recorded_seeds, kept, tmp_path):
    name = "mnist-dml"
    records = [Record(run.settings, {}, {}) for run in load_experiment(name).runs("smoke", recorded_seeds)]
    stale = Record({**records[0].settings, "epochs": 77}, {}, {})
    Recorded(name, "smoke", "", len(records), [*records, stale]).write(tmp_path)
    assert seeds_of(tmp_path, name, "smoke", asked) == kept
    assert seeds_of(tmp_path / "none", name, "smoke", asked) == asked


def test_a_record_of_more_seeds_is_kept_and_copied_back(tmp_path, monkeypatch):
    monkeypatch.setattr("neuralbayes.sweeps.crew.serve", None)  # no run is performed
    runs = load_experiment("mnist-dml").runs("smoke", 3)
    recorded = Recorded(
        "mnist-dml",
        "smoke",
        "neuralbayes reproduce mnist-dml --scale smoke --seeds 3",
        len(runs),
        [Record(run.settings, digits(run.kind, 0.5).values, {"seconds": 1.0}) for run in runs],
    )
    path = recorded.write(tmp_path / "record")
    before = path.read_bytes()
    words = ["reproduce", "mnist-dml", "--seeds", "1", "--out", str(tmp_path / "out"), "--record", str(path.parents[1])]
    assert main([*words, "--quiet"]) == 0
    assert path.read_bytes() == before
    assert len(Recorded.read(tmp_path / "out" / "mnist-dml" / "smoke.json").records) == len(runs) // 3


def test_sizes_that_the_table_tells_apart_stand_on_one_page(tmp_path):
    def full(kind, accuracy, seed=0):
        record = digits(kind, accuracy, seed, largest=0.2, objective=0.1)
        size = {"width": 1.0, "epochs": 60, "batch_size": 5000}
        return replace(record, settings=record.settings | size, about={"seconds": 36.0})

    small = [
        replace(digits(kind, accuracy + seed / 100, seed), about={"seconds": 3600.0})
        for kind, accuracy in (("random", 0.4), ("logits", 0.6))
        for seed in range(2)
    ]
    merged = replace(digits("merged", 0.99), about={"seconds": 36.0})
    for scale, records in {
        "smoke": small,
        "laptop": [*small, merged],
        "paper": [merged, full("random", 0.5), full("logits", 0.9)],
    }.items():
        Recorded("mnist-dml", scale, f"neuralbayes reproduce mnist-dml --scale {scale}", 5, records).write(tmp_path)
    (recorded,) = read_results(tmp_path).values()
    assert [one.scale for one in recorded] == ["laptop", "paper"]
    found = section("mnist-dml", recorded)
    assert found.scope == (
        "Scale `laptop`, 5 runs, 4.0 hours of computation. Scale `paper`, 3 of 5 runs, 0.0 hours of computation."
    )
    assert found.command.splitlines()[1].endswith("--scale paper")
    assert [row[0] for row in found.tables[0].rows] == [
        "random network",
        "random network, full width",
        "paper's network, R_c on logits",
        "paper's network, R_c on logits, full width, 720 updates",
        "states merged, DML() times 10",
    ]
    reached, _, beaten = found.claims
    assert reached.verdict == "not seen at this scale"
    assert reached.numbers.endswith("of the 1,080 updates of appendix H at full width, 720 were run")
    assert beaten.verdict == "holds"  # with two seeds each; the single pair at full width has no interval
    assert "random network, full width 50.0 % (softmax) and 40.0 % (logits)" in beaten.numbers


def test_a_folder_without_results_and_a_foreign_file_are_refused(tmp_path, capsys):
    assert main(["report", str(tmp_path / "none"), "--out", str(tmp_path)]) == 2
    assert main(["report", str(tmp_path), "--out", str(tmp_path)]) == 2
    assert "holds no results" in " ".join(capsys.readouterr().err.split())
    (tmp_path / "table-batch").mkdir()
    (tmp_path / "table-batch" / "smoke.json").write_text('{"a": 1}')
    with pytest.raises(ValueError, match="does not hold the results of an experiment"):
        read_results(tmp_path)


def test_the_page_has_each_claim_in_a_line_and_says_what_was_not_run(recorded, tmp_path):
    recorded.write(tmp_path / "record")
    ablation = Recorded("fig-ablation", "laptop", "neuralbayes reproduce fig-ablation", 24, ablation_results())
    ablation.write(tmp_path / "record")
    out = tmp_path / "docs"
    assert main(["report", str(tmp_path / "record"), "--out", str(out), "--quiet"]) == 0
    text = (out / "results.md").read_text(encoding="utf-8")
    top, rest = text.split("## What was not run")
    assert "Of 25 claims, 9 hold and 16 were not tested" in top
    line = next(line for line in top.splitlines() if "MIM beats Deep InfoMax" in line)
    assert line == (
        "| MIM beats Deep InfoMax | **holds** | CIFAR-10: 60.0 ± 0.2 vs 55.0 ± 0.2 %, "
        "under the paper's protocol 65.0 ± 0.2 vs 60.0 ± 0.2 % | section 5.1.2, table 2 |"
    )
    for words in ("CIFAR-100 (table 2)", "STL-10 (table 2)", "`neuralbayes reproduce table-batch`"):
        assert words in rest
    assert "CIFAR-10 (table 2)" not in rest
    assert "| Neural Bayes-MIM, last layer | 82.81 | 65.0 ± 0.2 | 60.0 ± 0.2 |" in rest
    assert "21 of 40 runs" in rest
    # 21 runs of two layers and 21 of one; three random encoders are the same
    assert "Over 60 probes, the accuracy under the paper's protocol is +5.0 ± 0.0 points above" in rest
    assert str(tmp_path) not in text
    pictures = {path.name for path in (out / "pictures").iterdir()}
    assert pictures == {"results-protocols.png", "results-table-classification.png", "results-fig-ablation.png"}


def test_a_run_that_two_experiments_look_at_counts_once_between_the_protocols(tmp_path):
    for name in ("fig-ablation", "fig-v1-v2"):
        Recorded(name, "laptop", "", 1, ablation_results()).write(tmp_path)
    main(["report", str(tmp_path), "--out", str(tmp_path / "docs"), "--quiet"])
    assert f"Over {len(ablation_results())} probes" in (tmp_path / "docs" / "results.md").read_text(encoding="utf-8")


def test_cells_with_bars_stay_cells_and_sections_without_results_have_no_picture(tmp_path):
    table = Table("T", ("a", "b"), [("p(z|x)", "1")], "A note.")
    claim = Claim("It works.", "table 9", "not run", "")
    sections = [Section("x", "Title", "About.", [claim], [table])]
    (page,) = write_results_page(sections, tmp_path, introduction="Words.", not_run=[])
    text = page.read_text(encoding="utf-8")
    assert "| p(z\\|x) | 1 |\n\nA note.\n" in text
    assert "| It works | **not run** |  | table 9 |" in text
    assert "Everything was run." in text
    assert "![" not in text


def test_claims_that_are_not_sure_are_listed_with_the_runs_and_hours_that_they_would_take():
    record = replace(classification_results()[0], about={"seconds": 1800.0})
    recorded = Recorded("table-classification", "laptop", "", 1, [record])
    unsure = Claim("Unsure.", "table 2", "undecided", "", Power(10, 40))
    others = [Claim("Sure.", "table 2", "holds", ""), Claim("Unknown.", "table 2", "undecided", "")]
    written = Section("table-classification", "T", "", [unsure, *others])
    (table,) = decide_section([written], {"table-classification": [recorded]}).tables
    assert table.rows == [("Unsure", "undecided", "10", "40", "15.0")]
    assert decide_section([replace(written, claims=others)], {"table-classification": [recorded]}) is None


def test_below_the_papers_scale_nothing_is_said_not_to_hold_unless_the_authors_setting_was_run(recorded):
    results = classification_results(mim=0.2)
    for scale, verdict in (("laptop", "not seen at this scale"), ("paper", "does not hold here")):
        found = section("table-classification", [replace(recorded, scale=scale, records=results)])
        assert found.claims[0].verdict == verdict
    claims = section("fig-manifolds", [Recorded("fig-manifolds", "laptop", "", 1, [bare_circle()])]).claims
    assert claims[0].verdict == "does not hold here"


def bare_circle():
    record = authors_manifold("circles", "whole set", 0.5)
    picture = {"labels": "01" * 200, "map": "0110"}
    return replace(
        record,
        settings={**record.settings, "grid": 2},
        values={**record.values, "picture": picture},
        about={"seconds": 1.0},
    )


@pytest.mark.skipif(not RESULTS.is_dir(), reason="no results are committed")
def test_the_committed_page_is_generated_from_the_committed_results(tmp_path):
    assert main(["report", str(RESULTS), "--out", str(tmp_path), "--quiet"]) == 0
    assert (tmp_path / "results.md").read_text("utf-8") == (ROOT / "docs" / "results.md").read_text("utf-8")
    for picture in (tmp_path / "pictures").iterdir():
        assert (ROOT / "docs" / "pictures" / picture.name).is_file()
