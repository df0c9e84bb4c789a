"""Untrusted archives: hostile ones are refused, damaged ones named, and nothing is written to the disk."""

from __future__ import annotations

import contextlib
import gzip
import io
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from image_files import tar_bytes

from neuralbayes.data.archives import LimitedStream, open_file, read_exactly, tar_members
from neuralbayes.data.layout import Layout

EXPECTED = {"a.bin": 100, "b.bin": 100}
LAYOUT = Layout(EXPECTED, lambda name, stream: stream.read(), lambda parts: parts)


def read(data: bytes, prefix: str = "d/") -> dict[str, bytes]:
    return {name: member.read() for name, member in tar_members(io.BytesIO(data), prefix, EXPECTED)}


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type = kind
    info.linkname = link
    return info


def tar_with(info: tarfile.TarInfo, data: bytes = b"") -> bytes:
    return tar_bytes([(member("d/a.bin"), b"first"), (info, data)], packed=False)


def test_expected_members_are_read_and_others_passed_over() -> None:
    data = tar_bytes([(member("d", tarfile.DIRTYPE), b""), (member("d/readme.html"), b"x" * 700)], packed=False)
    assert read(data) == {}
    data = tar_bytes({"d/readme.html": b"x" * 700, "d/b.bin": b"second", "d/a.bin": b"first"}, packed=False)
    assert read(data) == {"b.bin": b"second", "a.bin": b"first"}
    assert read(data, prefix="other/") == {}


def test_a_leading_dot_and_packed_members_are_understood() -> None:
    data = tar_bytes({"./d/a.bin.gz": gzip.compress(b"first")}, packed=False)
    assert read(data) == {"a.bin": b"first"}


def test_a_member_need_not_be_read_before_the_next() -> None:
    data = tar_bytes({"d/a.bin": b"x" * 90, "d/b.bin": b"second"}, packed=False)
    members = tar_members(io.BytesIO(data), "d/", EXPECTED)
    next(members)
    name, stream = next(members)
    assert (name, stream.read()) == ("b.bin", b"second")


@pytest.mark.parametrize("name", ["../a.bin", "d/../../a.bin", "/etc/passwd", "/d/a.bin", "d\\..\\a.bin"])
def test_a_name_that_leaves_the_archive_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="points out of the archive"):
        read(tar_with(member(name), b"evil"))


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE])
def test_links_and_devices_are_refused(kind: bytes) -> None:
    with pytest.raises(ValueError, match=r"'d/b\.bin' is a link, a device"):
        read(tar_with(member("d/b.bin", kind, "/etc/passwd")))


def test_a_huge_claimed_size_is_refused_before_anything_is_read() -> None:
    info = member("d/b.bin")
    info.size = 2**40
    header = info.tobuf(tarfile.GNU_FORMAT)
    with pytest.raises(ValueError, match="claims 1099511627776 bytes, more than the 100"):
        read(header + bytes(512))
    info.name = "d/readme.html"
    with pytest.raises(ValueError, match="claims"):
        read(info.tobuf(tarfile.GNU_FORMAT) + bytes(512))


def test_a_packed_member_that_unpacks_to_more_is_refused() -> None:
    bomb = gzip.compress(bytes(10_000))
    assert len(bomb) < 100
    with pytest.raises(ValueError, match="more than the 100 bytes"):
        read(tar_bytes({"d/a.bin.gz": bomb}, packed=False))


def test_a_packed_archive_that_unpacks_to_more_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("neuralbayes.data.layout.MAX_OTHER_BYTES", 5_000)
    path = tmp_path / "bomb.tar.gz"
    path.write_bytes(gzip.compress(tar_bytes({f"d/readme{i}": bytes(1_000) for i in range(20)}, packed=False)))
    with pytest.raises(ValueError, match=r"bomb\.tar\.gz: .*more than the 5200 bytes"):
        LAYOUT.from_tar(path, "d/", lambda amount: None)


