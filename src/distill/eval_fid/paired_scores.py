"""Scores of held-out pairs: the paper's Table 2 for one style, with intervals.

The held-out photos are split into halves A and B. T(A), T(B) are the teacher's output, S(B) the
student's: the student is compared with the teacher's output for *other* photos, as FID is meant. Of
a run that learnt from pairs T are their targets, and G(B) is the generator's output.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from distill.config.settings.commands import EvalFid
from distill.core.errors import DistillError, counted
from distill.data.photos import find_photos
from distill.eval_fid import line_scores
from distill.eval_fid.feature_sets import (
    Features,
    Row,
    features_of_files,
    features_of_set,
    interval,
    per_picture,
)
from distill.eval_fid.heldout import HeldOut
from distill.metrics import frechet, similarity
from distill.metrics.features import FeatureName, FeatureNetwork, feature_network
from distill.metrics.frechet import Gaussian, Groups, Kernel, read_statistics
from distill.metrics.line_figures import displacement
from distill.metrics.metric import user_metrics

FID_MISSING = 3  # exit status: everything else was computed
ENOUGH = 2048  # pictures a side below which an FID is strongly biased upwards

NO_DISTANCES: Row = {"features": None, "distances": None}

Networks = Mapping[str, Callable[[Tensor], Tensor]]


def features_or_reason(name: FeatureName) -> tuple[FeatureNetwork | None, str]:
    """The feature network, or None and why its weights cannot be had."""
    try:
        return feature_network(name), ""
    except DistillError as error:
        return None, str(error)


def score_pairs(
    pictures: HeldOut,
    network: FeatureNetwork | None,
    settings: EvalFid,
    networks: Networks | None = None,
) -> Row:
    """Every figure of the paper's Table 2, of each picture and of its lines, as plain values.

    `networks` are the networks whose flicker is measured, by name.
    """
    photo, target, student = pictures.titles
    compared = {
        f"{student} to {target}": (pictures.output, pictures.target),
        f"{photo} to {target}": (pictures.input, pictures.target),
    }
    results: Row = {"pictures": len(pictures.input)} | pictures.about
    results |= resampling(settings.bootstrap, pictures.groups)
    results["similarity"] = picture_by_picture(compared, settings, pictures.groups)
    both = {**networks, photo: lambda picture: picture} if networks else {}
    results["drawing"] = line_figures(compared, settings, pictures.groups)
    results["drawing"] |= flickering(pictures.input, both, settings, pictures.groups)
    if network is None or pictures.half < 2:
        count = counted(len(pictures.input), "held-out picture")
        few = f"{count}: too few for two halves of at least 2; add photos, or use features=none"
        return results | NO_DISTANCES | ({} if network is None else {"fid_missing": few})
    facts = feature_facts(network, pictures.half)
    return results | facts | {"distances": _distances(pictures, network, settings)}


def score_folders(a: Path, b: Path, network: FeatureNetwork | None, settings: EvalFid) -> Row:
    """Fréchet and kernel distance of any two folders, or the former by files of statistics."""
    sets = [
        read_statistics(f) if f.suffix == ".npz" else find_photos(f, "a= or b=") for f in (a, b)
    ]
    if settings.features == "none":
        raise DistillError("features=none: leaves nothing to compare two folders by")
    if network is None:
        return {"a": str(a), "b": str(b)} | NO_DISTANCES
    first, second = (
        each if isinstance(each, Gaussian) else features_of_files(network, each, str(folder))
        for each, folder in zip(sets, (a, b), strict=True)
    )
    counts = [None if isinstance(each, Gaussian) else len(each) for each in (first, second)]
    facts: Row = {"pictures": counts} | feature_facts(
        network, min(filter(None, counts), default=ENOUGH)
    )
    if isinstance(first, Gaussian) or isinstance(second, Gaussian):
        x, y = (s if isinstance(s, Gaussian) else frechet.fit(s) for s in (first, second))
        if len(x.mean) != len(y.mean):
            raise DistillError(
                f"{a} and {b}: features of {len(x.mean)} and of {len(y.mean)} values are of "
                "different networks; features=inception gives 2048, as pytorch-fid does"
            )
        row: Row = {"value": frechet.frechet_distance(x, y), "kid": None, "interval": None}
        facts["remark"] = "statistics of a file are taken to be of the same network and resize"
    else:
        row = distance(first, second, settings, kernel=network.kernel)
        facts |= resampling(settings.bootstrap)
    return {"a": str(a), "b": str(b)} | facts | {"distances": {"a against b": row}}


def resampling(rounds: int, *groups: Groups) -> Row:
    """What results say of their intervals, `groups` being those of the pictures of each kind;
    without any the pictures themselves are resampled."""
    count = sum(len(set(each)) for each in groups if each is not None)
    return {"resampled": {"rounds": rounds, "groups": count}}


def picture_by_picture(
    compared: dict[str, tuple[Tensor, Tensor]], settings: EvalFid, groups: Groups = None
) -> Row:
    """PSNR, SSIM, LPIPS where it is available and the user's metrics, of uint8 (n, 3, H, W).

    Each is a mean over the pictures.
    """
    how: Row = {"rounds": settings.bootstrap, "seed": settings.seed}
    measures: dict[str, Any] = {"PSNR (dB)": similarity.psnr, "SSIM": similarity.ssim}
    if lpips := similarity.lpips_or_none():
        measures["LPIPS"] = lpips
    measures |= user_metrics(settings.metrics)
    rows: Row = {}
    for name, measure in measures.items():
        for what, (a, b) in compared.items():
            values = per_picture(measure, a, b, settings.batch_size)
            spread = interval(frechet.bootstrap, values, groups=groups, **how)
            rows[f"{name}, {what}"] = {"value": float(values.mean()), "interval": spread}
    return rows


def line_figures(
    compared: dict[str, tuple[Tensor, Tensor]], settings: EvalFid, groups: Groups = None
) -> Row:
    """Ink, sharpness and displacement, of uint8 pictures (n, 3, H, W)."""
    how: Row = {"rounds": settings.bootstrap, "seed": settings.seed, "groups": groups}
    rows: Row = {}
    size = settings.batch_size
    for what, (a, b) in compared.items():
        figures = line_scores.ink_rows(line_scores.ink_of(a, b, size), **how)
        places = per_picture(displacement, a, b, size)
        figures[line_scores.OFF] = line_scores.displacement_row(places)
        rows |= {f"{name}, {what}": row for name, row in figures.items() if row}
    names = [*line_scores.INK, line_scores.OFF]
    return dict(sorted(rows.items(), key=lambda row: names.index(row[0].partition(",")[0])))


def flickering(photos: Tensor, networks: Networks, settings: EvalFid, groups: Groups = None) -> Row:
    """Flicker of each network's output for the first of the photos, uint8 (n, 3, H, W)."""
    photos, size, rows = photos[: settings.flicker], settings.batch_size, Row()
    groups = None if groups is None else groups[: len(photos)]
    for name, network in networks.items():
        values = line_scores.flicker_of(network, photos, size, f"flicker of the {name}")
        if values is not None:
            figures = line_scores.flicker_rows(values, settings.bootstrap, settings.seed, groups)
            rows |= {f"{kind}, {name}": row for kind, row in figures.items()}
    return rows


