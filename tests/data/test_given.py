"""Images from Python objects of many kinds."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset, TensorDataset

import neuralbayes as nb
from neuralbayes.data.given import images_given

RNG = np.random.default_rng(0)
PIXELS = RNG.integers(0, 256, (6, 8, 10, 3), dtype=np.uint8)


def pictures() -> list[Image.Image]:
    return [Image.fromarray(image) for image in PIXELS]


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    found = [tmp_path / f"{i}.png" for i in range(len(PIXELS))]
    for path, picture in zip(found, pictures(), strict=True):
        picture.save(path)
    return found


class Pairs(Dataset[Any]):
    """A PyTorch data set whose items are an image and its class."""

    def __init__(self, images: Any) -> None:
        self.images = images

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> Any:
        return self.images[index], 0


CHANNELS_FIRST = torch.from_numpy(PIXELS).permute(0, 3, 1, 2).float() / 255


@pytest.mark.parametrize(
    "given",
    [
        PIXELS,
        PIXELS.transpose(0, 3, 1, 2),
        PIXELS / 255.0,
        CHANNELS_FIRST,
        CHANNELS_FIRST.double(),
        list(PIXELS),
        list(CHANNELS_FIRST),
        pictures(),
        tuple(pictures()),
        Pairs(pictures()),
        Pairs(CHANNELS_FIRST),
        Pairs(PIXELS),
        TensorDataset(CHANNELS_FIRST),
        DataLoader(Pairs(CHANNELS_FIRST), batch_size=2, shuffle=True),
    ],
    ids=lambda given: type(given).__name__,
)
def test_every_form_gives_the_same_pixels(given: Any) -> None:
    source = images_given(given)
    assert source is not None
    assert source.shape == (8, 10, 3)
    np.testing.assert_array_equal(source.read([4, 0, 5]), PIXELS[[4, 0, 5]])


def test_paths_and_folders_give_the_same_pixels(paths: list[Path]) -> None:
    for given in (paths, [str(path) for path in paths], paths[0].parent, str(paths[0].parent)):
        source = images_given(given)
        assert source is not None
        np.testing.assert_array_equal(source.read(np.arange(6)), PIXELS)


def test_a_path_twice_is_two_images(paths: list[Path]) -> None:
    source = images_given([paths[1], paths[0], paths[1]])
    assert source is not None
    np.testing.assert_array_equal(source.read([0, 1, 2]), PIXELS[[1, 0, 1]])


def test_a_path_that_is_no_picture_is_named(paths: list[Path]) -> None:
    paths[2].write_bytes(b"no picture")
    with pytest.raises(ValueError, match=r"2\.png: it is not one of PNG"):
        images_given(paths)


def test_data_sets_of_hugging_face_are_known_by_their_class() -> None:
    found = type("Dataset", (), {"__module__": "datasets.arrow_dataset"})
    items = [{"label": 1, "image": picture} for picture in pictures()]
    found.column_names = ["label", "image"]  # type: ignore[attr-defined]
    found.__len__ = lambda self: len(items)  # type: ignore[attr-defined]
    found.__getitem__ = lambda self, i: items[i]  # type: ignore[attr-defined]
    source = images_given(found())
    assert source is not None
    np.testing.assert_array_equal(source.read([3]), PIXELS[[3]])


@pytest.mark.parametrize("rows", [np.ones((3, 2)), torch.ones(3, 2), [[1.0, 2.0]], [np.ones(2)], [], 5, None, {"a": 1}])
def test_rows_are_no_images(rows: Any) -> None:
    assert images_given(rows) is None


def test_pictures_are_brought_to_the_size_of_a_model() -> None:
    source = images_given(pictures(), (4, 4, 1))
    assert source is not None
    assert source.read([0]).shape == (1, 4, 4, 1)


def test_arrays_of_different_sizes_are_named() -> None:
    source = images_given([PIXELS[0], PIXELS[1][:4]])
    assert source is not None
    with pytest.raises(ValueError, match=r"image 1 must have shape \(8, 10, 3\) \(H, W, C\), got \(4, 10, 3\)"):
        source.read([0, 1])


def test_clusterer_takes_pictures_and_predicts_for_files(tmp_path: Path) -> None:
    grey = np.concatenate([RNG.integers(0, 60, (30, 8, 8)), RNG.integers(190, 256, (30, 8, 8))]).astype(np.uint8)
    given = [Image.fromarray(image) for image in grey]
    clusterer = nb.InformationClusterer(2, max_iter=100, n_hidden=64, random_state=0).fit(given)
    given[3].resize((20, 20)).save(tmp_path / "dark.png")
    given[40].convert("RGB").save(tmp_path / "light.png")
    found = clusterer.predict([tmp_path / "dark.png", tmp_path / "light.png"])
    np.testing.assert_array_equal(found, clusterer.labels_[[3, 40]])
    np.testing.assert_array_equal(clusterer.predict(tmp_path), found)
