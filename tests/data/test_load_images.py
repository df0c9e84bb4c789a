"""Images in every form give the same pixels, whatever stores them."""

import io
import random
import zipfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader, StackDataset, TensorDataset

from neuralbayes.data.arrays import array_shapes, open_array
from neuralbayes.data.images import Images, ImageSource, as_source, holds_images, images_given, load_images
from neuralbayes.data.pictures import NetworkResizing
from neuralbayes.data.sources import ArraySource, FilesSource, resized, subset

PIXELS = np.random.default_rng(0).integers(0, 256, (6, 8, 10, 3), dtype=np.uint8)
CHANNELS_FIRST = torch.from_numpy(PIXELS).permute(0, 3, 1, 2).float() / 255


def pictures() -> list[Image.Image]:
    return [Image.fromarray(image) for image in PIXELS]


def save_pictures(folder: Path, images: np.ndarray = PIXELS) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{i}.png" for i in range(len(images))]
    for path, image in zip(paths, images, strict=True):
        Image.fromarray(image).save(path)
    return paths


def pairs(images):
    """A data set whose items are an image and its class."""
    return StackDataset(images, [0] * len(images))


@pytest.mark.parametrize(
    "given",
    [
        PIXELS,
        PIXELS.transpose(0, 3, 1, 2),
        PIXELS / 255.0,
        CHANNELS_FIRST,
        CHANNELS_FIRST.double(),
        ArraySource(PIXELS),
        Images("a", "train", ArraySource(PIXELS)),
        subset(ArraySource(np.concatenate([PIXELS[::-1], PIXELS])), np.arange(6, 12)),
        list(PIXELS),
        list(CHANNELS_FIRST),
        pictures(),
        tuple(pictures()),
        pairs(pictures()),
        pairs(CHANNELS_FIRST),
        pairs(PIXELS),
        TensorDataset(CHANNELS_FIRST),
        DataLoader(pairs(CHANNELS_FIRST), batch_size=2, shuffle=True),
    ],
    ids=lambda given: type(given).__name__,
)
def test_every_form_gives_the_same_pixels(given):
    source = images_given(given)
    assert isinstance(source, ImageSource)
    assert (len(source), source.shape) == (6, (8, 10, 3))
    for order in ([4, 0, 5], np.array([1]), torch.tensor([5, 5]), [], range(6)):
        batch = source.read(order)
        assert batch.dtype == np.uint8
        assert np.array_equal(batch, PIXELS[np.array(list(order), int)])
    assert np.array_equal(load_images(given).read([3]), PIXELS[[3]])


def test_paths_and_folders_give_the_same_pixels(tmp_path):
    paths = save_pictures(tmp_path)
    for given in (paths, [str(path) for path in paths], tmp_path, str(tmp_path)):
        assert np.array_equal(images_given(given).read(np.arange(6)), PIXELS)
    twice = load_images([paths[4], paths[1], paths[4]])
    assert twice.source.paths == (paths[4], paths[1], paths[4])
    assert np.array_equal(twice.read([0, 1, 2]), PIXELS[[4, 1, 4]])


def test_data_sets_of_hugging_face_are_known_by_their_class():
    found = type("Dataset", (), {"__module__": "datasets.arrow_dataset"})
    items = [{"label": 1, "image": picture} for picture in pictures()]
    found.column_names = ["label", "image"]
    found.__len__ = lambda self: len(items)
    found.__getitem__ = lambda self, i: items[i]
    assert np.array_equal(images_given(found()).read([3]), PIXELS[[3]])


@pytest.mark.parametrize("rows", [np.ones((3, 2)), torch.ones(3, 2), [[1.0, 2.0]], [np.ones(2)], [], 5, None, {"a": 1}])
def test_rows_are_no_images(rows):
    assert images_given(rows) is None
    with pytest.raises((TypeError, ValueError), match=r"`images`|`array`"):
        as_source(rows)


