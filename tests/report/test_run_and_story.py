"""Pages of a pretraining and of the demo."""

import json

import numpy as np
import pytest
from html_pages import Page, check_self_contained
from matplotlib.figure import Figure

import neuralbayes as nb
from neuralbayes.report.run import N_IMAGES, N_STATES, write_run_page
from neuralbayes.report.story import write_story


@pytest.fixture(scope="module")
def images():
    return np.random.default_rng(0).integers(0, 256, (60, 24, 24, 3), dtype=np.uint8)


@pytest.fixture(scope="module")
def run(images, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "run"
    config = nb.PretrainConfig(encoder="tiny", batch_size=20, microbatch_size=20)
    nb.pretrain(images, config, epochs=2, out=folder)
    return folder


def test_a_run_page_shows_each_layer(run, images, tmp_path):
    page = Page(write_run_page(run, images, tmp_path / "run.html"))
    check_self_contained(page)
    assert "run: features of 60 images" in page.text
    for name in ("relu1", "relu2", "relu3", "relu4"):
        assert name in page.text
    strips = [one for tag, one in page.elements if tag == "img" and one["alt"].startswith("Images of state")]
    assert 2 * N_STATES < len(strips) <= 4 * N_STATES
    assert N_IMAGES == 6


def test_a_run_page_shows_curves_with_words(run, images, tmp_path):
    page = Page(write_run_page(run, images, tmp_path / "run.html"))
    charts = [one["aria-label"] for tag, one in page.elements if tag == "svg" and one.get("class") == "lines"]
    assert any(words.startswith("Loss by update: loss from") for words in charts)


def test_warnings_of_a_run_are_text(run, images, tmp_path):
    result = json.loads((run / "result.json").read_text())
    (run / "result.json").write_text(json.dumps(result | {"warnings": ["<b>relu4</b> has collapsed"]}))
    page = Page(write_run_page(run, images, tmp_path / "run.html"))
    assert "<b>relu4</b> has collapsed" in page.text
    (run / "result.json").write_text(json.dumps(result))


def test_images_of_another_size_are_refused(run, tmp_path):
    with pytest.raises(ValueError, match="`images` must have the shape"):
        write_run_page(run, np.zeros((5, 30, 30, 3), np.uint8), tmp_path / "run.html")
    assert not (tmp_path / "run.html").exists()


def test_a_damaged_result_is_named(run, images, tmp_path):
    whole = (run / "result.json").read_text()
    (run / "result.json").write_text("[]")
    with pytest.raises(ValueError, match=r"result\.json"):
        write_run_page(run, images, tmp_path / "run.html")
    (run / "result.json").write_text(whole)


def test_a_story_shows_sentences_pictures_and_commands(tmp_path):
    figure = Figure(figsize=(2, 2))
    figure.subplots().plot([1, 2, 3])
    sections = [("Curves", "Three points.", [figure, figure], "neuralbayes cluster a.csv"), ("Nothing else",)]
    page = Page(write_story(tmp_path / "story.html", "What was found", sections))
    check_self_contained(page)
    assert "Three points. neuralbayes cluster a.csv Nothing else" in page.text
    assert sum(tag == "img" for tag, _ in page.elements) == 2
