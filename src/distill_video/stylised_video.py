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
from av import Packet
from PIL import Image
from scipy.ndimage import maximum_filter
from tqdm import tqdm

from distill.config.settings.commands import Stylize
from distill.core.errors import counted, needed
from distill.core.files import atomic_write, write_json
from distill.core.progress import bar
from distill.data.decode import to_rgb
from distill.data.faces import FindFaces
from distill.stylize import portraits, render
from distill.stylize.jobs import NotWhole, StylizeJob
from distill.stylize.onnx_student import ImageModel
from distill.stylize.parts import lay_over
from distill.stylize.pictures import InferenceSetup
from distill.stylize.portraits import Square
from distill.stylize.stickers import Followed, follow
from distill_video.reader import Reader, VideoFrame
from distill_video.videos import BadVideo
from distill_video.writer import Writer


def stylise_file(job: StylizeJob, setup: InferenceSetup) -> None:
    """One video, read, stylised and written whole.

    Raises BadVideo with the reason where it is not, NotWhole where frames of it could not be read.
    """
    settings: Any = setup.settings  # those of VideoSettings among them
    if settings.face == "crop":
        raise BadVideo("face=crop is for pictures; leave it off")
    student, smooth = setup.student, settings.smooth
    summarise = SmoothSummary(student.summary, smooth) if student.takes_summary else None
    dress = replace(setup.wardrobe, steady=True, frames_with_face=0) if setup.wardrobe else None
    paste_faces = FacePaster(settings, student, setup.find_faces) if setup.find_faces else None

    def stylise(frame: np.ndarray) -> np.ndarray:
        stylised = picture = Image.fromarray(frame)
        if paste_faces:
            stylised = paste_faces(picture)
        elif settings.face != "wear":
            stylised = render.stylise_rgb(
                picture, student, settings.size, settings.upscale, summarise
            )
        if settings.strength < 1 or settings.parts:
            stylised = lay_over(picture, stylised, settings, lambda _: None)
        if dress:
            stylised = dress(picture, stylised) or stylised
        return np.asarray(to_rgb(stylised))  # what is see-through becomes white

    try:
        report = stylise_video(
            *(job.source, job.target, stylise, job.say),
            *(settings.crf, smooth, settings.stability, settings.compare),
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
    face_counter = paste_faces or dress
    if face_counter and (faceless := report.frames - face_counter.frames_with_face):
        job.say(f"no face found in {faceless} of {counted(report.frames, 'frame')}")
    if losses := report.missing:
        raise NotWhole(losses)


@dataclass
class FacePaster:
    """face=paste of one video, frame after frame: squares are smoothed as marks are."""

    settings: Stylize
    model: ImageModel
    find: FindFaces
    frames_with_face: int = 0  # frames with a face
    _faces: list[Followed] | None = None

    def __call__(self, photo: Image.Image) -> Image.Image:
        at, faces = self.settings, list[Followed]()
        for square in portraits.squares(photo, self.find, at.detector, at.faces == "all"):
            start, side = complex(square.left, square.top), square.side
            faces.append(Followed({"start": start, "end": start + side * (1 + 1j)}, 1.0))
        self.frames_with_face += bool(faces)
        self._faces = follow(self._faces, faces)
        squares = []
        for face in self._faces:
            start, end = face.marks.values()
            corner = round(start.real), round(start.imag)
            squares.append(Square(*corner, round((end - start).real), face.opacity))
        if not squares:
            return photo
        page = photo.convert("RGBA")
        return render.stylise(page, self.model, at.size, at.upscale, squares, at.blend)


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
) -> VideoReport:
    """Every frame through `stylise`, which maps uint8 (height, width, 3) to as many.

    `say` gets a line for whatever is not kept as it was. `crf` is the encoder's, 0 to 51; `smooth`
    from 0 (off) to below 1; `compare` puts input and output into one. Raises BadVideo for a file
    that is none, OSError where `target` cannot be written, and whatever `stylise` raises; then
    there is no target.
    """
    with closing(Reader(source)) as reader, atomic_write(target) as path:
        frames, (width, height) = reader.facts.frames, reader.facts.size
        smoother, meter = Smoother(smooth) if smooth else None, None
        if stability:
            with needed("stability=true: needs scikit-image", "pip install scikit-image"):
                from distill_video.stability import StabilityMeter
            meter = StabilityMeter(1 + (frames or 0) // PAIRS)

        def infer(item: VideoFrame | Packet) -> VideoFrame | Packet:
            if not isinstance(item, VideoFrame):
                return item
            return replace(item, stylised=stylise(item.picture))

        def finish(item: VideoFrame | Packet) -> VideoFrame | Packet:
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
            count, writing, start = 0, 0.0, time.perf_counter()
            with bar(frames, "frame", source.name, leave=False) as progress, pipeline as items:
                for item in items:
                    before = time.perf_counter()
                    if isinstance(item, VideoFrame):
                        writer.write(item.pts, item.duration, item.picture)
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
    stages = zip(("read", "stylise", "smooth", "write"), [*pipeline.busy, writing], strict=True)
    busy = {stage: spent / seconds for stage, spent in stages}
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


BLOCK = 8  # pixels a side whose mean is compared: an eighth of the sensor's noise is left
SCENE = 0.2  # of its length that a summary may change by and still be mixed by a third
STILL = 3.0  # levels of 255 that a block's mean may change by and still be mixed by a third


class Smoother:
    """Mixes a stylised frame with the last result by `strength` (0 to below 1) where nothing moves.

    out = stylised + w · (last - stylised), w = strength · exp(-(d / 3)²), d the change of the input
    in levels of 255: of the means of blocks of 8×8 pixels, the largest of three colours and of the
    block's neighbours. d is taken to the input mixed by the same weights, so that slow changes,
    each too small to notice, end the mixing before a trail can be seen. Only the past counts, and
    one picture is kept.
    """

    def __init__(self, strength: float) -> None:
        self._strength = strength
        self._last: np.ndarray | None = None
        self._reference: np.ndarray = np.zeros(0)

    def __call__(self, picture: np.ndarray, stylised: np.ndarray) -> np.ndarray:
        """A frame and its output, both uint8 (height, width, 3); gives the mixed output."""
        means = np.asarray(Image.fromarray(picture).reduce(BLOCK), np.float32)
        result = stylised.astype(np.float32)
        if self._last is None or self._last.shape != stylised.shape:
            self._last, self._reference = result, means
            return stylised
        change = maximum_filter(np.abs(means - self._reference).max(2), 3)
        weight = self._strength * np.exp(-((change / STILL) ** 2))  # of every block
        self._reference = means + weight[..., None] * (self._reference - means)
        size = weight.shape[1] * BLOCK, weight.shape[0] * BLOCK
        pixels = np.asarray(Image.fromarray(weight).resize(size, Image.Resampling.BILINEAR))
        high, wide = stylised.shape[:2]  # the last blocks may reach beyond the edge
        self._last -= result
        self._last *= pixels[:high, :wide, None]
        self._last += result
        return (self._last + 0.5).astype(np.uint8)


class SmoothSummary:
    """A student's summary of a frame, mixed with the last frames' by `strength` (0 to below 1).

    Its summary of the whole picture then neither flickers nor, since the weight falls with the
    change, lasts from one scene into the next.
    """

    def __init__(self, summarise: Callable[[np.ndarray], np.ndarray], strength: float) -> None:
        self._summarise, self._strength = summarise, strength
        self._last: np.ndarray | None = None

    def __call__(self, photo: np.ndarray) -> np.ndarray:
        """(1, 3, H, W) in [0, 1] to (1, 64, 1, 1), frame after frame."""
        summary = self._summarise(photo)
        if self._last is not None:
            length = max(float(np.linalg.norm(summary)), 1e-12)
            change = float(np.linalg.norm(summary - self._last)) / length
            weight = self._strength * np.float32(np.exp(-((change / SCENE) ** 2)))
            summary = summary + weight * (self._last - summary)
        self._last = summary
        return summary
