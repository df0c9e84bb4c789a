"""The page of the demo, without a browser: its content, that it needs nothing, and that it is reproducible."""

import base64
import re

import numpy as np
import pytest
from demo_cases import make_demo_result
from html_pages import Page, check_self_contained

from neuralbayes.demo.page import N_STEPS, write_demo_page
from neuralbayes.report.explorer.page import is_page

HARM = "<img src=x onerror=alert(1)>"


def written(folder, **options):
    steps = []
    write_demo_page(make_demo_result(**options), folder / "demo.html", steps.append)
    return Page(folder / "demo.html"), steps


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return written(tmp_path_factory.mktemp("demo"))


@pytest.fixture(scope="module")
def page(made):
    return made[0]


def test_the_sections_stand_in_the_order_of_the_story(page):
    wanted = ["found", "manifolds", "digits", "how", "know", "explore", "labels", "yours", "run"]
    assert [name for name in page.ids() if name in wanted] == wanted
    anchors = [a["href"].removeprefix("#") for tag, a in page.elements if tag == "a"]
    assert set(anchors) <= set(page.ids())
    assert anchors[1:] == wanted, "after the link that skips them"


def test_every_step_is_told(made):
    assert made[1] == ["map of relu1", "map of relu2", "map of relu3", "pictures", "demo.html"]
    assert len(made[1]) == N_STEPS


def test_the_page_is_self_contained_and_small(page):
    check_self_contained(page)
    assert "http://" not in page.source
    assert "https://" not in page.source
    assert len(page.source) < 1_500_000


def test_what_was_found_is_said_even_where_k_means_is_better(page):
    assert "moons 2 200 150 yes 2" in page.text
    assert "one ring 2 no 1" in page.text
    assert "k-means 86.0 %, MIM encoder 84.0 %, pixels 77.0 %" in page.text
    assert "k-means 12 86.0 91.0 96.0" in page.text
    best = re.findall(r'<td class="best">([\d.]+)</td>', page.source)
    assert best == ["86.0", "91.0", "96.0"]


def test_the_ring_is_explained(page):
    assert re.search(r"one ring, is connected.* 2 manifolds.* separation is only 24\.1", page.text)
    captions = re.findall(r'<figcaption class="(yes|no)">([^<]+)<', page.source)
    assert captions == [("yes", "certified: 99.4"), ("no", "refused: 24.1")]


def test_what_to_do_next_and_how_to_run_it_again(page):
    for words in ("label data.csv --clusters auto --save model/", "pretrain my_images/ --out run/", "demo --seed 0"):
        assert f"neuralbayes {words}" in page.text
    assert "12 s, without this page" in page.text
    assert "scikit-learn 1." in page.text


def test_the_commands_are_commands(page, monkeypatch):
    from neuralbayes.cli import app
    from neuralbayes.demo.page import COMMANDS

    monkeypatch.setattr(app, "config", ())  # a config file of an earlier test
    for _, words in COMMANDS:
        app.parse_args(words.removeprefix("neuralbayes "), exit_on_error=False, print_error=False)


def test_the_explorer_has_all_layers_and_the_true_digits(page):
    (side,) = page.payload["sides"]
    assert [(layer["name"], layer["nStates"]) for layer in side["layers"]] == [
        ("relu1", 16), ("relu2", 16), ("relu3", 12),
    ]  # fmt: skip
    assert side["layers"][-1]["caption"].startswith("t-SNE")
    (samples,) = page.payload["samples"]
    classes = np.frombuffer(base64.b64decode(samples["classes"]), "<u2")
    np.testing.assert_array_equal(classes, make_demo_result().digits.labels)
    assert samples["sheet"]["width"] == 8


def test_every_picture_has_words_and_the_manifolds_have_one_for_both_themes(page):
    pictures = [a for tag, a in page.elements if tag == "img" and "hidden" not in a]
    assert all(a["alt"] for a in pictures)
    webp = [a for a in pictures if a["src"].startswith("data:image/webp")]
    assert len(webp) == 2
    assert all("class" not in a for a in webp)


def test_names_are_text(page, tmp_path):
    harmed, _ = written(tmp_path, name=HARM)
    assert "onerror" not in {name for _, attributes in harmed.elements for name in attributes}
    assert HARM in harmed.text
    assert len(harmed.elements) == len(page.elements)


def test_the_same_result_gives_the_same_page_but_for_the_time(page, tmp_path):
    again, _ = written(tmp_path)
    moment = re.compile(r"on \d{4}-\d\d-\d\d \d\d:\d\d\.")
    assert len(moment.findall(again.source)) == 1
    assert moment.sub("", again.source) == moment.sub("", page.source)


def test_the_page_may_be_replaced_by_a_newer_one(tmp_path, made):
    (tmp_path / "demo.html").write_text(made[0].source, encoding="utf-8")
    assert is_page(tmp_path / "demo.html")
    (tmp_path / "mine.html").write_text("<title>neuralbayes demo</title>")
    assert not is_page(tmp_path / "mine.html")
