"""A video file in: its upright frames, how their numbers are colours, and its other packets."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
from av.format import Flags
from av.sidedata.sidedata import Type
from av.stream import Disposition
from av.video import VideoStream
from av.video.reformatter import ColorRange, Colorspace, Interpolation

from distill_video.motion import Motion
from distill_video.videos import BadVideo

# By content, not by name: a playlist or a list of other files may call itself .mp4, and would have
# FFmpeg open what it names.
_KINDS = "mov,matroska,avi,mpeg,mpegts,flv,ogg,asf,mpegvideo"
_SAFE = {"protocol_whitelist": "file", "format_whitelist": _KINDS}
_TOLERANCE = Fraction(1, 10)  # seconds that a header may promise too much


def open_video(path: Path) -> Any:
    """A PyAV container. Raises BadVideo for what is no video file, or none that can be read."""
    try:
        status = path.stat()
    except OSError as error:
        raise BadVideo(f"cannot be read ({error.strerror})") from None
    if not stat.S_ISREG(status.st_mode):
        raise BadVideo("not a file but a folder, pipe, socket or device")
    if not status.st_size:
        raise BadVideo("not a video: the file is empty")
    try:
        # file: keeps FFmpeg from reading a colon in the name as a protocol.
        return av.open(f"file:{path.absolute()}", options=_SAFE, metadata_errors="replace")
    except (av.FFmpegError, ValueError) as error:
        raise BadVideo(
            f"not a video, or damaged at its start or end ({reason_of_ffmpeg(error)})"
        ) from None


def first_video(container: Any, remarks: list[str]) -> VideoStream:
    """The first video stream that is no cover picture; `remarks` gets a line where there are more.

    Raises BadVideo where there is none.
    """
    streams = [s for s in container.streams.video if not s.disposition & Disposition.attached_pic]
    if not streams:
        raise BadVideo("has no video stream")
    if len(streams) > 1:
        remarks.append(f"has {len(streams)} video streams; the first is stylised")
    if streams[0].codec_context is None:
        raise BadVideo("is coded in a way that FFmpeg does not know")
    # With more, FFmpeg gives a damaged frame's error to another frame or, for H.264, to none.
    streams[0].thread_count = 1
    return streams[0]


@dataclass(frozen=True)
class VideoFacts:
    """What the stylised video takes over. `size` is width and height of an upright frame."""

    size: tuple[int, int]
    time_base: Fraction
    rate: Fraction | None
    pixel_shape: Fraction
    colours: Colours
    frames: int | None  # about as many


@dataclass(frozen=True)
class VideoFrame:
    """A picture, uint8 (height, width, 3), upright, from `pts` on for `duration` time bases."""

    pts: int
    duration: int
    picture: np.ndarray
    stylised: np.ndarray | None = None
    motion: Motion | None = None
    smoothed: np.ndarray | None = None


class Reader:
    """Frames and packets of a file in the order that they are stored in.

    Iterating gives each `VideoFrame` of the first video stream, with strictly growing `pts`, and
    the PyAV packets of `others` (sound and subtitles). A frame that cannot be decoded is left out;
    afterwards `lost` says how many were, and `cut` where the file breaks off, if it does. `remarks`
    is what a user should know beforehand. Raises BadVideo for a file without a single frame.
    """

    facts: VideoFacts

    def __init__(self, path: Path) -> None:
        self.remarks: list[str] = []
        self.cut: str | None = None
        self.lost = 0
        self.container = open_video(path)
        try:
            self._stream = first_video(self.container, self.remarks)
            self.others = [s for s in self.container.streams if s.type in ("audio", "subtitle")]
            self._pts: int | None = None
            self._awaited: set[int] = set()
            self._bad = 0
            self._interlaced = self._guessed = False
            self._reached = Fraction(0)
            self._items = self._read()
            # Up to the first frame, whose facts are the video's.
            self._first: list[VideoFrame | av.Packet] = []
            for item in self._items:
                self._first.append(item)
                if isinstance(item, VideoFrame):
                    break
            else:
                raise BadVideo("not one of its frames can be decoded")
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self.container.close()

    @property
    def start(self) -> Fraction:
        """Seconds at which a clock starts that is not the video's own, as a broadcast's; else 0."""
        if not self.container.format.flags & Flags.ts_discont.value:
            return Fraction(0)
        return Fraction(self.container.start_time or 0, av.time_base)

    def __iter__(self) -> Iterator[VideoFrame | av.Packet]:
        yield from self._first
        self._first.clear()
        yield from self._items

    def _read(self) -> Iterator[VideoFrame | av.Packet]:
        for packet in self._packets():
            if packet.stream is not self._stream:
                if packet.size:  # an empty one is the end
                    yield packet
                continue
            try:
                frames = list(packet.decode())
            except av.FFmpegError:  # of whatever class a damaged packet makes FFmpeg return
                self._bad += packet.size > 0
                continue
            for frame in frames:
                yield from self._frame(frame)
        # Half pictures come in packets of their own, one of two without a frame.
        self.lost = max(self._bad, 0 if self._interlaced else len(self._awaited))
        end = self._promised_end()
        if end is not None and not self.cut and end - self._reached > _TOLERANCE:
            self.cut = f"breaks off at {float(self._reached):.1f} s of {float(end):.1f} s"

    def _packets(self) -> Iterator[av.Packet]:
        """A file that breaks off, or whose middle cannot be read, ends there."""
        try:
            for packet in self.container.demux([self._stream, *self.others]):
                start = packet.pts if packet.pts is not None else packet.dts
                if packet.size and start is not None:
                    end = (start + (packet.duration or 0)) * packet.time_base
                    self._reached = max(self._reached, end)
                    video = packet.stream is self._stream and not packet.is_discard
                    if video and packet.pts is not None:
                        self._awaited.add(packet.pts)
                yield packet
        except av.FFmpegError as error:
            self.cut = f"breaks off at {float(self._reached):.1f} s ({reason_of_ffmpeg(error)})"
            flush = av.Packet()
            flush.stream = self._stream
            yield flush

    def _frame(self, frame: av.VideoFrame) -> Iterator[VideoFrame]:
        """The frame, if it is whole and later than the one before."""
        self._interlaced = self._interlaced or frame.interlaced_frame
        pts = self._time(frame)
        if frame.is_corrupt or pts is None or (self._pts is not None and pts <= self._pts):
            self._bad += 1
            return
        if self._pts is None:
            self._take_facts(frame)
        self._awaited.discard(frame.pts if frame.pts is not None else pts)
        self._pts = pts
        picture = turned(to_rgb(frame, self._stored), self._turn)
        yield VideoFrame(pts, frame.duration, picture)

    def _time(self, frame: av.VideoFrame) -> int | None:
        """When a frame is shown, in time bases.

        Decoders give frames in the order that they are shown in. Where a file stores no times, as
        AVI, those that FFmpeg guesses may not be in that order: the time of decoding, which always
        grows, is then near enough.
        """
        pts, dts, last = frame.pts, frame.dts, self._pts
        if pts is None or last is None:
            return dts if pts is None else pts
        if pts <= last and dts is not None and dts > last:
            self._guessed = True
            return int(dts)
        if pts <= last and dts is None and self._guessed:  # of those that the end brings out
            return last + int(frame.duration or 1)
        return int(pts)

    def _take_facts(self, frame: av.VideoFrame) -> None:
        """From the first frame. Later ones of another size are scaled to it."""
        stream = self._stream
        self._stored = (frame.width, frame.height)
        self._turn = turn_of(frame)
        swapped = self._turn[0]
        shape = Fraction(max(stream.sample_aspect_ratio or 1, 0) or 1)  # 1 where nothing is said
        rate, length = stream.average_rate, self.container.duration
        estimated = round(rate * length / av.time_base) if rate and length else None
        self.facts = VideoFacts(
            self._stored[::-1] if swapped else self._stored,
            frame.time_base,
            rate or stream.guessed_rate,
            1 / shape if swapped else shape,
            colours_of(frame),
            stream.frames or estimated,
        )
        if frame.interlaced_frame:
            self.remarks.append("is interlaced, and stylised as it is")
        # FFmpeg's own decoder of VP9 leaves it out, which lies beside the colours.
        alpha = stream.metadata.get("alpha_mode") == "1"
        if alpha or any(part.is_alpha for part in frame.format.components):
            self.remarks.append("has transparency, which its stylised video has not")
        if self.facts.colours.transfer in (16, 18):  # PQ and HLG
            self.remarks.append("is HDR, of which eight bits a colour are kept")

    def _promised_end(self) -> Fraction | None:
        """Seconds at which what is read should end; None where the file does not say.

        A file's length is that of its longest stream, which may be one that is not read.
        """
        streams = [self._stream, *self.others]
        if all(s in streams for s in self.container.streams if s.type in ("video", "data")):
            length = self.container.duration
            start = self.container.start_time or 0
            return None if length is None else Fraction(length + start, av.time_base)
        if not all(stream.duration for stream in streams):
            return None
        return max(((s.start_time or 0) + s.duration) * s.time_base for s in streams)


def reason_of_ffmpeg(error: Exception) -> str:
    """What is wrong, on one line and without the file's name, which may hold anything."""
    log = getattr(error, "log", None)
    if log and log[1]:
        return " ".join(str(log[1][2]).split())[:120]
    return (getattr(error, "strerror", None) or type(error).__name__).lower()


