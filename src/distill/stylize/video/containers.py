"""Which files are videos, what a stylised one can be, why one cannot be used. No PyAV here."""

from __future__ import annotations

from importlib.util import find_spec

from distill.core.errors import DistillError

SUFFIXES = {
    *(".mp4", ".m4v", ".mov", ".mkv", ".webm", ".avi", ".mpg", ".mpeg", ".ts", ".mts", ".m2ts"),
    *(".3gp", ".ogv", ".wmv", ".flv"),
}
# Suffix: FFmpeg's muxer, video encoder and the audio encoder for what cannot be copied.
OUTPUTS = {
    ".mp4": ("mp4", "libx264", "aac"),
    ".m4v": ("mp4", "libx264", "aac"),
    ".mov": ("mov", "libx264", "aac"),
    ".mkv": ("matroska", "libx264", "aac"),
    ".webm": ("webm", "libvpx-vp9", "libopus"),
}
DEFAULT = ".mp4"


class BadVideo(Exception):
    """This file cannot be used as a video; the message is the reason."""


def check_installed() -> None:
    """Raises DistillError where PyAV is missing."""
    if find_spec("av") is None:
        raise DistillError("videos need PyAV: pip install 'distill[video]'")
