"""The cache of decoded arrays: complete or absent, verified, and rebuilt after damage."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from image_files import N_TRAIN, grey_arrays, small_entry, write_idx_files

from neuralbayes import datasets
from neuralbayes.data import loading
from neuralbayes.data.inventory import check, inventory
from neuralbayes.data.loading import decoded_folder, load_entry
from neuralbayes.data.verify import Part, sha256

MNIST = small_entry("mnist")


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    write_idx_files(tmp_path)
    load_entry(MNIST, tmp_path, offline=True)
    for path in tmp_path.glob("*ubyte"):
        path.unlink()  # now everything comes from the cache
    return tmp_path


def test_the_second_load_needs_no_files(filled: Path) -> None:
    data = load_entry(MNIST, filled, offline=True)
    np.testing.assert_array_equal(data.train.images[..., 0], grey_arrays()["train_images"])
    assert data.source == str(filled)
    assert data.train.images.flags.writeable
    mapped = np.load(decoded_folder(MNIST, filled) / "train_images.npy", mmap_mode="r", allow_pickle=False)
    np.testing.assert_array_equal(mapped, data.train.images)


def test_a_crash_while_the_cache_is_written_leaves_no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_idx_files(tmp_path)
    save, calls = np.save, []

    def crash_at_the_third(file: object, array: np.ndarray, **options: object) -> None:
        calls.append(array)
        if len(calls) == 3:
            file.write(b"half a file")  # type: ignore[attr-defined]
            raise KeyboardInterrupt
        save(file, array, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(np, "save", crash_at_the_third)
    with pytest.raises(KeyboardInterrupt):
        load_entry(MNIST, tmp_path, offline=True)
    monkeypatch.undo()
    left = sorted(path.name for path in decoded_folder(MNIST, tmp_path).iterdir())
    assert left == ["train_images.npy", "train_labels.npy"]
    assert not inventory(tmp_path)[1].present
    assert len(load_entry(MNIST, tmp_path, offline=True).train) == N_TRAIN
    assert (decoded_folder(MNIST, tmp_path) / "manifest.json").is_file()


@pytest.mark.parametrize("damage", ["cut", "missing", "other"])
def test_a_damaged_cache_is_made_again(tmp_path: Path, damage: str) -> None:
    write_idx_files(tmp_path)
    load_entry(MNIST, tmp_path, offline=True)
    path = decoded_folder(MNIST, tmp_path) / "test_images.npy"
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:-100])
    elif damage == "missing":
        path.unlink()
    else:
        np.save(path, np.zeros((3, 3)))
    with pytest.warns(UserWarning, match="the cache of mnist is damaged"):
        data = load_entry(MNIST, tmp_path, offline=True)
    np.testing.assert_array_equal(data.test.images[..., 0], grey_arrays()["test_images"])
    load_entry(MNIST, tmp_path, offline=True)  # without a warning


@pytest.mark.parametrize("content", ["", "[]", '{"format": 99}', '{"format": 1, "source": 1, "sha256": {}}', "{"])
def test_a_manifest_that_is_not_understood_counts_as_none(filled: Path, content: str) -> None:
    (decoded_folder(MNIST, filled) / "manifest.json").write_text(content)
    with pytest.raises(FileNotFoundError):
        load_entry(MNIST, filled, offline=True)


def test_a_cache_of_other_data_than_the_catalog_knows_is_passed_over(filled: Path) -> None:
    other = replace(MNIST, parts={**MNIST.parts, "train": Part(N_TRAIN, images_sha256="0" * 64)})
    with pytest.raises(FileNotFoundError):
        load_entry(other, filled, offline=True)


def test_data_that_cannot_be_stored_are_still_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    write_idx_files(tmp_path)
    monkeypatch.setattr(loading, "write_cache", full)
    with pytest.warns(UserWarning, match="cannot be stored in .*No space left"):
        data = load_entry(MNIST, tmp_path, offline=True)
    assert len(data.train) == N_TRAIN


def test_fresh_passes_over_the_cache(tmp_path: Path) -> None:
    write_idx_files(tmp_path, seed=1)
    load_entry(MNIST, tmp_path, offline=True)
    arrays = write_idx_files(tmp_path, seed=2)
    data = load_entry(MNIST, tmp_path, offline=True, fresh=True)
    np.testing.assert_array_equal(data.train.images[..., 0], arrays["train_images"])
    np.testing.assert_array_equal(load_entry(MNIST, tmp_path).train.images, data.train.images)


# the existing files


def test_the_inventory_knows_what_is_there_and_check_reads_it_again(tmp_path: Path) -> None:
    assert not any(status.present for status in inventory(tmp_path))
    with pytest.raises(FileNotFoundError, match="digits is not in"):
        check("digits", tmp_path)
    datasets.load("digits", root=tmp_path)
    status = next(status for status in inventory(tmp_path) if status.entry.name == "digits")
    assert status.present
    assert status.source == "scikit-learn"
    assert status.n_bytes > 100_000
    results = check("digits", tmp_path)
    assert len(results) == 4
    assert all(result.ok and result.published for result in results)

    path = status.folder / "train_labels.npy"
    labels = np.load(path)
    labels[0] += 1
    np.save(path, labels)
    assert [result.array for result in check("digits", tmp_path) if not result.ok] == ["train_labels"]
    shutil.rmtree(status.folder)
    assert not any(status.present for status in inventory(tmp_path))


def test_data_without_a_published_digest_are_checked_against_what_was_fetched(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("neuralbayes.data.inventory.find_entry", lambda name: MNIST)
    assert all(result.ok and not result.published for result in check("mnist", filled))


def test_sha256_depends_on_the_values_and_not_on_how_they_lie_in_memory() -> None:
    values = np.arange(12, dtype=np.int64).reshape(3, 4)
    assert sha256(values) == sha256(values.astype(">i8")) == sha256(np.asfortranarray(values))
    assert sha256(values) != sha256(values[::-1])
