import hashlib

import numpy as np
import pytest
import torch
from PIL import Image

from distill.data.augment import (
    CAMERA,
    as_square,
    random_cut,
    random_square,
    recolour,
    rng_for,
    views,
    zoomed_crop,
)
from distill.data.photos import centre_square


def ramps(width, height):
    """Red grows with x, green with y, from 0 to 250: a square's place can be read off it."""
    picture = np.zeros((height, width, 3))
    picture[..., 0] = 250 * (np.arange(width) + 0.5) / width
    picture[..., 1] = 250 * (np.arange(height)[:, None] + 0.5) / height
    return Image.fromarray(picture.round().astype(np.uint8))


def place(square, width, height):
    """(left, top, side across, side down, mirrored) of a square cut from `ramps`, in pixels."""
    array = np.asarray(square).astype(float)
    size = len(array)
    x = array[..., 0].mean(0) / 250 * width
    y = array[..., 1].mean(1) / 250 * height
    inner = np.arange(size)[4:-4]  # the filter bends the ramp at the picture's rim
    slope_x, at_x = np.polyfit(inner, x[4:-4], 1)
    slope_y, at_y = np.polyfit(inner, y[4:-4], 1)
    low_x = min(at_x - slope_x / 2, at_x + slope_x * (size - 0.5))
    return low_x, at_y - slope_y / 2, abs(slope_x) * size, slope_y * size, slope_x < 0


@pytest.mark.parametrize("crop", [1.0, 0.6])
def test_random_squares_stay_inside_and_vary(crop):
    width, height = 160, 128
    image = ramps(width, height)
    places = [place(random_square(image, 32, crop, rng_for(i)), width, height) for i in range(60)]
    left, top, across, down, mirrored = map(np.array, zip(*places, strict=True))
    short = height * crop
    assert np.abs(across - down).max() < 3
    assert across.min() > 0.45 * short - 3
    assert across.max() < short + 3
    assert left.min() > width * (1 - crop) / 2 - 2
    assert top.min() > height * (1 - crop) / 2 - 2
    assert (left + across).max() < width * (1 + crop) / 2 + 2
    assert (top + down).max() < height * (1 + crop) / 2 + 2
    # 60 squares: sizes over most of the range, both mirror images, 4 sigma around a fair coin.
    assert np.ptp(across) > 0.4 * short
    assert abs(mirrored.sum() - 30) < 4 * 60**0.5 / 2


def test_cameras_change_light_noise_and_edges_as_they_say():
    grey, step = Image.new("RGB", (64, 64), (200,) * 3), np.zeros((100, 100, 3), np.uint8)
    step[:, 50:] = 200
    assert np.asarray(CAMERA["dim light"](grey, 1.0, rng_for(0)))[0, 0, 0] == pytest.approx(
        200 * 0.25 ** (1 / 2.2), abs=1
    )
    noise = np.asarray(CAMERA["noise"](grey.resize((128, 128)), 0.5, rng_for(0)), float) - 200
    assert noise.std() == pytest.approx(8, abs=0.2)
    assert noise.mean() == pytest.approx(0, abs=0.3)
    for seed in range(4):  # five places: each row takes as many steps as the way is across
        blurred = np.asarray(CAMERA["motion blur"](Image.fromarray(step), 1.0, rng_for(seed)))
        levels = np.unique(blurred[50, :, 0])
        assert set(levels) <= {0, 40, 80, 120, 160, 200}
        assert np.asarray(CAMERA["motion blur"](grey, 1.0, rng_for(seed))).min() == 200
        assert blurred.astype(float).mean() == pytest.approx(100, abs=2.1)
    poor, good = (np.asarray(CAMERA["JPEG"](ramps(64, 64), s, rng_for(0)), float) for s in (1, 0))
    error = [np.abs(each - np.asarray(ramps(64, 64), float)).mean() for each in (poor, good)]
    assert error[0] > 2 * error[1] > 0


def test_a_generator_depends_on_its_parts_alone():
    # The same number from the definition: 8 bytes of a SHA-256 as the seed.
    seed = int.from_bytes(hashlib.sha256(b"7:a photo.jpg:3").digest()[:8], "big")
    expected = np.random.default_rng(seed).random(5)
    assert (rng_for(7, "a photo.jpg", 3).random(5) == expected).all()


def test_a_generator_takes_a_name_that_is_no_utf_8():
    assert 0 <= rng_for("caf\udce9.jpg").random() < 1


def test_no_strength_leaves_the_colours():
    image = ramps(64, 64)
    assert (np.asarray(recolour(image, 0.0, rng_for(0))) == np.asarray(image)).all()


def test_recolouring_a_uniform_grey_changes_its_brightness_alone():
    # Contrast pulls to the mean and saturation to the grey: on a uniform grey both do nothing.
    greys = []
    for i in range(40):
        array = np.asarray(recolour(Image.new("RGB", (8, 8), (100, 100, 100)), 0.2, rng_for(i)))
        assert array.min() == array.max()
        greys.append(int(array[0, 0, 0]))
    assert min(greys) >= 79
    assert max(greys) <= 120
    assert max(greys) - min(greys) > 20


