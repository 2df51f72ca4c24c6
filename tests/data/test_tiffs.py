"""TIFFs of every kind of sample: as bright as they say, or refused in one line."""

import itertools

import numpy as np
import pytest
from PIL import Image
from tiff_files import tiff

from distill.api import load
from distill.core.errors import DistillError
from distill.data.photos import BadPhoto, read_photo
from distill.data.thumbnails import thumbnail

HEIGHT, WIDTH = 64, 96
GREY = np.linspace(0.3, 1, HEIGHT)[:, None] * np.linspace(0, 1, WIDTH)
RGB = np.stack([GREY, GREY[::-1], GREY[:, ::-1]], -1)


def levels(folder, **how):
    """The picture as read, (H, W, 3) in [0, 255]."""
    path = folder / "photo.tif"
    path.write_bytes(tiff(**how))
    return np.asarray(read_photo(path), float)


def stored(share, bits, signed=False, white_is_zero=False):
    """Samples of a picture in [0, 1], and the picture that they still are."""
    white = 2 ** (bits - signed) - 1
    samples = np.round(share * white).astype(np.int64)
    return white - samples if white_is_zero else samples, samples / white


LAYOUTS = [
    {"order": order, "tile": tile, "deflate": deflate, "pages": pages}
    for order in "<>"
    for tile, deflate, pages in ((None, False, 1), (32, False, 2), (None, True, 2), (32, True, 1))
]


def read_or_refused(folder, picture, atol=0.51, **how):
    """Reads it; a refusal is one line, and what is read is the picture."""
    try:
        read = levels(folder, **how)
    except BadPhoto as error:
        reason = str(error)
        assert "\n" not in reason
        return
    shown = picture[..., None].repeat(3, 2) if picture.ndim == 2 else picture
    np.testing.assert_allclose(read, 255 * shown, atol=atol)


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("bits", [1, 2, 4, 8, 12, 16, 32])
def test_grey_is_as_bright_as_its_tags_say_or_refused(tmp_path, bits, signed):
    for how, white_is_zero, fill in itertools.product(LAYOUTS, (False, True), (1, 2)):
        samples, picture = stored(GREY, bits, signed and bits > 2, white_is_zero)
        kind = {"bits": bits, "photometric": 1 - white_is_zero, "sample_format": 1 + signed}
        read_or_refused(tmp_path, picture, samples=samples, fill=fill, **kind, **how)


@pytest.mark.parametrize(
    ("bits", "signed", "white_is_zero"),
    [
        *itertools.product((1, 2, 4, 8), (False,), (False, True)),
        *itertools.product((8, 16, 32), (True,), (False,)),
        *((12, False, False), (16, False, False), (16, False, True), (32, False, False)),
    ],
)
def test_the_usual_greys_are_read(tmp_path, bits, signed, white_is_zero):
    samples, picture = stored(GREY, bits, signed, white_is_zero)
    kind = {"bits": bits, "photometric": 1 - white_is_zero, "sample_format": 1 + signed}
    for tile, deflate in itertools.product((None, 32), (False, True)):
        read = levels(tmp_path, samples=samples, tile=tile, deflate=deflate, **kind)
        np.testing.assert_allclose(read, 255 * picture[..., None].repeat(3, 2), atol=0.51)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_turned_tiff_keeps_its_brightness_and_ends_upright(tmp_path, orientation):
    samples, picture = stored(GREY, 16, white_is_zero=True)
    turned = {  # TIFF 6.0, tag 274: which sides of the scene the first row and first column are
        1: samples,  # top, left
        2: samples[:, ::-1],  # top, right
        3: samples[::-1, ::-1],  # bottom, right
        4: samples[::-1],  # bottom, left
        5: samples.T,  # left, top
        6: samples.T[::-1],  # right, top
        7: samples.T[::-1, ::-1],  # right, bottom
        8: samples.T[:, ::-1],  # left, bottom
    }[orientation]
    read = levels(tmp_path, samples=turned, bits=16, photometric=0, orientation=orientation)
    np.testing.assert_allclose(read[..., 0], 255 * picture, atol=0.51)


