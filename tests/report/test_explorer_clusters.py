"""The explorer of clusters of images, and of rows that may touch."""

import re

import numpy as np
import pytest

import neuralbayes as nb
from neuralbayes.cli import main
from neuralbayes.clusters.merging import MARGIN
from neuralbayes.data import toys
from neuralbayes.data.images import load_images
from neuralbayes.report.explorer import clusters_side, image_samples


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clusters") / "model"
    images = nb.datasets.load("digits").train.images[:200]
    nb.InformationClusterer("auto", max_clusters=6, max_iter=200, n_hidden=256, random_state=0).fit(images).save(folder)
    return folder


def shown(path):
    """The page without its scripts."""
    return re.sub("<script.*?</script>", "", path.read_text("utf-8"), flags=re.DOTALL)


def test_clusters_and_the_states_they_are_made_of_are_layers(model):
    clusterer = nb.load(model)
    samples = image_samples(load_images("digits"), "digits, train", 120, None)
    side = clusters_side(model, clusterer, samples, data="digits", method="pca")
    assert [(layer.name, layer.n_states) for layer in side.layers] == [
        ("small states", 40),
        ("clusters", clusterer.n_clusters_),
    ]
    membership = clusterer.membership_
    np.testing.assert_allclose(side.layers[0].p_zx @ membership, side.layers[1].p_zx, atol=1e-5)
    clusters, numbers = side.grids["training"]
    assert sum(int(row[3]) for row in clusters.rows) == 40
    assert [row[0] for row in numbers.rows] == ["2", "3", "4", "5", "6"]
    (i, column), *others = numbers.best
    assert not others
    assert numbers.rows[i][0] == str(clusterer.n_clusters_)
    information = [float(row[column]) for row in numbers.rows]
    least = max(information) - MARGIN * abs(max(information))
    assert [value >= least - 0.001 for value in information[: i + 1]] == [False] * i + [True]  # rounded on the page


def test_the_command_names_the_images_as_the_command_line_does(model):
    clusterer = nb.load(model).set_params(max_iter=None, n_hidden=None, max_clusters=None)
    samples = image_samples(load_images("digits", split="test"), "digits, test", 50, None)
    side = clusters_side(model, clusterer, samples, data="digits", options=["--split", "test"], method="pca")
    assert side.command == f"neuralbayes label digits --split test --clusters auto --save {model}"


def test_other_samples_are_refused(model):
    clusterer = nb.load(model)
    large = image_samples(load_images("digits", size=9), "digits, train", 20, None)
    with pytest.raises(ValueError, match="`samples` must be images of the shape"):
        clusters_side(model, clusterer, large, data="digits")


def test_the_command_writes_a_page_of_clusters(model, tmp_path, capsys):
    words = ["report", str(model), "digits", "--samples", "100", "--map", "pca", "--out", str(tmp_path / "page.html")]
    assert main([*words, "--quiet"]) == 0
    page = shown(tmp_path / "page.html")
    assert "small states" in page
    assert "How the number of clusters was chosen" in page
    assert "certified disjoint" not in page


def test_rows_with_a_network_are_not_said_to_lack_a_certificate(tmp_path, capsys):
    X, _ = toys.make_blobs(200, random_state=0)
    nb.InformationClusterer(3, max_iter=100, n_hidden=32, random_state=0).fit(X).save(tmp_path / "model")
    np.save(tmp_path / "rows.npy", X)
    words = ["report", str(tmp_path / "model"), str(tmp_path / "rows.npy"), "--out", str(tmp_path / "page.html")]
    assert main([*words, "--quiet"]) == 0
    page = shown(tmp_path / "page.html")
    assert "Certificate" not in page
    assert "separation, of 100" in page
