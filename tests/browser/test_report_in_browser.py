"""Test the pages of a real run, of labelled tables and of the demo in a real browser: each control and its effect."""

import re
from itertools import pairwise

import pytest
from browser_pages import a_point, drawing, heading, part, text
from demo_cases import make_demo_result
from report_cases import CLASS, SCRIPT, make_model, make_run

from neuralbayes.cli import main
from neuralbayes.demo.page import write_demo_page

pytestmark = pytest.mark.browser


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """Two runs on the same images, and two labelers of the same table, whose names contain scripts."""
    folder = tmp_path_factory.mktemp("report")
    for seed, name in enumerate(("run", "other")):
        make_run(folder, seed=seed, name=name)
    for clusters, name in ((3, "model"), (2, "two")):
        make_model(folder, clusters=clusters, name=name)
    return folder


@pytest.fixture(scope="session")
def pages(folder):
    """The pages by name."""
    data = str(folder / "table.csv")
    orders = {
        "images": [folder / "run"],
        "rows": [folder / "model", data, "--labels", "arm"],
        "runs": [folder / "run", "--against", folder / "other", "--map", "pca"],
        "models": [folder / "model", data, "--against", folder / "two"],
    }
    for name, words in orders.items():
        out = folder / f"{name}.html"
        assert main(["report", *map(str, words), "--out", str(out), "--quiet"]) == 0
    write_demo_page(make_demo_result(), folder / "demo.html", lambda what: None)
    return {name: folder / f"{name}.html" for name in (*orders, "demo")}


def remaining(page, side=0):
    """Numbers of samples that pass the threshold, of all samples and of the chosen state."""
    numbers = [int(number.replace(",", "")) for number in re.findall(r"[\d,]*\d", text(page, "remain", side))]
    return numbers[0], numbers[1], numbers[2], numbers[3]