def test_other_arrays_are_refused_unless_the_axis_of_the_channels_is_named():
    for array in (np.zeros((2, 8, 8), np.int64), np.zeros((4, 0, 8), np.uint8), np.zeros((4, 5, 8, 8), np.uint8)):
        with pytest.raises((TypeError, ValueError), match="`array` must"):
            ArraySource(array)
    assert ArraySource(np.zeros((4, 5, 8, 8), np.uint8), channels_first=True).shape == (8, 8, 5)
    assert ArraySource(np.zeros((4, 3, 8, 3), np.uint8), channels_first=True).shape == (8, 3, 3)


@pytest.mark.parametrize("value", [-0.1, 1.1, np.nan])
def test_floats_outside_0_to_1_are_refused_when_read(value):
    array = np.full((3, 4, 4), 0.5)
    array[2, 1, 1] = value
    assert (ArraySource(array).read([0, 1]) == 128).all()
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        ArraySource(array).read([2])


@pytest.mark.parametrize(
    ("indices", "error"), [([12], IndexError), ([-1], IndexError), ([0.5], TypeError), ([[0]], TypeError)]
)
def test_bad_indices_are_named(indices, error):
    for source in (ArraySource(PIXELS), FilesSource(["a.png"], (8, 10, 3)), subset(ArraySource(PIXELS), [0, 1])):
        with pytest.raises(error, match="`indices` must be"):
            source.read(indices)
    with pytest.raises(ValueError, match=r"image 1 .* got \(4, 10, 3\)"):
        images_given([PIXELS[0], PIXELS[1][:4]]).read([0, 1])


def test_images_are_resized_and_recoloured():
    flat = np.full((2, 64, 48, 3), (250, 130, 10), np.uint8)
    assert np.array_equal(load_images(flat, size=8).read([1, 0]), flat[:, :8, :8])
    grey = load_images(flat, channels=1).read([0])
    assert grey.shape == (1, 64, 48, 1)
    assert abs(int(grey.mean()) - round(0.299 * 250 + 0.587 * 130 + 0.114 * 10)) <= 1
    assert np.array_equal(load_images(flat[..., 0], channels=3).read([0]), np.full((1, 64, 48, 3), 250))
    with pytest.raises(ValueError, match="1 or 3 channels"):
        resized(ArraySource(np.zeros((1, 8, 8, 5), np.uint8), channels_first=False), (4, 4, 3))


def test_images_of_the_size_of_the_network_are_scaled_all_the_same():
    image = np.random.default_rng(1).integers(0, 256, (16, 16, 3), np.uint8)
    enlarged = Image.fromarray(image).resize((20, 20), Image.Resampling.BICUBIC)
    found = load_images(image[None], size=16, interpolation=NetworkResizing((20, 20))).read([0])[0]
    assert np.array_equal(found, np.asarray(enlarged)[2:18, 2:18])


@pytest.mark.parametrize("of_files", [True, False], ids=["files", "PIL images"])
def test_pictures_are_read_again_at_another_size(tmp_path, of_files):
    large = np.random.default_rng(0).integers(0, 256, (4, 128, 160, 3), np.uint8)
    given = save_pictures(tmp_path, large) if of_files else [Image.fromarray(image) for image in large]
    images = load_images(given)
    assert images.shape == (64, 80, 3)
    assert images.source.reduced_from == (128, 160)
    for source in (images, images.take([2, 0]), subset(images.take([3, 2, 0]), [1, 2])):
        again = resized(source, (128, 160, 3)).read(np.arange(len(source))[-2:])
        assert np.array_equal(again, large[[2, 0]] if len(source) == 2 else large[[2, 3]])
    if of_files:
        assert images.take([2]).source.paths == (given[2],)


@pytest.mark.parametrize(
    ("size", "shape"),
    [((4000, 3000), (64, 85, 1)), ((96, 96), (64, 64, 1)), ((100, 64), (64, 100, 1)), ((63, 500), (500, 63, 1))],
)
def test_large_pictures_are_reduced_unless_a_size_is_asked_for(tmp_path, size, shape):
    Image.new("L", size, 70).save(tmp_path / "a.jpg")
    images = load_images(tmp_path)
    assert images.shape == shape
    assert (images.read([0]) == 70).all()
    assert load_images(tmp_path, size=(70, 90), channels=3).shape == (70, 90, 3)


