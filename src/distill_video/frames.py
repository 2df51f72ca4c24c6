"""What is made of the frames of a video or a camera, one after the other."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from PIL import Image

from distill.config.settings.commands import Stylize
from distill.data.decode import to_rgb
from distill.data.faces import FindFaces
from distill.stylize import portraits, render
from distill.stylize.onnx_student import STRIDE, ImageModel
from distill.stylize.parts import lay_over
from distill.stylize.pictures import InferenceSetup
from distill.stylize.portraits import Square
from distill.stylize.stickers import Followed, follow
from distill_video.motion import MotionTracker
from distill_video.reader import VideoFrame
from distill_video.smoothing import Smoother, SmoothSummary, on_a_grid_that_moves
from distill_video.videos import BadVideo


class FrameStylizer:
    """Stylises frame after frame, uint8 (height, width, 3), as the settings say.

    Raises BadVideo for face=crop.
    """

    def __init__(self, setup: InferenceSetup) -> None:
        settings: Any = setup.settings  # those of VideoSettings among them
        self._settings = settings
        if setup.settings.face == "crop":
            raise BadVideo("face=crop is for pictures; leave it off")
        student, smooth, worn = setup.student, settings.smooth, setup.wardrobe
        self._student = student
        self._summarise = SmoothSummary(student.summary, smooth) if student.takes_summary else None
        self._dress = replace(worn, steady=True, frames_with_face=0) if worn else None
        find = setup.find_faces
        self._paste_faces = FacePaster(settings, student, find) if find else None

    def __call__(self, frame: np.ndarray) -> np.ndarray:
        settings, stylised = self._settings, Image.fromarray(frame)
        picture = stylised
        if self._paste_faces:
            stylised = self._paste_faces(picture)
        elif settings.face != "wear":
            stylised = render.stylise_rgb(
                picture, self._student, settings.size, settings.upscale, self._summarise
            )
        if settings.strength < 1 or settings.parts:
            stylised = lay_over(picture, stylised, settings, lambda _: None)
        if self._dress:
            stylised = self._dress(picture, stylised) or stylised
        return np.asarray(to_rgb(stylised))  # what is see-through becomes white

    def faceless(self, frames: int) -> int:
        """How many of so many frames had no face, where faces were looked for."""
        counter = self._paste_faces or self._dress
        return frames - counter.frames_with_face if counter else 0

    def period(self, picture: tuple[int, int]) -> float:
        """Pixels of a frame, width and height, that the student's grid repeats after, where the
        frame gets as many more; 0 where it has none, or parts of the photo are shown."""
        settings, student = self._settings, self._student
        shows_photo = self._paste_faces or self._dress or settings.parts
        if shows_photo or settings.upscale != "whole" or student.fixed:
            return 0.0
        size = settings.size
        side, most = max(picture), max(render.inference_size((1 << 20, 1), student, size, "whole"))
        if size is None and side + STRIDE <= most:
            return float(STRIDE)
        return STRIDE * side / (most - STRIDE) if most >= 4 * STRIDE else 0.0


def frame_steps(
    stylise: Callable[[np.ndarray], np.ndarray], smooth: float, period: float
) -> list[Callable[[Any], Any]]:
    """Steps of a `Pipeline` by which a `VideoFrame` gets its motion, what is stylised of it, and
    that smoothed; anything else they leave as it is."""
    tracker, smoother = MotionTracker(), Smoother(smooth)

    def track(frame: Any) -> VideoFrame:
        return replace(frame, motion=tracker(frame.picture)) if smooth else frame

    def infer(frame: Any) -> VideoFrame:
        if frame.motion is None or not period:
            return replace(frame, stylised=stylise(frame.picture))
        steady = on_a_grid_that_moves(stylise, frame.picture, frame.motion.travel, period)
        return replace(frame, stylised=steady)

    def mix(frame: Any) -> VideoFrame:
        if frame.motion is None:
            return replace(frame, smoothed=frame.stylised)
        return replace(frame, smoothed=smoother(frame.picture, frame.stylised, frame.motion))

    return [of_frames(step) for step in (track, infer, mix)]


def of_frames(step: Callable[[Any], VideoFrame]) -> Callable[[Any], Any]:
    """The same, leaving what is no `VideoFrame` as it is."""
    return lambda item: step(item) if isinstance(item, VideoFrame) else item


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
