import os
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from distill.core.errors import DistillError
from distill.data import decode
from distill.data import photos as module
from distill.data.photos import (
    BadPhoto,
    Photo,
    centre_square,
    find_photos,
    group_of,
    read_photo,
    stem_of,
)
from distill.data.split import split

RED, GREEN, BLUE, YELLOW = (255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 0)


def plain(width=80, height=64, colour=(200, 100, 50)):
    return Image.new("RGB", (width, height), colour)


def quadrants():
    """96×64 pixels: a colour for each corner, so that every turn and mirror image shows."""
    picture = np.empty((64, 96, 3), np.uint8)
    picture[:32, :48], picture[:32, 48:] = RED, GREEN
    picture[32:, :48], picture[32:, 48:] = BLUE, YELLOW
    return picture


def raw_png(path, width, height, bits, kind, rows=b""):
    """A PNG written by hand, for what Pillow cannot write: 16-bit colours, absurd sizes."""

    def chunk(name, data):
        body = name + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    header = struct.pack(">IIBBBBB", width, height, bits, kind, 0, 0, 0)
    chunks = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunks)
    return path


def sixteen_bits(path, kind, values):
    """A 16-bit PNG, 64 rows high; `values` (width, channels)."""
    row = b"\0" + np.asarray(values, ">u2").tobytes()
    return raw_png(path, len(values), 64, 16, kind, row * 64)


# Finding


def test_pictures_of_every_suffix_and_case_are_found_in_nested_folders(tmp_path):
    names = ["a.jpg", "b/c.JPEG", "b/d/e.Png", "f/g.WEBP", "日本 ü.JPG", "two words.jpeg"]
    for name in [*names, "notes.txt", "clip.gif", ".hidden.jpg", "b/._c.JPEG"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        plain().save(tmp_path / name, format="PNG")
    found = find_photos(tmp_path)
    assert sorted(p.key for p in found) == sorted(names)
    assert [p.path for p in found] == sorted(p.path for p in found)
    assert all(p.path == tmp_path / p.key for p in found)
    assert all(read_photo(p.path).size == (80, 64) for p in found)


def test_a_folder_named_like_a_picture_is_searched_and_not_taken_for_one(tmp_path):
    (tmp_path / "x.jpg").mkdir()
    plain().save(tmp_path / "x.jpg" / "inside.png")
    assert [p.key for p in find_photos(tmp_path)] == ["x.jpg/inside.png"]


def test_a_loop_of_linked_folders_ends(tmp_path):
    (tmp_path / "deep").mkdir()
    plain().save(tmp_path / "deep" / "one.png")
    (tmp_path / "deep" / "up").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "deep" / "up.jpg").symlink_to(tmp_path, target_is_directory=True)
    assert [p.key for p in find_photos(tmp_path)] == ["deep/one.png"]


@pytest.mark.parametrize("make", [lambda p: None, Path.mkdir, Path.touch])
def test_a_missing_or_empty_folder_is_one_line_that_names_it(tmp_path, make):
    folder = tmp_path / "photos"
    make(folder)
    with pytest.raises(DistillError) as error:
        find_photos(folder, key="a=")
    assert str(error.value).startswith(f"a={folder}: ")


@pytest.mark.skipif(os.name == "nt", reason="names on Windows are always valid Unicode")
def test_a_name_that_is_no_utf_8_is_found_read_and_given_a_pair_name(tmp_path):
    path = os.fsencode(tmp_path) + b"/caf\xe9.png"
    try:
        with open(path, "wb") as out:
            plain().save(out, format="PNG")
    except OSError:
        pytest.skip("this file system takes Unicode names only")
    (photo,) = find_photos(tmp_path)
    assert read_photo(photo.path).size == (80, 64)
    photo.pair_name.encode()  # raises where a stray byte got through
    split([photo, Photo(tmp_path / "b.png", "b.png")], 0.5, 0)  # its hash can be taken


