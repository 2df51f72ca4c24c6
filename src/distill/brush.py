"""One picture through a student, whatever its size: scale, pad, draw, cut, scale back."""

from __future__ import annotations

import numpy as np
from PIL import Image, ImageChops

from distill.data.pictures import to_image, to_tensor
from distill.errors import DistillError
from distill.painter import STRIDE, Painter

LIMIT = 1024  # pixels of the long side when nothing else is asked for
# Pixels of mirrored picture around what is drawn. A student pads with zeros inside and draws a rim
# of another colour: against a rim of 32, the edge of the paper's was 11 to 19 levels off, on three
# photos, and 1 to 7 at 16 pixels from it.
RIM = 16
LANCZOS = Image.Resampling.LANCZOS


def check_size(size: int | None, painter: Painter) -> None:
    """Raises DistillError for a size that a network of one size cannot draw at."""
    if painter.fixed and size not in (None, max(painter.fixed)):
        height, width = painter.fixed
        raise DistillError(
            f"size={size}: this network draws at {width}×{height} only; leave it out"
        )


def stylize(photo: Image.Image, painter: Painter, size: int | None = None) -> Image.Image:
    """An upright RGBA photo as a drawing of the same size: RGB, RGBA where anything is see-through.

    Its long side is drawn at `size` pixels, by default its own up to 1024. The photo's
    transparency is kept, times the drawing's own where the student draws one.
    """
    drawn = draw(_opaque(photo), painter, size)
    alpha = photo.getchannel("A")
    if drawn.mode == "RGBA":
        alpha = ImageChops.multiply(alpha, drawn.getchannel("A"))
    rgb = drawn.convert("RGB")
    if alpha.getextrema() != (255, 255):
        rgb.putalpha(alpha)
    return rgb


def draw(photo: Image.Image, painter: Painter, size: int | None = None) -> Image.Image:
    """An RGB photo of any size as the student's picture, of the same size."""
    small = photo.resize(_drawn_at(photo.size, painter, size), LANCZOS)
    padded, box = _padded(small, painter.fixed)
    drawn = to_image(painter(to_tensor(padded)[None])[0]).crop(box)
    return drawn.resize(photo.size, LANCZOS)


def side_by_side(photo: Image.Image, drawn: Image.Image) -> Image.Image:
    """Photo | drawing."""
    page = Image.new("RGBA", (2 * photo.width, photo.height))
    page.paste(photo, (0, 0))
    page.paste(drawn, (photo.width, 0))
    return page if "A" in drawn.getbands() else page.convert("RGB")


def _opaque(photo: Image.Image) -> Image.Image:
    """RGB with white where nothing can be seen: what is stored there may be any colour.

    Half see-through pixels keep theirs, or they would get a pale rim over a dark background.
    """
    seen = photo.getchannel("A").point(lambda alpha: 255 if alpha else 0)
    page = Image.new("RGB", photo.size, "white")
    page.paste(photo.convert("RGB"), mask=seen)
    return page


def _drawn_at(own: tuple[int, int], painter: Painter, size: int | None) -> tuple[int, int]:
    """Width and height to draw at, in the picture's own proportions."""
    if painter.fixed:
        scale = min(side / have for side, have in zip(painter.fixed[::-1], own, strict=True))
    else:
        scale = (size or min(LIMIT, *[max(own)])) / max(own)
    return max(1, round(own[0] * scale)), max(1, round(own[1] * scale))


def _padded(
    picture: Image.Image, fixed: tuple[int, int] | None
) -> tuple[Image.Image, tuple[int, int, int, int]]:
    """The picture mirrored at its edges up to what the network takes, and where it lies in that."""
    width, height = picture.size
    full = fixed or (_rounded_up(height + 2 * RIM), _rounded_up(width + 2 * RIM))
    down, right = full[0] - height, full[1] - width
    top, left = down // 2, right // 2
    rims = ((top, down - top), (left, right - left), (0, 0))
    mirrored = np.pad(np.asarray(picture), rims, mode="symmetric")
    return Image.fromarray(mirrored), (left, top, left + width, top + height)


def _rounded_up(side: int) -> int:
    return -(-side // STRIDE) * STRIDE
