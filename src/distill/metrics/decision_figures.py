"""What PSNR does not see of a teacher that decides: lines that hold together, narrow borders, inks.

PSNR rewards the mean over a decision: grey, broken lines and inks that run into each other. These
figures say how much of a line's middle is drawn, in how many pieces, how wide the borders are, and
which share of a print has one of its inks.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from distill.core.images import black_hat, highest, luma, sobel

DARK = 0.20  # black-hat of a line in [0, 1]
SMALLEST = 4  # pixels of a piece; fewer are specks
REACH = 7  # pixels: side of the square in which a border's two tones are looked for
BORDER = 0.20  # difference of these tones
FLAT = 20 / 255  # largest difference to an ink, of each channel
DECIDED = ("line recall", "line precision", "line pieces", "edge width")
PRINTED = ("flat", "class agreement")


def decision_sums(student: Tensor, teacher: Tensor) -> Tensor:
    """What each of DECIDED divides by what, (N, 4, 2), of RGB (N, 3, H, W) in [0, 1].

    - line recall: pixels of the skeleton (Zhang and Suen 1984) of the teacher's lines within 1
      pixel of the student's lines, of all its pixels; line precision the other way round;
    - line pieces: 8-connected pieces of 4 pixels or more in the student's lines, of the teacher's;
    - edge width: the student's at the teacher's borders, of the teacher's: the range of luma in
      7×7 pixels over its steepest slope in 3×3.

    Lines are dark ones up to 4 pixels across, deeper than .2 (`black_hat`).
    """
    from scipy.ndimage import label
    from skimage.morphology import skeletonize

    grey = [luma(each.float()) for each in (student, teacher)]
    near = [highest(black_hat(each), 3)[:, 0].cpu().numpy() > DARK for each in grey]
    masks = [black_hat(each)[:, 0].cpu().numpy() > DARK for each in grey]
    sums = torch.zeros(len(student), len(DECIDED), 2)
    for n in range(len(student)):
        middle = [skeletonize(mask[n]) for mask in masks]
        sums[n, 0] = torch.tensor([(middle[1] & near[0][n]).sum(), middle[1].sum()])
        sums[n, 1] = torch.tensor([(middle[0] & near[1][n]).sum(), middle[0].sum()])
        pieces = [label(mask[n], np.ones((3, 3)))[0] for mask in masks]
        counts = [(np.bincount(each.ravel())[1:] >= SMALLEST).sum() for each in pieces]
        sums[n, 2] = torch.tensor(counts)
    ranges = [highest(each, REACH) + highest(-each, REACH) for each in grey]
    slopes = [sobel(each).square().sum(1, keepdim=True).sqrt() for each in grey]
    steepest = [highest(each, 3) for each in slopes]
    border = (ranges[1] > BORDER) & (slopes[1] == highest(slopes[1], 5))
    for place, (span, slope) in enumerate(zip(ranges, steepest, strict=True)):
        width = (span / slope.clamp_min(1e-4)).clamp(0, 2 * REACH)
        sums[:, 3, place] = (width * border).flatten(1).sum(1).cpu()
    return sums


def print_sums(student: Tensor, teacher: Tensor, inks: Tensor) -> Tensor:
    """What each of PRINTED divides by what, (N, 2, 2), of RGB (N, 3, H, W) and inks (K, 3) in
    [0, 1].

    - flat: pixels within 20 levels of an ink in each channel, the student's of the teacher's;
    - class agreement: mean over the inks of intersection over union of the pixels nearest to each,
      over 1: summed over pictures it is their mean.
    """
    away = [
        (each.float()[:, None] - inks[None, :, :, None, None]).abs() for each in (student, teacher)
    ]
    flat = [(each.amax(2).amin(1) <= FLAT).flatten(1).sum(1) for each in away]
    classes = [each.square().sum(2).argmin(1) for each in away]
    agreement = torch.zeros(len(student))
    for n, (ours, theirs) in enumerate(zip(*classes, strict=True)):
        parts = [(ours == k, theirs == k) for k in range(len(inks))]
        unions = [((a & b).sum(), (a | b).sum()) for a, b in parts]
        agreement[n] = torch.stack([both / either for both, either in unions if either]).mean()
    ones = torch.ones(len(student))
    return torch.stack([torch.stack(flat, 1).float().cpu(), torch.stack([agreement, ones], 1)], 1)