# Reading


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["jpg", "png", "webp"])
def test_every_exif_orientation_ends_upright(tmp_path, orientation, kind):
    upright = quadrants()
    turned = upright.transpose(1, 0, 2)
    # EXIF 2.3, tag 274: which side of the scene the first row and the first column are.
    stored = {
        1: upright,  # top, left
        2: upright[:, ::-1],  # top, right
        3: upright[::-1, ::-1],  # bottom, right
        4: upright[::-1],  # bottom, left
        5: turned,  # left, top
        6: turned[::-1],  # right, top
        7: turned[::-1, ::-1],  # right, bottom
        8: turned[:, ::-1],  # left, bottom
    }[orientation]
    exif = Image.Exif()
    exif[274] = orientation
    path = tmp_path / f"photo.{kind}"
    how = {"jpg": {"quality": 95, "subsampling": 0}, "webp": {"lossless": True}}.get(kind, {})
    Image.fromarray(np.ascontiguousarray(stored)).save(path, exif=exif, **how)
    read = np.asarray(read_photo(path)).astype(int)
    assert read.shape == upright.shape
    assert abs(read - upright).max() <= (0 if kind != "jpg" else 12)


def test_damaged_exif_does_not_cost_the_photo(tmp_path):
    plain().save(tmp_path / "x.jpg", exif=b"Exif\0\0no TIFF header at all")
    assert read_photo(tmp_path / "x.jpg").size == (80, 64)


@pytest.mark.parametrize(
    ("mode", "colour", "suffix", "expected"),
    [
        ("L", 90, "jpg", (90, 90, 90)),
        ("L", 90, "png", (90, 90, 90)),
        ("1", 1, "png", (255, 255, 255)),
        ("CMYK", (0, 255, 255, 0), "jpg", RED),
        ("CMYK", (0, 0, 0, 255), "jpg", (0, 0, 0)),
        ("RGBA", (200, 0, 100, 255), "png", (200, 0, 100)),
        ("RGBA", (200, 0, 100, 0), "png", (255, 255, 255)),
        # over white: c·a + 255·(1 − a) with a = 51/255 = 0.2
        ("RGBA", (200, 0, 100, 51), "png", (244, 204, 224)),
        ("RGBA", (200, 0, 100, 51), "webp", (244, 204, 224)),
        ("LA", (100, 51), "png", (224, 224, 224)),
        ("LA", (100, 0), "png", (255, 255, 255)),
    ],
)
def test_every_mode_becomes_rgb_over_white(tmp_path, mode, colour, suffix, expected):
    path = tmp_path / f"x.{suffix}"
    Image.new(mode, (64, 64), colour).save(path, **({"lossless": True} if suffix == "webp" else {}))
    read = read_photo(path)
    assert read.mode == "RGB"
    assert np.abs(np.asarray(read).astype(int) - expected).max() <= 2


@pytest.mark.parametrize(
    ("transparency", "expected"),
    [
        (None, [RED, (0, 0, 0)]),
        (1, [RED, (255, 255, 255)]),  # one index is see-through
        (bytes([255, 51]), [RED, (204, 204, 204)]),  # an alpha for every index
    ],
)
def test_palettes_with_and_without_transparency(tmp_path, transparency, expected):
    picture = Image.new("P", (64, 64), 0)
    picture.putpalette([*RED, 0, 0, 0])
    picture.paste(1, (32, 0, 64, 64))
    path = tmp_path / "x.png"
    picture.save(path, **({} if transparency is None else {"transparency": transparency}))
    read = read_photo(path)
    assert [read.getpixel((5, 5)), read.getpixel((50, 50))] == expected


def test_sixteen_bit_grey_is_scaled_and_not_cut_off(tmp_path):
    values = 257 * np.arange(256)[:, None]
    read = np.asarray(read_photo(sixteen_bits(tmp_path / "x.png", 0, values)))
    assert (read == np.arange(256)[None, :, None]).all()


