"""The filter over time: what it lowers by how much, and where it keeps its hands off."""

import numpy as np
import pytest
from PIL import Image

from distill_video.motion import MotionTracker
from distill_video.smoothing import STILL, Smoother, on_a_grid_that_moves
from support.moving_scenes import seen, texture

GREY = np.full((40, 56, 3), 120, np.uint8)


def flicker(count, low=100, high=140):
    return [np.full_like(GREY, high if i % 2 else low) for i in range(count)]


class Tracked:
    """A Smoother with its tracker."""

    def __init__(self, strength):
        self.tracker, self.smoother = MotionTracker(), Smoother(strength)

    def __call__(self, picture, stylised):
        return self.smoother(picture, stylised, self.tracker(picture))


@pytest.mark.parametrize("strength", [0.5, 0.8])
def test_flicker_of_a_still_video_sinks_to_what_the_recursion_leaves(strength):
    """y = (1 - w)·x + w·y' answers ± alternation with (1 - w) / (1 + w) of its height."""
    smooth = Tracked(strength)
    stylised = [smooth(GREY, frame).astype(float).mean() for frame in flicker(60)]
    left = (1 - strength) / (1 + strength)
    assert abs(stylised[-1] - stylised[-2]) == pytest.approx(40 * left, abs=1)
    assert np.mean(stylised[-2:]) == pytest.approx(120, abs=1)  # and its mean stays


def test_the_first_frame_is_left_alone():
    assert (Tracked(0.9)(GREY, flicker(1)[0]) == 100).all()


def test_zero_changes_nothing():
    smooth = Tracked(0.0)
    for frame in flicker(4):
        assert (smooth(GREY, frame) == frame).all()


def test_levels_that_rounding_would_keep_are_reached():
    """Of a step by 8 levels, .05 of the rest is less than half a level long before the end."""
    smooth = Tracked(0.95)
    smooth(GREY, np.full_like(GREY, 100))
    for _ in range(150):
        last = smooth(GREY, np.full_like(GREY, 108))
    assert np.abs(last.astype(int) - 108).max() <= 1


def test_the_output_goes_with_the_camera():
    """Patches of paint that flicker on what a camera pans over; the plain mean would smear them."""
    scene, smooth = texture(), Tracked(0.8)
    paint = np.kron(np.random.default_rng(1).integers(60, 180, (60, 80, 3)), np.ones((8, 8, 1)))
    errors = []
    for n in range(12):
        frame, own = seen(scene, 2 * n, n), paint[80 + n : 336 + n, 80 + 2 * n : 400 + 2 * n]
        light = 10 if n % 2 else -10
        result = smooth(frame, (own + light).astype(np.uint8))
        errors.append((result - own)[32:-32, 32:-32])
    assert abs(errors[-1].mean() - errors[-2].mean()) < 8  # of 20 from frame to frame
    assert np.abs(errors[-1]).mean() < 8


def test_nothing_of_another_scene_shines_through():
    smooth, black = Tracked(0.9), np.zeros_like(GREY)
    smooth(GREY, np.full_like(GREY, 200))
    assert (smooth(black, black) == 0).all()


def test_a_cut_to_a_scene_that_is_alike_in_places_leaves_no_ghost():
    smooth = Tracked(0.9)
    for n in range(3):
        smooth(seen(texture(seed=1), n, 0), np.full((256, 320, 3), 255, np.uint8))
    result = smooth(seen(texture(seed=2), 0, 0), np.zeros((256, 320, 3), np.uint8))
    assert (result == 0).all()


def test_what_moves_by_itself_leaves_no_trail():
    """A bright square runs over a still wall: where it was, the new output counts alone."""
    wall, smooth = seen(texture(), 0, 0), Tracked(0.9)
    for n in range(6):
        frame, own = wall.copy(), np.full_like(wall, 60)
        square = np.s_[96:144, 40 + 30 * n : 88 + 30 * n]
        frame[square], own[square] = 250, 250
        result = smooth(frame, own)
    assert np.abs(result.astype(int) - own)[96:144, 150:186].mean() < 4  # it has just left there


def test_slow_change_adds_up_until_it_ends_the_mixing():
    """Half a level a frame is little beside the last frame, but not beside what is mixed in."""
    smooth = Tracked(0.95)
    for i in range(200):
        picture = np.full_like(GREY, 40 + i // 2)
        stylised = smooth(picture, picture)
        assert np.abs(stylised.astype(int) - picture).max() <= STILL


@pytest.mark.parametrize("shape", [(1, 1, 3), (7, 9, 3), (48, 64, 3), (49, 65, 3)])
def test_every_size(shape):
    smooth, frame = Tracked(0.5), np.full(shape, 80, np.uint8)
    smooth(frame, frame)
    assert (smooth(frame, frame + 40) == 100).all()
    assert smooth(np.zeros((5, 5, 3), np.uint8), np.zeros((5, 5, 3), np.uint8)).shape == (5, 5, 3)


def test_noise_of_a_camera_does_not_keep_it_from_smoothing():
    rng = np.random.default_rng(0)
    smooth, changes = Tracked(0.8), []
    for frame in flicker(30):
        noisy = (GREY + rng.normal(0, 2.5, GREY.shape)).round().astype(np.uint8)
        changes.append(smooth(noisy, frame).astype(float))
    assert np.abs(changes[-1] - changes[-2]).mean() < 40 / 4


def test_a_grid_lies_still_on_the_scene():
    """A network that paints a block of 8×8 by its first pixel, on frames of a moving camera."""
    calls = []

    def blocks(frame):
        calls.append(frame.shape)
        return frame[::8, ::8].repeat(8, 0).repeat(8, 1)[: frame.shape[0], : frame.shape[1]]

    scene = texture()
    outputs = []
    for right, down in [(0, 0), (3, 5), (11, 2)]:
        frame = scene[80 + down : 176 + down, 80 + right : 208 + right]
        travel = np.array([right, down], float)
        output = on_a_grid_that_moves(blocks, frame, travel, 8)
        assert output.shape == frame.shape
        outputs.append(output[16 - down : 64 - down, 16 - right : 96 - right])
    assert calls == [(104, 136, 3)] * 3
    for each in outputs[1:]:
        assert (each == outputs[0]).all()  # the plain outputs differ by some 20 levels


def test_a_grid_moves_between_pixels_too():
    wave = 120 + 60 * np.sin(np.arange(640) / 9)[None, :, None] * np.ones((480, 1, 3))
    frame = np.asarray(Image.fromarray(wave.astype(np.uint8)))[:64, :96]
    same = on_a_grid_that_moves(lambda canvas: canvas, frame, np.array([1.37, -0.6]), 32)
    assert np.abs(same.astype(int) - frame).max() <= 3  # there and back
