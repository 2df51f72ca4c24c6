"""One picture through a student, whatever its size: scale, pad, draw, cut, scale back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from PIL import Image, ImageChops

from distill.core.errors import DistillError
from distill.core.images import to_image, to_tensor
from distill.inference import guided, portraits, tiles
from distill.inference.onnx_student import STRIDE, Hand, Painter
from distill.inference.portraits import Square

Upscale = Literal["whole", "tiles", "guided"]

LEARNT = 256  # pixels of the long side that students learn at
MOST = 4096  # pixels of the long side in one piece: it takes 5 GB
LIMIT = 1024  # pixels of the long side when nothing else is asked for
# Pixels of mirrored picture around what is drawn. A student pads with zeros inside and draws a rim
# of another colour: against a rim of 32, the edge of the paper's was 11 to 19 levels off, on three
# photos, and 1 to 7 at 16 pixels from it.
RIM = 16
LANCZOS = Image.Resampling.LANCZOS


def check_size(size: int | None, painter: Painter, upscale: Upscale = "whole") -> None:
    """Raises DistillError for a size that cannot be drawn at."""
    if upscale != "tiles" and painter.fixed and size not in (None, max(painter.fixed)):
        height, width = painter.fixed
        raise DistillError(
            f"size={size}: this network draws at {width}×{height} only; leave it out"
        )
    if upscale != "tiles" and (size or 0) > MOST:
        raise DistillError(f"size={size}: at most {MOST} in one piece; add upscale=tiles")


def stylize(
    photo: Image.Image,
    painter: Hand,
    size: int | None = None,
    upscale: Upscale = "whole",
    squares: Sequence[Square] = (),
) -> Image.Image:
    """An upright RGBA photo as a drawing of the same size: RGB, RGBA where anything is see-through.

    whole: drawn in one piece, its long side at `size` pixels, by default its own up to 1024, and
    enlarged. tiles: the same piece by piece, by default at its own size. guided: drawn at `size`,
    by default 256, and carried to the full size by a guided filter. With `squares` only those are
    drawn and put back into the photo. The photo's transparency is kept, times the drawing's own
    where the student draws one.
    """
    if squares:
        at = size if upscale == "tiles" else size or LEARNT
        return portraits.paste(photo, squares, lambda part: stylize(part, painter, at, upscale))
    drawn = draw(_opaque(photo), painter, size, upscale)
    alpha = photo.getchannel("A")
    if drawn.mode == "RGBA":
        alpha = ImageChops.multiply(alpha, drawn.getchannel("A"))
    rgb = drawn.convert("RGB")
    if alpha.getextrema() != (255, 255):
        rgb.putalpha(alpha)
    return rgb


def draw(
    photo: Image.Image, painter: Hand, size: int | None = None, upscale: Upscale = "whole"
) -> Image.Image:
    """An RGB photo of any size as the student's picture, of the same size; see `stylize`."""
    at = drawn_at(photo.size, painter, size, upscale)
    small = photo.resize(at, LANCZOS)
    padded, box = _padded(small, painter.fixed, upscale == "tiles")
    if upscale == "tiles":
        return tiles.draw(padded, painter).crop(box).resize(photo.size, LANCZOS)
    drawn = to_image(painter(to_tensor(padded)[None])[0]).crop(box)
    if upscale == "guided" and at != photo.size:
        return guided.carry(photo, small, drawn)
    return drawn.resize(photo.size, LANCZOS)


def side_by_side(photo: Image.Image, *drawn: Image.Image) -> Image.Image:
    """Photo | drawing | and further ones."""
    page = Image.new("RGBA", ((1 + len(drawn)) * photo.width, photo.height))
    for column, picture in enumerate((photo, *drawn)):
        page.paste(picture, (column * photo.width, 0))
    return page if any("A" in picture.getbands() for picture in drawn) else page.convert("RGB")


def _opaque(photo: Image.Image) -> Image.Image:
    """RGB with white where nothing can be seen: what is stored there may be any colour.

    Half see-through pixels keep theirs, or they would get a pale rim over a dark background.
    """
    seen = photo.getchannel("A").point(lambda alpha: 255 if alpha else 0)
    page = Image.new("RGB", photo.size, "white")
    page.paste(photo.convert("RGB"), mask=seen)
    return page


def drawn_at(
    own: tuple[int, int], painter: Hand, size: int | None, upscale: Upscale
) -> tuple[int, int]:
    """Width and height to draw at, in the picture's own proportions."""
    if painter.fixed and upscale != "tiles":
        scale = min(side / have for side, have in zip(painter.fixed[::-1], own, strict=True))
    else:
        most = {"whole": LIMIT, "tiles": max(own), "guided": LEARNT}[upscale]
        scale = (size or min(most, max(own))) / max(own)
    return max(1, round(own[0] * scale)), max(1, round(own[1] * scale))


def _padded(
    picture: Image.Image, fixed: tuple[int, int] | None, in_tiles: bool
) -> tuple[Image.Image, tuple[int, int, int, int]]:
    """The picture mirrored at its edges up to what the network takes, and where it lies in that."""
    width, height = picture.size
    free = _rounded_up(height + 2 * RIM), _rounded_up(width + 2 * RIM)
    full = fixed or free
    if in_tiles:
        full = max(full[0], free[0]), max(full[1], free[1])
    down, right = full[0] - height, full[1] - width
    top, left = down // 2, right // 2
    rims = ((top, down - top), (left, right - left), (0, 0))
    mirrored = np.pad(np.asarray(picture), rims, mode="symmetric")
    return Image.fromarray(mirrored), (left, top, left + width, top + height)


def _rounded_up(side: int) -> int:
    return -(-side // STRIDE) * STRIDE
