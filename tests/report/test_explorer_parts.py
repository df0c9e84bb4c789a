"""The parts of a page: samples, places on the map, sheets of thumbnails, words, commands."""

import base64
import io
import math
from dataclasses import asdict

import numpy as np
import pytest
from PIL import Image

from neuralbayes.data.sources import ArraySource, Images
from neuralbayes.features.pretraining import PRESETS
from neuralbayes.report.explorer import page as pages
from neuralbayes.report.explorer import places as maps
from neuralbayes.report.explorer.commands import label_command, pretrain_command
from neuralbayes.report.explorer.figures import THUMBNAILS, drawn, sheet
from neuralbayes.report.explorer.page import page_text
from neuralbayes.report.explorer.payload import safe_json
from neuralbayes.report.explorer.places import Places, posterior_places
from neuralbayes.report.explorer.samples import MAX_COLUMNS, chosen, image_samples, row_samples, telling_columns
from neuralbayes.report.explorer.side import Layer, Side
from neuralbayes.report.explorer.words import certificate_warnings, layer_warnings

RNG = np.random.default_rng(0)


def layer(p_zx, **changes):
    n = len(p_zx)
    places = Places(RNG.normal(size=(n, 2)), np.ones(n, bool), ("", ""), "made up")
    return Layer("relu1", np.asarray(p_zx, np.float32), places, **changes)


def decoded(found):
    content = base64.b64decode(found.address.partition(",")[2])
    return np.asarray(Image.open(io.BytesIO(content)).convert("RGB"))


def tile(found, i):
    top, left = i // found.columns * found.cell, i % found.columns * found.cell
    return decoded(found)[top : top + found.height, left : left + found.width]


def test_the_same_samples_are_chosen_each_time():
    first, second = chosen(1000, 50), chosen(1000, 50)
    np.testing.assert_array_equal(first, second)
    assert len(np.unique(first)) == 50
    assert chosen(7, 50).tolist() == list(range(7))


def test_images_come_with_their_classes_or_without():
    pictures = RNG.integers(0, 256, (30, 4, 4, 1), dtype=np.uint8)
    labels = np.arange(30) % 3
    images = Images("made-up", "train", ArraySource(pictures), labels, ("ant", "bee"))
    samples = image_samples(images, "made-up", 10, limit=20)
    assert (samples.n_all, len(samples)) == (20, 10)
    np.testing.assert_array_equal(samples.pictures, pictures[samples.index])
    np.testing.assert_array_equal(samples.classes, labels[samples.index])
    assert samples.class_names == ["ant", "bee", "2"], "a name for each class, also where the data have none"
    unlabelled = Images("made-up", "train", ArraySource(pictures), np.full(30, -1))
    assert image_samples(unlabelled, "made-up", 10).classes is None


def test_the_classes_of_rows_are_any_values():
    samples = row_samples(np.zeros((3, 1)), "t.csv", ["a"], np.arange(3), np.array([2.5, "x", 2.5], dtype=object))
    assert samples.class_names == ["2.5", "x"]
    assert samples.classes.tolist() == [0, 1, 0]
    with pytest.raises(ValueError, match=r"at most 1,000, got 1,001 different values"):
        row_samples(np.zeros((1001, 1)), "t.csv", ["a"], np.arange(1001), np.arange(1001))


def test_of_many_columns_those_are_shown_that_tell_states_apart():
    values = RNG.normal(size=(60, 100))
    states = np.repeat([0, 1, 2], 20)
    values[states == 2, 77] += 5.0
    values[:, 3] = 1.0
    found = telling_columns(values, states)
    assert len(found) == MAX_COLUMNS
    assert 77 in found
    assert 3 not in found
    assert (np.diff(found) > 0).all()
    assert telling_columns(values[:, :5], states).tolist() == list(range(5))


