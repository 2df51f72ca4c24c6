"""A stylised video out: H.264 or VP9 with the times of the original, its sound as it was."""

import io
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import av
import numpy as np
from av.codec.context import Flags
from av.container import OutputContainer
from av.stream import Stream
from av.video import VideoStream

from distill.core.errors import DistillError
from distill_video import reader
from distill_video.reader import Reader
from distill_video.videos import VIDEO_OUTPUTS, BadVideo

WIDEST = 16384  # pixels a side: H.264's and VP9's encoders end there
_VP9 = {"deadline": "good", "cpu-used": "4", "row-mt": "1", "b": "0"}
_X264 = {"preset": "medium", "tune": "animation"}
_OF_THE_FILE = {"major_brand", "minor_version", "compatible_brands", "encoder"}


class Writer:
    """Writes frames and packets of `source` into `path`, of the kind that `suffix` says.

    `size` is width and height of the output, before it is made even; `crf` is x264's constant rate
    factor, 0 to 51. Frame times are the source's, in its time base where the container has that.
    Raises OSError where the file cannot be written, BadVideo for too large a size, DistillError for
    a missing encoder.
    """

    def __init__(
        self, path: Path, suffix: str, source: Reader, size: tuple[int, int], crf: float
    ) -> None:
        self.facts, self._path, self.dropped = source.facts, path, 0
        muxer, encoder, audio = VIDEO_OUTPUTS[suffix]
        if max(size) > WIDEST:
            raise BadVideo(
                f"its output is {size[0]}×{size[1]}, at most {WIDEST} a side can be coded"
            )
        options = {}
        if muxer in ("mp4", "mov"):  # its index in front: no browser waits for the end
            scale = str(self.facts.time_base.denominator)  # and the time base kept
            options = {"movflags": "+faststart", "video_track_timescale": scale}
        with _disk(path):
            self._container = av.open(f"file:{path.absolute()}", "w", muxer, options=options)
        try:
            self._video = self._add_video(encoder, size, crf)
            self.tracks = list(tracks(self._container, source.others, audio))
            self._by_stream = {id(t.source): t for t in self.tracks if t.target is not None}
            # Title, date and the like, without what speaks of the old file's making.
            metadata = source.container.metadata.items()
            self._container.metadata.update(
                {key: value for key, value in metadata if key.lower() not in _OF_THE_FILE}
            )
            # A nicety: containers without chapters, or damaged ones, are no reason to give up.
            with suppress(av.FFmpegError, NotImplementedError):
                self._container.set_chapters(source.container.chapters())
            with _disk(path):
                self._container.start_encoding()
        except BaseException:
            self.abandon()
            raise
        self._start = source.start

    def _add_video(self, encoder: str, size: tuple[int, int], crf: float) -> VideoStream:
        try:
            stream = self._container.add_stream(encoder, rate=self.facts.rate or 25)
        except av.codec.codec.UnknownCodecError:
            raise DistillError(f"this PyAV has no {encoder}; pip install --force av") from None
        context, facts = stream.codec_context, self.facts
        context.width, context.height = (side + side % 2 for side in size)
        context.pix_fmt = "yuv420p"
        stream.time_base = context.time_base = facts.time_base
        context.flags |= Flags.frame_duration
        context.sample_aspect_ratio = facts.pixel_shape
        colours = facts.colours
        context.color_range, context.colorspace = 2 if colours.full else 1, colours.matrix
        context.color_primaries, context.color_trc = colours.primaries, colours.transfer
        # libvpx counts its quality from 0 to 63, x264 from 0 to 51.
        x264 = encoder == "libx264"
        quality = f"{crf:g}" if x264 else str(round(crf * 63 / 51))
        stream.options = {"crf": quality, **(_X264 if x264 else _VP9)}
        return stream

    def write(self, pts: int, duration: int, picture: np.ndarray) -> None:
        """The next frame, uint8 (height, width, 3)."""
        frame = reader.to_frame(picture, self.facts.colours)
        base = self.facts.time_base
        frame.pts, frame.time_base = pts - round(self._start / base), base
        frame.duration = duration
        self._mux(self._video.encode(frame))

    def copy(self, packet: av.Packet) -> None:
        """A packet of another stream; those of a stream that is left out are dropped.

        So are those that the container refuses: damaged, or of a clock that jumps back. `dropped`
        counts them.
        """
        track = self._by_stream.get(id(packet.stream))
        if track is None:
            return
        for name in ("pts", "dts"):
            if (value := getattr(packet, name)) is not None:
                setattr(packet, name, value - round(self._start / packet.time_base))
        self._mux_other(track.packets(packet))

    def finish(self) -> None:
        """Everything that is still inside of the encoders, and the end of the file."""
        self._mux(self._video.encode(None))
        for track in self.tracks:
            self._mux_other(track.rest())
        with _disk(self._path):
            self._container.close()

    def abandon(self) -> None:
        """Lets go of the file, which is of no use then."""
        with suppress(Exception):
            self._container.close()

    def _mux(self, packets: Iterable[av.Packet]) -> None:
        with _disk(self._path):
            for packet in packets:
                try:
                    self._container.mux(packet)
                except av.InvalidDataError:  # of a damaged sound packet that waited for this one
                    self.dropped += 1

    def _mux_other(self, packets: Iterable[av.Packet]) -> None:
        with _disk(self._path):
            try:
                for packet in packets:
                    self._container.mux(packet)
            except ValueError:  # among them FFmpeg's invalid data and invalid argument
                self.dropped += 1


