"""Use the page of a clustering in a real browser: names, numbers of clusters, search, map, keyboard."""

import json

import pytest
from page_cases import SCRIPT, a_continuum, a_table, many_clusters, no_clusters, some_images, some_texts

from neuralbayes.report.page import write_page

pytestmark = pytest.mark.browser


@pytest.fixture(scope="session")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    continuum = a_continuum()
    cases = {
        "table": (a_table(reject=0.02), {}),
        "segments": (continuum, {k: continuum.at(k) for k in (2, 3, 4)}),
        "many": (many_clusters(), {}),
        "none": (no_clusters(), {}),
        "texts": (some_texts(), {}),
        "images": (some_images(), {}),
    }
    return {
        name: write_page(result, folder / f"{name}.html", others=others) for name, (result, others) in cases.items()
    }


def drawing(page):
    """The pixels of the map, as text."""
    return page.locator("#map").evaluate("canvas => canvas.toDataURL()")


def a_point(page):
    """Find a point on the map like a reader does: where the tip appears."""
    box = page.locator("#map").bounding_box()
    for i in range(10, int(box["height"]), 7):
        for j in range(10, int(box["width"]), 14):
            page.mouse.move(box["x"] + j, box["y"] + i)
            if page.locator("#tip").is_visible():
                return box["x"] + j, box["y"] + i
    raise AssertionError("no point on the map")


def chosen(page):
    """Numbers of the chosen clusters."""
    return page.locator("[data-select][aria-pressed=true]").evaluate_all("all => all.map((one) => one.dataset.select)")


@pytest.mark.parametrize("name", ["table", "segments", "many", "none", "texts", "images"])
@pytest.mark.parametrize("width", [390, 1440])
def test_no_page_is_wider_than_the_window_or_makes_a_request(visit, name, width):
    page = visit(name, width=width, scheme="dark")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_the_first_screen_has_the_verdict_the_map_and_cards(visit):
    page = visit("table")
    for part in (".sentence", "#map", ".card >> nth=0"):
        assert page.locator(part).bounding_box()["y"] < 500


def test_a_renamed_cluster_is_renamed_everywhere_and_downloaded(visit):
    page = visit("table")
    name = page.locator("h3[data-name='1']")
    name.click()
    page.keyboard.press("Control+A")
    page.keyboard.type(f"heavy {SCRIPT}")
    page.keyboard.press("Enter")
    assert name.inner_text() == f"heavy {SCRIPT}"
    assert page.locator("#renamed").inner_text().startswith("1 name changed")
    with page.expect_download() as download:
        page.get_by_role("button", name="Download names.json").click()
    assert download.value.suggested_filename == "names.json"
    with open(download.value.path(), encoding="utf-8") as file:
        assert json.load(file) == {"1": f"heavy {SCRIPT}"}
    page.get_by_role("button", name="Undo").click()
    assert name.inner_text() == a_table(reject=0.02).names[1]
    assert page.locator("#renamed").is_hidden()


def test_escape_and_an_empty_name_keep_the_old_one(visit):
    page = visit("many")
    row, name = page.locator("tr [data-select='3']"), page.locator("#slot h3")
    row.click()
    old = name.inner_text()
    for typed, key in (("new", "Escape"), (" ", "Enter")):
        name.click()
        page.keyboard.press("Control+A")
        page.keyboard.type(typed)
        page.keyboard.press(key)
        assert name.inner_text() == old
    name.click()
    page.keyboard.press("Control+A")
    page.keyboard.type("mine")
    page.keyboard.press("Enter")
    assert row.inner_text().strip() == "mine"
    page.locator("tr [data-select='4']").click()
    row.click()
    assert name.inner_text() == "mine"


def test_each_number_of_clusters_is_one_click_away(visit):
    page = visit("segments")
    before = drawing(page)
    page.get_by_role("button", name="2 clusters").click()
    assert drawing(page) != before
    assert page.locator("[data-shown='0']").is_hidden()
    for name in a_continuum().at(2).names:
        assert page.locator(".clusters:visible").get_by_text(name, exact=True).is_visible()
    page.get_by_role("button", name="3 clusters").click()
    assert page.locator("[data-shown='0']").is_visible()
    assert drawing(page) == before


def test_a_card_chooses_its_cluster_on_the_map_and_back(visit):
    page = visit("table")
    before = drawing(page)
    button = page.locator("[data-select='2']")
    button.click()
    assert chosen(page) == ["2"]
    assert drawing(page) != before
    button.click()
    assert chosen(page) == []
    assert drawing(page) == before


def test_a_typical_member_is_marked_on_the_map(visit):
    page = visit("texts")
    page.locator("[data-row]").first.click()
    assert page.locator("#member").inner_text() != ""
    assert len(chosen(page)) == 1


def test_a_point_shows_its_member_and_chooses_its_cluster(visit):
    page = visit("images")
    x, y = a_point(page)
    assert page.locator("#tip canvas").is_visible()
    page.mouse.click(x, y)
    assert len(chosen(page)) == 1
    assert "p = " in page.locator("#member").inner_text()
    page.keyboard.press("Escape")
    assert chosen(page) == []


def test_arrow_keys_move_on_the_map_and_enter_chooses(visit):
    page = visit("table")
    page.locator("#map").focus()
    page.keyboard.press("ArrowRight")
    first = page.locator("#tip").inner_text()
    page.keyboard.press("ArrowRight")
    assert page.locator("#tip").inner_text() != first
    page.keyboard.press("Enter")
    assert len(chosen(page)) == 1


@pytest.mark.parametrize(
    ("name", "query", "n"), [("table", "c012", 1), ("texts", "rain BONN", 0), ("texts", "STOLEN", 20)]
)
def test_search_finds_names_cells_and_words(visit, name, query, n):
    page = visit(name)
    page.get_by_role("searchbox").fill(query)
    found = page.locator("#found").inner_text()
    assert found == f"{n} found"
    assert page.locator("#hits button").count() == min(n, 8)
    if n:
        page.locator("#hits button").first.click()
        assert page.locator("#member").is_visible()


def test_markup_in_a_cell_is_shown_as_text(visit):
    page = visit("table")
    page.get_by_role("searchbox").fill("script")
    page.locator("#hits button").first.click()
    assert SCRIPT in page.locator("#member").inner_text()


def test_a_table_of_many_clusters_sorts(visit):
    page = visit("many")
    assert page.evaluate("document.documentElement.scrollHeight") < 3000
    for heading in ("name", "rows", "rows"):
        page.locator("thead").get_by_role("button", name=heading).click()
    first = ".clusters tbody tr:first-child td", ".clusters tbody tr:last-child td"
    low, high = (int(page.locator(one).first.get_attribute("data-value")) for one in first)
    assert low <= high
    assert page.locator("th[aria-sort=ascending]").inner_text().strip().startswith("rows")


def test_the_theme_changes_by_a_button(visit):
    page = visit("table")
    before = drawing(page)
    page.get_by_role("button", name="Change to dark colours").click()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert drawing(page) != before


def test_everything_is_shown_in_print(visit):
    page = visit("table")
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.get_by_role("searchbox").is_hidden()
    assert page.locator("details:not([open]):visible").count() == 0
