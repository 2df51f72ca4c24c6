"""1024 without a larger network: `hayao` at 512, and a small super-resolution student behind it.

That student, three convolutions and a pixel shuffle (Shi et al. 2016), learns what the output at
512 lacks of the teacher's at 1024, from it alone or beside the photo; it is trained here. The other
ways are distill.stylize's. --pairs is a set of hayao with data=sizes to 1024, of whose test side
--tests pictures are measured. One thread, time of the processor.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from common import Table, machine, parser, write
from PIL import Image
from torch import Tensor, nn
from torch.nn import functional as F

from distill.core import onnx_files
from distill.core.images import to_image, to_tensor
from distill.core.progress import bar
from distill.metrics.line_figures import FIGURES, ink_sums, ratios
from distill.metrics.similarity import psnr, ssim
from distill.models import zoo
from distill.stylize import render
from distill.stylize.onnx_student import OnnxStudent

SHOWN = ("ink recall", "ink recall at 0.3", "ink mass", "sharpness")
CROP = 192  # pixels of the target
Way = Callable[[Image.Image], Image.Image]


class Enlarger(nn.Module):
    """(N, 3, H, W), and the photo (N, 3, 2H, 2W), to a picture of the photo's size."""

    def __init__(self, with_photo: bool, width: int = 16) -> None:
        super().__init__()
        self.with_photo = with_photo
        self.layers = nn.Sequential(
            nn.Conv2d(15 if with_photo else 3, width, 3, padding=1), nn.LeakyReLU(0.2),
            nn.Conv2d(width, width, 3, padding=1), nn.LeakyReLU(0.2),
            nn.Conv2d(width, 12, 3, padding=1), nn.PixelShuffle(2),
        )  # fmt: skip

    def forward(self, small: Tensor, photo: Tensor) -> Tensor:
        seen = torch.cat([small, F.pixel_unshuffle(photo, 2)], 1) if self.with_photo else small
        plain = F.interpolate(small, scale_factor=2, mode="bilinear", align_corners=False)
        return plain + self.layers(seen)


def halved(photo: Image.Image, student: OnnxStudent) -> Image.Image:
    small = photo.resize((photo.width // 2, photo.height // 2), Image.Resampling.LANCZOS)
    return render.stylise_rgb(small, student, max(small.size))


def pairs(side: Path, count: int) -> list[tuple[Image.Image, Image.Image]]:
    """Photos and the teacher's outputs for them, RGB, the long side 1024."""
    found = sorted((side / "stylized").glob("*-s1024.png"))[:count]
    both = ((side / "photo" / path.name, path) for path in found)
    return [(Image.open(a).convert("RGB"), Image.open(b).convert("RGB")) for a, b in both]


def train(network: Enlarger, samples: list[list[Tensor]], steps: int) -> Enlarger:
    """`samples` are uint8 (3, H, W): output at 512, photo, target."""
    rng = np.random.default_rng(0)
    optimizer = torch.optim.Adam(network.parameters(), 2e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    with bar(steps, "step", "training") as progress:
        for _ in range(steps):
            batch = []
            for sample in (samples[i] for i in rng.integers(len(samples), size=8)):
                y, x = (int(rng.integers((n - CROP // 2) + 1)) for n in sample[0].shape[1:])
                sides = [(k * y, k * x, k * CROP // 2) for k in (1, 2, 2)]
                cut = zip(sample, sides, strict=True)
                batch.append([s[:, t : t + c, u : u + c] for s, (t, u, c) in cut])
            small, photo, target = (torch.stack(b).float() / 255 for b in zip(*batch, strict=True))
            optimizer.zero_grad()
            F.l1_loss(network(small, photo), target).backward()
            optimizer.step()
            schedule.step()
            progress.update()
    return network.eval()


@torch.inference_mode()
def enlarged(photo: Image.Image, student: OnnxStudent, network: Enlarger) -> Image.Image:
    given = (to_tensor(each)[None] for each in (halved(photo, student), photo))
    return to_image(network(*given)[0].clamp(0, 1))


def main() -> None:
    options = parser(__doc__, photos=False)
    options.add_argument("--pairs", type=Path, required=True, help="set of hayao, sizes to 1024")
    options.add_argument("--count", type=int, default=100, help="training pictures (%(default)s)")
    options.add_argument("--steps", type=int, default=1000, help="of 8 crops (%(default)s)")
    options.add_argument("--tests", type=int, default=100, help="test pictures (%(default)s)")
    args = options.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    student = OnnxStudent(onnx_files.load_model(zoo.find("hayao")), "hayao", 1)
    ways: dict[str, Way] = {
        "photo": lambda photo: photo,
        "whole": lambda photo: render.stylise_rgb(photo, student, 1024),
        "tiles": lambda photo: render.stylise_rgb(photo, student, 1024, "tiles"),
        "512, enlarged": lambda photo: render.stylise_rgb(photo, student, 512),
        "512, guided": lambda photo: render.stylise_rgb(photo, student, 512, "guided"),
    }
    samples = [
        [(255 * to_tensor(each)).byte() for each in (halved(photo, student), photo, target)]
        for photo, target in pairs(args.pairs / "train", args.count)
    ]
    for name, with_photo in (("of the output", False), ("and of the photo", True)):
        network = train(Enlarger(with_photo), samples, args.steps)
        ways[f"super-resolution {name}"] = lambda p, network=network: enlarged(p, student, network)
    rows: dict[str, list[list[float]]] = {name: [] for name in ways}
    inks: dict[str, list[Tensor]] = {name: [] for name in ways}
    for photo, drawn in pairs(args.pairs / "test", args.tests):
        target = to_tensor(drawn)[None]
        for name, way in ways.items():
            begun = time.process_time()
            mine = to_tensor(way(photo))[None]
            ms = 1000 * (time.process_time() - begun)
            rows[name].append([ms, psnr(mine, target).item(), ssim(mine, target).item()])
            inks[name].append(ink_sums(mine, target)[0])
    lines = []
    for name, values in rows.items():
        figures = ratios(torch.stack(inks[name]).sum(0))
        lines_of = [f"{figures[FIGURES.index(each)]:.2f}" for each in SHOWN]
        ms, (decibels, alike) = np.median([v[0] for v in values]), np.mean(values, 0)[1:]
        lines.append([name, f"{ms:.0f}", f"{decibels:.1f}", f"{alike:.3f}", *lines_of])
    title = f"Against the teacher at 1024, {len(rows['photo'])} test pictures"
    table = Table(title, ["way", "ms", "PSNR (dB)", "SSIM", *SHOWN], lines)
    write("super_resolution", args.out, machine(), rows, table)


if __name__ == "__main__":
    main()