def distance(
    a: Features,
    b: Features,
    settings: EvalFid,
    paired: bool = False,
    groups: tuple[Groups, Groups] = (None, None),
    kernel: Kernel = frechet.polynomial,
) -> Row:
    """Fréchet and kernel distance of two sets of features, each with an interval.

    `paired`: picture i of both sides shows one photo, see `frechet.kid`. `groups` are those of the
    pictures of each side.
    """
    how: Row = {"rounds": settings.bootstrap, "seed": settings.seed}
    how |= {"paired": paired, "groups": groups}
    return {
        "value": frechet.frechet_from_features(a, b),
        "interval": interval(frechet.frechet_interval, a, b, **how),
        "kid": frechet.kid(a, b, paired, kernel),
        "kid_interval": interval(frechet.kid_interval, a, b, kernel=kernel, **how),
    }


def feature_facts(network: FeatureNetwork, count: int) -> Row:
    """What a result must say of its features, and that so few pictures bias it."""
    row: Row = {"features": network.title, "resize": network.resize, "pictures_per_side": count}
    row |= {"fid_name": network.fid, "kid_name": network.kid}
    if count < ENOUGH:
        each = counted(count, "picture")
        row["warning"] = f"{each} a side: under {ENOUGH} a Fréchet distance is biased upwards"
    return row


def _distances(pictures: HeldOut, network: FeatureNetwork, settings: EvalFid) -> dict[str, Row]:
    half, student = pictures.half, pictures.titles[2]
    output = f"{student[0].upper()}(B)"
    sets = {
        "T(A)": pictures.target[:half],
        "T(B)": pictures.target[half:],
        output: pictures.output[half:],
        "C(B)": pictures.ceiling[half:],
    }
    f = {name: features_of_set(network, pixels, name) for name, pixels in sets.items()}
    a, b = pictures.groups[:half], pictures.groups[half:]
    kernel = network.kernel
    others: Row = {"settings": settings, "groups": (a, b), "kernel": kernel}
    return {
        "floor: T(A), T(B)": distance(f["T(A)"], f["T(B)"], **others),
        f"{student}: T(A), {output}": distance(f["T(A)"], f[output], **others),
        f"ceiling: T(A), {pictures.ceiling_name}": distance(f["T(A)"], f["C(B)"], **others),
        f"paired: T(B), {output}": distance(f["T(B)"], f[output], settings, True, (b, b), kernel),
    }
