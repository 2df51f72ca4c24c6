"""A whole video drawn: read, drawn, smoothed, measured and written, all at the same time."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from distill.core.progress import bar
from distill.inference.video.pipeline import Pipeline
from distill.inference.video.reader import Reader, VideoFrame
from distill.inference.video.smoothing import Smoother
from distill.inference.video.stability import Meter, Stability
from distill.inference.video.writer import Writer, aside

Draw = Callable[[np.ndarray], np.ndarray]
PAIRS = 200  # of frames that the stability is measured on at most: a pair takes 0.2 s


@dataclass(frozen=True)
class Options:
    """`smooth` from 0 (off) to below 1; `crf` of the encoder, 0 to 51; `compare`: both in one."""

    crf: float
    smooth: float = 0.0
    stability: bool = False
    compare: bool = False


@dataclass(frozen=True)
class VideoReport:
    """What was drawn, and what a user should know. `busy` is each stage's share of the time.

    `lost` frames were damaged, `dropped` pieces of sound damaged or out of time; `cut` says where
    the file breaks off, if it does.
    """

    frames: int
    seconds: float
    busy: dict[str, float]
    lost: int
    dropped: int
    cut: str | None
    stability: Stability | None


def draw_video(
    source: Path, target: Path, draw: Draw, options: Options, say: Callable[[str], None]
) -> VideoReport:
    """Every frame through `draw`, which maps uint8 (height, width, 3) to as many.

    `say` gets a line for whatever is not kept as it was. Raises BadVideo for a file that is none,
    OSError where `target` cannot be written, and whatever `draw` raises; then there is no target.
    """
    with closing(Reader(source)) as reader, aside(target) as path:
        size = _size(reader, options)
        writer = Writer(path, target.suffix.lower(), reader, size, options.crf)
        try:
            _say_all(reader, writer, size, say)
            report = _run(reader, writer, draw, options, source.name)
            writer.finish()
        except BaseException:
            writer.abandon()
            raise
    return report


def _size(reader: Reader, options: Options) -> tuple[int, int]:
    width, height = reader.facts.size
    return (2 * width if options.compare else width), height


def _say_all(
    reader: Reader, writer: Writer, size: tuple[int, int], say: Callable[[str], None]
) -> None:
    for remark in reader.remarks + [track.remark for track in writer.tracks if track.remark]:
        say(remark)
    if size[0] % 2 or size[1] % 2:
        width, height = (side + side % 2 for side in size)
        say(
            f"is {size[0]}×{size[1]}; its drawing is {width}×{height}, as the encoder needs it even"
        )


def _run(reader: Reader, writer: Writer, draw: Draw, options: Options, name: str) -> VideoReport:
    finishing = _Finish(options, reader.facts.frames or 0)
    pipeline = Pipeline(reader, [_on_frames(draw), finishing])
    frames, writing, start = 0, 0.0, time.perf_counter()
    with bar(reader.facts.frames, " frames", name, leave=False) as progress, pipeline as items:
        for item in items:
            before = time.perf_counter()
            if isinstance(item, VideoFrame):
                writer.draw(item.pts, item.duration, item.picture)
                frames += 1
                progress.update()
            else:
                writer.copy(item)
            writing += time.perf_counter() - before
    seconds = time.perf_counter() - start
    stages = zip(("read", "draw", "smooth", "write"), [*pipeline.busy, writing], strict=True)
    busy = {stage: spent / seconds for stage, spent in stages}
    return VideoReport(
        frames, seconds, busy, reader.lost, writer.dropped, reader.cut, finishing.stability()
    )


def _on_frames(draw: Draw) -> Callable[[Any], Any]:
    def step(item: Any) -> Any:
        return item.with_drawn(draw(item.picture)) if isinstance(item, VideoFrame) else item

    return step


class _Finish:
    """The step behind the drawing: smoothed, measured, put beside the picture."""

    def __init__(self, options: Options, frames: int) -> None:
        self._smoother = Smoother(options.smooth) if options.smooth else None
        self._meter = Meter(1 + frames // PAIRS) if options.stability else None
        self._compare = options.compare

    def __call__(self, item: Any) -> Any:
        if not isinstance(item, VideoFrame) or item.drawn is None:
            return item
        drawn = item.drawn
        if self._smoother:
            drawn = self._smoother(item.picture, drawn)
        if self._meter:
            self._meter.add(item.picture, item.drawn, drawn)
        if self._compare:
            drawn = np.concatenate([item.picture, drawn], axis=1)
        return VideoFrame(item.pts, item.duration, drawn)

    def stability(self) -> Stability | None:
        return self._meter.result() if self._meter else None