def drag_threshold(page, share, side=0):
    """Drag the handle with the mouse to a share of the range."""
    slider = part(page, "threshold", side)
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    at = int(slider.input_value()) / 1000
    half = 8  # half the width of the handle
    x = [box["x"] + half + value * (box["width"] - 2 * half) for value in (at, share)]
    page.mouse.move(x[0], box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(x[1], box["y"] + box["height"] / 2, steps=5)
    page.mouse.up()


@pytest.mark.parametrize("name", ["images", "rows", "demo"])
def test_a_chip_chooses_its_state(visit, name):
    page = visit(name)
    before = heading(page), drawing(page, "map"), drawing(page, "bars")
    chosen = int(before[0].split()[1])
    other = 1 if chosen != 1 else 2
    part(page, "chips").locator(f'[data-state="{other}"]').click()
    assert heading(page).split()[1] == str(other)
    assert drawing(page, "map") != before[1]
    assert drawing(page, "bars") != before[2]
    assert part(page, "chips").locator('[aria-selected="true"]').get_attribute("data-state") == str(other)
    assert f" {other}: p(z) " in text(page, "live")


def test_a_bar_chooses_its_state_and_says_which_it_is(visit):
    page = visit("rows")
    bars = part(page, "bars")
    box = bars.bounding_box()
    seen = set()
    for share in (1 / 6, 3 / 6, 5 / 6):
        bars.hover(position={"x": share * box["width"], "y": 60})
        said = re.match(r"cluster (\d+): p\(z\) = ", text(page, "bars-tip"))
        bars.click(position={"x": share * box["width"], "y": 60})
        assert heading(page) == f"Cluster {said.group(1)}"
        seen.add(said.group(1))
    assert seen == {"0", "1", "2"}


@pytest.mark.parametrize("name", ["images", "rows", "demo"])
def test_a_point_of_the_map_chooses_its_sample_and_its_state(visit, name):
    page = visit(name)
    part(page, "map").press("Escape")  # no sample is chosen, so the click changes the map
    x, y = a_point(page)
    said = re.match(r"(image|row) ([\d,]+), class (.+): ((?:state|cluster) \d+), p = ", text(page, "tip"))
    before = drawing(page, "map")
    page.mouse.click(x, y)
    assert heading(page).lower() == said.group(4)
    assert part(page, "sample").locator("h4").inner_text().lower() == f"{said.group(1)} {said.group(2)}"
    assert part(page, "find").input_value() == said.group(2).replace(",", "")
    assert drawing(page, "map") != before
    page.mouse.move(1, 1)
    assert not part(page, "tip").is_visible()


@pytest.mark.parametrize("name", ["images", "rows", "demo"])
def test_the_threshold_is_dragged_and_fewer_samples_remain(visit, name):
    page = visit(name)
    everything = remaining(page)
    assert everything[0] == everything[1]
    assert everything[2] == everything[3]
    before = drawing(page, "map")
    drag_threshold(page, 1.0)  # p(z|x) of rows far apart is almost always close to 1
    some = remaining(page)
    assert 0 <= some[0] < everything[0]
    assert some[2] <= everything[2]
    assert float(text(page, "threshold-value")) > 0
    assert drawing(page, "map") != before
    assert re.search(r"(\d+) of (\d+)", part(page, "members").locator("h5").last.inner_text())
    listed = part(page, "members").locator('[data-list="all"] [data-sample]').count()
    assert listed <= some[2]
    drag_threshold(page, 0.0)
    assert remaining(page) == everything


def test_a_sample_is_found_by_its_index(visit):
    page = visit("images")
    part(page, "find").fill("17")
    part(page, "find").press("Enter")
    panel = part(page, "sample")
    assert panel.locator("h4").inner_text() == "Image 17"
    assert panel.locator('canvas[role="img"]').get_attribute("aria-label").startswith("image 17, class ")
    values = [float(value) for value in panel.locator('[data-list="posterior"] .value').all_inner_texts()]
    assert sum(values) == pytest.approx(1.0, abs=0.01)
    assert values[:-1] == sorted(values[:-1], reverse=True)
    first = panel.locator('[data-list="posterior"] button').first.inner_text()
    assert heading(page).lower() == first
    part(page, "next").click()
    assert panel.locator("h4").inner_text() == "Image 18"
    part(page, "previous").click()
    part(page, "previous").click()
    assert panel.locator("h4").inner_text() == "Image 16"
    second = panel.locator('[data-list="posterior"] button').nth(1)
    wanted = second.inner_text()
    second.click()
    assert heading(page).lower() == wanted
    assert panel.locator("h4").inner_text() == "Image 16", "another state, the same sample"


@pytest.mark.parametrize("asked", ["300", "-1", ""])
def test_an_index_that_is_not_there_is_explained(visit, asked):
    page = visit("images")
    before = part(page, "sample").locator("h4").inner_text()
    part(page, "find").fill(asked)
    page.get_by_role("button", name="Find", exact=True).click()
    assert "from 0 to 299" in text(page, "found")
    assert text(page, "live") == text(page, "found")
    assert part(page, "sample").locator("h4").inner_text() == before


def test_the_row_that_is_found_shows_its_values(visit):
    page = visit("rows")
    part(page, "find").fill("5")
    page.get_by_role("button", name="Find", exact=True).click()
    names = part(page, "sample").locator('[data-list="values"] .name').all_inner_texts()
    assert names == [SCRIPT, "height"]
    assert all(
        " sd)" in value for value in part(page, "sample").locator('[data-list="values"] .value').all_inner_texts()
    )


def test_a_member_is_clicked_and_becomes_the_sample(visit):
    page = visit("images")
    thumb = part(page, "members").locator('[data-list="borderline"] .thumb').first
    thumb.click()
    index = thumb.get_attribute("aria-label").split(",")[0]
    assert part(page, "sample").locator("h4").inner_text().lower() == index
    assert thumb.get_attribute("aria-pressed") == "true"
    page.keyboard.press("Escape")
    assert part(page, "sample").locator("h4").inner_text() == "One image"
    assert text(page, "live") == "No sample selected."


def test_more_members_are_shown_when_asked_for(visit):
    page = visit("rows")
    rows = part(page, "members").locator('[data-list="all"] tbody tr')
    before = rows.count()
    part(page, "members").get_by_role("button", name=re.compile("Show more")).click()
    assert rows.count() > before


def test_the_buttons_of_the_panel_go_from_cluster_to_cluster(visit):
    page = visit("rows")
    assert heading(page) == "Cluster 0"
    for expected in ("Cluster 1", "Cluster 2", "Cluster 0"):
        page.get_by_role("button", name="Next cluster").click()
        assert heading(page) == expected
    page.get_by_role("button", name="Previous cluster").press("Enter")
    assert heading(page) == "Cluster 2"
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Previous cluster"


def test_another_layer_has_other_states(visit):
    page = visit("images")
    n_states = part(page, "chips").locator("[role=option]").count()
    drag_threshold(page, 0.5)
    before = drawing(page, "map")
    page.get_by_text("relu1", exact=True).first.click()
    assert part(page, "chips").locator("[role=option]").count() == 16 < n_states
    assert "16 states" in text(page, "use")
    assert drawing(page, "map") != before
    assert text(page, "threshold-value") == "0.00"
    assert text(page, "live").startswith("Layer relu1, 16 states")


def test_the_map_can_be_coloured_by_class(visit):
    page = visit("images")
    before = drawing(page, "map")
    part(page, "colour").select_option("class")
    assert drawing(page, "map") != before
    assert text(page, "legend").split() == ["0", "1"]
    part(page, "colour").select_option("state")
    assert drawing(page, "map") == before


def test_everything_is_reached_and_done_by_keyboard(visit):
    page = visit("images")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    reached = []
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.dataset.part ?? document.activeElement.type ?? ''"))
        if reached[-1] == "chips":
            break
    assert [name for name in reached if name][:7] == [
        "radio", "threshold", "find", "submit", "previous", "next", "colour",
    ]  # fmt: skip
    assert reached[-2:] == ["map", "chips"]
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid", "the focus is seen"
    page.keyboard.press("Home")
    assert heading(page) == "State 0"
    page.keyboard.press("ArrowRight")
    assert heading(page) == "State 1"
    assert part(page, "chips").get_attribute("aria-activedescendant") == "side-0-state-1"
    page.keyboard.press("ArrowDown")
    below = int(heading(page).removeprefix("State "))
    assert below > 2, "a row further"
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowLeft")
    assert heading(page) == "State 0"
    page.keyboard.press("End")
    assert heading(page) == f"State {part(page, 'chips').locator('[role=option]').count() - 1}"


def test_the_map_is_walked_by_arrow_keys(visit):
    page = visit("images")
    part(page, "map").focus()
    for key in ("ArrowRight", "ArrowUp", "ArrowLeft", "ArrowDown"):
        before = text(page, "live")
        page.keyboard.press(key)
        page.wait_for_timeout(20)
        if text(page, "live") != before:
            break
    said = re.match(r"image ([\d,]+), class .+: state (\d+), p = ", text(page, "live"))
    assert text(page, "tip").startswith(f"image {said.group(1)}")
    page.keyboard.press("Enter")
    assert heading(page) == f"State {said.group(2)}"
    assert part(page, "sample").locator("h4").inner_text() == f"Image {said.group(1)}"


def test_the_threshold_and_the_layer_are_changed_by_keyboard(visit):
    page = visit("images")
    part(page, "threshold").focus()
    page.keyboard.press("End")
    assert remaining(page)[0] < 300
    assert text(page, "threshold-value") in part(page, "threshold").get_attribute("aria-valuetext")
    page.locator(".layers input:checked").focus()
    page.keyboard.press("ArrowLeft")
    assert text(page, "live").startswith("Layer relu3")


@pytest.mark.parametrize("name", ["images", "demo"])
def test_light_and_dark(visit, name):
    page = visit(name)
    root = page.locator("html")
    assert root.get_attribute("data-theme") == "light"
    ground = "getComputedStyle(document.body).backgroundColor"
    light, before = page.evaluate(ground), drawing(page, "map")
    button = page.get_by_role("button", name="Change to dark colours")
    button.click()
    assert root.get_attribute("data-theme") == "dark"
    assert page.evaluate(ground) != light
    assert drawing(page, "map") != before
    assert page.locator("img.only-dark").first.is_visible()
    assert not page.locator("img.only-light").first.is_visible()
    page.get_by_role("button", name="Change to light colours").click()
    assert page.evaluate(ground) == light
    assert visit(name, scheme="dark").locator("html").get_attribute("data-theme") == "dark"


def test_two_runs_stand_side_by_side_with_controls_of_their_own(visit):
    page = visit("runs")
    left, right = (page.locator(f'.explorer[data-side="{i}"]').bounding_box() for i in (0, 1))
    assert left["y"] == right["y"]
    assert left["x"] + left["width"] <= right["x"]
    before = heading(page, 0), drawing(page, "map", 0), remaining(page, 0)
    part(page, "chips", 1).locator('[data-state="3"]').click()
    drag_threshold(page, 0.6, side=1)
    assert heading(page, 1) == "State 3"
    assert remaining(page, 1)[0] < 300
    assert (heading(page, 0), drawing(page, "map", 0), remaining(page, 0)) == before


@pytest.mark.parametrize("name", ["runs", "models"])
def test_what_the_two_group_differently_is_listed_and_clicked(visit, name):
    page = visit(name)
    said = page.locator('[data-compare="summary"]').inner_text()
    together, everything, apart = (
        int(number.replace(",", "")) for number in re.search(r"([\d,]+) of ([\d,]+) .*; ([\d,]+) are", said).groups()
    )
    assert together + apart == everything
    assert apart > 0
    moved = page.locator('[data-compare="list"] [data-sample]')
    assert 0 < moved.count() <= min(48, apart)
    moved.first.click()
    titles = [part(page, "sample", side).locator("h4").inner_text() for side in (0, 1)]
    assert titles[0] == titles[1]
    assert titles[0].split()[0] in ("Image", "Row")


def test_another_layer_is_compared_anew(visit):
    page = visit("runs")
    summary = page.locator('[data-compare="summary"]')
    before = summary.inner_text()
    page.locator('.explorer[data-side="1"]').get_by_text("relu1", exact=True).click()
    assert summary.inner_text() != before
    assert "other, relu1" in summary.inner_text()


@pytest.mark.parametrize("name", ["images", "rows", "runs", "models", "demo"])
@pytest.mark.parametrize("width", [390, 768, 1440])
def test_nothing_is_wider_than_the_screen(visit, name, width):
    page = visit(name, width=width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("name", ["rows", "models"])
def test_scripts_in_names_are_text(visit, name):
    page = visit(name)
    assert page.title() != "broken"
    for state in range(2):
        part(page, "chips").locator(f'[data-state="{state}"]').click()
        assert SCRIPT in part(page, "members").locator('[data-list="profile"]').inner_text()
    part(page, "find").fill("1")
    part(page, "find").press("Enter")
    assert SCRIPT in text(page, "sample")
    assert page.title() != "broken"
    assert page.locator("script").count() == 3
    if name == "rows":
        assert f"class {CLASS}" in part(page, "members").locator('[data-list="classes"]').inner_text()


def test_the_policy_stops_what_should_not_be_there(browser, pages, tmp_path):
    """Even if a script got into the page, the browser would not run it, nor load a picture from elsewhere."""
    page = browser.new_page()
    blocked = []
    page.on("console", lambda message: blocked.append(message.text))
    changed = (
        pages["rows"]
        .read_text(encoding="utf-8")
        .replace("<footer", '<script>document.title = "broken"</script><img src="https://example.org/x.png"><footer', 1)
    )
    (tmp_path / "page.html").write_text(changed, encoding="utf-8")
    page.goto((tmp_path / "page.html").as_uri())
    page.wait_for_selector("html[data-ready=yes]", state="attached")
    assert page.title() != "broken"
    assert sum("Content Security Policy" in line for line in blocked) == 2
    page.close()


@pytest.mark.parametrize(("name", "n_commands"), [("images", 1), ("demo", 5)])
def test_each_command_is_copied_or_selected(visit, name, n_commands):
    page = visit(name)
    from playwright.sync_api import expect

    buttons = page.locator("[data-copy]")
    expect(buttons).to_have_count(n_commands)
    for i in range(n_commands):
        buttons.nth(i).click()
        expect(buttons.nth(i)).to_have_text(re.compile("Copied|Selected"))


@pytest.mark.parametrize("name", ["images", "demo"])
def test_every_picture_and_control_has_a_name(visit, name):
    page = visit(name)
    assert page.locator("img:not([alt])").count() == 0
    unnamed = page.evaluate(
        "[...document.querySelectorAll('button, input, select')].filter(e => !(e.textContent.trim()"
        " || e.getAttribute('aria-label') || e.labels?.length)).map(e => e.outerHTML)"
    )
    assert unnamed == []
    for landmark in ("banner", "navigation", "main", "contentinfo"):
        assert page.get_by_role(landmark).count() == 1
    tags = page.evaluate("[...document.querySelectorAll('h1,h2,h3,h4,h5')].map(e => e.tagName)")
    levels = [int(tag[1]) for tag in tags]
    assert levels[0] == 1
    assert all(b <= a + 1 for a, b in pairwise(levels))


def test_the_page_prints_in_light_colours(visit):
    page = visit("images", scheme="dark")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("html").get_attribute("data-theme") == "light"
    page.emulate_media(media="print")
    assert not page.locator(".controls").first.is_visible()
    assert page.locator('[data-part="members"]').is_visible()
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("html").get_attribute("data-theme") == "dark"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_demo_page_shows_its_pictures_and_leads_to_its_sections(visit, scheme):
    page = visit("demo", scheme=scheme)
    hidden = "light" if scheme == "dark" else "dark"
    pictures = page.locator(f".story img:not(.only-{hidden})")
    assert pictures.count() == 8
    sizes = pictures.evaluate_all("images => images.map(image => [image.naturalWidth, image.offsetWidth])")
    assert all(natural > 0 and shown > 100 for natural, shown in sizes)
    titles = (
        "What was found",
        "Disjoint manifolds",
        "Features of digits",
        "How it works",
        "Your own data",
        "What was run",
    )
    for name in titles:
        page.get_by_role("navigation").get_by_text(name, exact=True).click()
        assert page.get_by_role("heading", name=name, exact=True).is_visible()


def test_a_command_is_not_broken_within_a_word(visit):
    page = visit("demo", width=390)
    heights = page.locator(".command span").evaluate_all("words => words.map(word => word.offsetHeight)")
    assert max(heights) == min(heights)


def test_the_list_of_rows_is_searched_filtered_and_leads_to_the_explorer(visit):
    page = visit("rows")
    rows = page.locator("[data-rows] tbody tr")
    counted = page.locator('[data-rows] [data-part="count"]')
    assert counted.inner_text() == "600 of 600 rows"
    assert rows.count() == 25
    page.locator('[data-rows] [data-part="cluster"]').select_option("1")
    own = int(counted.inner_text().split()[0])
    assert 100 < own < 300
    page.locator('[data-rows] [data-part="query"]').fill("nowhere to be found")
    assert counted.inner_text() == "0 of 600 rows"
    page.locator('[data-rows] [data-part="query"]').fill("")
    page.locator('[data-rows] [data-part="more"]').click()
    assert rows.count() == min(own, 125)
    rows.first.locator("button").click()
    assert heading(page) == "Cluster 1"
