"""The stability figure against videos whose flicker and motion are known."""

import numpy as np
import pytest
from skimage import data
from skimage.transform import resize, warp

from distill_video.stability import StabilityMeter, motion, warped_difference


@pytest.fixture(scope="module")
def photo():
    return resize(data.astronaut(), (128, 160), anti_aliasing=True) * 255


def shifted(photo, right, down=0.0):
    """What is seen when the picture moves by so many pixels; cubic, mirrored at the edges."""
    rows, columns = np.mgrid[: photo.shape[0], : photo.shape[1]].astype(float)
    spots = np.stack([rows - down, columns - right])
    return np.stack(
        [warp(band, spots, order=3, mode="reflect") for band in photo.T.swapaxes(1, 2)], -1
    )


def eight_bit(picture):
    return np.asarray(picture).clip(0, 255).round().astype(np.uint8)


def measured(pictures, outputs, unsmoothed=None, every=1):
    meter = StabilityMeter(every)
    for number, (picture, stylised) in enumerate(zip(pictures, outputs, strict=True)):
        meter.add(picture, stylised if unsmoothed is None else unsmoothed[number], stylised)
    return meter.result()


def test_a_still_video_stylised_alike_is_perfectly_stable(photo):
    found = measured([eight_bit(photo)] * 3, [eight_bit(255 - photo)] * 3)
    assert (found.pictures, found.drawings, found.pairs) == (0, 0, 2)
    assert found.ratio is None
    assert found.visible == 1


@pytest.mark.parametrize("height", [3, 20])
def test_flicker_is_measured_in_levels(photo, height):
    still, grey = eight_bit(photo), np.full(photo.shape, 100, np.uint8)
    found = measured([still] * 4, [grey, grey + height, grey, grey + height], [grey] * 4)
    assert found.drawings == pytest.approx(height)
    assert found.unsmoothed == found.pictures == 0


def test_ratio(photo):
    """Pictures that flicker by 2 levels, outputs by 6."""
    flat, grey = np.full(photo.shape, 60, np.uint8), np.full(photo.shape, 100, np.uint8)
    found = measured([flat, flat + 2, flat], [grey, grey + 6, grey])
    assert found.ratio == pytest.approx(3)


@pytest.mark.parametrize("move", [(0.4, 0.2), (1.5, -1.0), (3.0, 0.0)])
def test_motion_is_found_and_taken_out(photo, move):
    before, now = photo, shifted(photo, *move)
    flow, visible = motion(before, now)
    inner = (slice(16, -16), slice(16, -16))
    assert np.median(-flow[1][inner]) == pytest.approx(move[0], abs=0.1)
    assert np.median(-flow[0][inner]) == pytest.approx(move[1], abs=0.1)
    left = warped_difference(before, now, flow, visible)
    still = np.abs(now - before).mean()
    assert left < still / (2 if max(move) > 1 else 1.3)


def test_what_was_hidden_does_not_count(photo):
    """A patch of noise that appears has no way there and back; the rest is still."""
    now = photo.copy()
    now[40:80, 60:100] = np.random.default_rng(0).uniform(0, 255, (40, 40, 3))
    _, visible = motion(photo, now)
    assert visible[45:75, 65:95].mean() < 0.3
    assert visible[:20].mean() > 0.95


def test_flicker_on_a_moving_video_adds_to_the_flow_s_own_error(photo):
    pictures = [eight_bit(shifted(photo, 0.5 * i)) for i in range(4)]
    steady = measured(pictures, pictures)
    assert steady.ratio == pytest.approx(1)
    flickering = [p // 2 + 20 * (i % 2) for i, p in enumerate(pictures)]
    found = measured(pictures, flickering)
    assert found.drawings == pytest.approx(20, abs=1)


def test_every_nth_pair(photo):
    still = [eight_bit(photo)] * 9
    assert measured(still, still, every=4).pairs == 2
    assert measured(still[:1], still[:1]) is None