@pytest.mark.parametrize("method", ["tsne", "pca"])
def test_what_is_alike_is_near(method):
    centres = np.eye(3)[np.repeat([0, 1, 2], 20)]
    p_zx = 0.9 * centres + 0.1 * RNG.dirichlet(np.ones(3), 60)
    places = posterior_places(p_zx, method)
    means = np.stack([places.points[20 * k : 20 * (k + 1)].mean(axis=0) for k in range(3)])
    nearest = np.linalg.norm(places.points[:, None] - means, axis=2).argmin(axis=1)
    np.testing.assert_array_equal(nearest, np.repeat([0, 1, 2], 20))
    assert places.mapped.all()


def test_who_is_not_on_the_map_stands_where_the_nearest_does(monkeypatch):
    monkeypatch.setattr(maps, "MAX_MAPPED", 20)
    p_zx = np.eye(2)[np.arange(50) % 2] * 0.9 + 0.05
    places = posterior_places(p_zx, "pca")
    assert places.mapped.sum() == 20
    assert "20 of 50 samples" in places.caption
    for k in (0, 1):
        np.testing.assert_allclose(places.points[k::2], places.points[k::2][:1].repeat(25, axis=0), atol=1e-9)


@pytest.mark.parametrize("shape", [(40, 3), (2, 3), (1, 2), (5, 1)])
def test_posteriors_that_say_nothing_have_a_map_all_the_same(shape):
    places = posterior_places(np.full(shape, 1 / shape[1]), "tsne")
    assert np.isfinite(places.points).all()
    assert "all posteriors are equal" in places.caption


@pytest.mark.parametrize("shape", [(28, 28, 1), (32, 32, 3), (20, 31, 3)])
def test_thumbnails_are_found_in_their_sheet(shape):
    smooth = np.linspace(0, 200, math.prod(shape)).reshape(shape)
    pictures = np.stack([(smooth + 10 * i) % 256 for i in range(5)]).astype(np.uint8)
    found = sheet(pictures, 10**7)
    assert (found.height, found.width) == shape[:2]
    assert found.cell % 16 == 0
    for i, picture in enumerate(pictures):
        difference = np.abs(tile(found, i).astype(int) - picture)
        assert difference.mean() < (1 if shape[2] == 1 else 12)


def test_large_pictures_become_small_and_too_many_bytes_smaller_still():
    pictures = RNG.integers(0, 256, (6, 100, 50, 3), dtype=np.uint8)
    found = sheet(pictures, 10**7)
    assert (found.height, found.width) == (48, 24)
    small = sheet(pictures, 0)
    assert max(small.height, small.width) == THUMBNAILS[-1]
    assert len(small.address) < len(found.address) / 2


def test_nothing_breaks_out_of_json():
    text = safe_json({"a": "</script><!-- \u2028 & <script>"})
    assert not set("<>&\u2028") & set(text)


def test_layers_are_warned_of_in_words():
    certain = np.eye(10)[np.arange(200) % 10]
    assert layer_warnings([layer(certain, information=2.0)], "image") == []
    (collapsed,) = layer_warnings([layer(np.full((200, 10), 0.1), information=0.001)], "image")
    assert "0.001 of 2.30 nats about the image" in collapsed
    (dead,) = layer_warnings([layer(np.eye(11)[np.arange(200) % 10], information=2.0)], "image")
    assert "1 of 11 state is dead" in dead
    (few,) = layer_warnings([layer(np.eye(10)[np.arange(20) % 10], information=2.0)], "image")
    assert "2.0 images per state in relu1" in few


def test_the_certificate_is_put_into_words():
    p_zx = np.eye(3)[np.repeat([0, 1, 2], [60, 60, 5])]
    good, bad = math.log(2), 0.2

    def certified(separation):
        disjoint = np.asarray(separation) > 0.9 * math.log(2)
        return certificate_warnings(layer(p_zx, separation=np.asarray(separation), disjoint=disjoint))

    (few,) = certified([good, good, good])
    assert few == "Few samples: cluster 2 (5) with fewer than 30 rows."
    refused, _ = certified([good, bad, math.nan])
    assert "clusters 1 (separation 29 of 100), 2." in refused
    one = layer(np.ones((9, 1)), separation=np.zeros(1), disjoint=np.zeros(1, bool))
    assert len(certificate_warnings(one)) == 1
    empty = layer(np.eye(3)[np.zeros(99, int)], separation=np.full(3, good), disjoint=np.ones(3, bool))
    assert "No rows here: clusters 1, 2." in certificate_warnings(empty)


