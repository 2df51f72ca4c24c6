"""How close outputs are to the teacher's: per picture, as drawings, and as sets by features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor, nn

from distill.core.images import to_float
from distill.data.faces import Box
from distill.evaluation import drawing_scores as drawing
from distill.evaluation.feature_sets import Features, features_of_set
from distill.evaluation.fidelity.heldout_set import FidelitySet, Indices
from distill.evaluation.fidelity.views import KINDS, Views
from distill.evaluation.heldout import infer
from distill.evaluation.picture_scores import Values, interval, per_picture
from distill.metrics import frechet, similarity
from distill.metrics.features import FeatureNetwork
from distill.metrics.frechet import Groups
from distill.metrics.similarity import grid

ENOUGH = 1000  # pictures from which on a Fréchet distance is given; below, it is mostly bias
BATCH = 16
PSNR, FACE = "PSNR (dB)", "face PSNR (dB)"
OFF_CENTRE, AGAINST = "off-centre PSNR (dB)", "off-centre against centre (dB)"
GRID = "grid above teacher's (1/255)"
Row = dict[str, Any]  # value, interval (None where none can be had), pictures
Measure = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class PictureFigures:
    """Every figure of each picture, (n,), NaN where it has none; features (n, d) of all.

    `ink` and `places` are what `drawing_scores` makes its rows of.
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
        "edge PSNR (dB)": similarity.edge_psnr,
        GRID: grid_above,
    }
    lpips = similarity.lpips_or_none()
    return found | ({"LPIPS": lpips} if lpips else {})


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
    faces = [_face_psnr(*pair) for pair in zip(output, held.teacher, held.boxes, strict=True)]
    features = features_of_set(network, output, what) if network else None
    ink = drawing.ink_of(output, held.teacher, BATCH)
    places = drawing.places_of(output, held.teacher, BATCH)
    return PictureFigures(values | {FACE: np.array(faces)}, features, ink, places)


def flickering(network: nn.Module, held: FidelitySet, at: Indices, what: str) -> dict[str, Values]:
    """Flicker of the output for the photos `at`, each kind (n,), NaN for the others."""
    found = drawing.flicker_of(network, held.photo[at], BATCH, f"flicker of {what}")
    if found is None:
        return {}
    return {
        name: _spread(each, at, len(held.files))
        for name, each in zip(drawing.FLICKER, found.T, strict=True)
    }


def off_centre(network: nn.Module, views: Views, centre: Values, what: str) -> dict[str, Values]:
    """PSNR of each view, of all and against that of the photos as they are, `centre`: each (n,)."""
    psnr = np.stack(
        [
            per_picture(similarity.psnr, infer(network, photo, BATCH, what), teacher, BATCH)
            for photo, teacher in zip(views.photo, views.teacher, strict=True)
        ]
    )
    figures = {f"{PSNR}, {kind}": psnr[:, i] for i, kind in enumerate(KINDS)}
    mean = psnr.mean(1)
    figures |= {OFF_CENTRE: mean, AGAINST: mean - centre[views.at]}
    return {name: _spread(each, views.at, len(centre)) for name, each in figures.items()}


def _spread(values: Values, at: Indices, count: int) -> Values:
    """Those of the pictures `at` among all, NaN elsewhere."""
    spread = np.full(count, np.nan)
    spread[at] = values
    return spread


def _face_psnr(a: Tensor, b: Tensor, box: Box | None) -> float:
    if box is None:
        return float("nan")
    spot = np.s_[None, :, box.top : box.top + box.height, box.left : box.left + box.width]
    return similarity.psnr(to_float(a[spot]), to_float(b[spot])).item()


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
        scores |= drawing.ink_rows(student.ink[at], rounds, groups=groups)
        scores[drawing.OFF] = drawing.displacement_row(student.places[at])
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
        spread = interval(frechet.kid_interval, t, s, **how)
        paired["value"] = 1000 * frechet.kid(t, s, paired=True)
        paired["interval"] = [1000 * end for end in spread] if spread else None
        return {network.kid: paired}
    paired["value"] = frechet.frechet_from_features(t, s)
    paired["interval"] = interval(frechet.frechet_interval, t, s, **how)
    return {network.fid: paired, f"{network.fid} gap": gap(t, s, rounds, groups)}


def gap(t: Features, s: Features, rounds: int, groups: Groups = None) -> Row:
    """|FD(T, T′) − FD(T, S)|: T the teacher's pictures of half the photos, T′ and S of the others.

    The sign goes into `signed`, with its interval: above 0 the student is further off than the
    teacher is from itself. The interval is shifted to the plain figure as `frechet_interval` is.
    """
    half, rng = len(t) // 2, np.random.default_rng(0)
    sides = t[:half], t[half:], s[half:]
    of = (None, None) if groups is None else (groups[:half], groups[half:])
    signed = _excess(*sides)
    row: Row = {"pictures": len(t), "value": abs(signed), "interval": None, "signed": signed}
    if rounds and all(of_half is None or len(set(of_half)) > 1 for of_half in of):
        resampled = np.array([_excess(*_resampled(*sides, rng, of)) for _ in range(rounds)])
        shifted = resampled - np.median(resampled) + signed
        low, high = np.quantile(shifted, [0.025, 0.975]).tolist()
        ends = sorted(map(abs, (low, high)))
        row["interval"] = [0.0 if low < 0 < high else ends[0], ends[1]]
        row["signed_interval"] = [low, high]
    return row


def _excess(
    a: Features, t: Features, s: Features, times_a: Any = None, times_b: Any = None
) -> float:
    far, floor = (frechet.frechet_from_features(a, other, times_a, times_b) for other in (s, t))
    return far - floor


def _resampled(
    a: Features,
    t: Features,
    s: Features,
    rng: np.random.Generator,
    groups: tuple[Groups, Groups],
) -> tuple[Any, ...]:
    """Both halves resampled, each picture once with its count; T′ and S together."""
    sides = zip((a, t), groups, strict=True)
    times = [frechet.counts_of(len(x), 1, rng, of)[0] for x, of in sides]
    in_a, in_b = (each > 0 for each in times)
    return a[in_a], t[in_b], s[in_b], times[0][in_a], times[1][in_b]
