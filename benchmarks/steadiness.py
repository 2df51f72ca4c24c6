"""What the filter over time takes away, and what it leaves behind, by strength; and cameras.

    python benchmarks/steadiness.py [--students hayao toon] [--people] [--faces]
                                    [--frames 40]
    python benchmarks/steadiness.py --cameras DIR --students hayao comic ink

Clips of known motion (see moving.py), as Steadiness on the page of distill.lens mixes them. Printed
as a Markdown table: of a still scene the share of values that jump by more than 16 of 255 levels
from one frame to the next; of a slow pan and of a hand's sway the share that is off by as much from
the frame's own output, which is what a ghost would be, and the dB between the two.

With --cameras students and their teachers on the first 12 photos of DIR that show a face, centre
squares of 256 pixels, as poor cameras take them (distill.data.augment.CAMERA, full strength): PSNR
to the teacher's output of the clean photo. Glasses and a hand, drawn over the face, are in the
picture: there the target is the teacher's output of that photo.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnxruntime
import torch
from common import Table
from moving import frames
from PIL import Image, ImageDraw
from skimage import data

from distill.config import compose
from distill.config.settings.training import Prepare
from distill.core.arrays import to_array, to_picture
from distill.core.images import sheet, to_tensor
from distill.data.augment import CAMERA, rng_for
from distill.data.faces import BlazeFace, Face
from distill.data.photos import centre_square, find_photos, read_photo
from distill.metrics import frechet, similarity
from distill.models import build, zoo
from distill.stylize.onnx_student import ImageModel
from distill.stylize.stylizing import open_student

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support import blazeface
from support.still_smoother import StillSmoother

SIZE = 256, 192
JUMP = 16  # levels of 255
PEOPLE = Path(__file__).parents[1] / "web/networks/selfie_segmentation/selfie_segmentation.onnx"
Clips = dict[str, list[np.ndarray]]
STRENGTHS = (0.0, 0.6, 0.8, 0.9, 0.95)


def stylised(student: ImageModel, pictures: list[np.ndarray]) -> list[np.ndarray]:
    """uint8 (height, width, 3) in and out."""
    outputs = (student(to_array(Image.fromarray(picture))[None])[0, :3] for picture in pictures)
    return [np.asarray(to_picture(output)) for output in outputs]


def mixed(strength: float, pictures: list[np.ndarray], own: list[np.ndarray]) -> list[np.ndarray]:
    smoother = StillSmoother(strength)
    return [smoother(picture, output) for picture, output in zip(pictures, own, strict=True)]


def far(one: np.ndarray, other: np.ndarray) -> float:
    """The share of values that are more than a jump apart."""
    return float((np.abs(one.astype(float) - other) > JUMP).mean())


def psnr(one: np.ndarray, other: np.ndarray) -> float:
    return float(10 * np.log10(255**2 / np.square(one.astype(float) - other).mean()))


def people(pictures: list[np.ndarray]) -> list[np.ndarray]:
    """What the page's network says of each pixel: 255 where it surely shows people."""
    session = onnxruntime.InferenceSession(PEOPLE)
    found = []
    for picture in pictures:
        photo = Image.fromarray(picture).resize((256, 256), Image.Resampling.BILINEAR)
        (mask,) = session.run(None, {"photo": to_array(photo)[None]})
        grey = Image.fromarray((255 * mask[0, 0]).round().astype(np.uint8)).resize(SIZE)
        found.append(np.asarray(grey.convert("RGB")))
    return found


def opacity(mask: np.ndarray) -> np.ndarray:
    """As web/src/part_mask.ts makes one of it, in levels of 255."""
    return 255 * np.clip((mask / 255 - 0.1) / 0.8, 0, 1)


