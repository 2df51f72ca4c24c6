"""What PSNR does not see of a teacher that decides: lines that hold together, narrow borders, inks.

PSNR rewards the mean over a decision: grey, broken lines and inks that run into each other. These
figures say how much of a line's middle is drawn, in how many pieces, how wide the borders are, and
which share of a print has one of its inks.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from distill.core.images import black_hat, highest, luma, sobel
from distill.core.nodes import Node
from distill.metrics.metric import Metric

DARK = 0.20  # black-hat of a line in [0, 1]
SMALLEST = 4  # pixels of a piece; fewer are specks
REACH = 7  # pixels: side of the square in which a border's two tones are looked for
BORDER = 0.20  # difference of these tones
FLAT = 20 / 255  # largest difference to an ink, of each channel
DECIDED = ("line recall", "line precision", "line pieces", "edge width")


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


class Print(Metric):
    """A figure of pictures in the inks of a print, `#rrggbb`."""

    def __init__(self, inks: Sequence[str]) -> None:
        self.inks = torch.tensor([[*bytes.fromhex(ink.removeprefix("#"))] for ink in inks]) / 255

    def away(self, picture: Tensor) -> Tensor:
        """Differences (N, K, 3, H, W) of RGB (N, 3, H, W) in [0, 1] to the inks."""
        return picture.float()[:, None] - self.inks.to(picture.device)[None, :, :, None, None]


class FlatShare(Print):
    """The share of pixels within 20 levels of an ink in each channel, of the target's share."""

    def __call__(self, output: Tensor, target: Tensor) -> Tensor:
        flat = [
            (self.away(each).abs().amax(2).amin(1) <= FLAT).float().mean((1, 2))
            for each in (output, target)
        ]
        return flat[0] / flat[1].clamp_min(1e-6)


class ClassAgreement(Print):
    """Intersection over union of the pixels nearest to an ink, in the mean over the inks."""

    def __call__(self, output: Tensor, target: Tensor) -> Tensor:
        ours, theirs = (self.away(each).square().sum(2).argmin(1) for each in (output, target))
        inks = torch.arange(len(self.inks), device=output.device).view(1, -1, 1, 1)
        a, b = ours[:, None] == inks, theirs[:, None] == inks
        both, either = ((a & b).sum((2, 3)), (a | b).sum((2, 3)))
        return (both / either.clamp_min(1)).sum(1) / (either > 0).sum(1)


def metrics_of_head(head: Node | None) -> dict[str, Node]:
    """Nodes of the metrics, by name, of a student whose head prints in inks that are known."""
    if not head or not isinstance(head.get("inks"), Sequence):  # a number: they are learnt
        return {}
    classes = {"flat (of the teacher's)": FlatShare, "class agreement": ClassAgreement}
    return {
        name: {"_target_": f"{each.__module__}.{each.__name__}", "inks": head["inks"]}
        for name, each in classes.items()
    }
