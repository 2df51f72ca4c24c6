"""A video file opened: by its content only, without a look at any other file."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import av
from av.stream import Disposition

from distill.video.formats import BadVideo

# By content, not by name: a playlist or a list of other files may call itself .mp4, and would have
# FFmpeg open what it names.
_KINDS = "mov,matroska,avi,mpeg,mpegts,flv,ogg,asf,mpegvideo"
_SAFE = {"protocol_whitelist": "file", "format_whitelist": _KINDS}


def choose(container: Any, remarks: list[str]) -> Any:
    """The first video stream that is no cover picture; `remarks` gets a line where there are more.

    Raises BadVideo where there is none.
    """
    films = [s for s in container.streams.video if not s.disposition & Disposition.attached_pic]
    if not films:
        raise BadVideo("has no video stream")
    if len(films) > 1:
        remarks.append(f"has {len(films)} video streams; the first is drawn")
    if films[0].codec_context is None:
        raise BadVideo("is coded in a way that FFmpeg does not know")
    # With more, FFmpeg gives a damaged frame's error to another frame or, for H.264, to none.
    films[0].thread_count = 1
    return films[0]


def _check_file(path: Path) -> None:
    try:
        status = path.stat()
    except OSError as error:
        raise BadVideo(f"cannot be read ({error.strerror})") from None
    if not stat.S_ISREG(status.st_mode):
        raise BadVideo("not a file but a folder, pipe, socket or device")
    if not status.st_size:
        raise BadVideo("not a video: the file is empty")


def open_file(path: Path) -> Any:
    """A PyAV container. Raises BadVideo for what is no video file, or none that can be read."""
    _check_file(path)
    try:
        # file: keeps FFmpeg from reading a colon in the name as a protocol.
        return av.open(f"file:{path.absolute()}", options=_SAFE, metadata_errors="replace")
    except (av.FFmpegError, ValueError) as error:
        raise BadVideo(f"not a video, or damaged at its start or end ({reason(error)})") from None


def reason(error: Exception) -> str:
    """What is wrong, on one line and without the file's name, which may hold anything."""
    log = getattr(error, "log", None)
    if log and log[1]:
        return " ".join(str(log[1][2]).split())[:120]
    return (getattr(error, "strerror", None) or type(error).__name__).lower()