def test_sixteen_bit_colour_is_scaled(tmp_path):
    values = 257 * np.stack([np.arange(256), np.arange(256)[::-1], np.full(256, 7)], -1)
    read = np.asarray(read_photo(sixteen_bits(tmp_path / "x.png", 2, values)))
    assert (read == values // 257).all()


def test_an_animation_gives_its_first_picture(tmp_path):
    plain(colour=RED).save(
        tmp_path / "x.webp", save_all=True, append_images=[plain(colour=BLUE)], lossless=True
    )
    assert read_photo(tmp_path / "x.webp").getpixel((9, 9)) == RED


def cut_short(path):
    noise = np.random.default_rng(0).integers(0, 256, (128, 128, 3), np.uint8)
    Image.fromarray(noise).save(path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


BAD = {
    "cut.jpg": (cut_short, "cut short"),
    "cut.png": (cut_short, "cut short"),
    "cut.webp": (cut_short, ""),
    "empty.jpg": (Path.touch, "not a picture"),
    "page.jpg": (lambda p: p.write_text("<!doctype html><title>404</title>"), "not a picture"),
    "header.png": (lambda p: p.write_bytes(b"\x89PNG\r\n\x1a\n"), ""),
    "tiny.png": (lambda p: plain(63, 200).save(p), "63×200 pixels: smaller than 64"),
    "flat.png": (lambda p: plain(200, 63).save(p), "200×63 pixels: smaller than 64"),
    "bomb.png": (lambda p: raw_png(p, 30_000, 30_000, 8, 2), "larger than"),
    "large.png": (lambda p: raw_png(p, 10_000, 10_000, 8, 2), "larger than"),
    "folder.jpg": (Path.mkdir, ""),
    "missing.jpg": (lambda p: None, ""),
    "loop.jpg": (lambda p: p.symlink_to(p), ""),
    "nowhere.jpg": (lambda p: p.symlink_to(p.with_name("gone.jpg")), ""),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.filterwarnings("error")
def test_what_cannot_be_used_is_a_bad_photo_with_a_reason_in_one_line(tmp_path, name):
    make, reason = BAD[name]
    make(tmp_path / name)
    with pytest.raises(BadPhoto) as error:
        read_photo(tmp_path / name)
    assert reason in str(error.value)
    assert str(error.value).strip()
    assert "\n" not in str(error.value)


def test_the_bounds_themselves_are_allowed(tmp_path, monkeypatch):
    plain(64, 100).save(tmp_path / "x.png")
    monkeypatch.setattr(module, "MAX_PIXELS", 6400)
    assert read_photo(tmp_path / "x.png").size == (64, 100)
    monkeypatch.setattr(module, "MAX_PIXELS", 6399)
    with pytest.raises(BadPhoto, match="larger than 6399 pixels"):
        read_photo(tmp_path / "x.png")


def test_another_least_side_can_be_asked_for(tmp_path):
    plain(8, 8).save(tmp_path / "x.png")
    assert read_photo(tmp_path / "x.png", least=8).size == (8, 8)
    with pytest.raises(BadPhoto):
        read_photo(tmp_path / "x.png", least=9)


# The centre square


@pytest.mark.parametrize("turn", [False, True])
def test_the_centre_square_cuts_both_ends_of_the_long_side(turn):
    picture = np.zeros((64, 100, 3), np.uint8)
    picture[:, :18], picture[:, 18:82], picture[:, 82:] = RED, GREEN, BLUE
    picture = picture.transpose(1, 0, 2) if turn else picture
    square = centre_square(Image.fromarray(np.ascontiguousarray(picture)), 64)
    assert (np.asarray(square) == GREEN).all()


def test_crop_leaves_out_the_rim_on_all_sides():
    picture = np.full((80, 120, 3), 255, np.uint8)
    picture[20:60, 40:80] = np.random.default_rng(0).integers(0, 255, (40, 40, 3))
    square = centre_square(Image.fromarray(picture), 40, crop=0.5)
    assert (np.asarray(square) == picture[20:60, 40:80]).all()


def test_a_square_of_the_right_size_comes_through_untouched():
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8)
    assert (np.asarray(centre_square(Image.fromarray(noise), 64)) == noise).all()


def test_shrinking_is_antialiased():
    # Stripes of one pixel are beyond what a quarter of the size can hold: only their mean stays.
    picture = np.zeros((256, 256, 3), np.uint8)
    picture[:, ::2] = 255
    small = np.asarray(centre_square(Image.fromarray(picture), 64)).astype(float)
    assert np.abs(small[:, 4:-4] - 127.5).max() < 4


def test_an_odd_rim_is_shared_by_half_pixels():
    # Mirror-symmetric in, mirror-symmetric out: a shift by half a pixel would break it.
    half = np.random.default_rng(0).integers(0, 256, (65, 50, 3), np.uint8)
    middle = np.zeros((65, 2, 3), np.uint8)
    picture = np.concatenate([half, middle, half[:, ::-1]], 1)
    square = np.asarray(centre_square(Image.fromarray(picture), 32)).astype(int)
    assert np.abs(square - square[:, ::-1]).max() <= 1


# Groups of names


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("AJ_Cook_0001.jpg", "AJ_Cook_0002.jpg"),
        ("people/AJ_Cook_0001.jpg", "AJ_Cook_0213.png"),
        ("name-12.jpg", "name-7.jpg"),
        ("street-1.jpg", "street-100.webp"),
    ],
)
def test_numbered_pictures_of_one_subject_are_one_group(one, other):
    assert group_of(one) == group_of(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("IMG_0001.jpg", "IMG_0002.jpg"),
        ("DSC_0001.JPG", "DSC_0002.JPG"),
        ("img-1.jpg", "img-2.jpg"),
        ("photo-1.jpg", "photo-2.jpg"),
        ("0001.jpg", "0002.jpg"),
        ("AJ_Cook_0001.jpg", "AJ_Lamas_0001.jpg"),
        ("a_001.jpg", "a_002.jpg"),  # three digits are no running number of a data set
    ],
)
def test_camera_numbers_and_other_names_are_no_group(one, other):
    assert group_of(one) != group_of(other)


