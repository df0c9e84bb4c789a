"""The page of a table explains its clusters: cards, heat map, rows with reasons, and the numbers that were tried."""

import base64

import numpy as np
import pandas as pd
import pytest
from html_pages import Page, check_self_contained

import neuralbayes as nb
from neuralbayes.cli import main
from neuralbayes.report.explorer.described import N_REASONS, STEPS, described
from neuralbayes.report.explorer.tried import tried_grid

ATTACK = "<script>document.title='broken'</script>"


def make_table(n=240):
    rng = np.random.default_rng(0)
    groups = np.repeat([0, 1, 2], n // 3)
    frame = pd.DataFrame(
        {
            "tag": [f"P{i:03d}" for i in range(n)],
            "mass": rng.normal([3.0, 5.0, 7.0], 0.2, size=(n, 3))[np.arange(n), groups],
            "length": rng.normal([1.0, 1.0, 4.0], 0.3, size=(n, 3))[np.arange(n), groups],
            "island": np.array(["Dream", "Biscoe", ATTACK])[groups],
            "sex": rng.choice(["f", "m"], n),
        }
    )
    frame.loc[5, "sex"] = None
    return frame, groups


@pytest.fixture(scope="module")
def explained():
    frame, groups = make_table()
    p_zx = np.full((len(frame), 3), 0.05)
    p_zx[np.arange(len(frame)), groups] = 0.9
    p_zx[3] = [0.5, 0.4, 0.1]
    return described(
        frame,
        p_zx,
        index=np.arange(len(frame)),
        sizes=None,
        fitted=["mass", "length"],
        left_out=["sex"],
        verdict="They may touch.",
    )


def test_the_sentence_says_what_was_found(explained):
    assert explained.sentence == (
        f"3 clusters in 240 rows: Dream (33 %); Biscoe (33 %); {ATTACK[:29]}… (33 %). They may touch."
    )


def test_cards_hold_all_columns_and_rules_the_fitted_ones(explained):
    card = explained.cards[0]
    assert card.words[0] == "island: Dream (100 %, others 0 %)"
    assert card.rule == "mass ≤ 4"
    assert card.precision == 1.0
    assert card.recall > 0.95
    assert set(card.typical.head) == {"", "mass", "length", "island", "tag"}
    assert card.typical.rows[0][0].startswith("P")
    assert card.borderline.rows[0][0] == "P003"


def test_the_heat_map_has_a_field_for_each_cluster_and_column(explained):
    fields = {name: (fitted, cells) for name, fitted, cells in explained.heat}
    assert set(fields) == {"mass", "length", "island"}
    fitted, cells = fields["mass"]
    assert fitted
    assert [cell.step for cell in cells] == [-2, 0, 2]
    assert [cell.text for cell in cells] == ["2.96", "4.98", "7.01"]
    assert "median 2.96, mean -1.2 sd" in cells[0].detail
    fitted, cells = fields["island"]
    assert not fitted
    assert (cells[1].text, cells[1].step) == ("Biscoe 100 %", STEPS)


def test_reasons_are_fitted_columns_that_speak_for_the_label(explained):
    names = [column.name for column, _ in explained.cells]
    assert explained.reasons.shape == (240, N_REASONS)
    named = {names[j] for j in explained.reasons[explained.reasons >= 0]}
    assert named == {"mass", "length"}
    assert names[explained.reasons[0, 0]] == "mass"
    assert explained.runner_up[3] == 1


def test_a_missing_cell_is_no_reason():
    frame, groups = make_table()
    frame.loc[:20, "mass"] = np.nan
    p_zx = np.eye(3)[groups] * 0.9 + 0.03
    index = np.arange(240)
    found = described(frame, p_zx, index=index, sizes=None, fitted=["mass"], left_out=[], verdict="")
    assert (found.reasons[:21] == -1).all()
    assert (found.reasons[21:, 0] >= 0).mean() > 0.9


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("described")
    make_table()[0].to_csv(folder / "table.csv", index=False)
    words = ["label", folder / "table.csv", "--clusters", "3", "--save", folder / "model", "--no-picture", "--quiet"]
    assert main([str(word) for word in words]) == 0
    words = ["report", folder / "model", folder / "table.csv", "--out", folder / "page.html", "--quiet"]
    assert main([str(word) for word in words]) == 0
    return Page(folder / "page.html")


def test_the_page_begins_with_what_was_found(page):
    wanted = ["found", "heat", "rows", "know", "explore", "run"]
    assert [name for name in page.ids() if name in wanted] == wanted
    assert page.text.index("3 clusters in 240 rows") < page.text.rindex("Caveats")
    assert "are in the cluster (precision)" in page.text
    assert "P003" in page.source


def test_the_page_is_self_contained_and_names_are_text(page):
    check_self_contained(page)
    assert ATTACK not in page.source


def test_the_page_holds_every_row_with_its_cells_and_reasons(page):
    found = page.payload["sides"][0]["described"]
    assert len(found["names"]) == 240
    assert all(len(column["cells"].split("\n")) == 240 for column in found["columns"])
    assert {column["name"] for column in found["columns"]} == {"tag", "mass", "length", "island", "sex"}
    reasons = np.frombuffer(base64.b64decode(found["reasons"]), "<i2")
    assert len(reasons) == 3 * 240
    assert reasons.max() < len(found["columns"])


def test_one_cluster_shows_what_was_tried(tmp_path):
    rows = pd.DataFrame(np.random.default_rng(0).normal(size=(150, 3)), columns=["a", "b", "c"])
    rows.to_csv(tmp_path / "one.csv", index=False)
    words = ["label", tmp_path / "one.csv", "--method", "manifolds", "--save", tmp_path / "model", "--no-picture"]
    assert main([*(str(word) for word in words), "--quiet"]) == 0
    words = ["report", tmp_path / "model", tmp_path / "one.csv", "--out", tmp_path / "page.html", "--quiet"]
    assert main([str(word) for word in words]) == 0
    text = Page(tmp_path / "page.html").text
    assert "One cluster: nothing was found that divides the 150 rows." in text
    assert "How the number of clusters was chosen" in text
    assert "all rows" in text


def test_what_was_tried_is_a_table_whatever_the_method_keeps():
    estimator = nb.ManifoldLabeler()
    assert tried_grid(estimator) is None
    estimator.n_clusters_ = 2
    estimator.selection_ = {"rows": [], "p_value": []}
    assert tried_grid(estimator) is None
    estimator.selection_ = {"rows": [150.0], "p_value": [0.0004]}
    assert tried_grid(estimator).rows == [("150", "0.0004")]
    estimator.selection_ = {"n_clusters": [2, 3], "separation": [0.69, 0.1], "stability": [0.95, None]}
    grid = tried_grid(estimator)
    assert grid.rows == [("2", "99.5", "0.950"), ("3", "14.4", "not needed")]
    assert grid.best == [(0, 2)]
    assert tried_grid(type("", (), {"n_clusters_": 1, "selection_": {"own_score": [0.5]}})()).head == ("own score",)
