"""Two minutes of camera: the page's own heap does not grow.

The process's memory, where the worker's garbage waits to be collected, is in
benchmarks/page.py --watch.
"""

import time

import pytest

from support.page_memory import megabytes

MINUTES = 2
FRAMES = 60  # before it is measured: buffers are made, the browser has compiled


@pytest.mark.campaign
@pytest.mark.timeout(900)
def test_two_minutes_of_camera_take_no_more_heap(visit):
    at = visit("?threads=1&size=128&style=hayao", camera=True)
    at.wait("document.getElementById('meter').textContent.includes('FPS')")
    at.frames(FRAMES)
    before, count = megabytes(at.page), at.page.evaluate("distill.speed().frames")
    time.sleep(60 * MINUTES)
    after, frames = megabytes(at.page), at.page.evaluate("distill.speed().frames") - count
    assert frames > FRAMES
    assert after["heap of the page"] - before["heap of the page"] < 1
