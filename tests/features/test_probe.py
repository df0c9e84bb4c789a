"""nb.probe: any encoder, labels of any kind, a given or a held-out test part, three classifiers, kept features."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.decomposition import PCA

import neuralbayes as nb
from neuralbayes.data.images import Images
from neuralbayes.data.normalize import Normalization
from neuralbayes.data.sources import ArraySource
from neuralbayes.features.encoder import ImageEncoder

QUICK = {"head": "knn"}


def rows(n: int = 200, seed: int = 0, noise: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 4
    return (noise * rng.normal(size=(n, 5)) + 6 * np.eye(5)[y]).astype(np.float32), y


def images(n: int = 40) -> tuple[np.ndarray, np.ndarray]:
    """Make pictures that are bright on the left or on the right."""
    y = np.arange(n) % 2
    x = np.random.default_rng(0).integers(0, 60, (n, 22, 22, 1), dtype=np.uint8)
    for i, side in enumerate(y):
        x[i, :, 11 * side : 11 * (side + 1)] += 150
    return x, y


@pytest.fixture
def encoder() -> ImageEncoder:
    torch.manual_seed(0)
    return ImageEncoder("tiny", (22, 22, 1), Normalization.fit(images()[0])).eval()


@pytest.mark.parametrize("head", ["mlp", "linear", "knn"])
def test_classes_that_are_apart_are_told_apart_and_noise_gives_chance(head: str) -> None:
    result = nb.probe(None, *rows(300), test=rows(200, seed=1), head=head)
    assert result.mean > 0.97
    assert result.head == head
    assert len(result.accuracies) == (3 if head == "mlp" else 1)
    assert (result.n_features, result.n_train, result.n_test) == (5, 300, 200)
    noise, y = np.random.default_rng(1).normal(size=(1000, 5)), rows(500)[1]
    assert abs(nb.probe(None, noise[:500], y, test=(noise[500:], y), head=head, seeds=1).mean - 1 / 4) < 0.08


@pytest.mark.parametrize("head", ["mlp", "linear", "knn"])
def test_the_confusion_matrix_counts_the_test_samples_of_all_seeds(head: str) -> None:
    x, y = rows(200, seed=1, noise=6.0)
    result = nb.probe(None, *rows(300, noise=6.0), test=(x, y), head=head, seeds=2)
    confusion = np.array(result.confusion)
    assert np.trace(confusion) / confusion.sum() == pytest.approx(result.mean)
    assert (confusion.sum(axis=1) == len(result.accuracies) * np.bincount(y)).all()


def test_seeds_differ_and_are_the_same_again() -> None:
    train, test = rows(200, noise=5.0), rows(400, seed=1, noise=5.0)
    first, again = (nb.probe(None, *train, test=test) for _ in range(2))
    assert first.accuracies == again.accuracies
    assert len(set(first.accuracies)) > 1
    assert first.std > 0
    assert nb.probe(None, *train, test=test, seeds=1).std == 0


@pytest.mark.parametrize("n", [5, 8, 9, 30])
def test_few_samples_of_each_class_are_enough(n: int) -> None:
    assert nb.probe(None, *rows(n), test=rows(40, seed=1), seeds=1).mean > 0.6


def test_a_fifth_of_each_class_is_set_aside() -> None:
    result = nb.probe(None, *rows(), **QUICK)
    assert (result.n_train, result.n_test) == (160, 40)
    assert np.array(result.confusion).sum(axis=1).tolist() == [10, 10, 10, 10]
    assert result.mean == 1.0


def test_names_of_classes_are_as_good_as_numbers_and_are_numbered_alike_in_both_parts() -> None:
    x, y = rows()
    named = np.array(["ant", "bee", "cow", "dog"])[y]
    assert nb.probe(None, x, named.tolist(), **QUICK).confusion == nb.probe(None, x, y, **QUICK).confusion
    some = named != "ant"
    result = nb.probe(None, x, named, test=(x[some], named[some]), **QUICK)
    assert np.array(result.confusion).diagonal().tolist() == [0, 50, 50, 50]


def test_a_transformer_gives_the_features() -> None:
    x, y = rows()
    result = nb.probe(PCA(2).fit(x), x, y, **QUICK)
    assert result.n_features == 2
    assert result.confusion == nb.probe(None, PCA(2).fit_transform(x), y, **QUICK).confusion


def test_an_image_encoder_gives_the_features(encoder: ImageEncoder) -> None:
    x, y = images()
    found = nb.probe(encoder, x, y, state="relu1", **QUICK)
    assert found.n_features == encoder.features(x, "relu1").shape[1]
    assert found.mean == 1.0
    assert json.loads(json.dumps(found.to_dict()))["mean"] == 1.0


def test_pixels_of_every_kind_of_images_give_the_same(tmp_path: Path) -> None:
    x, y = images(20)
    expected = nb.probe(None, x, y, **QUICK)
    assert (expected.n_features, expected.n_train, expected.n_test, expected.mean) == (22 * 22, 16, 4, 1.0)
    assert nb.probe(None, Images("mine", "train", ArraySource(x), y), **QUICK).confusion == expected.confusion
    for i, image in enumerate(x):
        folder = tmp_path / ("left" if y[i] == 0 else "right")
        folder.mkdir(exist_ok=True)
        Image.fromarray(image[..., 0]).save(folder / f"{i}.png")
    assert nb.probe(None, tmp_path, **QUICK).confusion == expected.confusion
    assert nb.probe(None, str(tmp_path), **QUICK).confusion == expected.confusion


def test_a_named_set_has_its_own_test_part() -> None:
    data = nb.datasets.load("digits")
    result = nb.probe(None, data.train, test=data.test, **QUICK)
    assert (result.n_train, result.n_test) == (1437, 360)


def test_features_of_an_encoder_are_kept_by_weights_and_images(encoder: ImageEncoder, tmp_path: Path) -> None:
    x, y = images()
    first = nb.probe(encoder, x, y, cache=tmp_path, **QUICK)
    assert first.confusion == nb.probe(encoder, x, y, **QUICK).confusion
    before, encoder.features = encoder.features, None  # type: ignore[method-assign]  # a call would fail
    assert nb.probe(encoder, x, y, cache=tmp_path, **QUICK).confusion == first.confusion
    encoder.features = before  # type: ignore[method-assign]
    with torch.no_grad():
        encoder.network.norm2.running_mean[0] += 0.5
    nb.probe(encoder, x, y, cache=tmp_path, **QUICK)
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize(
    ("arguments", "changes", "words"),
    [
        ((rows(), rows()), {}, "`encoder`"),
        ((None, rows()[0]), {}, "the classes of `X` must be given"),
        ((None, rows()[0], rows()[1][:5]), {}, "`y`"),
        ((None, rows()[0], rows()[0][:, 0]), {}, "`y`"),
        ((None, rows()[0][:5], [0, 0, 0, 0, 1]), {}, "one of class 1"),
        ((None, rows()[0][:4], ["a", "a", "b", "c"]), {}, "one of class b"),
        ((None, np.full((8, 2), np.nan), rows(8)[1]), {}, "features of `X` must be finite"),
        ((None, *rows()), {"test": (rows()[0][:, :3], rows()[1])}, "`test`"),
        ((None, *rows()), {"head": "tree"}, "`head`"),
        ((None, *rows()), {"seeds": 0}, "`seeds`"),
    ],
)
def test_what_is_wrong_is_named(arguments: tuple[object, ...], changes: dict[str, object], words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        nb.probe(*arguments, **changes)