# H.273, table 4 (matrix coefficients), and what swscale calls them.
_MATRICES = {
    1: Colorspace.ITU709,
    4: Colorspace.FCC,
    5: Colorspace.ITU601,
    6: Colorspace.ITU601,
    7: Colorspace.SMPTE240M,
    9: Colorspace.BT2020,
    10: Colorspace.BT2020,
}
_UNSAID = 2
_BT709 = 1
_BEST = Interpolation.BICUBIC | Interpolation.FULL_CHR_H_INT | Interpolation.ACCURATE_RND


@dataclass(frozen=True)
class Colours:
    """How a video says that its numbers are colours, in H.273's numbers; 2 is left unsaid."""

    matrix: int
    primaries: int
    transfer: int
    full: bool


def colours_of(frame: av.VideoFrame) -> Colours:
    """A decoded frame's. RGB video, which has no matrix, gets that of HD."""
    matrix = frame.colorspace if frame.colorspace in {*_MATRICES, _UNSAID} else _BT709
    full = frame.color_range == ColorRange.JPEG or frame.format.name.startswith("yuvj")
    return Colours(matrix, frame.color_primaries, frame.color_trc, full)


def to_rgb(frame: av.VideoFrame, size: tuple[int, int]) -> np.ndarray:
    """A decoded frame as uint8 (height, width, 3); `size` is width and height as stored."""
    colours = colours_of(frame)
    rgb = frame.format.is_rgb
    matrix = None if rgb else _matrix(colours.matrix, size)
    return frame.to_ndarray(
        width=size[0],
        height=size[1],
        format="rgb24",
        src_colorspace=matrix,
        dst_colorspace=matrix,
        src_color_range=ColorRange.JPEG if colours.full or rgb else ColorRange.MPEG,
        dst_color_range=ColorRange.JPEG,
        interpolation=_BEST,
    )