def config(preset, **changes):
    settings = {"method": "mim"} | asdict(PRESETS[preset]) | changes
    return {name: list(value) if isinstance(value, tuple) else value for name, value in settings.items()}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (config("paper"), "neuralbayes pretrain x --preset paper --out run"),
        (config("laptop", recompute=True, augment=True), "neuralbayes pretrain x --recompute --augment --out run"),
        (config("laptop", batch_size=50, scales=[1]), "neuralbayes pretrain x --scales 1 --batch 50 --out run"),
        (config("laptop", noise_scale=0.3), ""),
        (config("laptop") | {"method": "rotation"}, ""),
        ({"method": "mim", "epochs": 3}, ""),
        ({}, ""),
    ],
)
def test_the_command_that_trains_again(settings, words):
    assert pretrain_command(settings, {"data": "x", "split": "train"}, "run") == words


def test_the_command_is_one_that_the_command_line_understands():
    from neuralbayes.cli.pretrain import app

    settings = config(
        "paper", beta=2.0, batch_size=50, microbatch_size=50, recompute=False, epochs=3, normalize="whiten"
    )
    choice = {"data": "my images", "split": "test", "limit": 9, "size": 32, "channels": 1}
    words = pretrain_command(settings, choice, "a run")
    _, bound, _ = app.parse_args(words.removeprefix("neuralbayes pretrain "), exit_on_error=False, print_error=False)
    given = bound.arguments
    assert given["data"] == "my images"
    assert given["recompute"] is False
    assert (given["beta"], given["batch"], given["limit"], given["size"], given["channels"]) == (2.0, 50, 9, 32, 1)


def test_a_setting_of_a_labeler_without_an_option_has_no_command():
    defaults = {"n_clusters": 2, "beta": 0.1, "random_state": None, "n_neighbors": 15, "standardize": False}
    given = defaults | {"random_state": 0, "standardize": True, "n_neighbors": 5}
    assert label_command(given, defaults, "t.csv", "m", ["--columns", "a,b"]) == (
        "neuralbayes label t.csv --columns a,b --clusters 2 --neighbors 5 --standardize --save m"
    )
    assert label_command(given | {"beta": 0.2}, defaults, "t.csv", "m") == ""
    assert label_command(given | {"random_state": None}, defaults, "t.csv", "m") == ""


def test_no_side_or_three_are_refused(tmp_path):
    with pytest.raises(ValueError, match="`sides` must be one or two, got 0"):
        pages.write_page([], tmp_path / "page.html")


@pytest.mark.slow
def test_a_page_of_the_papers_encoder_on_pictures_that_nothing_compresses_is_below_5_mb():
    pictures = RNG.integers(0, 256, (5000, 64, 64, 3), dtype=np.uint8)
    images = Images("noise", "train", ArraySource(pictures), RNG.integers(0, 1000, 5000))
    samples = image_samples(images, "noise", 5000)
    layers = [layer(RNG.dirichlet(np.full(k, 0.01), 5000), information=1.0) for k in (200, 500, 700, 1000)]
    side = Side("noise", "", samples, layers, [], [], "", "", [], [], grids={"labels": []})
    assert len(page_text([side])) < 5_000_000


def test_a_picture_that_cannot_be_drawn_leaves_a_page_with_its_reason():
    def fail(ax):
        raise RuntimeError("no fonts")

    picture = drawn("Loss", "the loss of each step", fail)
    assert picture.title == "Loss"
    assert "RuntimeError: no fonts" in picture.caption
    assert picture.light.startswith("data:image/svg+xml;base64,")
