"""Draws the style pictures of recipe=picture: tools/style_pictures.py src/distill_picture/pictures

Each is a seeded drawing without anybody's photo or painting, under this project's licence:
`swirl`, thick brush strokes along a flow over hills, a sea and a moon; `dawn`, the same in the
colours of a morning; `woodcut`, waves in a few
printed colours with gouged lines; `glass`, leaded panes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from PIL import Image, ImageColor, ImageDraw
from scipy.ndimage import gaussian_filter, map_coordinates

SIDE = 640  # pixels; drawn at twice that, saved at SAVED
SAVED = 512


def noise(rng: np.random.Generator, side: int, scale: float) -> np.ndarray:
    """Smooth noise (side, side) in about [-1, 1] whose features are `scale` pixels wide."""
    field = gaussian_filter(rng.standard_normal((side, side)), scale, mode="wrap")
    return field / (2 * field.std())


def grid(side: int) -> tuple[np.ndarray, np.ndarray]:
    """Columns and rows as shares of the side, [0, 1)."""
    rows, columns = np.mgrid[:side, :side] / side
    return columns, rows


Palette = Mapping[str, Sequence[str]]
NIGHT: Palette = {
    "sky": ["#0f2350", "#1d3f86", "#2f66b0", "#173067", "#4f92c8", "#8fc0d8"],
    "glow": ["#f6d75a", "#f2b632", "#fbeeb0", "#e8952a", "#cfe0b0"],
    "hill": ["#12302c", "#1f5140", "#3d7a4a", "#0c2233", "#86a052"],
    "field": ["#c98a2b", "#e0b23f", "#8f5a25", "#a9812f", "#f0d27a"],
}
DAWN: Palette = {
    "sky": ["#d9657a", "#e98b86", "#f2a48e", "#b8739f", "#f7c9a8", "#fae3cc"],
    "glow": ["#fff1b8", "#ffd884", "#fff8e0", "#ffb870", "#ffe9d2"],
    "hill": ["#2a2f57", "#4b3b6b", "#6a4c82", "#31557a", "#9a6ea0"],
    "field": ["#2c5a63", "#3f7c78", "#6ba38b", "#24445a", "#d9a566"],
}


def swirl(rng: np.random.Generator, palette: Palette = NIGHT) -> Image.Image:
    """Strokes with bristles, largest first, along curls around the moon and stars, and hills."""
    side = 2 * SIDE
    x, y = grid(side)
    potential = 0.35 * noise(rng, side, side / 9)
    lights = [(0.76, 0.2, 0.10), (0.2, 0.16, 0.05), (0.45, 0.33, 0.06), (0.1, 0.44, 0.04)]
    glow = np.zeros_like(x)
    for cx, cy, radius in lights:
        d = np.hypot(x - cx, y - cy)
        potential += 1.4 * radius * np.exp(-((d / (2.2 * radius)) ** 2)) * 6
        glow = np.maximum(glow, np.exp(-((d / radius) ** 4)))
        glow = np.maximum(glow, 0.6 * np.exp(-(((d - 1.9 * radius) / (0.3 * radius)) ** 2)))
    ridge = 0.62 + 0.06 * np.sin(7 * x + 1) + 0.03 * np.sin(17 * x)
    plain = 0.8 + 0.03 * np.sin(5 * x + 2)
    hills, plains = y > ridge, y > plain
    potential = np.where(
        hills, 0.5 * (y - ridge) * 6 + 0.1 * noise(rng, side, side / 14), potential
    )
    down, right = np.gradient(gaussian_filter(potential, side / 160))
    angle = np.arctan2(-right, down)  # along the level lines
    canvas = Image.new("RGB", (side, side), palette["sky"][0])
    draw = ImageDraw.Draw(canvas)
    light = noise(rng, side, side / 40)
    for width, count, length in ((30, 2600, 9), (20, 5200, 8), (13, 7000, 7)):
        for place in rng.random((count, 2)):
            row, column = (place * side).astype(int)
            kind = "sky"
            if plains[row, column]:
                kind = "field"
            elif hills[row, column]:
                kind = "hill"
            elif rng.random() < glow[row, column]:
                kind = "glow"
            if width == 30 and kind == "glow":
                continue
            colours = palette[kind]
            tone = np.clip(0.5 + 0.35 * light[row, column] + rng.normal(0, 0.16), 0, 0.999)
            colour = rgb(colours[int(tone * len(colours))]) + rng.normal(0, 9, 3)
            _stroke(draw, rng, (column, row), angle, width, length, colour)
    return shrink(_relief(np.asarray(canvas, float)))


def _stroke(
    draw: ImageDraw.ImageDraw,
    rng: np.random.Generator,
    start: tuple[int, int],
    angle: np.ndarray,
    width: int,
    length: int,
    colour: np.ndarray,
) -> None:
    """One stroke along the flow, of bristles that each took a little more or less paint."""
    side = len(angle)
    path = [np.array(start, float)]
    for _ in range(length):
        column, row = path[-1].astype(int)
        if not (0 <= column < side and 0 <= row < side):
            break
        a = angle[row, column]
        path.append(path[-1] + 0.75 * width * np.array([np.cos(a), np.sin(a)]))
    line = np.array(path)
    if len(line) < 3:
        return
    steps = np.gradient(line, axis=0)
    across = np.stack([-steps[:, 1], steps[:, 0]], 1)
    across /= np.maximum(np.linalg.norm(across, axis=1, keepdims=True), 1e-6)
    taper = np.sin(np.linspace(0.35, np.pi - 0.2, len(line)))[:, None]
    bristles = max(5, width // 3)
    for place in rng.permutation(np.linspace(-0.5, 0.5, bristles)):
        shade = 26 * np.cos(2.6 * place) - 20 + rng.normal(0, 15)
        points = line + across * taper * place * width
        paint = tuple(int(v) for v in np.clip(colour + shade, 0, 255))
        thick = max(2, round(1.5 * width / bristles))
        draw.line([tuple(p) for p in points], paint, thick, "curve")


def _relief(canvas: np.ndarray) -> np.ndarray:
    """Paint is thick: its ridges catch a light from the upper left."""
    grey = gaussian_filter(canvas.mean(2), 1.5)
    down, right = np.gradient(grey)
    return np.clip(canvas - 1.5 * (down + right)[..., None], 0, 255).astype(np.uint8)


def woodcut(rng: np.random.Generator) -> Image.Image:
    """Waves: flat printed colours, a black key block, and gouges that follow each wave."""
    side = 2 * SIDE
    x, y = grid(side)
    paper, ink = rgb("#efe3c4"), rgb("#14202e")
    picture = np.empty((side, side, 3))
    picture[:] = paper
    sky = np.clip((0.30 - y) / 0.30, 0, 1)[..., None]
    picture = picture * (1 - 0.55 * sky) + rgb("#c9a27a") * 0.55 * sky
    disc = np.hypot(x - 0.7, y - 0.2) < 0.11
    picture[disc] = rgb("#c8432b")
    warp = 0.02 * noise(rng, side, side / 18)
    lines = np.zeros((side, side), bool)
    blues = ["#a9c4c9", "#6f9fb4", "#3c6f94", "#24507c", "#163a63", "#102c4d"]
    for number in range(11):
        level = 0.30 + 0.072 * number
        wide, phase = 2.2 - 0.08 * number, rng.uniform(0, 6.3)
        bent = x + 0.05 * np.sin(9 * y + phase) + warp
        u = bent * wide * 2 * np.pi / 1.3 + phase
        crest = level - (0.045 + 0.012 * (number % 3)) * np.abs(np.sin(u)) ** 0.7 + warp
        crest += 0.012 * np.sin(3 * u + phase)
        inside = y > crest
        depth = (y - crest) / 0.072
        colour = blues[int(rng.integers(len(blues)))]
        picture[inside] = rgb(colour)
        lines[inside] = False
        foam = inside & (depth < 0.33 + 0.22 * np.sin(4.2 * u) * np.sin(9.3 * u + phase))
        picture[foam] = paper
        edge = np.abs(depth) < 0.055
        claw = inside & (
            np.abs(depth - 0.33 - 0.22 * np.sin(4.2 * u) * np.sin(9.3 * u + phase)) < 0.05
        )
        gouge = (
            inside
            & (depth > 0.5)
            & (np.sin(2 * np.pi * (3.3 * depth + 0.5 * warp / 0.02)) > 0.62 - 0.2 * np.sin(u))
        )
        pale = gouge & (np.sin(31 * u + 20 * depth) > -0.75)
        picture[pale] = 0.35 * picture[pale] + 0.65 * rgb("#dfe3d2")
        lines |= edge | claw
    streak = gaussian_filter(rng.standard_normal((side, side)), (1.2, 40))
    picture += 14 * streak[..., None] / streak.std() * 0.6
    rough = noise(rng, side, 2.5)
    key = gaussian_filter(lines.astype(float), 1.6) + 0.12 * rough > 0.42
    picture[key] = ink
    return shrink(np.clip(picture, 0, 255).astype(np.uint8))


def glass(rng: np.random.Generator) -> Image.Image:
    """Leaded panes around rosettes, each of one colour with streaks, brighter in its middle."""
    side = 2 * SIDE
    x, y = grid(side)
    points, kinds = [], []
    for cx, cy, rings in (
        (0.5, 0.48, 5),
        (0.05, 0.95, 3),
        (0.97, 0.93, 3),
        (0.98, 0.05, 3),
        (0.03, 0.04, 3),
    ):
        for ring in range(rings):
            count = 1 if not ring else 6 * ring
            for k in range(count):
                a = 2 * np.pi * (k + 0.5 * (ring % 2)) / count
                r = 0.075 * ring
                points.append((cx + r * np.cos(a), cy + r * np.sin(a)))
                kinds.append(ring)
    sites = np.array(points)
    free = rng.random((400, 2))
    for each in free:
        if np.min(np.hypot(*(sites - each).T)) > 0.06:
            sites = np.vstack([sites, each])
            kinds.append(int(rng.integers(5, 9)))
    wx, wy = x + 0.006 * noise(rng, side, side / 20), y + 0.006 * noise(rng, side, side / 20)
    first, second = np.full(x.shape, 9.0), np.full(x.shape, 9.0)
    label = np.zeros(x.shape, int)
    for index, (cx, cy) in enumerate(sites):
        d = np.hypot(wx - cx, wy - cy)
        nearer = d < first
        second = np.where(nearer, first, np.minimum(second, d))
        first, label = np.where(nearer, d, first), np.where(nearer, index, label)
    colours = [
        "#f4c430",
        "#c41e2a",
        "#f08a1d",
        "#1c4fa0",
        "#1d7f5c",
        "#5a2a86",
        "#2b8fc4",
        "#d9e6d0",
        "#b5316b",
    ]
    flat = np.array([rgb(colours[k % len(colours)]) + rng.normal(0, 16, 3) for k in kinds])
    picture = flat[label]
    middle = np.clip((second - first) / 0.05, 0, 1)[..., None]
    streak = map_coordinates(
        noise(rng, side, 5),
        [y * side, (x + 0.05 * np.sin(9 * y)) * side * 0.25],
        order=1,
        mode="wrap",
    )
    picture = picture * (0.72 + 0.4 * middle) + 16 * streak[..., None]
    seeds = noise(rng, side, 2.2)
    picture += 28 * np.clip(seeds - 0.8, 0, None)[..., None]
    gap = second - first
    lead = gap < 0.0105 + 0.002 * noise(rng, side, 14)
    shine = np.abs(gap - 0.004) < 0.0016
    picture[lead] = (22, 20, 20)
    picture[shine & lead] = (88, 84, 80)
    return shrink(np.clip(gaussian_filter(picture, (1, 1, 0)), 0, 255).astype(np.uint8))


def rgb(colour: str) -> np.ndarray:
    return np.array(ImageColor.getrgb(colour), float)


def shrink(picture: np.ndarray) -> Image.Image:
    return Image.fromarray(picture).resize((SAVED, SAVED), Image.Resampling.LANCZOS)


PICTURES: dict[str, Callable[[np.random.Generator], Image.Image]] = {
    "swirl": swirl,
    "dawn": partial(swirl, palette=DAWN),
    "woodcut": woodcut,
    "glass": glass,
}


def main(folder: str, *names: str) -> None:
    Path(folder).mkdir(parents=True, exist_ok=True)
    for name in names or PICTURES:
        picture = PICTURES[name](np.random.default_rng(7))
        picture.save(f"{folder}/{name}.webp", quality=82, method=6)


if __name__ == "__main__":
    main(*sys.argv[1:])