def to_frame(picture: np.ndarray, colours: Colours) -> av.VideoFrame:
    """uint8 (height, width, 3) as a yuv420p frame of even sides: the last line is repeated."""
    height, width = picture.shape[:2]
    even = np.pad(picture, ((0, height % 2), (0, width % 2), (0, 0)), mode="edge")
    kind = ColorRange.JPEG if colours.full else ColorRange.MPEG
    frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(even), format="rgb24").reformat(
        format="yuv420p",
        dst_colorspace=_matrix(colours.matrix, (width, height)),
        src_color_range=ColorRange.JPEG,
        dst_color_range=kind,
        interpolation=_BEST,
    )
    frame.colorspace, frame.color_range = colours.matrix, kind
    frame.color_primaries, frame.color_trc = colours.primaries, colours.transfer
    return frame


def turn_of(frame: av.VideoFrame) -> tuple[bool, bool, bool]:
    """How a frame is set upright: rows and columns swapped, then mirrored left-right, top-bottom.

    From its display matrix (ISO 14496-12, 8.5.2: x' = a·x + c·y, y' = b·x + d·y), nearest quarter.
    """
    side = frame.side_data.get(Type.DISPLAYMATRIX)
    if side is None:
        return False, False, False
    a, b, _, c, d = np.frombuffer(bytes(side), np.int32)[:5].tolist()
    if abs(a) + abs(d) >= abs(b) + abs(c):
        return False, a < 0, d < 0
    return True, c < 0, b < 0


def turned(picture: np.ndarray, turn: tuple[bool, bool, bool]) -> np.ndarray:
    """(height, width, 3), set upright by what `turn_of` said."""
    swapped, across, down = turn
    picture = picture.transpose(1, 0, 2) if swapped else picture
    return np.ascontiguousarray(picture[:: -1 if down else 1, :: -1 if across else 1])


def _matrix(number: int, size: tuple[int, int]) -> int:
    """Players take unsaid colours for HD's from 1280 or 577 pixels on, for TV's below."""
    if number == _UNSAID:
        number = _BT709 if size[0] >= 1280 or size[1] > 576 else 6
    return _MATRICES[number]
