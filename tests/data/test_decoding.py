"""Memory of pictures during decoding."""

import threading
from pathlib import Path

import pytest
from PIL import Image

from neuralbayes.data.decoding import Budget, decoding_bytes


def test_a_progressive_jpeg_takes_room_for_all_its_scans(tmp_path: Path) -> None:
    picture = Image.new("RGB", (400, 300))
    picture.save(tmp_path / "plain.jpg")
    picture.save(tmp_path / "progressive.jpg", progressive=True)
    found = {}
    for name in ("plain", "progressive"):
        with Image.open(tmp_path / f"{name}.jpg") as opened:
            opened.draft(None, (100, 75))
            found[name] = decoding_bytes(opened, 400 * 300)
    assert found == {"plain": 8 * 100 * 75, "progressive": 8 * 100 * 75 + 6 * 400 * 300}


@pytest.mark.parametrize(("suffix", "per_pixel"), [(".png", 8), (".webp", 16), (".tif", 16)])
def test_formats_that_unpack_twice_count_twice(tmp_path: Path, suffix: str, per_pixel: int) -> None:
    path = tmp_path / f"a{suffix}"
    Image.new("RGB", (40, 30)).save(path)
    with Image.open(path) as opened:
        assert decoding_bytes(opened, 1200) == per_pixel * 1200


def test_a_thread_waits_until_there_is_room() -> None:
    budget, got_it = Budget(100), threading.Event()

    def want() -> None:
        with budget.take(50):
            got_it.set()

    with budget.take(60):
        other = threading.Thread(target=want)
        other.start()
        assert not got_it.wait(0.05)
    assert got_it.wait(10)
    other.join()


def test_more_than_there_is_waits_for_all_others_only() -> None:
    budget = Budget(100)
    with pytest.raises(KeyError), budget.take(10**9):
        raise KeyError
    with budget.take(100):  # released after the error
        pass