def test_what_we_wrote_and_what_is_hidden_are_no_photos(tmp_path):
    for name in ("a.png", "data/pairs/s/train/photo/b.png", "runs/r/previews/c.png", ".x/d.png"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (64, 64)).save(tmp_path / name)
    (tmp_path / "data/pairs/s/dataset.json").write_text("{}")
    (tmp_path / "runs/r/config.yaml").write_text("")
    assert [photo.key for photo in find_photos(tmp_path)] == ["a.png"]


# Names of pairs


def named(*names):
    return [Photo(Path(name), name) for name in names]


@pytest.mark.parametrize(
    ("key", "stem"),
    [
        ("a/b.c/d.e.jpg", "d.e"),
        ("a.b/c", "c"),
        ("a/.jpg", ".jpg"),
        ("a/b.", "b."),
        ("..a.png", "..a"),
        ("a/b c.PNG", "b c"),
    ],
)
def test_the_stem_of_a_key_is_that_of_its_path(key, stem):
    assert stem_of(key) == stem


def test_pair_names_are_unique_where_stems_are_not():
    keys = ["a/x.jpg", "b/x.jpg", "x.jpg", "x.png", "x y.jpg", "x_y.jpg"]
    assert len({photo.pair_name for photo in named(*keys)}) == len(keys)


@pytest.mark.parametrize("stem", ["x" * 250, "写" * 83, "Ж" * 125, "🎨" * 62])
def test_pair_names_fit_a_file_system_whatever_the_script(stem):
    (photo,) = named(f"{stem}.jpg")
    assert len(f".{photo.pair_name}-v001.png.12345678.part".encode()) <= 255


@pytest.mark.parametrize("key", ["a b/ü ?*|.jpg", 'q"<>:.png', "tab\t.jpg"])
def test_pair_names_hold_no_character_that_a_file_system_refuses(key):
    assert not set(Photo(Path(key), key).pair_name) & set(' /\\:*?"<>|\t')


def test_a_missing_folder_is_named_with_its_setting(tmp_path):
    with pytest.raises(DistillError) as error:
        find_photos(tmp_path / "none", "calibration=")
    assert "calibration=" in str(error.value)
    assert "photos=DIR" not in str(error.value)


# Large JPEGs, decoded small