def faces(pictures: list[np.ndarray]) -> list[np.ndarray]:
    """The page's ovals of the faces (web/src/face_oval.ts), upright: 255 where opaque."""
    found = []
    for picture in pictures:
        wide, high = SIZE
        across, down = np.meshgrid(np.arange(wide) + 0.5, np.arange(high) + 0.5)
        mask = np.zeros((high, wide))
        for face in blazeface.faces(Image.fromarray(picture), least=0.6):
            left, top, right, bottom = face.box * [*SIZE, *SIZE]
            side = (right - left + bottom - top) / 2
            over = (across - (left + right) / 2) / (0.47 * side)
            below = (down - (top + bottom) / 2 + 0.06 * side) / (0.62 * side)
            share = ((1.08 - np.hypot(over, below)) / 0.16).clip(0, 1)
            mask = np.maximum(mask, share * share * (3 - 2 * share))
        found.append(np.repeat((255 * mask).round().astype(np.uint8)[..., None], 3, 2))
    return found


def rows_of(name: str, clips: Clips, own: Clips, shown: Callable = np.asarray) -> list[list[str]]:
    """One row a strength; `shown` is what is made of a mixed output before it is looked at."""
    rows = []
    for strength in STRENGTHS:
        made = {mode: mixed(strength, clips[mode], own[mode]) for mode in clips}
        seen = {mode: [shown(each) for each in made[mode]] for mode in clips}
        plain = {mode: [shown(each) for each in own[mode]] for mode in clips}
        jumps = np.mean([far(a, b) for a, b in pairwise(seen["still"])])
        row = [name, f"{strength:g}", f"{100 * jumps:.2f} %"]
        for mode in ("pan", "walk"):
            pairs = list(zip(seen[mode], plain[mode], strict=True))
            row.append(f"{100 * np.mean([far(a, b) for a, b in pairs]):.2f} %")
            row.append("" if not strength else f"{np.mean([psnr(a, b) for a, b in pairs[1:]]):.1f}")
        rows.append(row)
    return rows


def with_glasses(photo: Image.Image, face: Face) -> Image.Image:
    """Dark round glasses around the eyes."""
    made, eyes = photo.copy(), [face.marks["right_eye"], face.marks["left_eye"]]
    draw, apart = ImageDraw.Draw(made), abs(eyes[1] - eyes[0])
    width = max(2, round(0.07 * apart))
    for eye in eyes:
        box = (eye.real - apart / 2.4, eye.imag - apart / 2.6, eye.real + apart / 2.4)
        draw.ellipse((*box, eye.imag + apart / 2.6), outline=(25, 22, 22), width=width)
    middle = sum(eyes) / 2
    bridge = [(middle.real + side * apart / 9, middle.imag) for side in (-1, 1)]
    draw.line(bridge, fill=(25, 22, 22), width=width)
    return made


def with_hand(photo: Image.Image, face: Face) -> Image.Image:
    """A palm over the mouth and four fingers over a cheek, of the face's own colour."""
    made, side = photo.copy(), face.box.width
    nose, mouth = face.marks["nose"], face.marks["mouth"]
    skin = photo.getpixel((round(nose.real), round(nose.imag)))
    rim = tuple(round(0.6 * value) for value in skin)
    draw = ImageDraw.Draw(made)
    for finger in range(4):
        x, y = mouth.real + (0.1 * finger - 0.05) * side, mouth.imag - 0.4 * side
        box = (x, y + 0.03 * abs(finger - 1.5) * side, x + 0.1 * side, mouth.imag + 0.15 * side)
        draw.rounded_rectangle(box, 0.05 * side, fill=skin, outline=rim, width=2)
    box = (mouth.real - 0.15 * side, mouth.imag - 0.05 * side, mouth.real + 0.4 * side)
    draw.ellipse((*box, mouth.imag + 0.45 * side), fill=skin, outline=rim, width=2)
    return made


DRAWN = {"glasses": with_glasses, "a hand": with_hand}