@contextmanager
def _disk(path: Path) -> Iterator[None]:
    """FFmpeg's errors about a file as the system's own."""
    try:
        yield
    except av.FFmpegError as error:
        reason = error.strerror or type(error).__name__
        raise OSError(error.errno, reason, str(path)) from error


class Track:
    """One stream. `target` is None where it is not in the new file; `remark` says so if changed."""

    def __init__(self, source: Stream, target: Any, remark: str | None = None) -> None:
        self.source, self.target, self.remark = source, target, remark

    def packets(self, packet: av.Packet) -> Iterable[av.Packet]:
        """What to write for a packet: itself, its bytes untouched."""
        packet.stream = self.target
        return [packet]

    def rest(self) -> Iterable[av.Packet]:
        """What to write at the end."""
        return []


class Encoded(Track):
    """Sound of a kind that the container does not take, encoded again."""

    def __init__(self, source: Any, target: Any, encoder: str) -> None:
        name = source.codec_context.name
        remark = f"its sound ({name}) does not go into this kind of file: now {encoder}"
        super().__init__(source, target, remark)
        context = target.codec_context
        self._resampler = av.AudioResampler(
            context.format.name, context.layout.name, context.rate, context.frame_size or 960
        )

    def packets(self, packet: av.Packet) -> Iterator[av.Packet]:
        """Raises ValueError for a packet that is damaged."""
        try:
            frames = packet.decode()
        except av.FFmpegError as error:  # of whatever class
            raise ValueError("damaged sound") from error
        yield from self._coded(frames)

    def rest(self) -> Iterator[av.Packet]:
        yield from self._coded([*self.source.codec_context.decode(None), None])
        yield from self.target.encode(None)

    def _coded(self, frames: Iterable[Any]) -> Iterator[av.Packet]:
        for frame in frames:
            for part in self._resampler.resample(frame):
                yield from self.target.encode(part)


def tracks(container: OutputContainer, sources: Iterable[Any], encoder: str) -> Iterator[Track]:
    """A track for every stream, added to the container."""
    for source in sources:
        context = source.codec_context
        if context is not None and _takes(container.format.name, source):
            track = Track(source, container.add_stream_from_template(source))
        elif context is not None and source.type == "audio" and context.sample_rate:
            rate = 48_000 if encoder == "libopus" else context.sample_rate
            target = container.add_stream(encoder, rate=rate, layout=context.layout.name)
            track = Encoded(source, target, encoder)
        else:
            name = context.name if context else "of an unknown kind"
            kind = "sound" if source.type == "audio" else "subtitles"
            yield Track(source, None, f"its {kind} ({name}) cannot be kept in this kind of file")
            continue
        if source.language:
            track.target.metadata["language"] = source.language
        track.target.disposition = source.disposition
        yield track


def _takes(muxer: str, source: Stream) -> bool:
    """Whether that kind of file can hold the stream: some refuse it only with their header."""
    try:
        with av.open(io.BytesIO(), "w", muxer) as trial:
            trial.add_stream_from_template(source)
            trial.start_encoding()
    except (ValueError, av.FFmpegError):
        return False
    return True
