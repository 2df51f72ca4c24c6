"""What PSNR does not see of a drawing's lines: ink, displacement, flicker.

Ink are the thin dark lines: how much of a teacher's a student has, and how dark. Its pixels are
those whose black-hat (`distill.core.images`) is above a depth. A line counts as drawn within one
pixel of its place: PSNR rewards a student that leaves out a line which it cannot place to the
pixel, and these figures do not.

Displacement is how far one picture lies off another, tile by tile. A teacher whose layers enlarge
with the wrong corners moves everything by a few pixels, which its pictures hide: an output looks
right beside the photo. Tiles show it, since such a shift grows from one side to the other.

Flicker is how much a network's output changes where its input hardly does, in levels of 255. Three
inputs that a camera gives: noise, a step of one pixel, and a slow pan. What moved is moved back
before it is compared. A network that leaves the photo as it is has 1.6 levels under noise
(σ·√(2/π)), none under the step, and under the pan what resampling does to its lines; so compare a
student with its teacher and with the photo."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from distill.core.errors import DistillError
from distill.core.images import black_hat, highest, luma, moved

LEAST = 0.10  # of luma in [0, 1]; fainter is shading and noise
DARKER = (0.20, 0.30)  # further depths at which recall and precision are taken
FARTHEST = 16.0  # pixels: a line with no counterpart nearer than this counts as this far
FIGURES = (
    "ink recall",
    "ink precision",
    "ink depth",
    *(f"ink {figure} at {depth}" for depth in DARKER for figure in ("recall", "precision")),
    "ink mass",
    "sharpness",
)
CHAMFER = "chamfer distance (px)"


def ink_sums(student: Tensor, teacher: Tensor) -> Tensor:
    """What each figure divides by what, (N, 9, 2) in the order of FIGURES, of RGB (N, 3, H, W).

    - recall: the teacher's ink pixels with a student's one within 1 pixel, of the teacher's;
    - precision: the student's with a teacher's one within 1 pixel, of the student's;
    - depth: at the teacher's ink pixels the student's largest black-hat within 1 pixel, no more
      than the teacher's, of the teacher's black-hat;
    - recall and precision at greater depths: the same of ink pixels that are at least as deep;
    - mass: the student's black-hat over all pixels, of the teacher's: above 1 where lines are too
      dark or too many;
    - sharpness: the same of the absolute Laplacian of the luma.

    All but the last two are in [0, 1]. Of many pictures a figure is the sum of the first over the
    sum of the second: a picture with little ink then counts little.
    """
    student_luma, teacher_luma = luma(student.float()), luma(teacher.float())
    student_ink, teacher_ink = black_hat(student_luma), black_hat(teacher_luma)
    near_student, near_teacher = highest(student_ink, 3), highest(teacher_ink, 3)  # within a pixel
    pairs = []
    for depth in (LEAST, *DARKER):
        has, wants = student_ink > depth, teacher_ink > depth
        pairs += [(wants & (near_student > depth), wants), (has & (near_teacher > depth), has)]
    ink = teacher_ink * (teacher_ink > LEAST)
    pairs.insert(2, (torch.minimum(near_student, ink), ink))
    pairs += [
        (student_ink, teacher_ink),
        (_laplacian(student_luma).abs(), _laplacian(teacher_luma).abs()),
    ]
    sums = [torch.stack([part.flatten(1).sum(1).float() for part in pair], -1) for pair in pairs]
    return torch.stack(sums, 1)


def chamfer_sums(student: Tensor, teacher: Tensor) -> Tensor:
    """Sum of the distances between the lines of both, and their count, (N, 1, 2), of (N, 3, H, W).

    For each ink pixel of the one the nearest of the other (Barrow et al. 1977), both ways, in
    pixels and at most FARTHEST: the quotient is the symmetric chamfer distance.
    """
    from scipy.ndimage import distance_transform_edt

    sums = torch.zeros(len(student), 1, 2)
    lines = [(black_hat(luma(x.float())) > LEAST)[:, 0].cpu().numpy() for x in (student, teacher)]
    for n, (a, b) in enumerate(zip(*lines, strict=True)):
        for ours, others in ((a, b), (b, a)):
            # Without any line the transform measures to a place outside of the picture.
            to = distance_transform_edt(~others) if others.any() else np.full(a.shape, FARTHEST)
            sums[n, 0] += torch.tensor([to[ours].clip(max=FARTHEST).sum(), ours.sum()])
    return sums


def ratios(sums: Tensor) -> Tensor:
    """The figures, (…, k), of such sums (…, k, 2); NaN where there is no ink."""
    return sums[..., 0] / sums[..., 1]


def _laplacian(grey: Tensor) -> Tensor:
    """(N, 1, H, W): the four neighbours minus four times the pixel, the border's repeated."""
    padded = F.pad(grey, (1, 1, 1, 1), mode="replicate")
    beside = padded[..., 1:-1, 2:] + padded[..., 1:-1, :-2]
    above = padded[..., 2:, 1:-1] + padded[..., :-2, 1:-1]
    return beside + above - 4 * grey


