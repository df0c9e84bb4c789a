"""Pictures sorted by cluster: every file once, complete or absent, nothing replaced."""

import os
from pathlib import Path

import numpy as np
import pytest

from neuralbayes.data import sorted_folders
from neuralbayes.data.sorted_folders import sort_files

NAMES = ["a.jpg", "b.jpg", "summer/a.jpg", "summer/c.jpg"]
LABELS = np.array([0, 11, 0, 11])


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    for name in NAMES:
        path = tmp_path / "photos" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return tmp_path / "photos"


def there(folder: Path) -> dict[str, str]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): path.read_text() for path in files}


@pytest.mark.parametrize("copy", [False, True])
def test_each_file_is_in_the_folder_of_its_cluster(photos: Path, tmp_path: Path, copy: bool) -> None:
    paths = [photos / name for name in NAMES]
    folders = sort_files(paths, LABELS, photos, tmp_path / "out" / "sorted", copy=copy)
    assert [folder.name for folder in folders] == ["cluster-00", "cluster-11"]
    assert there(tmp_path / "out" / "sorted") == {
        "cluster-00/a.jpg": "a.jpg",
        "cluster-00/summer/a.jpg": "summer/a.jpg",
        "cluster-11/b.jpg": "b.jpg",
        "cluster-11/summer/c.jpg": "summer/c.jpg",
    }
    assert (folders[0] / "a.jpg").is_symlink() != copy
    assert os.stat(folders[0].parent).st_mode & 0o777 == os.stat(photos).st_mode & 0o777


def test_links_hold_from_anywhere(photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    sort_files([Path("photos/a.jpg")], np.array([0]), Path("photos"), Path("sorted"))
    monkeypatch.chdir(photos)
    assert (tmp_path / "sorted" / "cluster-0" / "a.jpg").read_text() == "a.jpg"


@pytest.mark.parametrize("kind", ["file", "folder", "broken link"])
def test_nothing_that_is_there_is_replaced(photos: Path, tmp_path: Path, kind: str) -> None:
    target = tmp_path / "sorted"
    if kind == "file":
        target.write_text("mine")
    elif kind == "folder":
        target.mkdir()
    else:
        target.symlink_to(tmp_path / "nowhere")
    with pytest.raises(FileExistsError, match="exists already"):
        sort_files([photos / "a.jpg"], np.array([0]), photos, target)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["photos", "sorted"]


def test_pictures_are_not_sorted_into_their_own_folder(photos: Path) -> None:
    with pytest.raises(ValueError, match="choose a folder outside"):
        sort_files([photos / "a.jpg"], np.array([0]), photos, photos / "sorted")


def test_what_fails_half_way_leaves_nothing(photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def copy2(source: Path, place: Path) -> None:
        if source.name == "b.jpg":
            raise OSError(28, "No space left on device")
        place.write_text("half")

    monkeypatch.setattr(sorted_folders.shutil, "copy2", copy2)
    with pytest.raises(OSError, match="No space left"):
        sort_files([photos / name for name in NAMES], LABELS, photos, tmp_path / "sorted", copy=True)
    assert [path.name for path in tmp_path.iterdir()] == ["photos"]


def test_a_folder_that_appears_meanwhile_stays(photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def copy2(source: Path, place: Path) -> None:
        (tmp_path / "sorted").mkdir()

    monkeypatch.setattr(sorted_folders.shutil, "copy2", copy2)
    with pytest.raises(FileExistsError):
        sort_files([photos / "a.jpg"], np.array([0]), photos, tmp_path / "sorted", copy=True)
    assert list((tmp_path / "sorted").iterdir()) == []
