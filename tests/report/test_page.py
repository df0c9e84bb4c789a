"""The page of a clustering as a browser reads it, without one."""

import base64
import json
from dataclasses import replace

import numpy as np
import pytest
from html_pages import Page, check_self_contained
from page_cases import SCRIPT, TURNED, a_continuum, a_table, many_clusters, no_clusters, some_images, some_texts

import neuralbayes as nb
from neuralbayes.report.page import write_page

CASES = {
    "table": a_table,
    "segments": a_continuum,
    "many": many_clusters,
    "none": no_clusters,
    "texts": some_texts,
    "images": some_images,
}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The pages by case, each written once."""
    folder, pages = tmp_path_factory.mktemp("pages"), {}

    def written(case):
        if case not in pages:
            pages[case] = Page(write_page(CASES[case](), folder / f"{case}.html"))
        return pages[case]

    return written


def unpacked(text, dtype):
    return np.frombuffer(base64.b64decode(text), dtype)


@pytest.mark.parametrize("case", CASES)
def test_a_page_says_what_the_result_says_and_requests_nothing(written, case):
    page, result = written(case), CASES[case]()
    check_self_contained(page)
    assert len(page.source) < 5_000_000
    assert len(page.ids()) == len(set(page.ids()))
    assert result.sentence in page.text
    for name in result.names:
        assert name in page.text or name in page.source or SCRIPT[:6] in name
    assert f"{len(result.labels):,} {result.points.noun}s" in page.text

    payload = page.payload
    rows = unpacked(payload["rows"], "<u4")
    np.testing.assert_array_equal(unpacked(payload["divisions"][0]["labels"], "<i2"), result.labels[rows])
    assert payload["divisions"][0]["names"] == result.names
    assert payload["nAll"] == len(result.labels)


def test_markup_in_cells_and_columns_is_text(written):
    source = written("table").source
    assert SCRIPT not in source
    assert "<b>mass" not in source
    assert "&lt;b&gt;mass" in source


def test_characters_that_turn_text_around_are_shown(tmp_path):
    result = a_table()
    titled = nb.Clustering(replace(result.points, title=f"{TURNED}\x00"), result.model, result.settings)
    page = Page(write_page(titled, tmp_path / "page.html"))
    assert "\u202e" not in page.source
    assert r"gnp\u202eexe.scr\x00" in page.text


def test_many_clusters_are_a_table_with_cards_on_demand(written):
    page = written("many")
    tags = [tag for tag, _ in page.elements]
    assert tags.count("template") == 40
    assert [attributes for tag, attributes in page.elements if "aria-sort" in attributes]


def test_few_clusters_are_cards(written):
    page = written("table")
    cards = [attributes for tag, attributes in page.elements if tag == "article"]
    assert [attributes["data-cluster"] for attributes in cards] == ["0", "1", "2"]
    assert "precision" in page.text
    assert "recall" in page.text


def test_three_typical_members_are_on_each_card(written):
    for case, kind in (("table", "th"), ("texts", "li"), ("images", "img")):
        rows = [attributes for _, attributes in written(case).elements if "data-row" in attributes]
        assert len(rows) == 3 * CASES[case]().n_clusters, kind


def test_columns_that_are_left_out_are_listed_with_reasons(written):
    text = written("table").text
    assert "3 used, 2 not used" in text
    for column in a_table().points.columns:
        assert column.reason in text or not column.reason


def test_outliers_have_a_card_of_their_own(tmp_path):
    result = a_table(reject=0.02)
    page = Page(write_page(result, tmp_path / "page.html"))
    assert "Outliers" in page.text
    rows = unpacked(page.payload["rows"], "<u4")
    np.testing.assert_array_equal(unpacked(page.payload["divisions"][0]["labels"], "<i2"), result.labels[rows])
    assert min(unpacked(page.payload["divisions"][0]["labels"], "<i2")) == -1


def test_other_numbers_of_clusters_are_in_the_page(tmp_path):
    result = a_continuum()
    others = {k: result.at(k) for k in (2, 3, 4)}
    page = Page(write_page(result, tmp_path / "page.html", others=others))
    check_self_contained(page)
    rows = unpacked(page.payload["rows"], "<u4")
    divisions = {one["k"]: one for one in page.payload["divisions"]}
    assert sorted(divisions) == [2, 3, 4]
    for k, one in divisions.items():
        np.testing.assert_array_equal(unpacked(one["labels"], "<i2"), others[k].labels[rows])
        assert one["names"] == others[k].names
    choices = [attributes for tag, attributes in page.elements if tag == "button" and "data-division" in attributes]
    assert [one["data-division"] for one in choices] == ["1", "0", "2"]
    said = [f"{k} clusters, halves agree to {100 * others[k].stability:.0f} %" for k in (2, 3, 4)]
    assert [one["aria-label"] for one in choices] == said


def test_without_clusters_the_page_says_what_was_tried(tmp_path):
    result = no_clusters()
    page = Page(write_page(result, tmp_path / "page.html"))
    assert "no clusters" in page.text
    tried = dict(zip(*(result.model.selection_[name] for name in ("n_clusters", "agreement")), strict=True))
    best = max(tried, key=tried.get)
    assert f"{len(tried)} numbers of clusters, from 2 to {max(tried):.0f}. The nearest was {best:.0f}" in page.text
    assert f"{100 * tried[best]:.0f} %" in page.text
    assert "What to try" in page.text


def test_a_page_of_thousands_of_rows_draws_a_sample_and_says_so(tmp_path, monkeypatch):
    result = a_table()
    monkeypatch.setattr(
        type(result), "coordinates", lambda self: (np.random.default_rng(0).normal(size=(50, 2)), np.arange(50))
    )
    page = Page(write_page(result, tmp_path / "page.html"))
    assert "50 of 200 rows" in page.text
    assert "Cards and sizes count all 200" in page.text


def test_the_payload_is_json_that_cannot_end_its_element(written):
    (source,) = (text for (tag, _), text in written("texts").texts.items() if tag == "script" and text.startswith("{"))
    assert "<" not in source
    assert any(SCRIPT in text for text in json.loads(source)["texts"])
