"""Cards as data, and as HTML for a notebook."""

from types import SimpleNamespace

import numpy as np
import pytest
from page_cases import SCRIPT, a_continuum, a_table, many_clusters, no_clusters, some_images, some_texts

import neuralbayes as nb
from neuralbayes.report.cards import MANY, cards_html, make_cards, title_of


def test_a_card_holds_what_the_result_found():
    result = a_table()
    rows = result.clusters.iterrows()
    for card, (k, row), found in zip(make_cards(result), rows, result.description.clusters, strict=True):
        assert (card.number, card.name, card.size) == (k, row["name"], row["size"])
        assert (card.share, card.stability, card.rule) == (row["share"], row["stability"], row["rule"])
        assert (card.precision, card.recall) == (row["precision"], row["recall"])
        assert [member.row for member in card.typical] == row["typical"][:3]
        for point, claim in zip(card.points, found.differences, strict=False):
            assert claim.words in point.words
            assert (point.inside, point.outside) == (claim.share_inside, claim.share_outside)
        ruled = [condition.column for condition in found.rule.conditions]
        assert list(card.columns)[: len(ruled)] == ruled
        for member in card.typical:
            assert member.name == result.points.frame["id"].iloc[member.row]
            assert len(member.cells) == len(card.columns)


def test_typical_texts_and_images_are_shown():
    for card in make_cards(some_texts()):
        assert all(member.text and not member.cells for member in card.typical)
    for card in make_cards(some_images()):
        assert all(member.picture.startswith("data:image/webp;base64,") for member in card.typical)


def test_outliers_come_last_the_least_typical_first():
    result = a_table(reject=0.02)
    card = make_cards(result)[-1]
    assert (card.number, card.name, card.size) == (-1, "Outliers", int((result.labels < 0).sum()))
    typicality = result.typicality[[member.row for member in card.typical]]
    assert (np.diff(typicality) >= 0).all()
    assert typicality.max() <= 0.02


@pytest.mark.parametrize("make", [a_table, a_continuum, no_clusters, some_texts, some_images])
def test_a_notebook_gets_the_cards_without_a_script(make):
    result = make()
    html = cards_html(result)
    assert html.count("<article") == result.n_clusters
    assert "<script" not in html
    assert "<style>" in html
    assert html == result._repr_html_()
    assert SCRIPT not in html


def test_a_notebook_gets_the_first_of_many_cards():
    html = cards_html(many_clusters())
    assert html.count("<article") == MANY
    assert f"And {40 - MANY} more" in html


def test_names_of_the_user_are_marked():
    result = some_texts()
    assert "Names by" not in cards_html(result)
    given = nb.Clustering(result.points, result.model, result.settings, saved={"named_by": "you"})
    assert "Names by you" in cards_html(given)


def test_the_title_names_the_data_and_what_was_found():
    points, settings = SimpleNamespace(title="a.csv"), SimpleNamespace(n_clusters="auto")
    for verdict, n, title in (("clusters", 5, "5 clusters"), ("disjoint", 1, "1 cluster"), ("none", 1, "no clusters")):
        result = SimpleNamespace(points=points, settings=settings, model=None, clusters=range(n), verdict=verdict)
        assert title_of(result) == f"a.csv: {title}"
    assert title_of(nb.cluster(np.eye(30), 1)) == "array: 1 cluster"  # no other number was tried


def test_a_saved_clustering_shows_its_cards_without_data(tmp_path):
    result = a_table()
    result.save(tmp_path / "model")
    html = nb.load(tmp_path / "model")._repr_html_()
    assert html.count("<article") == 3
    assert "data-row" not in html
