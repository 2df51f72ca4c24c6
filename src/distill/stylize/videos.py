"""A video from its file to the stylised one: the student on every frame, and what is reported."""

from __future__ import annotations

import sys
from dataclasses import asdict

import numpy as np
from PIL import Image
from tqdm import tqdm

from distill.core.files import write_json
from distill.data.decode import to_rgb
from distill.stylize import render
from distill.stylize.jobs import BadVideo, StylizeJob
from distill.stylize.pictures import InferenceSetup


class NotWhole(Exception):
    """The video is written, but for what the message says."""


def stylise_file(job: StylizeJob, setup: InferenceSetup) -> None:
    """One video, read, stylised and written whole.

    Raises BadVideo with the reason where it is not, NotWhole where frames of it could not be read.
    """
    from distill.stylize.video.smoothing import SmoothSummary
    from distill.stylize.video.stylised_video import stylise_video

    settings = setup.settings
    if settings.face != "off":
        raise BadVideo(f"face={settings.face} is for pictures; leave it off")
    student, smooth = setup.student, settings.smooth
    summarise = SmoothSummary(student.summary, smooth) if student.told else None

    def stylise(frame: np.ndarray) -> np.ndarray:
        picture = Image.fromarray(frame)
        stylised = render.stylise_rgb(picture, student, settings.size, settings.upscale, summarise)
        return np.asarray(to_rgb(stylised))  # what is see-through becomes white

    try:
        report = stylise_video(
            *(job.source, job.target, stylise, job.say),
            *(settings.crf, smooth, settings.stability, settings.compare),
        )
        if found := report.stability:
            values = {**asdict(found), "ratio": found.ratio, "smooth": smooth}
            write_json(job.target.with_name(f"{job.target.stem}.stability.json"), values)
            ratio = "" if found.ratio is None else f", {found.ratio:.2f} times as much"
            before = f"; {found.unsmoothed:.2f} before smooth={smooth:g}" if smooth else ""
            tqdm.write(
                f"stability: outputs change by {found.drawings:.2f} levels of 255 beyond the "
                f"motion, inputs by {found.pictures:.2f}{ratio}{before}",
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
    tqdm.write(f"{report.frames} frames, {pace:.1f} a second; busy: {shares}", file=sys.stdout)
    if missing := report.missing:
        raise NotWhole(missing)