def test_a_mixed_folder_is_read_and_what_cannot_be_is_listed(tmp_path):
    paths = save_pictures(tmp_path)
    Image.new("L", (100, 40)).save(tmp_path / "wide.jpg")
    (tmp_path / "a-broken.png").write_bytes(paths[0].read_bytes()[:100])
    (tmp_path / "a-empty.png").write_bytes(b"")
    (tmp_path / "a-drawing.svg").write_text("<svg/>")
    images = load_images(tmp_path)
    assert (len(images), images.shape, images.labels) == (7, (8, 10, 3), None)  # the most common size; in colour
    assert np.array_equal(images.read(range(6)), PIXELS)
    reasons = {path.name: reason for path, reason in images.skipped}
    assert set(reasons) == {"a-broken.png", "a-empty.png", "a-drawing.svg"}
    assert reasons["a-empty.png"] == "the file is empty"


def test_files_are_decoded_on_demand_and_one_that_vanishes_is_named(tmp_path):
    paths = save_pictures(tmp_path)
    source = FilesSource(paths, (8, 10, 3))
    assert np.array_equal(source.read([4, 1, 4]), PIXELS[[4, 1, 4]])
    paths[4].unlink()
    with pytest.raises(OSError, match=r"4\.png could be read at the start"):
        source.read([4])


def test_a_path_that_is_no_picture_is_an_error_for_rows_must_stay_in_step(tmp_path):
    paths = save_pictures(tmp_path)
    paths[2].write_bytes(b"no picture")
    for given in (paths, [*paths[:2], tmp_path / "gone.png"]):
        with pytest.raises(ValueError, match=r"`data` must be paths of readable pictures .*; .*(2|gone)\.png: "):
            load_images(given)


def test_sub_folders_are_classes(tmp_path):
    for i, name in enumerate(["zebra", "ant", "cat/deep/deeper", "damaged"]):
        save_pictures(tmp_path / name, PIXELS[[i]])
    (tmp_path / "damaged" / "0.png").write_bytes(b"broken")
    images = load_images(tmp_path)
    assert images.class_names == ("ant", "cat", "zebra")
    assert (images.labels.tolist(), images.labels.dtype) == ([0, 1, 2], np.int64)
    assert np.array_equal(images.read([2])[0], PIXELS[0])
    taken = images.take([2, 0])
    assert (taken.labels.tolist(), taken.class_names) == ([2, 0], images.class_names)
    save_pictures(tmp_path / "train")  # without a folder of tests
    assert load_images(tmp_path).class_names == ("ant", "cat", "train", "zebra")
    save_pictures(tmp_path, PIXELS[[5]])  # a picture outside of the folders
    assert load_images(tmp_path).labels is None


@pytest.mark.parametrize("test_folder", ["test", "val"])
def test_train_and_test_folders_are_splits(tmp_path, test_folder):
    for name, n in (("train", 5), (test_folder, 3)):
        save_pictures(tmp_path / name / "a", PIXELS[:n])
        save_pictures(tmp_path / name / "b", PIXELS[:1])
    assert len(load_images(tmp_path)) == 6
    test = load_images(tmp_path, split="test")
    assert (len(test), test.class_names) == (4, ("a", "b"))
    with pytest.raises(ValueError, match="split 'unlabeled'"):
        load_images(tmp_path, split="unlabeled")


def test_a_folder_without_a_readable_picture_says_what_it_found(tmp_path):
    for i in range(7):
        (tmp_path / f"{i}.png").write_bytes(b"")
    with pytest.raises(ValueError, match=r"0\.png: the file is empty(.|\n)*and 2 more"):
        load_images(tmp_path)