@pytest.mark.parametrize("planes", [False, True])
@pytest.mark.parametrize("bits", [2, 4, 8, 12, 16, 32])
def test_colours_are_those_of_the_file_or_refused(tmp_path, bits, planes):
    samples, picture = stored(RGB, bits)
    whole = np.full((HEIGHT, WIDTH, 1), 2**bits - 1)
    for how, extra in itertools.product(LAYOUTS, ((), (0,), (1,), (2,))):
        every = np.concatenate([samples, whole], -1) if extra else samples
        kind = {"bits": bits, "photometric": 2, "planes": planes, "extra": extra}
        read_or_refused(tmp_path, picture, atol=1, samples=every, **kind, **how)


def test_plain_colours_are_read_in_pixels_and_in_planes(tmp_path):
    for planes, order in itertools.product((False, True), "<>"):
        samples, picture = stored(RGB, 8)
        kind = {"bits": 8, "photometric": 2, "planes": planes, "order": order}
        np.testing.assert_allclose(levels(tmp_path, samples=samples, **kind), 255 * picture)


@pytest.mark.parametrize("bits", [1, 2, 4, 8])
def test_palettes_give_their_colours(tmp_path, bits):
    count = 2**bits
    indices = np.round(GREY * (count - 1)).astype(int)
    colours = np.stack([np.linspace(0, 255, count), np.linspace(255, 0, count), np.full(count, 9)])
    colours = colours.round()
    for how in LAYOUTS:
        kind = {"bits": bits, "photometric": 3, "colours": 257 * colours.ravel()}
        read = levels(tmp_path, samples=indices, **kind, **how)
        np.testing.assert_allclose(read, colours[:, indices].transpose(1, 2, 0))
    with pytest.raises(BadPhoto, match="palette of 8 bits"):  # would be black
        levels(tmp_path, samples=indices, bits=bits, photometric=3, colours=colours.ravel())


@pytest.mark.parametrize("bits", [8, 16])
def test_grey_with_transparency_is_right_or_refused(tmp_path, bits):
    for white_is_zero, order, extra, planes, deflate in itertools.product(
        (False, True), "<>", (0, 1, 2), (False, True), (False, True)
    ):
        grey, picture = stored(GREY, bits, white_is_zero=white_is_zero)
        kind = {"bits": bits, "photometric": 1 - white_is_zero, "order": order, "extra": (extra,)}
        every = np.stack([grey, np.full_like(grey, 2**bits - 1)], -1)
        read_or_refused(tmp_path, picture, samples=every, planes=planes, deflate=deflate, **kind)


def test_grey_that_is_multiplied_by_its_alpha_lies_on_white(tmp_path):
    alpha = np.full((HEIGHT, WIDTH), 128)
    samples = np.stack([np.round(GREY * 128).astype(np.int64), alpha], -1)
    read = levels(tmp_path, samples=samples, bits=8, photometric=1, extra=(1,))
    on_white = samples[..., 0] + 255 - 128
    np.testing.assert_allclose(read, on_white[..., None].repeat(3, 2), atol=1.5)


@pytest.mark.parametrize(("bits", "photometric"), list(itertools.product((16, 32, 64), (0, 1))))
def test_floats_have_no_known_range(tmp_path, bits, photometric):
    with pytest.raises(BadPhoto, match=r"not supported|not every kind of pixels"):
        levels(tmp_path, samples=GREY, bits=bits, photometric=photometric, sample_format=3)


def test_near_duplicates_and_students_see_the_same_picture(tmp_path):
    samples, picture = stored(GREY, 16, white_is_zero=True)
    path = tmp_path / "photo.tif"
    path.write_bytes(tiff(samples, 16, 0))
    plain = tmp_path / "photo.png"
    Image.fromarray(np.round(255 * picture).astype(np.uint8)).save(plain)
    np.testing.assert_array_equal(thumbnail(path)["large"], thumbnail(plain)["large"])
    stylize = load("ink")
    with Image.open(path) as grey, Image.open(plain) as same:
        np.testing.assert_array_equal(np.asarray(stylize(grey)), np.asarray(stylize(same)))
    path.write_bytes(tiff(GREY, 32, 1, sample_format=3))
    with Image.open(path) as floats, pytest.raises(DistillError, match="kind F are not supported"):
        stylize(floats)
