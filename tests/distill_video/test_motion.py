"""The motion between frames, of textures that were moved by a known way."""

import numpy as np
import pytest
from PIL import Image

from distill_video.motion import MotionTracker, moved, padded
from support.moving_scenes import seen, texture


@pytest.mark.parametrize("step", [(0, 0), (0.4, -0.2), (2.3, 0.6), (-9, 5)])
def test_a_camera_s_step_is_the_flow_and_adds_up(step):
    scene, tracker = texture(), MotionTracker()
    motions = [tracker(seen(scene, n * step[0], n * step[1])) for n in range(4)]
    assert motions[0].flow is None
    assert not motions[0].travel.any()
    for motion in motions[1:]:
        error = np.hypot(*(motion.flow - step)[2:7, 2:9].transpose(2, 0, 1))  # beyond: the edge
        assert np.median(error) < 0.3
        assert np.quantile(error, 0.9) < 1.0
    assert np.hypot(*(motions[-1].travel - 3 * np.array(step))) < 0.5


def test_a_zoom_has_a_flow_that_grows_to_the_sides_and_no_travel():
    scene, tracker = texture(), MotionTracker()
    tracker(seen(scene, 0, 0))
    motion = tracker(seen(scene, -1.6, -1.28, zoom=1.01))  # around the middle
    rows, columns = np.mgrid[0:8, 0:10] * motion.cell
    expected = 0.01 * np.stack([columns - 160, rows - 128], -1)
    assert np.abs(motion.flow[2:7, 2:9] - expected[2:7, 2:9]).mean() < 0.1
    assert np.abs(motion.travel).max() < 0.3


@pytest.mark.parametrize("size", [(1, 1), (7, 200), (321, 257)])
def test_any_size_and_flat_frames_stand_still(size):
    tracker = MotionTracker()
    for _ in range(2):
        motion = tracker(np.full((*size, 3), 90, np.uint8))
    assert np.abs(motion.flow).max() == 0
    assert tracker(np.zeros((9, 9, 3), np.uint8)).flow is None  # another size begins anew


def test_moving_by_whole_pixels_is_exact():
    picture = texture(128, 96)
    flow = np.full((4, 5, 2), [3.0, -2.0])
    result = np.asarray(moved(Image.fromarray(picture), flow, 32))
    assert (result[32:64, 32:96] == picture[30:62, 35:99]).all()
    assert padded(picture[:90, :100], 32).shape == (96, 128, 3)
