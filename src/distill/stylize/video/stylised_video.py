"""A whole video: read, stylised, smoothed, measured and written, all at the same time."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from distill.core.errors import needed
from distill.core.progress import bar
from distill.stylize.video.pipeline import Pipeline
from distill.stylize.video.reader import Reader, VideoFrame
from distill.stylize.video.smoothing import Smoother
from distill.stylize.video.writer import Writer, locked_write

if TYPE_CHECKING:
    from distill.stylize.video.stability import Stability

PAIRS = 200  # of frames that the stability is measured on at most: a pair takes 0.2 s


@dataclass(frozen=True)
class VideoReport:
    """What was written, and what a user should know. `busy` is each stage's share of the time.

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

    @property
    def missing(self) -> str:
        """What of the video is not in the output; empty where that is whole."""
        lost = f"{self.lost} damaged frame{'s' * (self.lost > 1)} left out" if self.lost else ""
        pieces = f"{self.dropped} piece{'s' * (self.dropped > 1)} of its sound or subtitles"
        dropped = f"{pieces} left out (damaged, or out of time)" if self.dropped else ""
        return "; ".join(filter(None, [lost, dropped, self.cut]))


def stylise_video(
    source: Path,
    target: Path,
    stylise: Callable[[np.ndarray], np.ndarray],
    say: Callable[[str], None],
    crf: float,
    smooth: float = 0.0,
    stability: bool = False,
    compare: bool = False,
) -> VideoReport:
    """Every frame through `stylise`, which maps uint8 (height, width, 3) to as many.

    `say` gets a line for whatever is not kept as it was. `crf` is the encoder's, 0 to 51; `smooth`
    from 0 (off) to below 1; `compare` puts input and output into one. Raises BadVideo for a file
    that is none, OSError where `target` cannot be written, and whatever `stylise` raises; then
    there is no target.
    """
    with closing(Reader(source)) as reader, locked_write(target) as path:
        frames, (width, height) = reader.facts.frames, reader.facts.size
        smoother, meter = Smoother(smooth) if smooth else None, None
        if stability:
            with needed("stability=true: needs scikit-image", "pip install scikit-image"):
                from distill.stylize.video.stability import StabilityMeter
            meter = StabilityMeter(1 + (frames or 0) // PAIRS)

        def infer(item: Any) -> Any:
            if not isinstance(item, VideoFrame):
                return item
            return replace(item, stylised=stylise(item.picture))

        def finish(item: Any) -> Any:
            if not isinstance(item, VideoFrame) or item.stylised is None:
                return item
            output = smoother(item.picture, item.stylised) if smoother else item.stylised
            if meter:
                meter.add(item.picture, item.stylised, output)
            return replace(
                item, picture=np.concatenate([item.picture, output], 1) if compare else output
            )

        if compare:
            width *= 2
        writer = Writer(path, target.suffix.lower(), reader, (width, height), crf)
        try:
            for remark in [*reader.remarks, *(t.remark for t in writer.tracks if t.remark)]:
                say(remark)
            if width % 2 or height % 2:
                even = f"{width + width % 2}×{height + height % 2}"
                say(f"is {width}×{height}; its output is {even}, as the encoder needs it even")
            pipeline = Pipeline(reader, [infer, finish])
            written, writing, start = 0, 0.0, time.perf_counter()
            with bar(frames, "frame", source.name, leave=False) as progress, pipeline as items:
                for item in items:
                    before = time.perf_counter()
                    if isinstance(item, VideoFrame):
                        writer.write(item.pts, item.duration, item.picture)
                        written += 1
                        progress.update()
                    else:
                        writer.copy(item)
                    writing += time.perf_counter() - before
            seconds = time.perf_counter() - start
            writer.finish()
        except BaseException:
            writer.abandon()
            raise
    stages = zip(("read", "stylise", "smooth", "write"), [*pipeline.busy, writing], strict=True)
    busy = {stage: spent / seconds for stage, spent in stages}
    measured = meter.result() if meter else None
    return VideoReport(written, seconds, busy, reader.lost, writer.dropped, reader.cut, measured)
