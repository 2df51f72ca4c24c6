"""What a face wears: stickers, and pictures that a network made of a sketch, by its landmarks.

A sticker is NAME.png with NAME.json beside it, {"anchors": {"left_eye": [x, y], …}}: where the
marks of a face lie in it, in its pixels. Marks are right_eye (the wearer's own, left in the
picture), left_eye, nose, mouth, right_ear and left_ear.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from distill.config.settings.commands import Stylize
from distill.core.errors import DistillError
from distill.core.files import home_path
from distill.core.nodes import unknown_name
from distill.data.faces import MARKS, FindFaces
from distill.data.photos import BadPhoto, read_photo
from distill.stylize import portraits, render
from distill.stylize.onnx_student import ImageModel

Marks = Mapping[str, complex]  # of a face, x + iy in pixels

SHIPPED = Path(__file__).parent / "stickers"
LEAST = 3  # pixels between the eyes, of a face that can wear anything
# Of a face that looks at the camera, in distances between its eyes from their middle, down the
# face: medians over 500 portraits of Labeled Faces in the Wild.
NOSE, MOUTH = 0.56, 1.06
SIDE, EYES = 5.0, 0.45  # of distill.prepare's sketches: sketch.face.side and sketch.face.eyes
# The nose's distance from the middle of the eyes, along their line, by theirs: where it begins to
# fade, and where nothing is left. About 30 and 50 degrees.
TURNED = (0.35, 0.65)


@dataclass(frozen=True)
class Sticker:
    """An RGBA picture, and where marks of the wearer's face lie in it."""

    picture: Image.Image
    anchors: Marks


def read_sticker(name: str) -> Sticker:
    """One of the package by its name, or a file of one's own, .png or .json.

    Raises DistillError for what is none.
    """
    names = sorted(path.stem for path in SHIPPED.glob("*.json"))
    path = SHIPPED / f"{name}.json" if name in names else home_path(name).with_suffix(".json")
    if not path.is_file():
        if "." not in name and "/" not in name:
            raise DistillError("overlay=" + unknown_name(name, names, "sticker"))
        raise DistillError(f"{path}: no such file; it says where the face's marks lie in {name}")
    try:
        picture = read_photo(path.with_suffix(".png"), least=1, alpha=True)
    except BadPhoto as reason:
        raise DistillError(f"{path.with_suffix('.png')}: {reason}") from None
    return Sticker(picture.convert("RGBA"), _anchors(path))


