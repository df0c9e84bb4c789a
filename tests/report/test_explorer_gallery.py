"""Clusters of pictures and texts, shown by their members."""

import numpy as np
import pytest

from neuralbayes.bayes import LOG_2
from neuralbayes.report.explorer.figures import thumbnails
from neuralbayes.report.explorer.gallery import FIRST, N_PICTURES_OF_MANY, members_gallery, shortened
from neuralbayes.report.explorer.places import feature_places
from neuralbayes.report.explorer.samples import Samples, text_samples
from neuralbayes.report.explorer.side import Layer
from neuralbayes.report.explorer.words import separation_words

TEXTS = [
    "reset my password",
    "Reset my password",
    "password lost",
    "parcel late",
    "parcel gone",
    "parcel or password",
]
PLACES = [[0.0], [0.0], [0.3], [5.0], [5.2], [3.0]]


def a_layer(p_zx, points, separation):
    points = np.asarray(points, dtype=np.float64)
    places = feature_places(points, "pca", "the features", "text")
    separation = LOG_2 * np.asarray(separation)
    return Layer("clusters", np.asarray(p_zx, np.float32), places, separation=separation, points=points)


@pytest.fixture
def texts():
    p_zx = np.array([[0.9, 0.1], [0.9, 0.1], [0.8, 0.2], [0.1, 0.9], [0.1, 0.9], [0.45, 0.55]])
    classes = np.array(["access", "access", "access", "post", "post", "access"])
    samples = text_samples(TEXTS, "tickets.csv", "body", np.arange(6), classes)
    return samples, a_layer(p_zx, PLACES, [0.61, 0.89])


def test_clusters_of_texts_are_named_by_their_words_and_shown_by_different_texts(texts):
    found = members_gallery(*texts)
    assert found.names == ["reset my password", "parcel"]
    assert found.sentence == (
        "2 clusters in 6 texts: reset my password (50 %); parcel (50 %). They may touch: separation 61 to 89 of 100."
    )
    first, second = found.cards
    assert (first.size, first.share, first.separation) == (3, 0.5, pytest.approx(61))
    assert [one.text for one in first.typical] == ["reset my password", "password lost"]  # no duplicates
    assert second.borderline[0].text == "parcel or password"
    assert second.borderline[0].second == found.names[0]
    assert second.classes == [("post", pytest.approx(2 / 3)), ("access", pytest.approx(1 / 3))]
    assert found.runner_up.tolist() == [1, 1, 1, 0, 0, 0]


def test_sizes_of_all_data_order_the_cards(texts):
    found = members_gallery(*texts, sizes=np.array([10, 30]))
    assert [(card.number, card.size, card.share) for card in found.cards] == [(1, 30, 0.75), (0, 10, 0.25)]


def test_many_clusters_of_pictures_get_fewer_pictures_each():
    k = FIRST + 1
    labels = np.repeat(np.arange(k), 10)
    pictures = np.random.default_rng(0).integers(0, 255, (10 * k, 8, 8, 1), dtype=np.uint8)
    names = [f"{i}.png" for i in range(10 * k)]
    samples = Samples("photos", "image", 10 * k, np.arange(10 * k), pictures=pictures, names=names)
    points = labels[:, None] + np.tile(np.linspace(0, 0.1, 10), k)[:, None]
    found = members_gallery(samples, a_layer(0.9 * np.eye(k)[labels] + 0.1 / k, points, np.full(k, 0.2)))
    assert {len(card.typical) for card in found.cards} == {N_PICTURES_OF_MANY}
    assert found.cards[3].name == "cluster 3"
    member = found.cards[3].typical[0]
    assert labels[member.place] == 3
    assert member.name == f"{member.place}.png"
    assert member.address.startswith("data:image/webp;base64,")
    assert found.poor
    assert found.sentence.startswith(f"{k} clusters in {10 * k} images, the largest of 10, the smallest of 10. Poor:")


def test_near_duplicates_of_a_picture_are_shown_once():
    rng = np.random.default_rng(0)
    scenes = rng.integers(0, 250, (3, 9, 9, 3), dtype=np.uint8).repeat(4, axis=1).repeat(4, axis=2)
    pictures = scenes[[0, 0, 0, 1, 0, 2]] + rng.integers(0, 5, (6, 36, 36, 3), dtype=np.uint8)
    samples = Samples("photos", "image", 6, np.arange(6), pictures=pictures, names=[f"{i}.png" for i in range(6)])
    found = members_gallery(samples, a_layer(np.tile([0.9, 0.1], (6, 1)), PLACES, [0.9, 0.9]))
    shown = [one.place for one in found.cards[0].typical]
    assert len(shown) == 3
    assert {0 if place in (0, 1, 2, 4) else place for place in shown} == {0, 3, 5}
    assert len(found.cards[0].borderline) == 3


def test_one_cluster_has_no_verdict(texts):
    samples, _ = texts
    found = members_gallery(samples, a_layer(np.ones((6, 1)), PLACES, [np.nan]))
    assert found.sentence == "One cluster: nothing was found that divides the 6 texts."
    assert not found.cards[0].borderline
    assert not found.poor


def test_a_gallery_needs_members_and_points(texts):
    _, layer = texts
    rows = Samples("rows.csv", "row", 6, np.arange(6), values=np.zeros((6, 1)), columns=["a"])
    with pytest.raises(ValueError, match="needs pictures or texts"):
        members_gallery(rows, layer)


@pytest.mark.parametrize(
    ("separation", "words"),
    [
        ([0.95, 0.99], "They stand apart: separation 95 to 99 of 100."),
        ([0.2, 0.8, 0.9], "They may touch: separation 20 to 90 of 100, poor for cluster 0."),
        ([0.1, 0.2, 0.9], "Poor: separation 10 to 90 of 100, so the boundaries may not be in the data."),
        ([np.nan, np.nan], ""),
    ],
)
def test_quality_is_said_in_words(separation, words):
    assert separation_words(LOG_2 * np.array(separation))[0] == words


def test_a_long_text_is_cut_and_has_no_line_ends():
    assert shortened("a\n\tb") == "a b"
    assert len(shortened("x" * 500)) == 200
    assert shortened("x" * 500).endswith("…")


def test_thumbnails_become_smaller_where_they_do_not_fit():
    pictures = np.random.default_rng(0).integers(0, 255, (3, 200, 100, 3), dtype=np.uint8)
    large, small = thumbnails(pictures, [0, 2], 10**6), thumbnails(pictures, [0, 2], 1)
    assert set(large) == set(small) == {0, 2}
    assert len(small[0]) < len(large[0]) / 3
