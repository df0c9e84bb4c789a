"""Downloads: https only, limits on size and time, complete files or none, and a progress bar that appears late."""

from __future__ import annotations

import io
import threading
import urllib.request
from collections.abc import Iterator
from email.message import Message
from pathlib import Path
from urllib.error import HTTPError, URLError

import pytest
from rich.progress import Progress

from neuralbayes.data import progress
from neuralbayes.data.download import _HttpsOnly, download

URL = "https://example.invalid/file.gz"


class Answer(io.BytesIO):
    """A response of an opener, which may claim any length."""

    def __init__(self, content: bytes, length: str | None = None) -> None:
        super().__init__(content)
        self.headers = Message()
        if length is not None:
            self.headers["Content-Length"] = length


@pytest.fixture
def answer_with(monkeypatch: pytest.MonkeyPatch) -> Iterator[object]:
    def install(result: Answer | Exception) -> None:
        class Opener:
            def open(self, request: object, timeout: float) -> Answer:
                if isinstance(result, Exception):
                    raise result
                return result

        monkeypatch.setattr(urllib.request, "build_opener", lambda *handlers: Opener())

    return install  # type: ignore[return-value]


@pytest.mark.parametrize("length", [None, "5", "nonsense"])
def test_a_file_is_saved(tmp_path: Path, answer_with, length: str | None) -> None:
    answer_with(Answer(b"hello", length))
    download(URL, tmp_path / "a", limit=5)
    assert (tmp_path / "a").read_bytes() == b"hello"


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (Answer(b"hello!"), "more than the 5 bytes"),
        (Answer(b"hell", "5"), "broke off after 4 of 5"),
        (URLError(OSError(-2, "Name or service not known")), r"no answer \(Name or service not known\)"),
        (URLError(TimeoutError("timed out")), r"no answer \(timed out\)"),
        (HTTPError(URL, 404, "Not Found", Message(), None), "it answers 404 Not Found"),
        (TimeoutError("timed out"), "timed out"),
    ],
)
def test_a_failure_is_told_and_leaves_nothing(tmp_path: Path, answer_with, result, reason: str) -> None:
    answer_with(result)
    with pytest.raises(OSError, match=reason):
        download(URL, tmp_path / "a", limit=5)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("url", ["http://example.invalid/a", "file:///etc/passwd", "ftp://example.invalid/a"])
def test_only_https_is_spoken(tmp_path: Path, url: str) -> None:
    with pytest.raises(ValueError, match="`url` must be an https address"):
        download(url, tmp_path / "a", limit=5)


def test_a_redirect_away_from_https_is_refused() -> None:
    request = urllib.request.Request(URL)
    handler = _HttpsOnly()
    with pytest.raises(URLError, match="not https"):
        handler.redirect_request(request, io.BytesIO(), 302, "Found", Message(), "http://example.invalid/a")
    moved = handler.redirect_request(request, io.BytesIO(), 302, "Found", Message(), "https://example.invalid/b")
    assert moved is not None
    assert moved.full_url == "https://example.invalid/b"


def test_short_work_draws_no_bar(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.late_bar("reading", 10) as advance:
        advance(10)
    with progress.late_bar("reading", 10, enabled=False) as advance:
        advance(10)
    captured = capsys.readouterr()
    assert captured.out + captured.err == ""


@pytest.mark.parametrize(("total", "unit"), [(10, "items"), (2_000_000, "bytes"), (None, "items")])
def test_long_work_draws_a_bar_on_standard_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, total: int | None, unit: str
) -> None:
    drawn = threading.Event()
    start = Progress.start

    def start_and_tell(self: Progress) -> None:
        start(self)
        drawn.set()

    monkeypatch.setattr(Progress, "start", start_and_tell)
    with progress.late_bar("reading", total, unit=unit, delay=0.0) as advance:
        assert drawn.wait(30)
        advance(total or 1)
    captured = capsys.readouterr()
    assert "reading" in captured.err
    assert captured.out == ""
