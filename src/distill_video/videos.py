"""Videos as a kind of file of distill.stylize."""

from importlib.util import find_spec
from typing import Any

from distill.core.errors import DistillError
from distill.stylize.jobs import BadFile, FileKind, StylizeJob

# Suffix: FFmpeg's muxer, video encoder and the audio encoder for what cannot be copied.
VIDEO_OUTPUTS = {
    ".mp4": ("mp4", "libx264", "aac"),
    ".m4v": ("mp4", "libx264", "aac"),
    ".mov": ("mov", "libx264", "aac"),
    ".mkv": ("matroska", "libx264", "aac"),
    ".webm": ("webm", "libvpx-vp9", "libopus"),
}


class BadVideo(BadFile):
    """This file cannot be used as a video; the message is the reason."""


class Videos(FileKind):
    """Read and written by PyAV."""

    noun = "video"
    suffixes = frozenset(VIDEO_OUTPUTS).union(
        (".avi", ".mpg", ".mpeg", ".ts", ".mts", ".m2ts", ".3gp", ".ogv", ".wmv", ".flv")
    )
    outputs = frozenset(VIDEO_OUTPUTS)
    other = ".mp4"

    def check(self) -> None:
        if find_spec("av") is None:
            raise DistillError("videos need PyAV: pip install 'distill[video]'")

    def stylise_file(self, job: StylizeJob, setup: Any) -> None:
        from distill_video.stylised_video import stylise_file

        stylise_file(job, setup)
