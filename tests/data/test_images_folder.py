"""Folders of pictures: all common modes and sizes, a list of broken files, no links and no bombs."""

from __future__ import annotations

import os
import struct
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from neuralbayes.data.decoding import Budget
from neuralbayes.data.folder import FolderSource
from neuralbayes.data.pictures import PictureError, fit_picture, picture_header, read_picture
from neuralbayes.data.spool import Spool

ORANGE = (250, 130, 10)


def picture(mode: str = "RGB", size: tuple[int, int] = (32, 32), seed: int = 0) -> Image.Image:
    pixels = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), np.uint8)
    return Image.fromarray(pixels).convert(mode)


def claim_png(width: int, height: int) -> bytes:
    """A PNG file of a few bytes whose header claims any size."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


@pytest.fixture
def mixed(tmp_path: Path) -> tuple[Path, dict[str, str]]:
    """Forty files, and the expected message for each that cannot be read."""
    folder = tmp_path / "mixed"
    folder.mkdir()
    for i in range(14):
        picture(seed=i).save(folder / f"a{i:02}.png")
    for i in range(8):
        picture(seed=i).save(folder / f"b{i}.jpg", quality=95)
    for i, mode in enumerate(["1", "L", "LA", "P", "RGBA"]):
        picture(mode, seed=i).save(folder / f"c-{mode}.png")
    picture("CMYK").save(folder / "d-cmyk.jpeg")
    picture("L").save(folder / "d-grey.JPG")
    Image.fromarray(np.arange(1024, dtype=np.uint16).reshape(32, 32) * 64).save(folder / "d-16bit.png")
    picture().save(folder / "d.bmp")
    picture().save(folder / "d.webp", lossless=True)
    frames = [picture("P", seed=i) for i in range(3)]
    frames[0].save(folder / "d.gif", save_all=True, append_images=frames[1:])
    picture(size=(100, 40)).save(folder / "e-wide.png")
    picture(size=(7, 50)).save(folder / "e-tall.jpg")
    bad = {
        "f-broken.png": "OSError",
        "f-empty.png": "the file is empty",
        "f-text.png": "it is not one of PNG, JPEG, BMP",
        "f-bomb.png": "pixels",
        "f-drawing.svg": ".svg files are not read",
    }
    whole = (folder / "a00.png").read_bytes()
    (folder / "f-broken.png").write_bytes(whole[: len(whole) // 2])
    (folder / "f-empty.png").write_bytes(b"")
    (folder / "f-text.png").write_text("I am a poem.\n" * 20)
    (folder / "f-bomb.png").write_bytes(claim_png(60_000, 60_000))
    (folder / "f-drawing.svg").write_text("<svg/>")
    picture().save(folder / "d.tiff")
    picture().save(folder / "d.avif", quality=100)
    (folder / "notes.txt").write_text("not mentioned")
    (folder / ".hidden.png").write_bytes(b"not mentioned")
    return folder, bad


@pytest.mark.parametrize("memory_limit", [2**30, 0])
def test_a_mixed_folder_is_read_and_what_cannot_be_is_listed(
    mixed: tuple[Path, dict[str, str]], memory_limit: int
) -> None:
    folder, bad = mixed
    source = FolderSource(folder, memory_limit=memory_limit)
    assert source.shape == (32, 32, 3)  # the most common size; in colour, because some pictures are
    assert len(source) == 37
    assert {path.name for path, _ in source.skipped} == set(bad)
    for path, reason in source.skipped:
        assert bad[path.name] in reason
    images = source.read(np.arange(len(source)))
    assert images.shape == (37, 32, 32, 3)
    assert images.dtype == np.uint8
    names = [path.name for path in source.paths]
    assert names == sorted(names)
    np.testing.assert_array_equal(images[names.index("a03.png")], np.asarray(picture(seed=3)))
    np.testing.assert_array_equal(images[names.index("d.webp")], np.asarray(picture()))
    np.testing.assert_array_equal(images[names.index("d.tiff")], np.asarray(picture()))
    first_frame = np.asarray(picture("P", seed=0).convert("RGB"))
    np.testing.assert_array_equal(images[names.index("d.gif")], first_frame)
    sixteen = images[names.index("d-16bit.png")]
    np.testing.assert_array_equal(sixteen[..., 0].ravel(), np.arange(1024) * 64 // 256)


def test_decoding_on_demand_equals_keeping_in_memory(mixed: tuple[Path, dict[str, str]]) -> None:
    kept, lazy = FolderSource(mixed[0]), FolderSource(mixed[0], memory_limit=0)
    order = np.random.default_rng(0).permutation(len(kept))
    np.testing.assert_array_equal(kept.read(order), lazy.read(order))
    assert lazy.read([]).shape == (0, 32, 32, 3)


def test_grey_pictures_make_a_grey_source_and_a_choice_can_be_forced(tmp_path: Path) -> None:
    picture("L").save(tmp_path / "a.png")
    assert FolderSource(tmp_path).shape == (32, 32, 1)
    assert FolderSource(tmp_path, channels=3, size=16).shape == (16, 16, 3)
    assert FolderSource(tmp_path, size=(8, 20)).read([0]).shape == (1, 8, 20, 1)


@pytest.mark.parametrize(
    ("size", "shape"),
    [((4000, 3000), (64, 85, 1)), ((96, 96), (64, 64, 1)), ((100, 64), (64, 100, 1)), ((63, 500), (500, 63, 1))],
)
def test_large_pictures_are_reduced_unless_a_size_is_asked_for(
    tmp_path: Path, size: tuple[int, int], shape: tuple[int, int, int]
) -> None:
    Image.new("L", size, 70).save(tmp_path / "a.jpg")
    source = FolderSource(tmp_path)
    assert source.shape == shape
    assert (source.read([0]) == 70).all()
    assert FolderSource(tmp_path, size=(70, 90)).shape == (70, 90, 1)


def test_the_shape_is_told_before_anything_is_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for i in range(3):
        picture(size=(400, 300)).save(tmp_path / f"{i}.png")
    decoded: list[Path] = []
    monkeypatch.setattr("neuralbayes.data.listed.read_picture", lambda path, *_: decoded.append(path))

    def refuse(n: int, shape: tuple[int, int, int]) -> None:
        raise ValueError(f"{n} of {shape}")

    with pytest.raises(ValueError, match=r"3 of \(200, 300, 3\)"):
        FolderSource(tmp_path, size=(200, 300), check=refuse)
    assert not decoded


def test_few_large_pictures_are_decoded_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for i in range(12):
        picture(size=(40, 40), seed=i).save(tmp_path / f"{i:02}.png")
    plain = FolderSource(tmp_path).read(np.arange(12))
    monkeypatch.setattr("neuralbayes.data.pictures.DECODING", Budget(8 * 40 * 40))  # room for one picture
    at_work, most = [], []

    def counted(image: Image.Image, *rest: object) -> np.ndarray:
        at_work.append(image)
        most.append(len(at_work))
        fitted = fit_picture(image, *rest)  # type: ignore[arg-type]
        at_work.remove(image)
        return fitted

    monkeypatch.setattr("neuralbayes.data.pictures.fit_picture", counted)
    np.testing.assert_array_equal(FolderSource(tmp_path, memory_limit=0).read(np.arange(12)), plain)
    assert max(most) == 1


def test_images_are_not_kept_where_there_is_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    picture().save(tmp_path / "a.png")
    monkeypatch.setattr("neuralbayes.data.folder.free_memory", lambda: 32 * 32 * 3)
    monkeypatch.setattr(Spool, "has_room", lambda n_bytes: False)
    source = FolderSource(tmp_path)
    (tmp_path / "a.png").unlink()
    with pytest.raises(OSError, match="could be read at the start"):
        source.read([0])


def test_other_sizes_are_averaged_and_cut_in_the_middle(tmp_path: Path) -> None:
    pixels = np.zeros((30, 90), np.uint8)
    pixels[:, 30:60] = 200  # the middle third
    pixels[::2, 30:60] += 20
    Image.fromarray(pixels).save(tmp_path / "a.png")
    image = FolderSource(tmp_path, size=3).read([0])[0, :, :, 0]
    assert image.shape == (3, 3)
    assert abs(int(image[1, 1]) - 210) <= 1  # nearest-neighbour scaling would give 200 or 220
    assert (image > 205).all()  # without the black sides


def test_transparent_parts_become_white(tmp_path: Path) -> None:
    pixels = np.zeros((2, 2, 4), np.uint8)
    pixels[0, 0] = (*ORANGE, 255)
    pixels[1, 1] = (*ORANGE, 0)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    image = read_picture(tmp_path / "a.png", (2, 2), 3)
    assert tuple(image[0, 0]) == ORANGE
    assert tuple(image[1, 1]) == (255, 255, 255)


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P"])
def test_transparent_pictures_are_the_same_in_strips_as_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    colours = picture("RGBA")
    colours.putalpha(picture("L", seed=1))
    if mode == "P":
        picture("P").save(tmp_path / "a.png", transparency=3)
    else:
        colours.convert(mode).save(tmp_path / "a.png")
    with Image.open(tmp_path / "a.png") as opened:
        whole = opened.convert("RGBA")
    expected = np.asarray(Image.alpha_composite(Image.new("RGBA", whole.size, "white"), whole).convert("RGB"))
    monkeypatch.setattr("neuralbayes.data.pictures.STRIP_PIXELS", 5 * 32)
    np.testing.assert_array_equal(read_picture(tmp_path / "a.png", (32, 32), 3), expected)


def test_the_turn_of_the_camera_is_undone(tmp_path: Path) -> None:
    pixels = np.zeros((8, 16, 3), np.uint8)
    pixels[:, :8] = 255  # white on the left
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by 90 degrees clockwise, so the left becomes the top
    Image.fromarray(pixels).save(tmp_path / "a.jpg", exif=exif, quality=100)
    assert picture_header(tmp_path / "a.jpg") == ((16, 8), 3)
    image = read_picture(tmp_path / "a.jpg", (16, 8), 3)
    assert image[:7].mean() > 250
    assert image[9:].mean() < 5


def test_large_jpegs_keep_their_content_when_decoded_small(tmp_path: Path) -> None:
    smooth = np.add.outer(np.arange(640), np.arange(640)).astype(np.float64)
    Image.fromarray((smooth / smooth.max() * 255).astype(np.uint8)).save(tmp_path / "a.jpg", quality=95)
    image = read_picture(tmp_path / "a.jpg", (32, 32), 1)[..., 0]
    expected = (smooth / smooth.max() * 255).reshape(32, 20, 32, 20).mean(axis=(1, 3))
    assert np.abs(image - expected).max() < 4


def test_sub_folders_are_classes(tmp_path: Path) -> None:
    for i, name in enumerate(["zebra", "ant", "cat/deep/deeper"]):
        (tmp_path / name).mkdir(parents=True)
        picture(seed=i).save(tmp_path / name / "x.png")
    (tmp_path / "empty").mkdir()
    source = FolderSource(tmp_path)
    assert source.class_names == ("ant", "cat", "zebra")
    assert source.labels is not None
    assert source.labels.dtype == np.int64
    np.testing.assert_array_equal(source.labels, [0, 1, 2])
    np.testing.assert_array_equal(source.read([2])[0], np.asarray(picture(seed=0)))
    unlabeled = FolderSource(tmp_path, class_folders=False)
    assert unlabeled.labels is None
    assert len(unlabeled) == 3


def test_one_sub_folder_or_stray_pictures_are_no_classes_unless_asked_for(tmp_path: Path) -> None:
    (tmp_path / "only").mkdir()
    picture().save(tmp_path / "only" / "x.png")
    assert FolderSource(tmp_path).labels is None
    assert FolderSource(tmp_path, class_folders=True).class_names == ("only",)
    picture().save(tmp_path / "stray.png")
    assert FolderSource(tmp_path).labels is None
    (tmp_path / "only" / "x.png").write_bytes(b"nobody looks at it")
    with pytest.raises(ValueError, match=r"stray\.png is not"):
        FolderSource(tmp_path, class_folders=True)


def test_a_class_of_which_no_picture_can_be_read_is_no_class(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
        picture().save(tmp_path / name / "x.png")
    (tmp_path / "b" / "x.png").write_bytes(b"broken")
    assert FolderSource(tmp_path).class_names == ("a", "c")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs links and pipes")
def test_links_out_of_the_folder_and_pipes_are_not_followed(tmp_path: Path) -> None:
    outside, folder = tmp_path / "outside", tmp_path / "folder"
    outside.mkdir()
    folder.mkdir()
    picture(seed=1).save(outside / "secret.png")
    picture(seed=2).save(folder / "a.png")
    (folder / "b-inside.png").symlink_to("a.png")
    (folder / "c-outside.png").symlink_to(outside / "secret.png")
    (folder / "d-folder").symlink_to(outside)
    (folder / "e-circle").symlink_to(folder)
    (folder / "f-broken.png").symlink_to("nowhere.png")
    (folder / "g-loop.png").symlink_to("g-loop.png")
    os.mkfifo(folder / "h-pipe.png")
    source = FolderSource(folder)
    assert [path.name for path in source.paths] == ["a.png", "b-inside.png"]
    reasons = {path.name: reason for path, reason in source.skipped}
    assert reasons == {
        "c-outside.png": "it is a link out of the folder",
        "d-folder": "it is a link to a folder",
        "e-circle": "it is a link to a folder",
        "f-broken.png": "it is a broken link",
        "g-loop.png": "it is a broken link",
        "h-pipe.png": "it is not a regular file",
    }


@pytest.mark.parametrize(("width", "height"), [(8_001, 8_000), (60_000, 60_000)])
def test_bombs_are_refused_by_their_header(tmp_path: Path, width: int, height: int) -> None:
    (tmp_path / "bomb.png").write_bytes(claim_png(width, height))
    with pytest.raises(PictureError, match="pixels"):
        read_picture(tmp_path / "bomb.png", (32, 32), 3)


def test_a_large_run_length_coded_bmp_is_refused(tmp_path: Path) -> None:
    header = struct.pack("<IiiHHIIiiII", 40, 4000, 4000, 1, 8, 1, 0, 0, 0, 1, 1)
    (tmp_path / "a.bmp").write_bytes(b"BM" + struct.pack("<IHHI", 60, 0, 0, 58) + header + bytes(4) + b"\0\0\0\1")
    with pytest.raises(PictureError, match="run-length coded BMP of 4000 x 4000 pixels, more than 4000000"):
        read_picture(tmp_path / "a.bmp", (32, 32), 3)


def test_a_folder_without_a_readable_picture_says_what_it_found(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="must contain readable pictures"):
        FolderSource(tmp_path)
    for i in range(7):
        (tmp_path / f"{i}.png").write_bytes(b"")
    with pytest.raises(ValueError, match=r"0\.png: the file is empty(.|\n)*and 2 more"):
        FolderSource(tmp_path)


def test_errors_name_the_parameter(tmp_path: Path) -> None:
    with pytest.raises(NotADirectoryError, match=r"`path` must be a folder"):
        FolderSource(tmp_path / "nowhere")
    picture().save(tmp_path / "a.png")
    with pytest.raises(ValueError, match=r"`size` must be .* got 0"):
        FolderSource(tmp_path, size=0)
    with pytest.raises(ValueError, match=r"`channels` must be 1 \(grey\) or 3 \(RGB\), got 4"):
        FolderSource(tmp_path, channels=4)


def test_a_file_that_vanishes_later_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Spool, "has_room", lambda n_bytes: False)
    picture().save(tmp_path / "a.png")
    source = FolderSource(tmp_path, memory_limit=0)
    (tmp_path / "a.png").unlink()
    with pytest.raises(OSError, match=r"a\.png could be read at the start"):
        source.read([0])


@pytest.mark.slow
def test_five_thousand_files(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    bad = 0
    for i in range(5_000):
        path = tmp_path / f"class{i % 5}" / f"{i:04}.{'png' if i % 2 else 'jpg'}"
        path.parent.mkdir(exist_ok=True)
        if i % 100 == 7:
            path.write_bytes(rng.bytes(300))
            bad += 1
            continue
        size = (32, 32) if i % 10 else (int(rng.integers(20, 300)), int(rng.integers(20, 300)))
        picture("L" if i % 3 == 0 else "RGB", size, seed=i).save(path)
    source = FolderSource(tmp_path, size=32)
    assert (len(source), len(source.skipped)) == (5_000 - bad, bad)
    assert source.read(np.arange(len(source))).shape == (5_000 - bad, 32, 32, 3)
    assert source.class_names is not None
    assert len(source.class_names) == 5


def test_pictures_of_telephones_need_a_package_that_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pillow_heif", None)
    picture().save(tmp_path / "a.png")
    (tmp_path / "b.heic").write_bytes(b"\0\0\0\x18ftypheic" + bytes(100))
    ((path, reason),) = FolderSource(tmp_path).skipped
    assert path.name == "b.heic"
    assert "pip install 'neuralbayes[vision]'" in reason


def test_pictures_of_telephones_are_read(tmp_path: Path) -> None:
    pillow_heif = pytest.importorskip("pillow_heif")
    pillow_heif.register_heif_opener()
    Image.new("RGB", (64, 48), (200, 30, 30)).save(tmp_path / "a.heic")
    image = FolderSource(tmp_path).read([0])[0]
    assert image.shape == (48, 64, 3)
    np.testing.assert_allclose(image.mean(axis=(0, 1)), (200, 30, 30), atol=6)