def _anchors(path: Path) -> Marks:
    try:
        anchors = json.loads(path.read_text(encoding="utf-8"))["anchors"]
        marks = {mark: complex(float(x), float(y)) for mark, (x, y) in anchors.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise DistillError(f'{path}: want {{"anchors": {{"left_eye": [x, y], …}}}}') from None
    if odd := next((mark for mark in marks if mark not in MARKS), None):
        raise DistillError(f"{path}: " + unknown_name(odd, [*MARKS], "mark"))
    if len({*marks.values()} & {v for v in marks.values() if np.isfinite(v)}) < 2:
        raise DistillError(f"{path}: want two marks or more, in two places")
    return marks


def network_sticker(sketch: str, model: ImageModel) -> Sticker:
    """What the network makes of a sketch, to be worn: its own transparency, else a soft disc.

    NAME.json beside the sketch has its anchors; without, it is the square of distill.prepare's
    sketches. Raises DistillError for a sketch that cannot be used.
    """
    try:
        photo = read_photo(home_path(sketch), least=1, alpha=True)
    except BadPhoto as reason:
        raise DistillError(f"wear={sketch}: {reason}") from None
    picture = render.stylise(photo, model)
    if picture.mode == "RGB":
        picture.putalpha(portraits.disc(min(picture.size)).resize(picture.size))
    beside = home_path(sketch).with_suffix(".json")
    if beside.is_file():
        return Sticker(picture, _anchors(beside))
    eyes = picture.width / SIDE  # the distance between them
    middle = complex(picture.width / 2, picture.height * EYES)
    spots = (-eyes / 2, eyes / 2, NOSE * eyes * 1j, MOUTH * eyes * 1j)
    return Sticker(picture, {m: middle + s for m, s in zip(MARKS, spots, strict=False)})


def lay(page: Image.Image, sticker: Sticker, face: Marks, opacity: float = 1.0) -> None:
    """Lay a sticker over an RGBA page: moved, turned and scaled so that its anchors lie on the
    face's marks, as near as can be (least squares)."""
    shared = [mark for mark in sticker.anchors if mark in face]
    if len(shared) < 2 or opacity <= 0:
        return
    here, there = (np.array([each[m] for m in shared]) for each in (sticker.anchors, face))
    centred = here - here.mean()
    if not (size := float((abs(centred) ** 2).sum())):
        return
    scale = (centred.conj() * (there - there.mean())).sum() / size
    if abs(scale) < 1e-3:
        return
    factor = max(1, round(1 / abs(scale)))
    small = sticker.picture.reduce(factor)
    corners = np.array([0, small.width, small.height * 1j, small.width + small.height * 1j])
    placed = there.mean() + scale * (factor * corners - here.mean())
    left, top = (max(0, int(np.floor(each.min()))) for each in (placed.real, placed.imag))
    right = min(page.width, int(np.ceil(placed.real.max())))
    bottom = min(page.height, int(np.ceil(placed.imag.max())))
    if left >= right or top >= bottom:
        return
    back = 1 / (scale * factor)  # from the page to the small sticker
    start = (complex(left, top) - there.mean()) * back + here.mean() / factor
    affine = (back.real, -back.imag, start.real, back.imag, back.real, start.imag)
    layer = small.transform(
        (right - left, bottom - top), Image.Transform.AFFINE, affine, Image.Resampling.BILINEAR
    )
    if opacity < 1:
        layer.putalpha(layer.getchannel("A").point(lambda value: round(opacity * value)))
    page.alpha_composite(layer, (left, top))


def facing(face: Marks) -> float:
    """How far a face looks at the camera: 1, and 0 where it is turned away."""
    across = face["left_eye"] - face["right_eye"]
    off = abs(((face["nose"] - (face["left_eye"] + face["right_eye"]) / 2) / (across or 1)).real)
    start, end = TURNED
    return 0.0 if abs(across) < LEAST else float(np.clip((end - off) / (end - start), 0, 1))


MOVED = 0.05  # distances between the eyes that a face may move in a frame and stay two thirds
STEADY = 0.8  # of its last place that a face keeps which does not move
FADE = 0.2  # of its opacity that a face gains or loses from a frame to the next


@dataclass
class Followed:
    """A face from frame to frame: its marks, smoothed, and what can be seen of what it wears."""

    marks: dict[str, complex]
    opacity: float = 0.0

    def far(self, last: Followed) -> float:
        """From where it was, in distances between its first two marks."""
        first, second, *_ = last.marks.values()
        moves = [abs(at - last.marks[name]) for name, at in self.marks.items()]
        return float(np.mean(moves) / (abs(first - second) or 1.0))


@dataclass
class Wardrobe:
    """Stickers on the faces of pictures or, `steady`, of one frame after the other.

    Marks of frames are smoothed by how little they move, and opacity changes gradually, so that a
    face that is lost for a frame neither flickers nor jumps. `frames_with_face` is their
    number.
    """

    stickers: Sequence[Sticker]
    find: FindFaces
    everyone: bool
    steady: bool = False
    frames_with_face: int = 0
    _faces: list[Followed] | None = None

    def __call__(self, photo: Image.Image, page: Image.Image) -> Image.Image | None:
        """`page`, as large as the photo, with all that the photo's faces wear.

        None of a picture without a face that looks at the camera."""
        rgb = photo.convert("RGB")
        scale = max(1.0, max(rgb.size) / portraits.DETECTED_AT)
        small = rgb.resize((round(rgb.width / scale) or 1, round(rgb.height / scale) or 1))
        faces = self.find(np.asarray(small))[: None if self.everyone else 1]
        faces_marks = [{name: scale * at for name, at in face.marks.items()} for face in faces]
        self.frames_with_face += bool(faces_marks)
        followed = [Followed(marks, facing(marks)) for marks in faces_marks]
        if self.steady:
            followed = self._faces = follow(self._faces, followed)
        elif not any(face.opacity for face in followed):
            return None
        dressed = page.convert("RGBA")
        for face in reversed(followed):
            for sticker in self.stickers:
                lay(dressed, sticker, face.marks, face.opacity)
        return dressed.convert(page.mode)


def follow(faces: list[Followed] | None, faces_now: list[Followed]) -> list[Followed]:
    """The last frame's faces where they are now, then new ones; those that have faded go.

    Of the first frame, None before it, all that are found.
    """
    if faces is None:
        return faces_now
    new, faces_then = [*faces_now], list[Followed]()
    for last in faces:
        far = min((face.far(last) for face in new), default=np.inf)
        if far > 1.5:  # lost: it fades where it was
            last.opacity -= FADE
            faces_then.append(last)
            continue
        now = new.pop([face.far(last) for face in new].index(far))
        keep = STEADY * np.exp(-((far / MOVED) ** 2))
        marks = {n: at + keep * (last.marks[n] - at) for n, at in now.marks.items()}
        step = float(np.clip(now.opacity - last.opacity, -FADE, FADE))
        faces_then.append(Followed(marks, last.opacity + step))
    fresh = [Followed(face.marks, min(face.opacity, FADE)) for face in new]
    return [face for face in [*faces_then, *fresh] if face.opacity > 1e-6]


def wardrobe(settings: Stylize, model: ImageModel) -> Wardrobe | None:
    """What the settings have faces wear; None of nothing. Raises DistillError."""
    if settings.wear is not None and settings.face != "wear":
        raise DistillError(f"wear={settings.wear}: add face=wear")
    overlay = settings.overlay or []
    stickers = [read_sticker(each) for each in ([overlay] if isinstance(overlay, str) else overlay)]
    if settings.wear is not None:
        stickers.insert(0, network_sticker(settings.wear, model))
    if not stickers:
        if settings.face == "wear":
            raise DistillError("face=wear: name a sketch, wear=FILE, or stickers, overlay=[NAME]")
        return None
    find = portraits.finder("yunet" if settings.detector == "yunet" else "blazeface")
    return Wardrobe(stickers, find, settings.faces == "all")
