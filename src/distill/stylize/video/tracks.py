"""Sound and subtitles on their way from one file to another: copied, or encoded where need be."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from typing import Any

import av


class Track:
    """One stream. `target` is None where it is not in the new file; `remark` says so if changed."""

    def __init__(self, source: Any, target: Any, remark: str | None = None) -> None:
        self.source, self.target, self.remark = source, target, remark

    def taken(self, packet: Any) -> Iterable[Any]:
        """What to write for a packet: itself, its bytes untouched."""
        packet.stream = self.target
        return [packet]

    def rest(self) -> Iterable[Any]:
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

    def taken(self, packet: Any) -> Iterator[Any]:
        """Raises ValueError for a packet that is damaged."""
        try:
            frames = packet.decode()
        except av.FFmpegError as error:  # of whatever class
            raise ValueError("damaged sound") from error
        for frame in frames:
            for part in self._resampler.resample(frame):
                yield from self.target.encode(part)

    def rest(self) -> Iterator[Any]:
        for frame in self.source.codec_context.decode(None):
            for part in self._resampler.resample(frame):
                yield from self.target.encode(part)
        for part in self._resampler.resample(None):
            yield from self.target.encode(part)
        yield from self.target.encode(None)


def tracks(container: Any, sources: Iterable[Any], encoder: str) -> Iterator[Track]:
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


def _takes(muxer: str, source: Any) -> bool:
    """Whether that kind of file can hold the stream: some refuse it only with their header."""
    try:
        with av.open(io.BytesIO(), "w", muxer) as trial:
            trial.add_stream_from_template(source)
            trial.start_encoding()
    except (ValueError, av.FFmpegError):
        return False
    return True