def test_recolouring_changes_saturation():
    saturations = []
    for i in range(40):
        image = recolour(Image.new("RGB", (8, 8), (150, 100, 50)), 0.5, rng_for(i))
        red, _, blue = image.getpixel((0, 0))
        saturations.append((red - blue) / max(red, 1))
    assert max(saturations) > 2 / 3 + 0.05
    assert min(saturations) < 2 / 3 - 0.05


def test_the_first_view_is_the_plain_centre_square():
    image = ramps(100, 80)
    (first,) = views([image], 0, 32, 0.8, 0.2, rng_for(0))
    assert (np.asarray(first) == np.asarray(centre_square(image, 32, 0.8))).all()


def coordinates(height, width):
    """(H, W, 2): the row and the column of every pixel."""
    return torch.stack(torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij"), -1)


def test_crops_are_whole_windows_that_reach_everywhere():
    tops, lefts, flips = set(), set(), 0
    for i in range(300):
        cut = random_cut((8, 9), 6, True, rng_for(i)).of(coordinates(8, 9))
        flipped = bool(cut[0, 0, 1] > cut[0, -1, 1])
        cut = cut.flip(1) if flipped else cut
        top, left = cut[0, 0].tolist()
        assert torch.equal(cut, coordinates(8, 9)[top : top + 6, left : left + 6])
        tops.add(top)
        lefts.add(left)
        flips += flipped
    assert (tops, lefts) == ({0, 1, 2}, {0, 1, 2, 3})
    assert abs(flips - 150) < 4 * 300**0.5 / 2


@pytest.mark.parametrize(("shape", "size"), [((8, 9), None), ((8, 8), 8), ((8, 9), 20)])
def test_without_a_smaller_size_nothing_is_cropped(shape, size):
    for i in range(10):
        same = random_cut(shape, size, False, rng_for(i)).of(coordinates(*shape))
        assert torch.equal(same, coordinates(*shape))


# Squares


@pytest.mark.parametrize("pad", ["white", "black", "edge"])
@pytest.mark.parametrize("size", [(200, 75), (75, 200), (201, 3000), (64, 65)])
def test_padding_keeps_the_whole_picture_in_the_middle(pad, size):
    image = Image.new("RGB", size, (100, 150, 200))
    square = np.asarray(as_square(image, 64, pad))
    assert square.shape == (64, 64, 3)
    inside = (square == (100, 150, 200)).all(-1)
    if pad == "edge":
        assert inside.all()
        return
    across, down = (max(1, round(side * 64 / max(size))) for side in size)
    rows, columns = (inside.any(axis) for axis in (1, 0))
    assert (int(columns.sum()), int(rows.sum()), int(inside.sum())) == (across, down, across * down)
    for filled, length in ((columns, across), (rows, down)):
        before, after = filled.argmax(), filled[::-1].argmax()
        assert before + after + length == 64
        assert abs(int(before) - int(after)) <= 1


def test_what_is_padded_on_a_see_through_picture_is_see_through():
    image = Image.new("RGBA", (64, 32), (1, 2, 3, 200))
    for pad, corner in (("white", (255, 255, 255, 0)), ("black", (0, 0, 0, 0))):
        square = as_square(image, 64, pad)
        assert square.getpixel((0, 0)) == square.getpixel((63, 63)) == corner
        assert square.getpixel((32, 32)) == (1, 2, 3, 200)
    assert as_square(image, 64, "edge").getcolors() == [(64 * 64, (1, 2, 3, 200))]


def ramp_image(width, height):
    """Red is the column and green the row."""
    rows, columns = np.mgrid[:height, :width]
    return Image.fromarray(np.stack([columns, rows, 0 * rows], -1).astype(np.uint8))


def test_zoomed_crops_show_one_square_of_all_pictures_in_every_size():
    first = ramp_image(200, 160)
    second = Image.fromarray(255 - np.asarray(first))
    factors = []
    for i in range(200):
        one, other = zoomed_crop([first, second], 64, 0.5, rng_for(i))
        assert one.size == other.size == (64, 64)
        one, other = (np.asarray(each).astype(int) for each in (one, other))
        assert np.abs(one + other - 255).max() <= 1
        # A step of one pixel in the crop is 1 / factor in the picture; its edges are left out.
        across, down = (np.diff(one[8:-8, 8:-8, 0], axis=1), np.diff(one[8:-8, 8:-8, 1], axis=0))
        factors.append(1 / across.mean())
        assert 1 / down.mean() == pytest.approx(factors[-1], rel=0.05)
    assert min(factors) == pytest.approx(1 / 1.5, rel=0.05)
    assert max(factors) == pytest.approx(1.5, rel=0.05)
    assert np.mean(np.array(factors) < 1) == pytest.approx(0.5, abs=0.12)  # ± 3.4 of its deviations


def test_zoomed_crops_of_small_pictures_take_the_whole_side():
    image = ramp_image(40, 60)
    for i in range(20):
        (cut,) = zoomed_crop([image], 40, 0.3, rng_for(i))
        assert np.asarray(cut)[..., 0].max() <= 39
        assert cut.size == (40, 40)


def test_no_zoom_is_a_plain_crop_at_a_fraction_of_a_pixel():
    (cut,) = zoomed_crop([ramp_image(96, 96)], 64, 0.0, rng_for(3))
    columns = np.asarray(cut)[32, :, 0].astype(int)
    assert columns[-1] - columns[0] == 63
