"""The colours that stand for a picture: centres of k-means (Lloyd 1982)."""

import torch
import torch.nn.functional as F
from torch import Tensor


def nearest(lab: Tensor, centres: Tensor) -> Tensor:
    """Which of the centres (K, 3) each colour of (3, H, W) is nearest to, (H, W)."""
    return torch.stack([(lab - c[:, None, None]).square().sum(0) for c in centres]).argmin(0)


def means(lab: Tensor, count: int) -> Tensor:
    """The centres (count, 3) of k-means over (3, H, W), begun with colours far from each other."""
    points = F.adaptive_avg_pool2d(lab, 96).flatten(1)
    centres = points.mean(1)[None]
    while len(centres) < count:
        far = torch.cdist(points.T, centres).amin(1).argmax()
        centres = torch.cat([centres, points[:, far][None]])
    for _ in range(20):
        member = F.one_hot(nearest(points[:, None], centres)[0], count).float()
        size = member.sum(0)[:, None]
        centres = torch.where(size > 0, member.T @ points.T / size.clamp_min(1), centres)
    return centres
