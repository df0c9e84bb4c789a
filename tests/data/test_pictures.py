"""One picture file: every mode, turn and size decoded, and everything else refused with a reason."""

import os
import random
import struct
import sys
import zlib
from contextlib import suppress

import numpy as np
import pytest
from PIL import Image

from neuralbayes.data.pictures import (
    NetworkResizing,
    PictureError,
    cover,
    find_pictures,
    path_cell,
    picture_header,
    read_picture,
    readable,
)


def picture(mode: str = "RGB", size: tuple[int, int] = (32, 24), seed: int = 0) -> Image.Image:
    pixels = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), np.uint8)
    return Image.fromarray(pixels).convert(mode)


def gradient(width: int, height: int) -> Image.Image:
    """A picture whose red is the column, whose green is the row, and whose blue is their sum."""
    columns, rows = np.meshgrid(np.arange(width), np.arange(height))
    return Image.fromarray(np.stack([columns, rows, columns + rows], axis=2).astype(np.uint8))


def claim_png(width: int, height: int) -> bytes:
    """A PNG file of a few bytes whose header claims any size."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    "case", ["png RGB", "png P", "png L", "png 1", "bmp RGB", "tiff RGB", "tiff CMYK", "webp RGB", "GIF P"]
)
def test_every_mode_becomes_grey_or_colour(tmp_path, case):
    suffix, mode = case.split()
    given, name = picture(mode), f"a.{suffix}"
    given.save(tmp_path / name, **{"lossless": True} if suffix == "webp" else {})
    assert picture_header(tmp_path / name) == ((24, 32), 1 if mode in ("1", "L") else 3)
    for channels, wanted in ((1, "L"), (3, "RGB")):
        image = read_picture(tmp_path / name, (24, 32), channels)
        assert np.array_equal(image, np.asarray(given.convert(wanted)).reshape(24, 32, channels))


@pytest.mark.parametrize("name", ["a.png", "a.tiff"])
def test_sixteen_bits_become_eight(tmp_path, name):
    values = np.arange(1024, dtype=np.uint16).reshape(32, 32) * 64
    Image.fromarray(values).save(tmp_path / name)
    assert np.array_equal(read_picture(tmp_path / name, (32, 32), 1)[..., 0], values // 256)


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P"])
def test_transparent_parts_become_white(tmp_path, mode):
    colours = picture("RGBA")
    colours.putalpha(picture("L", seed=1))
    given = picture("P") if mode == "P" else colours.convert(mode)
    given.save(tmp_path / "a.png", **({"transparency": 3} if mode == "P" else {}))
    with Image.open(tmp_path / "a.png") as opened:
        whole = opened.convert("RGBA")
    expected = Image.alpha_composite(Image.new("RGBA", whole.size, "white"), whole).convert("RGB")
    assert np.array_equal(read_picture(tmp_path / "a.png", (24, 32), 3), np.asarray(expected))


def test_only_the_first_frame_is_read(tmp_path):
    frames = [picture(seed=i) for i in range(20)]
    frames[0].save(tmp_path / "a.tiff", save_all=True, append_images=frames[1:])
    assert np.array_equal(read_picture(tmp_path / "a.tiff", (24, 32), 3), np.asarray(frames[0]))


@pytest.mark.parametrize("orientation", range(1, 9))
def test_the_turn_of_the_camera_is_undone(tmp_path, orientation):
    upright = np.zeros((12, 20), np.uint8)
    upright[:4, :10] = 255  # tells all eight apart
    back = [
        lambda a: a, np.fliplr, lambda a: np.rot90(a, 2), np.flipud,
        np.transpose, np.rot90, lambda a: np.rot90(a, 2).T, lambda a: np.rot90(a, 3),
    ][orientation - 1]  # fmt: skip
    exif = Image.Exif()
    exif[0x0112] = orientation
    Image.fromarray(np.ascontiguousarray(back(upright))).save(tmp_path / "a.png", exif=exif)
    assert picture_header(tmp_path / "a.png") == ((12, 20), 1)
    assert np.array_equal(read_picture(tmp_path / "a.png", (12, 20), 1)[..., 0], upright)


def test_large_jpegs_keep_their_content_when_decoded_small(tmp_path):
    smooth = np.add.outer(np.arange(640), np.arange(640)) * (255 / 1278)
    Image.fromarray(smooth.astype(np.uint8)).save(tmp_path / "a.jpg", quality=95)
    image = read_picture(tmp_path / "a.jpg", (32, 32), 1)[..., 0]
    assert np.abs(image - smooth.reshape(32, 20, 32, 20).mean(axis=(1, 3))).max() < 4


def test_damaged_files_say_why(tmp_path):
    picture(size=(90, 60)).save(tmp_path / "whole.png")
    whole = (tmp_path / "whole.png").read_bytes()
    contents = {
        whole[: len(whole) // 2]: "OSError",
        b"": "empty",
        b"I am a poem.\n" * 20: "not one of PNG, JPEG",
        claim_png(8_001, 8_000): "8001 x 8000 pixels",
        claim_png(60_000, 60_000): "pixels",
        bytes(257 * 2**20): "more than 268435456",
    }
    for content, reason in contents.items():
        (tmp_path / "a.png").write_bytes(content)
        with pytest.raises(PictureError, match=reason):
            read_picture(tmp_path / "a.png", (32, 32), 3)
    with pytest.raises(PictureError, match="No such file"):
        read_picture(tmp_path / "nowhere.png", (32, 32), 3)
    header = struct.pack("<IiiHHIIiiII", 40, 4000, 4000, 1, 8, 1, 0, 0, 0, 1, 1)
    (tmp_path / "a.bmp").write_bytes(b"BM" + struct.pack("<IHHI", 60, 0, 0, 58) + header + bytes(4) + b"\0\0\0\1")
    with pytest.raises(PictureError, match="run-length coded BMP of 4000 x 4000"):
        read_picture(tmp_path / "a.bmp", (32, 32), 3)


def test_pictures_of_telephones_need_a_package_that_is_named(tmp_path, monkeypatch):
    pytest.importorskip("pillow_heif").register_heif_opener()
    Image.new("RGB", (64, 48), (200, 30, 30)).save(tmp_path / "a.heic")
    image = read_picture(tmp_path / "a.heic", (48, 64), 3)
    assert np.allclose(image.mean(axis=(0, 1)), (200, 30, 30), atol=6)
    monkeypatch.setitem(sys.modules, "pillow_heif", None)
    with pytest.raises(PictureError, match=r"pip install 'neuralbayes\[vision\]'"):
        picture_header(tmp_path / "a.heic")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["a.png", "a.jpg", "a.gif", "a.tiff", "a.webp", "a.bmp", "a.avif"])
def test_damage_anywhere_raises_nothing_but_picture_errors(tmp_path, name):
    exif = Image.Exif()
    exif[0x0112] = 6
    picture().save(tmp_path / name, **({"exif": exif} if name in ("a.jpg", "a.webp", "a.png") else {}))
    whole, rng = (tmp_path / name).read_bytes(), random.Random(0)
    for _ in range(150):
        damaged = bytearray(whole)
        for _ in range(rng.choice([1, 1, 3])):
            damaged[rng.randrange(min(len(whole), rng.choice([60, 10_000])))] = rng.choice([0, 1, 127, 128, 255])
        (tmp_path / name).write_bytes(damaged[: len(whole) if rng.random() < 0.8 else rng.randrange(len(whole))])
        with suppress(PictureError):
            assert read_picture(tmp_path / name, (8, 8), 3).shape == (8, 8, 3)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs links and pipes")
def test_links_out_of_the_folder_are_not_followed(tmp_path):
    outside, folder = tmp_path / "outside", tmp_path / "folder"
    (folder / "deep" / "deeper").mkdir(parents=True)
    outside.mkdir()
    picture().save(outside / "secret.png")
    for place in (folder / "z.png", folder / "deep" / "deeper" / "a.PNG"):
        picture().save(place, "PNG")
    (folder / "b-inside.png").symlink_to("z.png")
    (folder / "c-outside.png").symlink_to(outside / "secret.png")
    (folder / "d-folder").symlink_to(outside)
    (folder / "e-broken.png").symlink_to("nowhere.png")
    (folder / "f-loop.png").symlink_to("f-loop.png")
    (folder / "g.svg").write_text("<svg/>")
    for unnoticed in ("notes.txt", ".hidden.png"):
        (folder / unnoticed).write_text("")
    os.mkfifo(folder / "pipe.png")
    found, skipped = find_pictures(folder)
    names = [str(path.relative_to(folder)) for path in found]
    assert names == ["b-inside.png", "deep/deeper/a.PNG", "pipe.png", "z.png"]
    assert {path.name: reason for path, reason in skipped} == {
        "c-outside.png": "it is a link out of the folder",
        "d-folder": "it is a link to a folder",
        "e-broken.png": "it is a broken link",
        "f-loop.png": "it is a broken link",
        "g.svg": ".svg files are not read",
    }
    with pytest.raises(PictureError, match="not a regular file"):
        picture_header(folder / "pipe.png")


def test_other_sizes_are_averaged_and_cut_in_the_middle():
    pixels = np.zeros((30, 90), np.uint8)
    pixels[:, 30:60] = 200  # the middle third
    pixels[::2, 30:60] += 20
    image = np.asarray(cover(Image.fromarray(pixels), (3, 3)))
    assert abs(int(image[1, 1]) - 210) <= 1  # nearest-neighbour scaling would give 200 or 220
    assert (image > 205).all()  # without the black sides
    whole = gradient(60, 20)
    assert cover(whole, (20, 60)) is whole


@pytest.mark.parametrize(
    ("given", "scaled", "size", "left", "top"),
    [
        ((40, 20), (20, 20), (20, 20), 10, 0),
        ((20, 41), (20, 20), (16, 16), 2, 12),  # round(12.5) is 12, as in torchvision
        ((30, 20), (20, 20), (16, 12), 9, 2),
    ],
)
def test_networks_get_the_middle_to_the_pixel(given, scaled, size, left, top):
    whole = gradient(*given)
    found = NetworkResizing(scaled)(whole, size)
    assert np.array_equal(found, np.asarray(whole)[top : top + size[0], left : left + size[1]])


def test_networks_get_the_whole_picture_scaled_to_whole_pixels():
    whole = gradient(101, 67).resize((30, 20), Image.Resampling.BICUBIC)  # 20 * 101 / 67 = 30.1
    assert np.array_equal(NetworkResizing((20, 20))(gradient(101, 67), (16, 16)), np.asarray(whole)[2:18, 7:23])
    squashed = NetworkResizing((20, 20), "bilinear", squash=True)(gradient(60, 20), (20, 20))
    assert np.array_equal(squashed, gradient(60, 20).resize((20, 20), Image.Resampling.BILINEAR))
    for size in ((64, 48), (48, 64), (301, 77), (8, 8)):
        assert NetworkResizing((15, 20))(gradient(*size), (12, 16)).size == (16, 12)


@pytest.mark.skipif(os.name == "nt", reason="names there are no bytes")
def test_names_of_any_bytes_become_different_texts():
    names = [os.fsdecode(name) for name in (b"\xff.png", b"\xfe.png", b"caf\xc3\xa9.png", b"caf\xe9.png")]
    assert readable("folder/Größe 日本.png") == path_cell("folder/Größe 日本.png") == "folder/Größe 日本.png"
    assert [readable(name) for name in names] == ["\\xff.png", "\\xfe.png", "café.png", "caf\\xe9.png"]


@pytest.mark.parametrize("first", ["=", "+", "-", "@", "\t", "\r"])
def test_a_path_in_a_table_is_no_formula(first):
    assert path_cell(f"{first}1+1.png") == f"./{first}1+1.png"
