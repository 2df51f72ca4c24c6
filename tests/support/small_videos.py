"""Small videos for tests, made with PyAV."""

from fractions import Fraction
from pathlib import Path

import av
import numpy as np

FAST = {"preset": "ultrafast", "g": "4", "bf": "2", "crf": "10"}


def pictures(count=12, width=64, height=48):
    """A smooth wedge with a bright bar that moves by two pixels a frame."""
    rows, columns = np.mgrid[:height, :width]
    wedge = np.stack([columns * 2, rows * 3, 60 + 0 * rows], -1).clip(0, 200)
    made = []
    for i in range(count):
        picture = wedge.astype(np.uint8).copy()
        picture[:, 2 * i % width : 2 * i % width + 6] = (230, 200, 40)
        made.append(picture)
    return made


def make(
    path, frames=None, *, pts=None, time_base=Fraction(1, 12800), rate=25, sound=None, turn=None,
    codec="libx264", options=None, pix_fmt="yuv420p", shape=None, colours=None, streams=1, **kwargs,
):  # fmt: skip
    """A video of pictures; `pts` in time bases, evenly at `rate` by default; `sound` a codec;
    `streams` how many times the same video is in the file.

    `kwargs` go to `av.open`. Gives the path.
    """
    frames = pictures() if frames is None else frames
    step = round(1 / (rate * time_base))
    pts = pts or [i * step for i in range(len(frames))]
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(path), "w", **kwargs) as out:
        videos = [
            _video_stream(
                out, codec, frames[0].shape, rate, time_base, options, pix_fmt, turn, shape, colours
            )
            for _ in range(streams)
        ]
        tone = out.add_stream(sound, rate=48_000, layout="mono") if sound else None
        for stream in videos:
            for stamp, picture in zip(pts, frames, strict=True):
                out.mux(stream.encode(_frame(picture, stamp, time_base, pix_fmt, colours)))
            out.mux(stream.encode(None))
        if tone:
            add_tone(out, tone, float((pts[-1] + step) * time_base))
    return Path(path)


def add_tone(out, stream, seconds):
    """440 Hz into a stream of sound, from its beginning to its end."""
    wave = np.sin(np.arange(round(48_000 * seconds)) * 440 * 2 * np.pi / 48_000)
    resampler = av.AudioResampler(
        stream.codec_context.format.name, "mono", 48_000, stream.codec_context.frame_size or 960
    )
    frame = av.AudioFrame.from_ndarray((wave * 9000).astype(np.int16)[None], "s16", "mono")
    frame.sample_rate, frame.pts = 48_000, 0
    for part in [*resampler.resample(frame), *resampler.resample(None)]:
        out.mux(stream.encode(part))
    out.mux(stream.encode(None))


def packets(path, kind):
    """Its packets' (pts, bytes) of one kind of stream, in seconds."""
    with av.open(str(path)) as container:
        stream = getattr(container.streams, kind)[0]
        return [(p.pts * p.time_base, bytes(p)) for p in container.demux(stream) if p.size]


def times(path):
    """When each frame is on screen, in seconds, exact; and for how long."""
    with av.open(str(path)) as container:
        frames = list(container.decode(video=0))
        return [f.pts * f.time_base for f in frames], [f.duration * f.time_base for f in frames]


def decoded(path):
    """The frames as uint8 (height, width, 3), colours as FFmpeg reads them."""
    with av.open(str(path)) as container:
        return [frame.to_ndarray(format="rgb24").astype(int) for frame in container.decode(video=0)]


def _video_stream(
    out, codec, shape, rate, time_base, options, pix_fmt, turn, pixel_shape, colours
):  # fmt: skip
    stream = out.add_stream(codec, rate=rate)
    stream.height, stream.width = shape[:2]
    stream.pix_fmt = pix_fmt
    stream.time_base = stream.codec_context.time_base = time_base
    stream.options = (FAST if codec == "libx264" else {}) if options is None else options
    if turn:
        stream.set_display_rotation(*turn)
    if pixel_shape:
        stream.codec_context.sample_aspect_ratio = pixel_shape
    if colours:
        context = stream.codec_context
        context.colorspace, context.color_primaries, context.color_trc, context.color_range = (
            colours
        )
    return stream


def _frame(picture, stamp, time_base, pix_fmt, colours):
    frame = av.VideoFrame.from_ndarray(picture, format="rgb24")
    if colours:  # matrix, primaries, transfer, range
        frame = frame.reformat(
            format=pix_fmt, dst_colorspace=colours[0], dst_color_range=colours[3]
        )
        frame.colorspace, frame.color_primaries, frame.color_trc, frame.color_range = colours
    else:
        frame = frame.reformat(format=pix_fmt)
    frame.pts, frame.time_base = stamp, time_base
    return frame