def test_a_header_that_renames_the_next_member_is_refused() -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        info = member("d/" + "é" * 10)
        archive.addfile(info, io.BytesIO(b""))
    with pytest.raises(ValueError, match="renames or resizes"):
        read(buffer.getvalue())


def test_a_huge_extended_header_is_refused() -> None:
    info = member("pax", tarfile.XHDTYPE)
    info.size = 2**33
    with pytest.raises(ValueError, match="an extended header claims"):
        read(info.tobuf(tarfile.GNU_FORMAT))


def test_harmless_extended_headers_are_passed_over() -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        info = member("d/a.bin")
        info.mtime = 1.5  # a fraction of a second needs an extended header
        info.size = 5
        archive.addfile(info, io.BytesIO(b"first"))
    assert read(buffer.getvalue()) == {"a.bin": b"first"}


def test_too_many_members_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("neuralbayes.data.archives.MAX_MEMBERS", 5)
    with pytest.raises(ValueError, match="more than 5 members"):
        read(tar_bytes({f"d/{i}": b"" for i in range(6)}, packed=False))


@pytest.mark.parametrize("keep", [100, 512 + 3, 1024 + 100])
def test_an_archive_cut_short_is_refused(keep: int) -> None:
    data = tar_bytes({"d/a.bin": b"first", "d/b.bin": b"second"}, packed=False)
    with pytest.raises(ValueError, match=r"damaged|cut short"):
        read(data[:keep])


def test_damaged_gzip_becomes_an_error_that_names_the_file(tmp_path: Path) -> None:
    data = tar_bytes({"d/a.bin": b"first" * 10, "d/b.bin": b"second"})
    for name, content in {"cut.tgz": data[:-20], "noise.tgz": b"no gzip at all", "flip.tgz": _flipped(data)}.items():
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(ValueError, match=name):
            LAYOUT.from_tar(path, "d/", lambda amount: None)


def _flipped(data: bytes) -> bytes:
    """The stored checksum with one bit changed."""
    return data[:-8] + bytes([data[-8] ^ 1]) + data[-7:]


def test_nothing_is_written_beside_an_archive(tmp_path: Path) -> None:
    path = tmp_path / "data.tgz"
    path.write_bytes(tar_bytes({"d/a.bin": b"first", "d/b.bin": b"second"}))
    counted: list[int] = []
    assert LAYOUT.from_tar(path, "d/", counted.append) == {"a.bin": b"first", "b.bin": b"second"}
    assert sum(counted) == path.stat().st_size
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_larger_than_its_limit_is_refused(tmp_path: Path) -> None:
    for name, content in {"plain": bytes(11), "packed.gz": gzip.compress(bytes(11))}.items():
        (tmp_path / name).write_bytes(content)
        with open_file(tmp_path / name, 11) as stream:
            assert stream.read() == bytes(11)
        with open_file(tmp_path / name, 10) as stream, pytest.raises(ValueError, match="more than the 10 bytes"):
            stream.read()


def test_a_limited_stream_that_is_not_strict_just_ends() -> None:
    inner = io.BytesIO(b"abcdef")
    assert LimitedStream(inner, 4).read() == b"abcd"
    assert inner.read() == b"ef"


def test_reading_exactly_says_how_much_there_was() -> None:
    with pytest.raises(ValueError, match="after 3 of 10 bytes"):
        read_exactly(io.BytesIO(b"abc"), 10)


@given(st.binary(max_size=600), st.integers(0, 2_000), st.integers(0, 255))
def test_damage_anywhere_raises_nothing_but_value_errors(noise: bytes, position: int, value: int) -> None:
    data = bytearray(tar_bytes({"d/a.bin": b"first" * 15, "d/b.bin": b"second"}, packed=False))
    data[position % len(data)] = value
    for content in (bytes(data), noise):
        with contextlib.suppress(ValueError):
            read(content)
