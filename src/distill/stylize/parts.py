"""Faces, people or the background alone, and weaker: by the arithmetic of the page's part_mask.ts
and face_oval.ts."""

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import onnxruntime
from PIL import Image

from distill.config.settings.commands import Stylize
from distill.core import process
from distill.core.arrays import to_array
from distill.core.sessions import open_file, picture_call
from distill.data.faces import BlazeFace, Face, frame, network_file
from distill.stylize import render

SIDE = 256  # pixels of a mask, which covers a picture of any shape
NONE, WHOLE = 0.1, 0.9  # of the network's answer: up to where is nobody, and from where on a person
# An oval around a face, in sides of the detector's box: how far above its middle, half its width,
# half its height; and the share of it to each side of its edge in which opacity falls.
ABOVE, ACROSS, ALONG, SOFT = 0.06, 0.47, 0.62, 0.08


def lay_over(
    photo: Image.Image, stylised: Image.Image, at: Stylize, say: Callable[[str], None]
) -> Image.Image:
    """The stylised picture over its RGB(A) photo, as strong as `at.strength`, in `at.parts` alone.

    The photo's transparency is kept. `say` gets a line where there is nothing of the parts.
    """
    below = render.opaque(photo)
    parts = [at.parts] if isinstance(at.parts, str) else at.parts or []
    shares = [_share(below, part) for part in parts]
    alpha, opacity = (
        np.asarray(each.convert("RGBA"), np.float32)[..., 3] for each in (photo, stylised)
    )
    share = np.max(shares or [np.ones_like(alpha)], 0) * opacity / np.maximum(alpha, 1)
    if parts and not share.any():
        say(f"nothing of parts=[{','.join(parts)}] in it; it stays")
    mask = np.rint(at.strength * np.rint(255 * share)).astype(np.uint8)
    picture = Image.composite(stylised.convert("RGB"), below, Image.fromarray(mask))
    if photo.mode == "RGBA" and photo.getchannel("A").getextrema() != (255, 255):
        picture.putalpha(photo.getchannel("A"))
    return picture


def _share(photo: Image.Image, part: str) -> np.ndarray:
    """How much of every pixel of an RGB photo belongs to a part: (H, W) in [0, 1]."""
    if part == "faces":
        faces = _face_finder().as_on_the_page(np.asarray(photo))
        mask, none, whole = face_mask(faces, photo.size), 0.0, 1.0
    else:
        squeezed = to_array(photo.resize((SIDE, SIDE), render.BICUBIC))[None]
        mask, none, whole = picture_call(_people())(squeezed).reshape(SIDE, SIDE), NONE, WHOLE
    # Bilinear between the middles of the mask's pixels, also where the picture is smaller.
    affine = (SIDE / photo.width, 0, 0, 0, SIDE / photo.height, 0)
    bilinear = Image.Resampling.BILINEAR
    values = Image.fromarray(mask).transform(photo.size, Image.Transform.AFFINE, affine, bilinear)
    share = ((np.asarray(values) - none) / (whole - none)).clip(0, 1)
    return 1 - share if part == "background" else share


_face_finder = cache(BlazeFace)


@cache
def _people() -> onnxruntime.InferenceSession:
    """MediaPipe's selfie segmentation: (1, 3, 256, 256) to (1, 1, 256, 256), both in [0, 1]."""
    return open_file(network_file("selfie_segmentation"), process.compute_threads())


def face_mask(faces: Sequence[Face], size: tuple[int, int]) -> np.ndarray:
    """Opacity of an oval around each face of a picture of this width and height: (256, 256)."""
    width, height = size
    middles = (np.arange(SIDE) + 0.5) / SIDE
    grid, mask = middles * width + 1j * height * middles[:, None], np.zeros((SIDE, SIDE))
    for face in faces:
        box, side = face.box, (face.box.width + face.box.height) / 2
        _, turn = frame(*(face.marks[m] for m in ("right_eye", "left_eye", "mouth")))
        turn /= abs(turn) or 1
        middle = complex(box.left + box.width / 2, box.top + box.height / 2)
        at = (grid - middle + 1j * ABOVE * side * turn) / turn
        soft = max(SOFT, max(size) / SIDE / (ACROSS * side))  # not sharper than two of its pixels
        out = np.hypot(at.real / (ACROSS * side), at.imag / (ALONG * side))
        share = ((1 + soft - out) / (2 * soft)).clip(0, 1)
        mask = np.maximum(mask, share**2 * (3 - 2 * share))
    return mask.astype(np.float32)
