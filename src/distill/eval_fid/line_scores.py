"""Ink, displacement and flicker of outputs, as rows over all pictures.

PSNR is high where a student tints and smooths, and leaves out every line it is not sure of. These
figures say whether the lines are there, where they are, and whether they hold still.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from distill.config.settings.networks import StyleSettings
from distill.core.arrays import over_white
from distill.core.errors import DistillError
from distill.core.images import batches
from distill.core.nodes import Node
from distill.core.progress import track
from distill.core.threads import adapting
from distill.data.manifest import manifest_at
from distill.eval_fid.feature_sets import Row, Values, interval, mean_row, per_picture
from distill.metrics import frechet
from distill.metrics.decision_figures import DECIDED, decision_sums
from distill.metrics.line_figures import (
    CHAMFER,
    FIGURES,
    KINDS,
    MARGIN,
    chamfer_sums,
    flicker,
    ink_sums,
    typical,
)
from distill.models import build
from distill.models.teachers.teacher import Teacher

OFF = "displacement (px)"
INK = (*FIGURES, CHAMFER, *DECIDED)
FLICKER = tuple(f"flicker, {kind} (levels)" for kind in KINDS)
DRAWN = (*INK, OFF, *FLICKER)
SEEN = 8  # pictures in which a tile must show something: of fewer a median is chance


def ink_of(output: Tensor, target: Tensor, batch_size: int) -> Values:
    """What `ink_rows` adds up, (n, k, 2) in the order of INK, of uint8 (n, 3, H, W)."""

    def sums(a: Tensor, b: Tensor) -> Tensor:
        return torch.cat([ink_sums(a, b), chamfer_sums(a, b), decision_sums(a, b)], 1)

    return per_picture(sums, output, target, batch_size)


def ink_rows(
    sums: Values, rounds: int, seed: int = 0, groups: frechet.Groups = None
) -> dict[str, Row]:
    """Figures of all pictures' ink and sharpness; none of what no picture has.

    Intervals resample pictures or, where they are given, `groups` (n,) of them.
    """
    how: dict[str, Any] = {"rounds": rounds, "seed": seed, "groups": groups}
    rows: dict[str, Row] = {}
    for name, parts in zip(INK, sums.swapaxes(0, 1), strict=True):
        over, under = parts.sum(0).tolist()
        if under:
            spread = interval(frechet.bootstrap_ratio, parts, **how)
            rows[name] = {"value": over / under, "pictures": len(parts), "interval": spread}
    return rows


def displacement_row(places: Values) -> Row:
    """How far the output lies off in that part of the picture, and direction, where most.

    `places` are those of `displacement`, (n, tiles, tiles, 2) in pixels, of which the medians over
    pictures count; empty where no part is seen in SEEN pictures.
    """
    often = np.isfinite(places).sum(0) >= SEEN
    if not often.any():
        return {}
    middle = typical(torch.from_numpy(places)).numpy()
    return {"value": float(np.abs(middle[often]).max()), "pictures": len(places), "interval": None}


def by_kind(scores: Mapping[str, Mapping[str, Row]]) -> dict[str, dict[str, dict[str, Row]]]:
    """Scores by name and figure, apart by what they are about, under the rest of a table's title.

    How close pictures are, then lines and flicker; each with the names and figures that there are.
    """
    parts: dict[str, dict[str, dict[str, Row]]] = {"": {}, ", lines and flicker": {}}
    for name, row in scores.items():
        for figure, value in row.items():
            part = parts[", lines and flicker" if figure in DRAWN else ""]
            part.setdefault(name, {})[figure] = value
    return {title: part for title, part in parts.items() if part}


def teacher_of(root: Path, style: StyleSettings, node: Node | None) -> Teacher | None:
    """The style's teacher in its fastest form, where it labelled the set at `root`.

    None where its weights are not available, and where another one labelled the set.
    """
    manifest = manifest_at(root)
    if manifest is None:
        return None
    try:
        teacher = build.available_teacher(style, node)
    except DistillError:  # its weights, or the run that it is, are gone
        return None
    return teacher.fast() if teacher and teacher.settle(manifest.get("teacher", "")) else None


def flicker_of(
    network: Callable[[Tensor], Tensor], photos: Tensor, batch_size: int, what: str
) -> Values | None:
    """Flicker of every photo's output, (n, 3) in levels, of uint8 (n, 3, H, W).

    None of photos too small for it. `what` is shown beside the progress bar.
    """
    if not len(photos) or min(photos.shape[-2:]) <= 2 * MARGIN:
        return None

    def output(pictures: Tensor) -> Tensor:
        return over_white(network(pictures)).float().clamp(0, 1)

    parts: list[Values] = []
    loader = adapting(batches(photos, batch_size))
    for batch in track(loader, len(photos), "photo", what, len):
        place = sum(map(len, parts))  # by which the noise of a photo goes
        parts.append(flicker(output, batch, seed=place).double().numpy())
    return np.concatenate(parts)


def flicker_rows(
    values: Values, rounds: int, seed: int = 0, groups: frechet.Groups = None
) -> dict[str, Row]:
    """Means over pictures of what `flicker_of` gives, a row each for noise, 1 px and pan."""
    how: dict[str, Any] = {"rounds": rounds, "seed": seed, "groups": groups}
    return {name: mean_row(each, **how) for name, each in zip(FLICKER, values.T, strict=True)}
