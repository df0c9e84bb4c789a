"""Free memory is returned to the system."""

import sys
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from neuralbayes.system import allocator


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    allocator._trim.cache_clear()
    yield
    allocator._trim.cache_clear()


def test_the_c_library_is_asked_to_keep_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(sys, "platform", "linux")
    library = SimpleNamespace(malloc_trim=lambda kept: asked.append(kept) or 1)
    monkeypatch.setattr(allocator.ctypes, "CDLL", lambda name: library)
    assert allocator.return_free_memory()
    assert asked == [0]


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_a_c_library_without_it_is_left_alone(monkeypatch: pytest.MonkeyPatch, platform: str) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(allocator.ctypes, "CDLL", lambda name: SimpleNamespace())
    assert not allocator.return_free_memory()
