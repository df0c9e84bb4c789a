"""Pages of pictures and of texts in a real browser: zoom, lasso, search by name, the list and its CSV."""

import csv
import io

import numpy as np
import pandas as pd
import pytest
from browser_pages import a_point, drawing, part, text
from PIL import Image

from neuralbayes.cli import main

pytestmark = pytest.mark.browser

NETWORK = """
import numpy as np

def pictures(batch):
    return batch.reshape(len(batch), -1, 3).mean(axis=1) / 255.0

def texts(batch):
    return np.array([[text.count("cat"), text.count("dog"), len(text) / 100] for text in batch], float)
"""
N = 60


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("galleries")
    (folder / "network.py").write_text(NETWORK)
    (folder / "photos").mkdir()
    rng = np.random.default_rng(0)
    for i in range(N):
        color = rng.integers(0, 60, 3) + (180 * np.eye(3)[i % 2]).astype(int)
        name = f"{'green' if i % 2 else 'red'} no {i}.png" if i else "=1+1 red.png"
        Image.new("RGB", (40, 30), tuple(color.tolist())).save(folder / "photos" / name)
    texts = [f"{'my cat purrs' if i % 2 else 'a dog barks'}, {i}{'!' * (i % 7)}" for i in range(N)]
    pd.DataFrame({"body": texts}).to_csv(folder / "tickets.csv", index=False)
    orders = {
        "photos": [folder / "photos", "--features", f"{folder}/network.py:pictures"],
        "texts": [folder / "tickets.csv", "--text", "body", "--features", f"{folder}/network.py:texts"],
    }
    for name, words in orders.items():
        model, out = folder / f"model-{name}", folder / f"{name}.html"
        label = ["label", *words, "-k", "2", "--save", model, "--no-picture", "--quiet"]
        report = ["report", model, *words, "--out", out, "--map", "pca", "--quiet"]
        for command in (label, report):
            assert main([str(word) for word in command]) == 0
    return {name: folder / f"{name}.html" for name in orders}


def draw_around(page, corners):
    """Drag the pointer around corners of the map, given from 0 to 1."""
    canvas = part(page, "map")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    places = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in corners]
    page.mouse.move(*places[0])
    page.mouse.down()
    for place in [*places[1:], places[0]]:
        page.mouse.move(*place, steps=4)
    page.mouse.up()


ALL = [(0.005, 0.005), (0.995, 0.005), (0.995, 0.995), (0.005, 0.995)]


def saved(page, button):
    with page.expect_download() as download:
        button.click()
    with open(download.value.path(), encoding="utf-8", newline="") as file:
        return list(csv.DictReader(io.StringIO(file.read())))