def test_a_name_gives_a_split_and_wins_over_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save_pictures(tmp_path / "digits")
    test = load_images("digits", split="test")
    assert (len(test), test.shape, test.class_names) == (360, (8, 8, 1), tuple("0123456789"))
    again = load_images(test, size=10)
    assert (again.split, again.shape) == ("test", (10, 10, 1))
    assert again.labels is test.labels
    assert len(load_images("./digits")) == len(load_images(Path("digits"))) == 6


def test_arrays_in_files_are_images_with_labels(tmp_path):
    np.save(tmp_path / "a.npy", PIXELS)
    np.savez(tmp_path / "b.npz", images=PIXELS, labels=np.arange(6, dtype=np.uint8))
    np.savez_compressed(tmp_path / "c.npz", x_train=PIXELS, y_train=np.arange(6)[:, None], x_test=PIXELS[:2])
    for name in ("a.npy", "b.npz", "c.npz"):
        assert holds_images(tmp_path / name)
        images = load_images(tmp_path / name)
        assert np.array_equal(images.read(range(6)), PIXELS)
        assert images.labels is None if name == "a.npy" else np.array_equal(images.labels, np.arange(6))
    assert isinstance(open_array(tmp_path / "a.npy"), np.memmap)
    assert len(load_images(tmp_path / "c.npz", split="test")) == 2
    with pytest.raises(ValueError, match="split 'test'"):
        load_images(tmp_path / "b.npz", split="test")
    np.savez(tmp_path / "b.npz", images=PIXELS, labels=np.arange(5))
    with pytest.raises(ValueError, match=r"labels in .*b\.npz must be 6 integers"):
        load_images(tmp_path / "b.npz")
    np.savez(tmp_path / "table.npz", x=np.ones((5, 3)))
    assert not holds_images(tmp_path / "table.npz")


def test_arrays_with_pickles_or_damage_are_refused(tmp_path):
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"descr": "|u1", "fortran_order": False, "shape": (2**40, 32, 32)})
    np.save(tmp_path / "a.npy", np.array([print], object), allow_pickle=True)
    np.savez(tmp_path / "a.npz", images=np.array([print], object))
    for name in ("a.npy", "a.npz"):
        with pytest.raises(ValueError, match="pickle"):
            load_images(tmp_path / name)
    (tmp_path / "a.npy").write_bytes(buffer.getvalue() + bytes(100))
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("images.npy", buffer.getvalue() + bytes(100))
    for name in ("a.npy", "a.npz"):
        with pytest.raises(ValueError, match="not a valid"):
            load_images(tmp_path / name)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["a.npy", "a.npz"])
def test_damage_anywhere_raises_nothing_but_value_errors(tmp_path, name):
    np.save(tmp_path / "a.npy", PIXELS[:2])
    np.savez_compressed(tmp_path / "a.npz", images=PIXELS[:2])
    whole, rng = (tmp_path / name).read_bytes(), random.Random(0)
    for _ in range(400):
        damaged = bytearray(whole)
        damaged[rng.randrange(min(200, len(whole)))] = rng.randrange(256)
        (tmp_path / name).write_bytes(damaged[: len(whole) if rng.random() < 0.8 else rng.randrange(len(whole))])
        with suppress(ValueError):
            for key in array_shapes(tmp_path / name):
                open_array(tmp_path / name, key)


@pytest.mark.parametrize(
    ("data", "options", "error", "message"),
    [
        ("cifra10", {}, FileNotFoundError, "`data`"),
        (__file__, {}, ValueError, "`data`"),
        (["a.png", PIXELS[1]], {}, TypeError, "`data`"),
        ([], {}, TypeError, "`images`"),
        (PIXELS, {"size": 0}, ValueError, "`size`"),
        (PIXELS, {"size": (3, 4, 5)}, ValueError, "`size`"),
        (PIXELS, {"channels": 4}, ValueError, "`channels`"),
        (PIXELS, {"split": "dev"}, ValueError, "`split`"),
        (PIXELS, {"split": "test"}, ValueError, "`split`"),
        ("digits", {"split": "unlabeled"}, ValueError, "`split`"),
    ],
)
def test_errors_name_the_parameter(data, options, error, message):
    with pytest.raises(error, match=message):
        load_images(data, **options)
