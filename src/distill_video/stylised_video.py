"""A whole video: read, stylised, smoothed, measured and written, all at the same time."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from tqdm import tqdm

from distill.core.errors import counted, needed
from distill.core.files import atomic_write, write_json
from distill.core.progress import bar
from distill.stylize.jobs import NotWhole, StylizeJob
from distill.stylize.pictures import InferenceSetup
from distill_video.frames import FrameStylizer, frame_steps, of_frames
from distill_video.reader import Reader, VideoFrame
from distill_video.videos import BadVideo
from distill_video.writer import Writer


def stylise_file(job: StylizeJob, setup: InferenceSetup) -> None:
    """One video, read, stylised and written whole.

    Raises BadVideo with the reason where it is not, NotWhole where frames of it could not be read.
    """
    settings: Any = setup.settings  # those of VideoSettings among them
    smooth, stylise = settings.smooth, FrameStylizer(setup)
    try:
        report = stylise_video(
            *(job.source, job.target, stylise, job.say),
            *(settings.crf, smooth, settings.stability, settings.compare),
            period=stylise.period,
        )
        if stability := report.stability:
            values = {**asdict(stability), "ratio": stability.ratio, "smooth": smooth}
            write_json(job.target.with_name(f"{job.target.stem}.stability.json"), values)
            ratio = "" if stability.ratio is None else f", {stability.ratio:.2f} times as much"
            before = f"; {stability.unsmoothed:.2f} before smooth={smooth:g}" if smooth else ""
            tqdm.write(
                f"stability: outputs change by {stability.drawings:.2f} levels of 255 beyond the "
                f"motion, inputs by {stability.pictures:.2f}{ratio}{before}",
                file=sys.stdout,
            )
        elif settings.stability:
            tqdm.write("stability: no two frames show the same", file=sys.stdout)
    except OSError as error:
        temporary = str(error.filename or "").endswith(".part")
        where = str(job.target) if temporary else error.filename or str(job.target)
        reason = (error.strerror or str(error)).lower()
        raise BadVideo(f"{where!r} cannot be written ({reason})") from error
    shares = ", ".join(f"{stage} {share:.0%}" for stage, share in report.busy.items())
    pace = report.frames / report.seconds
    tqdm.write(
        f"{counted(report.frames, 'frame')}, {pace:.1f} a second; busy: {shares}", file=sys.stdout
    )
    if faceless := stylise.faceless(report.frames):
        job.say(f"no face found in {faceless} of {counted(report.frames, 'frame')}")
    if losses := report.missing:
        raise NotWhole(losses)


if TYPE_CHECKING:
    from distill_video.stability import Stability

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
        lost = f"{counted(self.lost, 'damaged frame')} left out" if self.lost else ""
        pieces = f"{counted(self.dropped, 'piece')} of its sound or subtitles"
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
    period: Callable[[tuple[int, int]], float] | None = None,
) -> VideoReport:
    """Every frame through `stylise`, which maps uint8 (height, width, 3) to as many.

    `say` gets a line for whatever is not kept as it was. `crf` is the encoder's, 0 to 51; `smooth`
    from 0 (off) to below 1; `compare` puts input and output into one; `period` gives the pixels
    that the grid of `stylise` repeats after in frames of a size, 0 where it has none. Raises
    BadVideo for a file that is none, OSError where `target` cannot be written, and whatever
    `stylise` raises; then there is no target.
    """
    with closing(Reader(source)) as reader, atomic_write(target) as path:
        frames, (width, height) = reader.facts.frames, reader.facts.size
        meter = None
        if stability:
            with needed("stability=true: needs scikit-image", "pip install scikit-image"):
                from distill_video.stability import StabilityMeter
            meter = StabilityMeter(1 + (frames or 0) // PAIRS)

        *steps, mix = frame_steps(stylise, smooth, period((width, height)) if period else 0.0)

        def finish(frame: Any) -> VideoFrame:
            frame = mix(frame)
            if meter:
                meter.add(frame.picture, frame.stylised, frame.smoothed)
            both = [frame.picture, frame.smoothed]
            return replace(frame, smoothed=np.concatenate(both, 1)) if compare else frame

        if compare:
            width *= 2
        writer = Writer(path, target.suffix.lower(), reader, (width, height), crf)
        try:
            for remark in [*reader.remarks, *(t.remark for t in writer.tracks if t.remark)]:
                say(remark)
            if width % 2 or height % 2:
                even = f"{width + width % 2}×{height + height % 2}"
                say(f"is {width}×{height}; its output is {even}, as the encoder needs it even")
            pipeline = Pipeline(reader, [*steps, of_frames(finish)])
            count, writing, start = 0, 0.0, time.perf_counter()
            with bar(frames, "frame", source.name, leave=False) as progress, pipeline as items:
                for item in items:
                    before = time.perf_counter()
                    if isinstance(item, VideoFrame) and item.smoothed is not None:
                        writer.write(item.pts, item.duration, item.smoothed)
                        count += 1
                        progress.update()
                    else:
                        writer.copy(item)
                    writing += time.perf_counter() - before
            seconds = time.perf_counter() - start
            writer.finish()
        except BaseException:
            writer.abandon()
            raise
    stages = ("read", "track", "stylise", "smooth", "write")
    shares = zip(stages, [*pipeline.busy, writing], strict=True)
    busy = {stage: spent / seconds for stage, spent in shares if smooth or stage != "track"}
    stability_figures = meter.result() if meter else None
    return VideoReport(
        count, seconds, busy, reader.lost, writer.dropped, reader.cut, stability_figures
    )


DEPTH = 12  # items on their way: enough against hiccups; a 4K picture is 25 MB
_END = object()


class Pipeline:
    """What `source` yields, through every step in turn and in order; a step maps one item to one.

        with Pipeline(source, [stylise, smooth]) as items:
            for item in items: ...

    At most `depth` items are on their way to the caller. Leaving the block, for whatever reason,
    stops all threads. What a step or the source raises is raised to the caller, after the items
    before it. `busy` holds the seconds that the source and each step have worked, without their
    waiting.
    """

    def __init__(
        self, source: Iterable[Any], steps: Sequence[Callable[[Any], Any]], depth: int = DEPTH
    ) -> None:
        items = iter(source)
        self._steps = [lambda _: next(items, _END), *steps]
        self._threads = [ThreadPoolExecutor(1) for _ in self._steps]
        self._depth, self.busy = depth, [0.0] * len(self._steps)

    def __enter__(self) -> Iterator[Any]:
        return self._items()

    def __exit__(self, *_: object) -> None:
        for thread in self._threads:
            thread.shutdown(wait=False, cancel_futures=True)
        for thread in self._threads:
            thread.shutdown()

    def _items(self) -> Iterator[Any]:
        coming: deque[Future[Any]] = deque()
        while True:
            while len(coming) < self._depth:
                item: Future[Any] | None = None
                for number, thread in enumerate(self._threads):
                    item = thread.submit(self._work, number, item)
                assert item is not None
                coming.append(item)
            if (result := coming.popleft().result()) is _END:
                return
            yield result

    def _work(self, number: int, before: Future[Any] | None) -> Any:
        item = before.result() if before else None
        if item is _END:
            return item
        start = time.perf_counter()
        try:
            return self._steps[number](item)
        finally:
            self.busy[number] += time.perf_counter() - start
