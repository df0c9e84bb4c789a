"""One function for all kinds of images: a name, a folder, a file of arrays."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from neuralbayes.data.images import load_images
from neuralbayes.data.sources import labeled_splits

IMAGES = np.random.default_rng(0).integers(0, 256, (6, 8, 8, 3), np.uint8)


def save_pictures(folder: Path, images: np.ndarray = IMAGES) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for i, image in enumerate(images):
        Image.fromarray(image).save(folder / f"{i}.png")


def test_a_name_gives_a_split_of_that_data_set(tmp_path: Path) -> None:
    train, test = (load_images("digits", split=split, root=tmp_path) for split in ("train", "test"))
    assert (len(train), len(test)) == (1_437, 360)
    assert train.source.shape == (8, 8, 1)
    assert test.class_names == tuple("0123456789")
    assert test.labels is not None
    with pytest.raises(ValueError, match="`split` must be train or test for digits"):
        load_images("digits", split="unlabeled", root=tmp_path)


def test_a_name_wins_over_a_folder_unless_it_is_written_as_a_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    save_pictures(tmp_path / "digits")
    assert len(load_images("digits", root=tmp_path)) == 1_437
    assert len(load_images("./digits")) == 6
    assert len(load_images(Path("digits"))) == 6


def test_a_folder_gives_its_pictures_and_what_it_skipped(tmp_path: Path) -> None:
    save_pictures(tmp_path / "a")
    save_pictures(tmp_path / "b", IMAGES[:2])
    (tmp_path / "b" / "9.png").write_bytes(b"broken")
    images = load_images(str(tmp_path), size=4, channels=1)
    assert images.source.shape == (4, 4, 1)
    assert images.class_names == ("a", "b")
    np.testing.assert_array_equal(images.labels, [0] * 6 + [1] * 2)
    assert [path.name for path, _ in images.skipped] == ["9.png"]
    with pytest.raises(ValueError, match="no split 'test'"):
        load_images(tmp_path, split="test")


@pytest.mark.parametrize("test_folder", ["test", "val"])
def test_train_and_test_folders_are_splits(tmp_path: Path, test_folder: str) -> None:
    for name, n in (("train", 5), (test_folder, 3)):
        save_pictures(tmp_path / name / "a", IMAGES[:n])
        save_pictures(tmp_path / name / "b", IMAGES[:1])
    assert len(load_images(tmp_path)) == 6
    test = load_images(tmp_path, split="test")
    assert len(test) == 4
    assert test.class_names == ("a", "b")


def test_a_class_called_train_is_a_class(tmp_path: Path) -> None:
    save_pictures(tmp_path / "train")
    save_pictures(tmp_path / "plane")
    assert load_images(tmp_path).class_names == ("plane", "train")


def test_npy_and_npz_are_mapped_sources(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", IMAGES)
    np.savez(tmp_path / "b.npz", images=IMAGES, labels=np.arange(6, dtype=np.uint8))
    np.savez(tmp_path / "c.npz", x_train=IMAGES, y_train=np.arange(6)[:, None], x_test=IMAGES[:2], y_test=[1, 0])
    for name in ("a.npy", "b.npz", "c.npz"):
        images = load_images(tmp_path / name)
        np.testing.assert_array_equal(images.source.read(range(6)), IMAGES)
        if images.labels is not None:
            assert images.labels.dtype == np.int64
            np.testing.assert_array_equal(images.labels, np.arange(6))
    test = load_images(tmp_path / "c.npz", split="test")
    assert len(test) == 2
    np.testing.assert_array_equal(test.labels, [1, 0])
    for name in ("a.npy", "b.npz"):
        with pytest.raises(ValueError, match=r"no split 'test'|must hold one of the arrays test_images"):
            load_images(tmp_path / name, split="test")


def test_arrays_are_fitted_when_asked_for(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", IMAGES)
    assert load_images(tmp_path / "a.npy", size=8, channels=3).source.read([0]).shape == (1, 8, 8, 3)
    assert load_images(tmp_path / "a.npy", size=(4, 6), channels=1).source.read([0]).shape == (1, 4, 6, 1)


def test_labels_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", images=IMAGES, labels=np.arange(5))
    with pytest.raises(
        ValueError, match=r"labels in .*a\.npz must be integers of shape \(6,\), got int64 of shape \(5,\)"
    ):
        load_images(tmp_path / "a.npz")


def test_errors_say_what_is_wanted(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"must be a data set \(digits, mnist.*which does not exist"):
        load_images("cifra10")
    (tmp_path / "a.txt").write_text("x")
    with pytest.raises(ValueError, match=r"must be a folder, a \.npy or a \.npz"):
        load_images(tmp_path / "a.txt")
    with pytest.raises(ValueError, match="`split` must be one of train, test, unlabeled, got 'dev'"):
        load_images("digits", split="dev")


def test_parts_and_labels_are_known_before_anything_is_decoded(tmp_path: Path) -> None:
    assert labeled_splits("stl10") == {"train": True, "test": True, "unlabeled": False}
    for name in ("split/train/a", "split/train/b", "split/test/a", "classes/a", "classes/b/deep", "plain"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "x.png").write_bytes(b"nobody looks at it")
    assert labeled_splits(tmp_path / "split") == {"train": True, "test": False}
    assert labeled_splits(tmp_path / "classes") == {"train": True}
    assert labeled_splits(tmp_path / "plain") == {"train": False}
    np.savez(tmp_path / "a.npz", x_train=np.zeros(3), y_train=np.zeros(3), X_test=np.zeros(3))
    assert labeled_splits(tmp_path / "a.npz") == {"train": True, "test": False}
    np.save(tmp_path / "a.npy", np.zeros(3))
    assert labeled_splits(tmp_path / "a.npy") == {"train": False}
    assert labeled_splits(tmp_path / "nowhere.npz") == {}
