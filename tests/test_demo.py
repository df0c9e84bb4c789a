"""The demo: its table, what it finds, and the one page that it writes."""

import numpy as np
import pytest

import neuralbayes as nb
from neuralbayes.demo import make_members, manifolds, run_demo


def test_the_made_up_table_has_columns_of_many_kinds_and_gaps_but_no_groups():
    table, groups = make_members(300, 0)
    again, _ = make_members(300, 0)
    assert table.equals(again)
    assert set(np.unique(groups)) == {"before work", "competitors", "families", "students"}
    assert {str(kind)[0] for kind in table.dtypes} >= {"f", "d"}
    assert table["member"].is_unique
    assert 0.005 < table.drop(columns="member").isna().to_numpy().mean() < 0.05
    assert not set(table.astype(str).to_numpy().ravel()) & set(groups)


def test_disjoint_sets_are_certified_and_the_ring_is_not(tmp_path):
    section = manifolds(tmp_path)
    titles = [ax.get_title(loc="left") for ax in section.pictures[0].axes]
    assert [title.endswith("\ncertified") for title in titles] == [True, True, True, False]
    for name in ("moons", "circles", "spirals"):
        assert f"{name} 100.0%" in section.sentence
    assert nb.cluster(tmp_path / "spirals.csv").n_clusters == 3


@pytest.mark.slow
def test_the_demo_is_one_page_with_a_command_for_each_part(tmp_path):
    said = []
    page = run_demo(tmp_path / "demo", progress=said.append)
    text = page.read_text(encoding="utf-8")
    assert len(said) == 5
    for command in ("members.csv", "neuralbayes cluster digits", "spirals.csv", "neuralbayes pretrain my_images/"):
        assert command in text
    assert {path.name for path in page.parent.iterdir()} == {
        "demo.html", "digits.html", "members.csv", "members.html", "spirals.csv"
    }  # fmt: skip
    assert "https://" not in text.replace("http://www.w3.org", "")