@pytest.mark.parametrize("name", ["photos", "texts"])
def test_samples_that_are_drawn_around_are_counted_and_saved(visit, name):
    page = visit(name)
    assert part(page, "selection").is_hidden()
    part(page, "lasso").click()
    assert part(page, "lasso").get_attribute("aria-pressed") == "true"
    before = drawing(page, "map")
    draw_around(page, ALL)
    assert text(page, "selection-count").startswith(f"{N} {'image' if name == 'photos' else 'text'}s selected: ")
    assert text(page, "live") == text(page, "selection-count")
    assert drawing(page, "map") != before
    rows = saved(page, part(page, "selection-save"))
    assert [int(row["index"]) for row in rows] == list(range(N))
    column = "file" if name == "photos" else "body"
    assert len({row[column] for row in rows}) == N
    assert not any(cell.startswith("=") for row in rows for cell in row.values())
    counts = [sum(row["label"] == label for row in rows) for label in ("0", "1")]
    assert sorted(counts) == [N // 2, N // 2]
    part(page, "selection-clear").click()
    assert part(page, "selection").is_hidden()
    assert drawing(page, "map") == before


def test_half_of_the_map_has_some_of_the_samples(visit):
    page = visit("photos")
    part(page, "lasso").click()
    draw_around(page, [(0.005, 0.005), (0.5, 0.005), (0.5, 0.995), (0.005, 0.995)])
    some = int(text(page, "selection-count").split()[0])
    assert 0 < some < N
    draw_around(page, [(0.005, 0.001), (0.03, 0.001), (0.03, 0.02)])
    assert text(page, "selection-count") == "0 images selected."
    assert part(page, "selection-save").is_disabled()


def test_the_threshold_counts_for_the_selection(visit):
    page = visit("texts")
    part(page, "lasso").click()
    slider = part(page, "threshold")
    slider.fill("1000")
    draw_around(page, ALL)
    assert int(text(page, "selection-count").split()[0]) < N


def test_a_click_chooses_a_sample_while_the_lasso_is_on(visit):
    page = visit("photos")
    part(page, "lasso").click()
    x, y = a_point(page)
    before = part(page, "sample").inner_text()
    page.mouse.click(x, y)
    assert part(page, "selection").is_hidden()
    assert part(page, "sample").inner_text() != before or "on the map" in before


@pytest.mark.parametrize("by", ["buttons", "keys", "double click", "wheel"])
def test_the_map_is_zoomed_and_whole_again(visit, by):
    page = visit("photos")
    canvas = part(page, "map")
    canvas.scroll_into_view_if_needed()
    before = drawing(page, "map")
    assert part(page, "zoom-out").is_disabled()
    if by == "buttons":
        part(page, "zoom-in").click()
    elif by == "keys":
        canvas.focus()
        page.keyboard.press("+")
    elif by == "double click":
        canvas.dblclick(position={"x": 200, "y": 150})
    else:
        canvas.hover()
        page.keyboard.down("Control")
        page.mouse.wheel(0, -200)
        page.keyboard.up("Control")
    page.wait_for_function("element => !element.disabled", arg=part(page, "zoom-out").element_handle())
    assert drawing(page, "map") != before
    if by == "keys":
        page.keyboard.press("0")
    elif by == "buttons":
        part(page, "zoom-out").click()
    else:
        part(page, "zoom-whole").click()
    assert part(page, "zoom-whole").is_disabled()
    page.mouse.move(1, 1)
    if by != "double click":  # a double click also chooses a sample
        canvas.blur()
        assert drawing(page, "map") == before


def test_the_wheel_alone_scrolls_the_page(visit):
    page = visit("photos")
    part(page, "map").hover()
    top = page.evaluate("scrollY")
    page.mouse.wheel(0, -300)
    page.wait_for_timeout(500)  # `wait_for_function` would evaluate text, which the page forbids
    assert page.evaluate("scrollY") < top
    assert part(page, "zoom-out").is_disabled()


def test_a_zoomed_map_is_moved_by_dragging(visit):
    page = visit("photos")
    part(page, "zoom-in").click()
    part(page, "zoom-in").click()
    sample = part(page, "sample").inner_text()
    before = drawing(page, "map")
    draw_around(page, [(0.5, 0.5), (0.7, 0.6), (0.8, 0.7)][:2])
    page.mouse.move(1, 1)
    box = part(page, "map").bounding_box()
    page.mouse.move(box["x"] + 200, box["y"] + 150)
    page.mouse.down()
    page.mouse.move(box["x"] + 320, box["y"] + 220, steps=5)
    page.mouse.up()
    page.mouse.move(1, 1)
    assert drawing(page, "map") != before
    assert part(page, "sample").inner_text() == sample, "the end of a way is no click"


def test_only_what_is_seen_is_selected(visit):
    page = visit("photos")
    part(page, "lasso").click()
    for _ in range(6):
        part(page, "zoom-in").click()
    draw_around(page, ALL)
    assert int(text(page, "selection-count").split()[0]) < N


def test_a_picture_is_found_by_its_name_and_the_next_one_after_it(visit):
    page = visit("photos")
    find = part(page, "find")
    find.fill("GREEN no")
    find.press("Enter")
    first = part(page, "sample").inner_text()
    assert "green no" in first
    assert text(page, "found").endswith(f"of {N // 2} images found.")
    find.press("Enter")
    assert part(page, "sample").inner_text() != first
    find.fill("no 41.png")
    find.press("Enter")
    assert "green no 41.png" in part(page, "sample").inner_text()
    find.fill("7")
    find.press("Enter")
    assert part(page, "sample").locator("h4").inner_text() == "Image 7"
    find.fill("blue")
    find.press("Enter")
    assert "blue" in text(page, "found")
    assert text(page, "live") == text(page, "found")


def test_a_text_is_found_by_its_words(visit):
    page = visit("texts")
    part(page, "find").fill("dog 14")
    part(page, "find").press("Enter")
    assert "a dog barks, 14" in part(page, "sample").inner_text()


def test_the_list_is_searched_and_saved(visit):
    page = visit("photos")
    table = page.locator('[data-rows="0"]')
    table.locator('[data-part="query"]').fill("red")
    rows = saved(page, table.locator('[data-part="save"]'))
    assert len(rows) == N // 2
    assert rows[0].keys() == {"index", "label", "cluster", "p", "file"}


@pytest.mark.parametrize("width", [390, 1440])
@pytest.mark.parametrize("name", ["photos", "texts"])
def test_nothing_is_wider_than_the_screen(visit, name, width):
    page = visit(name, width=width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("name", ["photos", "texts"])
def test_quality_is_said_in_words_and_no_banner_is_green(visit, name):
    page = visit(name)
    assert page.locator("p.fine").count() == 0
    assert "Separation runs from 0 to 100" in page.locator("#know").inner_text()
