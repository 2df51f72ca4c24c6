"""Scores of a run of recipe=picture, which has no teacher: its own losses on held-out photos.

Beside the student stand the photos as they are and the same photos optimised: steps on the pixels
themselves (Gatys et al. 2016), which is what a network of any size is measured by.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from distill.core.images import to_float, to_uint8
from distill.core.progress import track
from distill.eval_fid.heldout import HeldOut
from distill.eval_fid.paired_scores import flickering
from distill.losses.criterion import Criterion, make_criterion
from distill_picture.picture_losses import PictureStyle
from distill_picture.settings import EvalFidOfPictures, PictureTrain
from distill_picture.style_pictures import files_of, read_square, style_pictures

PICTURES, RATE = 4, 0.02  # optimised together; Adam's rate


@dataclass(frozen=True)
class Styled:
    """The contact sheet: `columns`, each uint8 (n, 3, H, W), and their `titles`."""

    columns: tuple[Tensor, ...]
    titles: tuple[str, ...]


def score_style(
    pictures: HeldOut,
    checkpoint: Path,
    trained: PictureTrain,
    networks: Mapping[str, nn.Module],
    settings: EvalFidOfPictures,
) -> tuple[Styled, dict[str, Any]]:
    """The terms of the run's loss for photo, student and optimised photo, of four held-out photos.

    The flicker is that of `networks`, by name, as of other runs. Raises DistillError where a style
    picture or the weights of the perceptual network are missing.
    """
    criterion = run_criterion(trained, checkpoint)
    photos, output = (to_float(each[:PICTURES]) for each in (pictures.input, pictures.output))
    columns = {"photo": photos, "student": output}
    if settings.optimised:
        columns["optimised"] = optimised(criterion, photos, settings.optimised)
    rows = {
        f"{term}, {name}": {"value": value, "interval": None}
        for name, column in columns.items()
        for term, value in term_values(criterion, column, photos).items()
    }
    flicker = flickering(pictures.input, networks, settings)
    style = read_square(files_of(trained)[0], photos.shape[-1])
    shown = to_uint8(style[None]).expand(len(photos), -1, -1, -1)
    sheet = Styled((shown, *map(to_uint8, columns.values())), ("style", *columns))
    results = {"pictures": len(photos), **pictures.about, "similarity": rows, "drawing": flicker}
    return sheet, results | {"features": None, "fid_missing": None}


def run_criterion(trained: PictureTrain, checkpoint: Path) -> Criterion:
    """The run's loss in evaluation mode, with its style learnt and its terms balanced as it was."""
    loss = trained.loss
    criterion = make_criterion(loss.terms, loss.weights, loss.start).eval()
    for term in criterion.terms.values():
        if isinstance(term, PictureStyle):
            term.learn(style_pictures(trained), trained.picture.weights)
    saved = torch.load(checkpoint, map_location="cpu", weights_only=True)
    criterion.rescale(saved.get("loss_factors", {}))
    return criterion


@torch.no_grad()
def term_values(criterion: Criterion, output: Tensor, photos: Tensor) -> dict[str, float]:
    """Each term that compares pictures, unweighted."""
    return {k: float(v) for k, v in criterion.eval().of_pictures(output, photos).items()}


def optimised(criterion: Criterion, photos: Tensor, iterations: int) -> Tensor:
    """The photos (n, 3, H, W) after so many steps of Adam on their own pixels.

    Of the loss, `stable` has no part in it: that asks a network.
    """
    pictures = photos.clone().requires_grad_()
    optimiser = torch.optim.Adam([pictures], RATE)
    weights = criterion.train().weights
    torch.manual_seed(0)  # of the crops that the terms read
    for _ in track(range(iterations), iterations, "iteration", "optimisation of the photos"):
        optimiser.zero_grad()
        raw = criterion.of_pictures(pictures, photos)
        torch.stack([weights[name] * value for name, value in raw.items()]).sum().backward()
        optimiser.step()
        with torch.no_grad():
            pictures.clamp_(0, 1)
    criterion.eval()
    return pictures.detach()
