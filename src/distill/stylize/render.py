"""One picture through a network, at any size: scale, pad, infer, crop, scale back; or in tiles.

An output pixel of a convolutional network depends on inputs within its receptive field only. Where
a tile overlaps its neighbours by that much, its output there is that of the whole picture: the
tiles are equal where they meet, and the blend across only hides what a wider network leaves."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Literal

import numpy as np
from PIL import Image, ImageChops

from distill.core.arrays import MODES, to_array, to_batch, to_picture
from distill.core.errors import DistillError
from distill.stylize import guided, portraits
from distill.stylize.onnx_student import STRIDE, ImageModel, OnnxStudent
from distill.stylize.portraits import Blend, Square

Upscale = Literal["whole", "tiles", "guided"]
Summarise = Callable[[np.ndarray], np.ndarray]

TRAINED_AT = 256  # pixels of the long side that students learn at
MOST = 4096  # pixels of the long side in one piece: it takes 5 GB
PIECE = 2048**2  # pixels in one piece of a student that may as well use tiles: 1.7 GB
LIMIT = 1024  # pixels of the long side when nothing else is asked for
LIMIT_STATISTICS = 1536  # of a student with global statistics, which learnt at up to 1024
CELL = 16  # pixels of the small output: colours that are wider are taken from it
STRIP = 256  # rows at once: the differences of colours are floats, four times the picture
BOX, BICUBIC, LANCZOS = Image.Resampling.BOX, Image.Resampling.BICUBIC, Image.Resampling.LANCZOS


def check_size(size: int | None, student: OnnxStudent, upscale: Upscale = "whole") -> None:
    """Raises DistillError for a size that the student cannot take."""
    if upscale == "tiles" or size is None:
        return
    if student.fixed and size != max(student.fixed):
        height, width = student.fixed
        raise DistillError(f"size={size}: this network takes {width}×{height} only; leave it out")
    if size > MOST and not student.takes_summary:
        raise DistillError(f"size={size}: at most {MOST} in one piece; add upscale=tiles")


def stylise(
    photo: Image.Image,
    model: ImageModel,
    size: int | None = None,
    upscale: Upscale = "whole",
    squares: Sequence[Square] = (),
    blend: Blend = "feathered",
) -> Image.Image:
    """An upright RGBA photo, stylised at the same size: RGB, RGBA where anything is see-through, or
    grey where the network's output is.

    whole: in one piece, its long side at `size` pixels, by default its own up to 1024, and
    enlarged; a student with global statistics up to 1536, as its lines are thin at larger sizes,
    its colours farther from the teacher's. tiles: the same piece by piece, by default at its own
    size. guided: at `size`, by default 256, and enlarged to the full size by a guided filter. What
    is larger than the network's `colours_at` has its colours from there. With `squares` only those
    are stylised and pasted into the photo. The photo's transparency is kept, times the output's own
    where the network gives one.
    """
    if squares:
        at = size if upscale == "tiles" else size or TRAINED_AT
        arguments = (photo, squares, lambda part: stylise(part, model, at, upscale))
        return portraits.paste(*arguments, blend)
    alpha = photo.getchannel("A")
    stylised = stylise_rgb(opaque(photo), model, size, upscale)
    if stylised.mode == "RGBA":
        alpha = ImageChops.multiply(alpha, stylised.getchannel("A"))
    page = stylised if stylised.mode == "L" else stylised.convert("RGB")
    if alpha.getextrema() != (255, 255):
        page.putalpha(alpha)
    return page


def opaque(photo: Image.Image) -> Image.Image:
    """An RGB(A) photo's colours, white where nothing can be seen: those stored there may be any.

    Half see-through pixels keep theirs, or they would get a pale rim over a dark background.
    """
    rgb = photo.convert("RGB")
    if photo.mode == "RGBA" and (alpha := photo.getchannel("A")).getextrema() != (255, 255):
        rgb.paste("white", mask=alpha.point(lambda value: 0 if value else 255))
    return rgb


def stylise_batch(
    photos: Sequence[Image.Image], model: ImageModel, size: int | None, upscale: Upscale
) -> list[Image.Image]:
    """RGB photos of one size, stylised; in one run where the network takes them as they are."""
    width, height = at = photos[0].size
    fits = at == inference_size(at, model, size, upscale) and not (
        width % STRIDE or height % STRIDE
    )
    recoloured = model.colours_at and max(at) > model.colours_at
    if not fits or recoloured or model.fixed or upscale == "tiles" or width * height > PIECE:
        return [stylise_rgb(photo, model, size, upscale) for photo in photos]
    values = to_batch(photos)
    summary = model.summary(values) if model.takes_summary else None
    return [to_picture(output) for output in model(values, summary)]


def stylise_rgb(
    photo: Image.Image,
    model: ImageModel,
    size: int | None = None,
    upscale: Upscale = "whole",
    summarise: Summarise | None = None,
) -> Image.Image:
    """An RGB photo of any size, stylised at the same size (grey, RGB or RGBA); see `stylise`.

    `summarise` takes the place of the model's own `summary`.
    """
    at = inference_size(photo.size, model, size, upscale)
    small = photo.resize(at, LANCZOS)
    if model.takes_summary and upscale == "whole" and at[0] * at[1] > PIECE:
        upscale = "tiles"  # the same output in less memory
    stylised = _inferred(small, model, upscale, summarise)
    colours_at = None if model.channels == 1 else model.colours_at
    if colours_at and not model.fixed and max(at) > colours_at:
        right = inference_size(photo.size, model, colours_at, "whole")
        stylised = recolour(stylised, _inferred(photo.resize(right, LANCZOS), model))
    if upscale == "guided" and at != photo.size:
        return guided.upscale(photo, small, stylised)
    return stylised.resize(photo.size, LANCZOS)


def _inferred(
    picture: Image.Image,
    model: ImageModel,
    upscale: Upscale = "whole",
    summarise: Summarise | None = None,
) -> Image.Image:
    """The output for a picture at its own size, as at_any_size of models has it.

    The last row and column fill it up at the lower right; a network is told of the filled picture.
    """
    at = picture.size
    full = [-(-side // STRIDE) * STRIDE for side in at]  # width and height
    if model.fixed:
        fixed = model.fixed[::-1]
        full = list(map(max, full, fixed)) if upscale == "tiles" else list(fixed)
    edges = (0, full[1] - at[1]), (0, full[0] - at[0]), (0, 0)
    filled = Image.fromarray(np.pad(np.asarray(picture), edges, "edge"))
    summary = (summarise or model.summary)(to_array(filled)[None]) if model.takes_summary else None
    if upscale == "tiles":
        return stylise_tiled(filled, model, summary).crop((0, 0, *at))
    return to_picture(model(to_array(filled)[None], summary)[0]).crop((0, 0, *at))


def recolour(stylised: Image.Image, small: Image.Image) -> Image.Image:
    """`stylised`, RGB or RGBA, with the wide parts of `small`, the output for a smaller picture.

    A student learns what a whole picture does to its colours, the teacher's normalisation above
    all, by what its features see at the size that it learns at. In a larger picture they see a part
    of it, and the output comes out too light or too dark, though its lines are right. So what is
    wide is taken from the output at that size: a Laplacian pyramid of two levels (Burt and Adelson
    1983). Both show the same, all of it. Transparency is that of `stylised`.
    """
    coarse = [max(1, round(side / CELL)) for side in small.size]
    shrunk = stylised.resize(small.size, BOX)
    differences = [
        Image.fromarray(
            np.asarray(small_channel, np.float32) - np.asarray(full_channel, np.float32)
        ).resize((coarse[0], coarse[1]), BOX)
        for small_channel, full_channel in zip(small.split()[:3], shrunk.split()[:3], strict=True)
    ]
    full = stylised.copy()
    for top in range(0, full.height, STRIP):
        bottom = min(top + STRIP, full.height)
        rows = np.array(full.crop((0, top, full.width, bottom)))
        box = (0, top * coarse[1] / full.height, coarse[0], bottom * coarse[1] / full.height)
        for channel, difference in enumerate(differences):
            wide = np.asarray(difference.resize((full.width, bottom - top), BICUBIC, box=box))
            rows[..., channel] = (rows[..., channel] + wide).round().clip(0, 255)
        full.paste(Image.fromarray(rows), (0, top))
    return full


def inference_size(
    picture_size: tuple[int, int], model: ImageModel, size: int | None, upscale: Upscale
) -> tuple[int, int]:
    """Width and height that the network sees of a picture, in its proportions."""
    if model.fixed and upscale != "tiles":
        scale = min(
            side / length for side, length in zip(model.fixed[::-1], picture_size, strict=True)
        )
    else:
        most = {
            "whole": LIMIT_STATISTICS if model.takes_summary else LIMIT,
            "tiles": max(picture_size),
            "guided": TRAINED_AT,
        }[upscale]
        scale = (size or min(most, max(picture_size))) / max(picture_size)
    return max(1, round(picture_size[0] * scale)), max(1, round(picture_size[1] * scale))


def side_by_side(photo: Image.Image, *stylised: Image.Image) -> Image.Image:
    """The photo and, to its right, pictures of the same size."""
    page = Image.new("RGBA", ((1 + len(stylised)) * photo.width, photo.height))
    for column, picture in enumerate((photo, *stylised)):
        page.paste(picture, (column * photo.width, 0))
    return page if any("A" in picture.getbands() for picture in stylised) else page.convert("RGB")


TILE = 1280  # pixels a side that the network takes at once: four times the largest overlap
BLEND = 32  # pixels from one tile to the next
OVERLAP = 320  # pixels to a side at most, for a network that depends on the whole picture


def stylise_tiled(
    picture: Image.Image, model: ImageModel, summary: np.ndarray | None = None
) -> Image.Image:
    """An RGB picture stylised at its own size, whose sides divide by 32; any size where the network
    is of one size, and then at least as large. `summary` is of the whole picture, see ImageModel.
    """
    height, width = model.fixed or (TILE, TILE)
    rows = _spans(picture.height, height, margin(model, height))
    columns = _spans(picture.width, width, margin(model, width))
    stylised = Image.new(MODES[model.channels], picture.size)
    for top, bottom, down in rows:
        for left, right, across in columns:
            tile = to_array(picture.crop((left, top, right, bottom)))
            share = Image.fromarray((255 * down[:, None] * across).round().astype(np.uint8))
            stylised.paste(to_picture(model(tile[None], summary)[0]), (left, top), share)
    return stylised


def margin(model: ImageModel, side: int) -> int:
    """Pixels on each side of a tile that its neighbour takes over or is blended with."""
    # One cell of the deepest features more: a border pads every layer, which a change does not.
    pixels = -(-(model.reach + STRIDE + BLEND // 2) // STRIDE) * STRIDE
    return min(pixels, OVERLAP, side // 4 // STRIDE * STRIDE or side // 4)


def _spans(length: int, tile: int, margin: int) -> list[tuple[int, int, np.ndarray]]:
    """Start and end of every tile along one side, and the weight of each of its pixels, [0, 1].

    A tile is put over those before it: it fades in around the middle of what it shares with the one
    before, and ends where the next one has taken over, since its border is not to be seen.
    """
    if length <= tile:
        return [(0, length, np.ones(length))]
    last = length - tile
    starts = [*range(0, last, tile - 2 * margin), last]
    middles = [-BLEND, *((one + tile + two) / 2 for one, two in pairwise(starts)), length + BLEND]
    spans = []
    for i, start in enumerate(starts):
        pixels = np.arange(start, start + tile) + 0.5
        share = np.clip((pixels - middles[i]) / BLEND + 0.5, 0, 1)
        share[pixels > middles[i + 1] + BLEND / 2] = 0
        spans.append((start, start + tile, share))
    return spans
