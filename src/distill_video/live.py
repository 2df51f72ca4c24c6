"""distill.stylize camera=: a camera's frames stylised and shown as they come."""

import time
from contextlib import closing, suppress
from itertools import chain
from typing import Any

from distill.core.errors import DistillError, counted
from distill.stylize import render, stylizing
from distill.stylize.pictures import InferenceSetup
from distill_video.camera import SCREENS, Camera, Screen
from distill_video.frames import FrameStylizer, frame_steps
from distill_video.reader import VideoFrame
from distill_video.stylised_video import Pipeline
from distill_video.videos import BadVideo

DEPTH = 3  # frames on their way, one for each step: more would only be shown later


def carry_out(settings: Any) -> None:
    """Until the window is closed, the file that plays as a camera ends, or Ctrl-C.

    Raises DistillError for a camera, a screen or settings that cannot be used.
    """
    written = {"-o": settings.output, "compare=true": settings.compare}
    if excess := [*settings.inputs, *(word for word, value in written.items() if value)]:
        raise DistillError(f"camera={settings.camera}: is shown as it comes; leave {excess[0]} out")
    student, name = stylizing.choose(settings)
    render.check_size(settings.size, student, settings.upscale)
    try:
        stylise = FrameStylizer(InferenceSetup.of(settings, student))
    except BadVideo as reason:
        raise DistillError(str(reason)) from None
    camera = Camera(settings.camera)
    pictures = camera.__iter__()
    with closing(pictures):
        first = next(pictures, None)
        if first is None:
            raise DistillError(f"camera={settings.camera}: has no frame; name another one")
        size = first.shape[1], first.shape[0]
        steps = frame_steps(stylise, settings.smooth, stylise.period(size))
        items = (VideoFrame(0, 0, each) for each in chain([first], pictures))
        with closing(SCREENS[settings.screen](f"distill: {name}", size)) as screen:
            _show(Pipeline(items, steps, DEPTH), screen, camera)


def _show(pipeline: Pipeline, screen: Screen, camera: Camera) -> None:
    """Say at the end, however it ends, how many frames were shown."""
    count, start = 0, time.perf_counter()
    try:
        with suppress(KeyboardInterrupt), pipeline as items:
            for item in items:
                count += 1
                if not screen.show(item.smoothed):
                    break
    finally:
        seconds = time.perf_counter() - start
        print(
            f"{counted(count, 'frame')} in {seconds:.1f} s, {count / seconds:.1f} a second; "
            f"{camera.left_out} that came meanwhile left out"
        )
