"""The filter over time: what it lowers by how much, and where it keeps its hands off."""

import numpy as np
import pytest

from distill_video.stylised_video import BLOCK, STILL, Smoother

GREY = np.full((40, 56, 3), 120, np.uint8)


def flicker(count, low=100, high=140):
    return [np.full_like(GREY, high if i % 2 else low) for i in range(count)]


@pytest.mark.parametrize("strength", [0.5, 0.8])
def test_flicker_of_a_still_video_sinks_to_what_the_recursion_leaves(strength):
    """y = (1 - w)·x + w·y' answers ± alternation with (1 - w) / (1 + w) of its height."""
    smooth = Smoother(strength)
    stylised = [smooth(GREY, frame).astype(float).mean() for frame in flicker(60)]
    left = (1 - strength) / (1 + strength)
    assert abs(stylised[-1] - stylised[-2]) == pytest.approx(40 * left, abs=1)
    assert np.mean(stylised[-2:]) == pytest.approx(120, abs=1)  # and its mean stays


def test_the_first_frame_is_left_alone():
    assert (Smoother(0.9)(GREY, flicker(1)[0]) == 100).all()


def test_zero_changes_nothing():
    smooth = Smoother(0.0)
    for frame in flicker(4):
        assert (smooth(GREY, frame) == frame).all()


def test_nothing_of_another_scene_shines_through():
    smooth, black = Smoother(0.9), np.zeros_like(GREY)
    smooth(GREY, np.full_like(GREY, 200))
    assert (smooth(black, black) == 0).all()


def test_what_moves_leaves_no_trail_and_the_rest_is_smoothed():
    """A bright square jumps: there the new output counts alone, two blocks away the mean."""
    before, after = GREY.copy(), GREY.copy()
    before[:BLOCK, :BLOCK], after[:BLOCK, BLOCK : 2 * BLOCK] = 255, 255
    smooth = Smoother(0.5)
    smooth(before, np.full_like(GREY, 100))
    stylised = smooth(after, np.full_like(GREY, 140))
    assert (stylised[:BLOCK, : 2 * BLOCK] == 140).all()
    assert (stylised[:, 5 * BLOCK :] == 120).all()


def test_slow_change_adds_up_until_it_ends_the_mixing():
    """Half a level a frame is little beside the last frame, but not beside what is mixed in."""
    smooth = Smoother(0.95)
    for i in range(200):
        picture = np.full_like(GREY, 40 + i // 2)
        stylised = smooth(picture, picture)
        assert np.abs(stylised.astype(int) - picture).max() <= STILL


@pytest.mark.parametrize("shape", [(1, 1, 3), (7, 9, 3), (48, 64, 3), (49, 65, 3)])
def test_every_size(shape):
    smooth, frame = Smoother(0.5), np.full(shape, 80, np.uint8)
    smooth(frame, frame)
    assert (smooth(frame, frame + 40) == 100).all()
    assert smooth(np.zeros((5, 5, 3), np.uint8), np.zeros((5, 5, 3), np.uint8)).shape == (5, 5, 3)


def test_noise_of_a_camera_does_not_keep_it_from_smoothing():
    rng = np.random.default_rng(0)
    smooth, changes = Smoother(0.8), []
    for frame in flicker(30):
        noisy = (GREY + rng.normal(0, 2.5, GREY.shape)).round().astype(np.uint8)
        changes.append(smooth(noisy, frame).astype(float))
    assert np.abs(changes[-1] - changes[-2]).mean() < 40 / 4
