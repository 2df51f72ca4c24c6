import struct
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

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
from support.refusals import refusal

RED, GREEN, BLUE, YELLOW = (255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 0)


def plain(width=80, height=64, colour=(200, 100, 50)):
    return Image.new("RGB", (width, height), colour)


def quadrants():
    """96×64 pixels: a colour for each corner, so that every turn and mirror image shows."""
    picture = np.empty((64, 96, 3), np.uint8)
    picture[:32, :48], picture[:32, 48:] = RED, GREEN
    picture[32:, :48], picture[32:, 48:] = BLUE, YELLOW
    return picture


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


@pytest.mark.parametrize("make", [lambda p: None, Path.mkdir, Path.touch])
def test_a_missing_or_empty_folder_is_one_line_that_names_it(tmp_path, make):
    folder = tmp_path / "photos"
    make(folder)
    assert refusal(find_photos, folder, key="a=").startswith(f"a={folder}: ")


# Reading


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


def test_a_folder_is_checked_by_its_first_photo(tmp_path, monkeypatch):
    """Labelling walks through it again, which takes long of very many."""

    def walk(folder):
        yield from (folder / "notes.txt", folder / "a.jpg")
        pytest.fail("walks on")

    monkeypatch.setattr(module, "walk", walk)
    module.check_folders([tmp_path], [])