FLAT = 0.02  # deviation of a tile's luma in [0, 1] below which there is nothing to compare
PARTS = 20  # of a pixel that are told apart


def displacement(a: Tensor, b: Tensor, tiles: int = 4) -> Tensor:
    """How far `a` lies off `b`, (N, tiles, tiles, 2) in pixels (down, right), of (N, 3, H, W).

    By the phase of both spectra (Kuglin and Hines 1975), under a Hann window, in steps of 1/20
    pixel (Guizar-Sicairos et al. 2008). NaN where one of the tiles is flat. A single tile may be
    off by a pixel or more where lines differ: take medians over pictures.
    """
    from skimage.registration import phase_cross_correlation  # heavy: SciPy comes with it

    height, width = (side // tiles for side in a.shape[-2:])
    window = torch.outer(
        torch.hann_window(height, periodic=False), torch.hann_window(width, periodic=False)
    )
    offsets = torch.full((len(a), tiles, tiles, 2), float("nan"))
    first, second = luma(a.float().cpu())[:, 0], luma(b.float().cpu())[:, 0]
    for n, row, column in np.ndindex(len(a), tiles, tiles):
        at = np.s_[n, row * height : (row + 1) * height, column * width : (column + 1) * width]
        here, there = first[at], second[at]
        if min(here.std(), there.std()) < FLAT:
            continue
        here, there = ((tile - tile.mean()) * window for tile in (here, there))
        shift, _, _ = phase_cross_correlation(
            here.numpy(), there.numpy(), upsample_factor=PARTS, normalization="phase"
        )
        offsets[n, row, column] = torch.from_numpy(np.asarray(shift))
    return offsets


def typical(offsets: Tensor) -> Tensor:
    """The median over pictures, (tiles, tiles, 2), of what `displacement` gives; NaN without any.

    Of an even number the lower one of the two in the middle.
    """
    return offsets.nanmedian(0).values


KINDS = ("noise", "1 px", "pan")
SIGMA = 2 / 255  # of the noise, on every channel of every pixel
STEPS = ((0, 1), (1, 0))  # pixels down and right
FRAMES, PACE = 8, 0.25  # of the pan: how many, and pixels to the right from one to the next
MARGIN = 16  # pixels at each border that are not looked at: there the photo was continued


@torch.inference_mode()
def flicker(network: Callable[[Tensor], Tensor], photos: Tensor, seed: int = 0) -> Tensor:
    """Mean |change| of every photo's output, (N, 3) in the order of KINDS, levels of 255.

    `photos` are (N, 3, H, W) in [0, 1], the output (N, 3, H, W) in [0, 1]. Photo i has the noise
    of the seed and its place i. Raises DistillError for photos with nothing inside the margin.
    """
    height, width = photos.shape[-2:]
    if min(height, width) <= 2 * MARGIN:
        raise DistillError(
            f"flicker is measured {MARGIN} pixels inside the border, and these photos are of "
            f"{height}×{width}; take larger ones"
        )
    still = network(photos)
    # Standard normal, the same on every device and for a photo in whatever batch.
    noise = [
        torch.randn(photos.shape[1:], generator=torch.Generator().manual_seed(seed + i))
        for i in range(len(photos))
    ]
    noisy = (photos + SIGMA * torch.stack(noise).to(photos)).clamp(0, 1)
    steps = [_change(moved(network(moved(photos, *by)), *(-x for x in by)), still) for by in STEPS]
    pan = []
    before = still
    for frame in range(1, FRAMES):
        by = frame * PACE
        now = moved(network(moved(photos, 0, by)), 0, -by)
        pan.append(_change(now, before))
        before = now
    changes = _change(network(noisy), still), torch.stack(steps).mean(0), torch.stack(pan).mean(0)
    return torch.stack(changes, 1)


def _change(a: Tensor, b: Tensor) -> Tensor:
    inner = (a - b)[..., MARGIN:-MARGIN, MARGIN:-MARGIN]
    return 255 * inner.abs().flatten(1).mean(1)
