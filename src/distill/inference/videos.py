"""A video from its file to its drawing's: the student for every frame, and what is said of it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image
from tqdm import tqdm

from distill.config.settings import Stylize
from distill.core.files import aside
from distill.inference import render
from distill.inference.jobs import StylizeJob
from distill.inference.pictures import Studio
from distill.inference.video.containers import BadVideo, check_installed

if TYPE_CHECKING:
    from distill.inference.video.stability import Stability
    from distill.inference.video.stylised_video import VideoReport


class NotWhole(Exception):
    """The video is drawn, but for what the message says."""


def check(jobs: Sequence[StylizeJob], settings: Stylize) -> None:
    """Raises DistillError where there are videos and what they need is missing."""
    if any(job.film for job in jobs):
        check_installed()


def draw_one(job: StylizeJob, studio: Studio, settings: Stylize) -> None:
    """One video, read, drawn and written whole.

    Raises BadVideo with the reason where it is not, NotWhole where frames of it could not be read.
    """
    from distill.inference.video.stylised_video import Options, draw_video

    if settings.face != "off":
        raise BadVideo(f"face={settings.face} is for pictures; draw it with face=off")
    options = Options(settings.crf, settings.smooth, settings.stability, settings.compare)

    def say(what: str) -> None:
        tqdm.write(f"{str(job.source)!r}: {what}", file=sys.stderr)

    try:
        report = draw_video(job.source, job.target, _each(studio, settings), options, say)
        if settings.stability:
            _report(report.stability, job, settings.smooth)
    except OSError as error:
        beside = str(error.filename or "").endswith(".part")  # what is written aside, or a folder
        where = str(job.target) if beside else error.filename or str(job.target)
        reason = (error.strerror or str(error)).lower()
        raise BadVideo(f"{where!r} cannot be written ({reason})") from error
    _tell(report)
    if missing := _missing(report):
        raise NotWhole(missing)


def _each(studio: Studio, settings: Stylize) -> Callable[[np.ndarray], np.ndarray]:
    """One frame drawn: uint8 (height, width, 3) to the same. What is see-through becomes white."""

    def draw(frame: np.ndarray) -> np.ndarray:
        photo = Image.fromarray(frame)
        drawn = render.draw(photo, studio.student, settings.size, settings.upscale)
        if drawn.mode == "RGBA":
            page = Image.new("RGBA", drawn.size, "white")
            drawn = Image.alpha_composite(page, drawn)
        return np.asarray(drawn.convert("RGB"))

    return draw


def _tell(report: VideoReport) -> None:
    shares = ", ".join(f"{stage} {share:.0%}" for stage, share in report.busy.items())
    pace = report.frames / report.seconds
    tqdm.write(f"{report.frames} frames, {pace:.1f} a second; busy: {shares}", file=sys.stdout)


def _missing(report: VideoReport) -> str:
    """What of the video could not be drawn."""
    lost = f"{report.lost} damaged frame{'s' * (report.lost > 1)} left out" if report.lost else ""
    pieces = f"{report.dropped} piece{'s' * (report.dropped > 1)} of its sound or subtitles"
    dropped = f"{pieces} left out (damaged, or out of time)" if report.dropped else ""
    return "; ".join(filter(None, [lost, dropped, report.cut]))


def _report(found: Stability | None, job: StylizeJob, smooth: float) -> None:
    """The stability, as a line and beside the drawing as NAME.stability.json."""
    if found is None:
        tqdm.write("stability: no two frames show the same", file=sys.stdout)
        return
    ratio = "" if found.ratio is None else f", {found.ratio:.2f} times as much"
    before = f"; {found.unsmoothed:.2f} before smooth={smooth:g}" if smooth else ""
    tqdm.write(
        f"stability: drawings change by {found.drawings:.2f} levels of 255 beyond the motion, "
        f"pictures by {found.pictures:.2f}{ratio}{before}",
        file=sys.stdout,
    )
    values = {**asdict(found), "ratio": found.ratio, "smooth": smooth}
    with aside(_beside(job.target)) as temporary:
        temporary.write_text(json.dumps(values, indent=2) + "\n")


def _beside(target: Path) -> Path:
    return target.with_name(f"{target.stem}.stability.json")