def camera_rows(name: str, photos: list[tuple[Image.Image, Face]]) -> Iterator[list[str]]:
    """One row a corruption: of the student, then of its teacher, against the clean photo's."""
    source = compose.load("prepare", [f"style={name}"], Prepare)
    teacher = build.inference_teacher(source.style, source.teacher)
    student = open_student(zoo.find(name))

    def outputs(pictures: list[Image.Image]) -> tuple[np.ndarray, np.ndarray]:
        batches = [to_array(picture)[None] for picture in pictures]
        with torch.inference_mode():
            drawn = [teacher(torch.from_numpy(batch)).numpy() for batch in batches]
        return np.concatenate([student(batch) for batch in batches]), np.concatenate(drawn)

    def db(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return similarity.psnr(torch.from_numpy(a), torch.from_numpy(b)).numpy()

    clean, target = outputs([photo for photo, _ in photos])
    base = db(clean, target)
    yield [name, "clean", f"{base.mean():.1f}", "", "", ""]
    for what, corrupt in (CAMERA | DRAWN).items():
        made = [
            corrupt(photo, face) if what in DRAWN else corrupt(photo, 1.0, rng_for(what, i))
            for i, (photo, face) in enumerate(photos)
        ]
        output, drawn = outputs(made)
        loss = base - db(output, drawn if what in DRAWN else target)
        low, high = frechet.bootstrap(loss, rounds=2000)
        own = "" if what in DRAWN else f"{db(drawn, target).mean():.1f}"
        row = [f"{(base - loss).mean():.1f}", f"{loss.mean():.1f}", f"{low:.1f} to {high:.1f}"]
        yield [name, what, *row, own]


def portraits(folder: Path, count: int = 12) -> list[tuple[Image.Image, Face]]:
    find, found = BlazeFace(), []
    for photo in find_photos(folder):
        square = centre_square(read_photo(photo.path), 256)
        if faces := find(np.asarray(square)):
            found.append((square, faces[0]))
        if len(found) == count:
            break
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--students", nargs="*", default=["hayao", "toon"])
    parser.add_argument("--people", action="store_true", help="the mask of people, too")
    parser.add_argument("--faces", action="store_true", help="the mask of faces, too")
    parser.add_argument("--frames", type=int, default=40)
    parser.add_argument("--cameras", type=Path, metavar="DIR", help="poor cameras, on its photos")
    parser.add_argument("--sheet", type=Path, metavar="FILE", help="a picture of these photos")
    given = parser.parse_args()
    if given.cameras:
        photos = portraits(given.cameras)
        if given.sheet:
            corrupted = [
                [p, *(f(p, 1.0, rng_for(n, i)) for n, f in CAMERA.items())]
                + [f(p, face) for f in DRAWN.values()]
                for i, (p, face) in enumerate(photos)
            ]
            pictures = [[*map(to_tensor, row)] for row in corrupted]
            sheet(pictures, ["clean", *CAMERA, *DRAWN]).save(given.sheet)
        rows = [row for name in given.students for row in camera_rows(name, photos)]
        head = ["student", "photo", "PSNR (dB)", "loss", "95 %", "the teacher's own"]
        print(Table(f"{len(photos)} portraits, 256²", head, rows))
        return
    photo = data.astronaut() / 255
    clips = {mode: [*frames(photo, given.frames, SIZE, mode)] for mode in ("still", "pan", "walk")}
    rows = []
    for name in given.students:
        student = open_student(zoo.find(name))
        rows += rows_of(name, clips, {mode: stylised(student, clips[mode]) for mode in clips})
    if given.people:
        own = {mode: people(clips[mode]) for mode in clips}
        rows += rows_of("people", clips, own, opacity)
    if given.faces:
        rows += rows_of("faces", clips, {mode: faces(clips[mode]) for mode in clips})
    head = ["student", "strength", "jumps, still", "ghosts, pan", "dB", "ghosts, walk", "dB"]
    print(Table(f"{SIZE[0]}×{SIZE[1]}, {given.frames} frames", head, rows))


if __name__ == "__main__":
    main()
