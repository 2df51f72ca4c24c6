"""How close outputs are to the teacher's: per picture, as drawings, and as sets by features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor, nn

from against_teacher.heldout_set import FidelitySet, Indices
from distill.core.images import sobel
from distill.eval_fid import line_scores
from distill.eval_fid.feature_sets import Features, Values, features_of_set, interval, per_picture
from distill.metrics import frechet, similarity
from distill.metrics.features import FeatureNetwork
from distill.metrics.frechet import Groups
from distill.metrics.line_figures import displacement
from distill.metrics.similarity import grid

ENOUGH = 1000  # pictures from which on a Fréchet distance is given; below, it is mostly bias
BATCH = 16
PSNR = "PSNR (dB)"
GRID = "grid above teacher's (1/255)"
Row = dict[str, Any]  # value, interval (None where none can be had), pictures
Measure = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class PictureFigures:
    """Every figure of each picture, (n,), NaN where it has none; features (n, d) of all.

    `ink` and `places` are what `line_scores` makes its rows of.
    """

    values: dict[str, Values]
    features: Features | None
    ink: Values | None = None
    places: Values | None = None


def measures() -> dict[str, Measure]:
    """The figures of one picture against another; LPIPS only where its weights are at hand."""
    found: dict[str, Measure] = {
        PSNR: similarity.psnr,
        "SSIM": similarity.ssim,
        "edge PSNR (dB)": edge_psnr,
        GRID: grid_above,
    }
    lpips = similarity.lpips_or_none()
    return found | ({"LPIPS": lpips} if lpips else {})


def edge_psnr(a: Tensor, b: Tensor) -> Tensor:
    """PSNR in dB, (N,), of the Sobel maps of (N, C, H, W) in [0, 1], slopes per pixel; peak 1."""
    return similarity.psnr(sobel(a.float()), sobel(b.float()))


def grid_above(output: Tensor, teacher: Tensor) -> Tensor:
    """What a picture has of upsampling's checkerboard beyond the teacher's, in steps of a byte."""
    return 255 * (grid(output) - grid(teacher))


def measure(
    held: FidelitySet,
    output: Tensor,
    by: dict[str, Measure],
    network: FeatureNetwork | None,
    what: str,
) -> PictureFigures:
    """All figures of uint8 (n, 3, H, W) against the teacher's pictures of the same photos."""
    values = {name: per_picture(each, output, held.teacher, BATCH) for name, each in by.items()}
    features = features_of_set(network, output, what) if network else None
    ink = line_scores.ink_of(output, held.teacher, BATCH)
    places = per_picture(displacement, output, held.teacher, BATCH)
    return PictureFigures(values, features, ink, places)


def flickering(network: nn.Module, held: FidelitySet, at: Indices, what: str) -> dict[str, Values]:
    """Flicker of the output for the photos `at`, each kind (n,), NaN for the others."""
    found = line_scores.flicker_of(network, held.photo[at], BATCH, f"flicker of {what}")
    if found is None:
        return {}
    spread = np.full((len(line_scores.FLICKER), len(held.files)), np.nan)
    spread[:, at] = found.T
    return dict(zip(line_scores.FLICKER, spread, strict=True))


def score(
    at: Indices,
    student: PictureFigures,
    teacher: PictureFigures,
    network: FeatureNetwork | None,
    rounds: int,
    groups: Groups = None,
) -> dict[str, Row]:
    """Every figure over the pictures `at`, with a 95 % interval of `rounds` resamples.

    Pictures are resampled, or `groups` (n,) of them: pictures of one person depend on each other.
    """
    groups = None if groups is None else groups[at]
    scores = {name: mean(values[at], rounds, groups) for name, values in student.values.items()}
    if student.ink is not None and student.places is not None:
        scores |= line_scores.ink_rows(student.ink[at], rounds, groups=groups)
        scores[line_scores.OFF] = line_scores.displacement_row(student.places[at])
    if network and teacher.features is not None and student.features is not None:
        features = teacher.features[at], student.features[at]
        scores |= _distances(*features, network, rounds, groups)
    return {name: row for name, row in scores.items() if row}


def lead(
    at: Indices,
    student: PictureFigures,
    base: PictureFigures,
    rounds: int,
    groups: Groups = None,
) -> Row:
    """PSNR above another student's, picture by picture: far surer than either's own interval."""
    above = student.values[PSNR][at] - base.values[PSNR][at]
    return mean(above, rounds, None if groups is None else groups[at])


def mean(values: Values, rounds: int, groups: Groups = None) -> Row:
    """Mean of those that are a number; empty where none is. `groups` (n,) are resampled."""
    known = np.isfinite(values)
    values, groups = values[known], None if groups is None else groups[known]
    if not len(values):
        return {}
    row: Row = {"value": float(values.mean()), "pictures": len(values)}
    return row | {"interval": interval(frechet.bootstrap, values, rounds=rounds, groups=groups)}


def _distances(
    t: Features, s: Features, network: FeatureNetwork, rounds: int, groups: Groups
) -> dict[str, Row]:
    """Of the same photos in the same order, so that every resample has both of a photo."""
    paired: Row = {"pictures": len(t)}
    if len(t) < 2:
        return {}
    how: dict[str, Any] = {"rounds": rounds, "paired": True, "groups": (groups, groups)}
    if len(t) < ENOUGH:
        spread = interval(frechet.kid_interval, t, s, kernel=network.kernel, **how)
        paired["value"] = 1000 * frechet.kid(t, s, True, network.kernel)
        paired["interval"] = [1000 * end for end in spread] if spread else None
        return {network.kid: paired}
    paired["value"] = frechet.frechet_from_features(t, s)
    paired["interval"] = interval(frechet.frechet_interval, t, s, **how)
    return {network.fid: paired}
