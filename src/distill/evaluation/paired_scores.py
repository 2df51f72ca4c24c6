"""The evaluation step by step: the paper's Table 2 for one style, with intervals.

The held-out photos are split into halves A and B. T(A), T(B) are the teacher's pictures, S(B) the
student's: the student is compared with teacher pictures of *other* photos, as FID is meant. Of a
run of recipe=pix2pix T are the targets of the pairs, and G(B) the generator's pictures.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from distill.config.settings import EvalFid
from distill.core.errors import DistillError
from distill.core.images import batches
from distill.data.photos import find_photos
from distill.evaluation.feature_sets import Features, features_of_files, features_of_set
from distill.evaluation.heldout import HeldOut
from distill.metrics import frechet, similarity
from distill.metrics.features import FeatureNetwork, feature_network

FID_MISSING = 3  # exit status: everything else was computed
ENOUGH = 2048  # pictures a side below which an FID is strongly biased upwards

Row = dict[str, Any]


def features_or_reason(name: Any) -> tuple[FeatureNetwork | None, str]:
    """The feature network, or None and why its weights cannot be had."""
    try:
        return feature_network(name), ""
    except DistillError as error:
        return None, str(error)


def against_teacher(pictures: HeldOut, network: FeatureNetwork | None, settings: EvalFid) -> Row:
    """Every figure of the paper's Table 2 and the per-picture ones, as plain values."""
    given, wanted, who = pictures.titles
    compared = {
        f"{who} to {wanted}": (pictures.student, pictures.teacher),
        f"{given} to {wanted}": (pictures.photo, pictures.teacher),
    }
    results: Row = {"pictures": len(pictures.names)} | pictures.about
    results |= {"similarity": picture_by_picture(compared, settings)}
    if network is None:
        return results | {"features": None, "distances": None}
    if pictures.half < 2:
        raise DistillError(
            f"{len(pictures.names)} held-out pictures are too few for two halves of at least 2; "
            "add photos, or use features=none"
        )
    return (
        results
        | about(network, pictures.half)
        | {"distances": _distances(pictures, network, settings)}
    )


def two_folders(a: Path, b: Path, network: FeatureNetwork | None, settings: EvalFid) -> Row:
    """Fréchet and kernel distance of any two folders of pictures."""
    found = [find_photos(folder, key="a= or b=") for folder in (a, b)]
    if settings.features == "none":
        raise DistillError("features=none: leaves nothing to compare two folders by")
    if network is None:
        return {"a": str(a), "b": str(b), "features": None, "distances": None}
    first, second = (
        features_of_files(network, photos, str(folder))
        for photos, folder in zip(found, (a, b), strict=True)
    )
    facts = about(network, min(len(first), len(second)))
    counts = {"pictures": [len(first), len(second)]}
    row = distance(first, second, settings)
    return {"a": str(a), "b": str(b)} | counts | facts | {"distances": {"a against b": row}}


def picture_by_picture(compared: dict[str, tuple[Tensor, Tensor]], settings: EvalFid) -> Row:
    """PSNR, SSIM and LPIPS where it is at hand, each a mean over 8-bit pictures (n, 3, H, W)."""
    measures: dict[str, Any] = {"PSNR (dB)": similarity.psnr, "SSIM": similarity.ssim}
    if lpips := similarity.lpips_or_none():
        measures["LPIPS"] = lpips
    rows: Row = {}
    for name, measure in measures.items():
        for what, (drawn, wanted) in compared.items():
            values = _per_picture(measure, drawn, wanted, settings.batch_size)
            rows[f"{name}, {what}"] = {"value": float(values.mean())} | _with_interval(
                settings, frechet.bootstrap, values
            )
    return rows


def _distances(pictures: HeldOut, network: FeatureNetwork, settings: EvalFid) -> dict[str, Row]:
    half, who = pictures.half, pictures.titles[2]
    drawn = f"{who[0].upper()}(B)"
    sets = {
        "T(A)": pictures.teacher[:half],
        "T(B)": pictures.teacher[half:],
        drawn: pictures.student[half:],
        "C(B)": pictures.ceiling[half:],
    }
    f = {name: features_of_set(network, pixels, name) for name, pixels in sets.items()}
    return {
        "floor: T(A), T(B)": distance(f["T(A)"], f["T(B)"], settings),
        f"{who}: T(A), {drawn}": distance(f["T(A)"], f[drawn], settings),
        f"ceiling: T(A), {pictures.ceiling_name}": distance(f["T(A)"], f["C(B)"], settings),
        f"paired: T(B), {drawn}": distance(f["T(B)"], f[drawn], settings),
    }


def distance(a: Features, b: Features, settings: EvalFid) -> Row:
    """Fréchet and kernel distance of two sets of features, and an interval of the first."""
    row: Row = {"value": frechet.frechet_from_features(a, b), "kid": frechet.kid(a, b)}
    return row | _with_interval(settings, frechet.frechet_interval, a, b)


def _with_interval(settings: EvalFid, method: Any, *values: Features) -> Row:
    if not settings.bootstrap or min(len(v) for v in values) < 2:
        return {"interval": None}
    return {"interval": list(method(*values, rounds=settings.bootstrap, seed=settings.seed))}


@torch.inference_mode()
def _per_picture(measure: Any, a: Tensor, b: Tensor, size: int) -> Features:
    pairs = zip(batches(a, size), batches(b, size), strict=True)
    return np.concatenate([measure(x, y).double().numpy() for x, y in pairs])


def about(network: FeatureNetwork, count: int) -> Row:
    """What a result must say of its features, and that so few pictures bias it."""
    row: Row = {"features": network.title, "resize": network.resize, "pictures_per_side": count}
    row |= {"fid_name": network.fid, "kid_name": network.kid}
    if count < ENOUGH:
        row["warning"] = (
            f"{count} pictures a side: under {ENOUGH} a Fréchet distance is biased upwards"
        )
    return row