@pytest.mark.parametrize(
    ("enough", "size"),
    [(None, (512, 384)), (385, (512, 384)), (193, (512, 384)), (192, (256, 192)), (96, (128, 96))],
)
def test_a_jpeg_is_decoded_no_larger_than_it_must_be(tmp_path, enough, size):
    plain(512, 384).save(tmp_path / "x.jpg", quality=95)
    photo = read_photo(tmp_path / "x.jpg", enough=enough)
    assert photo.size == size
    assert np.abs(np.asarray(photo, int) - (200, 100, 50)).max() <= 2


def test_a_jpeg_decoded_small_shows_what_the_whole_one_does(tmp_path):
    large = Image.fromarray(quadrants()).resize((768, 512), Image.Resampling.NEAREST)
    exif = Image.Exif()
    exif[274] = 6  # to be turned
    large.save(tmp_path / "x.jpg", quality=95, exif=exif)
    small, whole = (read_photo(tmp_path / "x.jpg", enough=n) for n in (128, None))
    assert (small.size, whole.size) == ((128, 192), (512, 768))
    squares = [np.asarray(centre_square(image, 64), int) for image in (small, whole)]
    assert np.abs(squares[0] - squares[1]).mean() < 1


def test_other_kinds_are_decoded_whole(tmp_path):
    plain(512, 384).save(tmp_path / "x.png")
    assert read_photo(tmp_path / "x.png", enough=64).size == (512, 384)


@pytest.mark.parametrize("top", [2**8 - 1, 2**16 - 1, 2**24 - 1, 2**32 - 1])
def test_a_tiff_of_32_bits_is_as_bright_as_one_of_8(tmp_path, top):
    levels = np.linspace(0, 1, 96 * 64).reshape(64, 96)
    pixels = np.round(levels * top).astype(np.uint32)
    Image.fromarray(pixels.view(np.int32)).save(tmp_path / "a.tif")
    signed, unsigned = (struct.pack("<HHIHH", 339, 3, 1, kind, 0) for kind in (2, 1))
    data = (tmp_path / "a.tif").read_bytes()  # Pillow calls all of them signed
    assert data.count(signed) == 1
    (tmp_path / "a.tif").write_bytes(data.replace(signed, unsigned))
    read = np.asarray(read_photo(tmp_path / "a.tif"), np.float64)
    np.testing.assert_allclose(read, np.repeat(levels[..., None] * 255, 3, 2), atol=0.51)


def test_below_black_of_a_signed_tiff_is_black(tmp_path):
    pixels = np.linspace(-1000, 2**31 - 1, 64 * 64).reshape(64, 64).astype(np.int32)
    Image.fromarray(pixels).save(tmp_path / "a.tif")
    read = np.asarray(read_photo(tmp_path / "a.tif"))
    assert read[0, 0].tolist() == [0, 0, 0]
    assert read[-1, -1].tolist() == [255, 255, 255]
    assert (np.diff(read[..., 0].ravel().astype(int)) >= 0).all()


def test_a_grey_of_16_bits_keeps_its_transparent_level(tmp_path):
    pixels = np.full((64, 64), 257 * 128, np.uint16)
    pixels[:32] = 1000
    Image.fromarray(pixels).save(tmp_path / "a.png", transparency=1000)
    read = np.asarray(read_photo(tmp_path / "a.png", alpha=True))
    assert (read[:32, :, 3] == 0).all()
    assert (read[32:] == (128, 128, 128, 255)).all()
    assert (np.asarray(read_photo(tmp_path / "a.png"))[:32] == 255).all()  # over white


def test_what_would_read_a_heic_is_said_wherever_one_is_named(tmp_path):
    if decode.HEIF:
        pytest.skip("pillow-heif is installed")
    (tmp_path / "IMG.HEIC").write_bytes(b"\0\0\0\x18ftypheic" + bytes(99))
    with pytest.raises(BadPhoto, match="unknown kind; pip install pillow-heif reads HEIC"):
        read_photo(tmp_path / "IMG.HEIC")
    assert decode.left_out(["IMG.HEIC"]).endswith("; pip install pillow-heif reads HEIC")
