"""Stylised pictures at 1024: whole, in tiles, and small ones brought there by a guided filter.

Each way of distill.stylize against the teacher's own output at that size, in time and fidelity,
on scikit-image's photographs (enlarged: they are 451 to 640 wide) and those of --photos. With
--forms also the guided filter's radius and eps. One thread.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from copy import copy
from functools import partial
from pathlib import Path

import numpy as np
import torch
from against_teacher.scores import edge_psnr
from common import TEACHER, Table, machine, parser, write
from PIL import Image
from torch import Tensor

from distill.core import onnx_files
from distill.core.images import to_image, to_tensor
from distill.core.progress import bar
from distill.core.weights import supplied
from distill.data.photos import demo_photos, find_photos, read_photo
from distill.metrics.similarity import psnr, ssim
from distill.models import zoo
from distill.models.teachers.animegan2 import AnimeGANv2
from distill.stylize import guided, render
from distill.stylize.onnx_student import OnnxStudent

SIDE = 1024
OURS = ("astronaut", "chelsea", "coffee", "rocket")
Row = tuple[float, float, float, float]  # seconds, PSNR, SSIM, edge PSNR
Stylise = Callable[[Image.Image], Image.Image]


def photos(folder: Path | None, count: int) -> dict[str, Image.Image]:
    """Photos by name, their long side SIDE, both sides divisible by 32."""
    paths = [photo.path for photo in demo_photos() if photo.path.stem in OURS]
    if folder is not None:
        paths += [photo.path for photo in find_photos(folder, "--photos=")][:count]
    return {path.stem: _sized(read_photo(path)) for path in paths}


def _sized(photo: Image.Image) -> Image.Image:
    scale = SIDE / max(photo.size)
    width, height = (round(side * scale / 32) * 32 for side in photo.size)
    return photo.resize((width, height), Image.Resampling.LANCZOS)


def ways(student: OnnxStudent, forms: bool) -> dict[str, Stylise]:
    """What is compared, by name."""
    own = copy(student)
    own.colours_at = None
    found: dict[str, Stylise] = {
        "photo": lambda photo: photo,
        "whole": lambda photo: render.stylise_rgb(photo, student, SIDE),
        "whole, size=512": lambda photo: render.stylise_rgb(photo, student, 512),
        "whole, size=256": lambda photo: render.stylise_rgb(photo, student, 256),
        "whole, its own colours": lambda photo: render.stylise_rgb(photo, own, SIDE),
        "whole, size=512, its own colours": lambda photo: render.stylise_rgb(photo, own, 512),
        "tiles": lambda photo: render.stylise_rgb(photo, student, SIDE, "tiles"),
        "guided": lambda photo: render.stylise_rgb(photo, student, None, "guided"),
        "guided, size=512": lambda photo: render.stylise_rgb(photo, student, 512, "guided"),
    }
    if forms:
        for radius in (1, 2, 4, 8):
            for eps in (1e-4, 1e-3, 1e-2):
                name = f"guided, radius {radius}, eps {eps:g}"
                found[name] = partial(_guided, student, radius, eps)
    return found


def _guided(student: OnnxStudent, radius: int, eps: float, photo: Image.Image) -> Image.Image:
    size = render.inference_size(photo.size, student, None, "guided")
    small = photo.resize(size, Image.Resampling.LANCZOS)
    return guided.upscale(photo, small, render.stylise_rgb(small, student), radius, eps)


def score(stylise: Stylise, photo: Image.Image, target: Tensor, keep: Path) -> Row:
    begun = time.perf_counter()
    stylised = stylise(photo)
    seconds = time.perf_counter() - begun
    stylised.save(keep)
    mine = to_tensor(stylised)[None]
    return (seconds, *(m(mine, target).item() for m in (psnr, ssim, edge_psnr)))


def table(rows: dict[str, list[Row]], teacher: list[float]) -> Table:
    columns = ["way", "seconds", "PSNR (dB)", "SSIM", "edge PSNR (dB)"]
    lines = [["the teacher itself", f"{np.median(teacher):.1f}", "–", "–", "–"]]
    for name, values in rows.items():
        seconds, *mean = np.median([v[0] for v in values]), *np.mean(values, 0)[1:]
        lines.append(
            [name, f"{seconds:.2f}", *(f"{m:.{d}f}" for m, d in zip(mean, (2, 3, 2), strict=True))]
        )
    return Table(f"Against the teacher at {SIDE}, mean of {len(teacher)} photos", columns, lines)


@torch.inference_mode()
def main() -> None:
    options = parser(__doc__)
    options.add_argument("--count", type=int, default=4, help="photos of --photos (%(default)s)")
    options.add_argument("--forms", action="store_true", help="the guided filter's forms too")
    args = options.parse_args()
    torch.set_num_threads(1)
    weights = supplied(TEACHER)
    if weights is None:
        sys.exit(f"needs {TEACHER} in a folder that DISTILL_WEIGHTS names")
    teacher = AnimeGANv2(weights, upsampling="asymmetric").fast()
    student = OnnxStudent(onnx_files.load_model(zoo.find("hayao")), "hayao", 1)
    compared, given = ways(student, args.forms), photos(args.photos, args.count)
    folder = args.out / "upscale"
    folder.mkdir(parents=True, exist_ok=True)
    rows: dict[str, list[Row]] = {name: [] for name in compared}
    waited = []
    with bar(len(given), "photo", "comparing") as progress:
        for stem, photo in given.items():
            begun = time.perf_counter()
            target = teacher(to_tensor(photo)[None])
            waited.append(time.perf_counter() - begun)
            to_image(target[0]).save(folder / f"{stem}-teacher.png")
            for name, stylise in compared.items():
                rows[name].append(score(stylise, photo, target, folder / f"{stem}-{name}.png"))
            progress.update()
    facts = machine() | {"photos": ", ".join(given)}
    write("upscale", args.out, facts, {"teacher": waited} | rows, table(rows, waited))


if __name__ == "__main__":
    main()
