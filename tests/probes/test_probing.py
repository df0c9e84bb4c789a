"""nb.probe: any encoder, labels of any kind, and a given test part."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from sklearn.decomposition import PCA

import neuralbayes as nb

QUICK = {"head": "knn"}


def rows(n: int = 200, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 4
    return (rng.normal(size=(n, 5)) + 6 * np.eye(5)[y]).astype(np.float32), y


def images(n: int = 40) -> tuple[np.ndarray, np.ndarray]:
    """Make pictures that are bright on the left or on the right."""
    y = np.arange(n) % 2
    x = np.random.default_rng(0).integers(0, 60, (n, 22, 22, 1), dtype=np.uint8)
    for i, side in enumerate(y):
        x[i, :, 11 * side : 11 * (side + 1)] += 150
    return x, y


def test_a_fifth_of_each_class_is_set_aside() -> None:
    result = nb.probe(None, *rows(), **QUICK)
    assert (result.n_train, result.n_test) == (160, 40)
    assert np.array(result.confusion).sum(axis=1).tolist() == [10, 10, 10, 10]
    assert result.mean == 1.0


def test_it_is_the_same_fifth_every_time() -> None:
    x, y = rows()
    noisy = np.random.default_rng(1).permutation(y)
    assert nb.probe(None, x, noisy, **QUICK).confusion == nb.probe(None, x, noisy, **QUICK).confusion


def test_names_of_classes_are_as_good_as_numbers() -> None:
    x, y = rows()
    named = np.array(["ant", "bee", "cow", "dog"])[y]
    assert nb.probe(None, x, named.tolist(), **QUICK).confusion == nb.probe(None, x, y, **QUICK).confusion


def test_names_are_numbered_alike_in_both_parts() -> None:
    x, y = rows()
    named = np.array(["ant", "bee", "cow", "dog"])[y]
    some = named != "ant"
    result = nb.probe(None, x, named, test=(x[some], named[some]), **QUICK)
    assert np.array(result.confusion).diagonal().tolist() == [0, 50, 50, 50]


def test_a_transformer_gives_the_features() -> None:
    x, y = rows()
    result = nb.probe(PCA(2).fit(x), x, y, **QUICK)
    assert result.n_features == 2
    assert result.confusion == nb.probe(None, PCA(2).fit_transform(x), y, **QUICK).confusion


def test_an_image_encoder_gives_the_features() -> None:
    x, y = images()
    encoder = nb.baselines.random(x, nb.baselines.RandomConfig(encoder="tiny"))
    found = nb.probe(encoder, x, y, state="relu1", **QUICK)
    assert found.n_features == encoder.features(x, "relu1").shape[1]
    assert found.mean == 1.0


def test_an_estimator_of_images_gives_the_features() -> None:
    x, y = images()
    encoder = nb.MIMEncoder(encoder="tiny", max_epochs=1, random_state=0).fit(x)
    assert nb.probe(encoder, x, y, **QUICK).n_features == encoder.transform(x).shape[1]


def test_a_folder_knows_the_classes(tmp_path: Path) -> None:
    x, y = images(20)
    for i, image in enumerate(x):
        folder = tmp_path / ("left" if y[i] == 0 else "right")
        folder.mkdir(exist_ok=True)
        Image.fromarray(image[..., 0]).save(folder / f"{i}.png")
    result = nb.probe(None, tmp_path, **QUICK)
    assert (result.n_train, result.n_test, result.mean) == (16, 4, 1.0)
    assert nb.probe(None, str(tmp_path), **QUICK).confusion == result.confusion


def test_a_named_set_has_its_own_test_part() -> None:
    data = nb.datasets.load("digits")
    result = nb.probe(None, data.train, test=data.test, **QUICK)
    assert (result.n_train, result.n_test) == (1437, 360)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((rows(), rows()), r"`encoder` must be an ImageEncoder.*probe\(encoder, X, y"),
        ((None, rows()[0]), "the classes of `X` must be given"),
        ((None, rows()[0], rows()[1][:5]), r"`y` must have a class for each of 200 samples, got shape \(5,\)"),
        ((None, rows()[0], rows()[0][:, 0]), "`y` must hold classes"),
        ((None, rows()[0][:5], [0, 0, 0, 0, 1]), "one of class 1"),
        ((None, rows()[0][:4], ["a", "a", "b", "c"]), "one of class b"),
    ],
)
def test_what_is_wrong_is_named(arguments: tuple[object, ...], words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        nb.probe(*arguments)
