"""The evaluation step by step: the paper's Table 2 for one style, with intervals.

The held-out photos are split into halves A and B. T(A), T(B) are the teacher's pictures, S(B) the
student's: the student is compared with teacher pictures of *other* photos, as FID is meant.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

from distill import build, config
from distill.data.layouts import find_pairs
from distill.data.photos import BadPhoto, find_photos, read_photo
from distill.data.pictures import over_white, save_png, sheet, to_tensor
from distill.data.sets import PairSet
from distill.data.views import rng_for
from distill.errors import DistillError
from distill.metrics import frechet, similarity
from distill.metrics.features import FeatureNetwork, feature_network
from distill.settings import EvalFid, Prepare
from distill.weights import aside

FID_MISSING = 3  # exit status: everything else was computed
ENOUGH = 2048  # pictures a side below which an FID is strongly biased upwards

Features = NDArray[np.float64]
Row = dict[str, Any]


@dataclass(frozen=True)
class HeldOut:
    """Held-out pictures as 8-bit values, in one order: photo, teacher's and student's picture."""

    names: list[str]
    photo: Tensor
    teacher: Tensor
    student: Tensor
    ceiling: Tensor
    ceiling_name: str
    run: dict[str, Any]

    @property
    def half(self) -> int:
        return len(self.names) // 2


def features_or_reason(name: Any) -> tuple[FeatureNetwork | None, str]:
    """The feature network, or None and why its weights cannot be had."""
    try:
        return feature_network(name), ""
    except DistillError as error:
        return None, str(error)


def held_out(student: nn.Module, trained: dict[str, Any], settings: EvalFid) -> HeldOut:
    """All held-out pairs with the student's pictures, shuffled once by name."""
    source = build.source_of(trained, settings.photos)
    if source.data.root is None:
        build.prepare(source, build.teacher(source.style, source.teacher), sides=("val",))
    pairs = find_pairs(
        build.pairs_root(source), source.style.name, source.data.val_fraction, source.seed
    )["val"]
    pairs.sort(key=lambda pair: rng_for("half", pair.name).random())
    data = PairSet(pairs, source.style.resolution, train=False, alpha=trained["channels"] == 4)
    rows = [data[i] for i in range(len(data))]
    photo = torch.stack([_bytes(row["photo"]) for row in rows])
    teacher = torch.stack([_bytes(over_white(row["target"][None])[0]) for row in rows])
    drawn = _draw(student, photo, settings.batch_size)
    ceiling, name = _ceiling(photo, settings)
    facts = {key: trained[key] for key in ("run", "style", "decoder", "encoder")}
    return HeldOut([r["name"] for r in rows], photo, teacher, drawn, ceiling, name, facts)


def against_teacher(pictures: HeldOut, network: FeatureNetwork | None, settings: EvalFid) -> Row:
    """Every figure of the paper's Table 2 and the per-picture ones, as plain values."""
    results: Row = {
        "pictures": len(pictures.names),
        "run": pictures.run["run"],
        "style": pictures.run["style"]["name"],
        "decoder": pictures.run["decoder"]["name"],
        "similarity": _similarity(pictures, settings),
    }
    if network is None:
        return results | {"features": None, "distances": None}
    if pictures.half < 2:
        raise DistillError(
            f"{len(pictures.names)} held-out pictures are too few for two halves of at least 2; "
            "add photos, or use features=none"
        )
    return (
        results
        | _about(network, pictures.half)
        | {"distances": _distances(pictures, network, settings)}
    )


def two_folders(a: Path, b: Path, network: FeatureNetwork | None, settings: EvalFid) -> Row:
    """Fréchet and kernel distance of any two folders of pictures."""
    if network is None:
        return {"a": str(a), "b": str(b), "features": None, "distances": None}
    first, second = (_folder_features(folder, network, settings) for folder in (a, b))
    about = _about(network, min(len(first), len(second)))
    counts = {"pictures": [len(first), len(second)]}
    row = _distance(first, second, settings)
    return {"a": str(a), "b": str(b)} | counts | about | {"distances": {"a against b": row}}


def write(results: Row, folder: Path, missing: str) -> None:
    """results.json, results.md and the same table on the terminal."""
    results = results | {"fid_missing": missing or None}
    lines = _lines(results)
    with aside(folder / "results.json") as page:
        page.write_text(json.dumps(results, indent=2) + "\n")
    with aside(folder / "results.md") as page:
        table = ["| figure | value | 95 % interval |", "| --- | --- | --- |"]
        table += [f"| {name} | {value} | {interval} |" for name, value, interval in lines]
        page.write_text("\n".join([*table, "", *_notes(results)]) + "\n")
    screen = Table("figure", "value", "95 % interval")
    for line in lines:
        screen.add_row(*line)
    Console().print(screen)
    for note in _notes(results):
        print(note)
    print(f"results: {folder / 'results.json'}")


def write_sheet(pictures: HeldOut, folder: Path, rows: int) -> None:
    """contact_sheet.png: photo | teacher | student, the paper's Figure 1."""
    three = zip(pictures.photo, pictures.teacher, pictures.student, strict=True)
    chosen = [[_float(p) for p in row] for row, _ in zip(three, range(rows), strict=False)]
    save_png(sheet(chosen, ("photo", "teacher", "student")), folder / "contact_sheet.png")
    print(f"contact sheet: {folder / 'contact_sheet.png'}")


def _similarity(pictures: HeldOut, settings: EvalFid) -> Row:
    measures: dict[str, Any] = {"PSNR (dB)": similarity.psnr, "SSIM": similarity.ssim}
    if lpips := similarity.lpips_or_none():
        measures["LPIPS"] = lpips
    rows: Row = {}
    for name, measure in measures.items():
        for what, drawn in (("student", pictures.student), ("photo", pictures.photo)):
            values = _per_picture(measure, drawn, pictures.teacher, settings.batch_size)
            rows[f"{name}, {what} to teacher"] = {"value": float(values.mean())} | _with_interval(
                settings, frechet.bootstrap, values
            )
    return rows


def _distances(pictures: HeldOut, network: FeatureNetwork, settings: EvalFid) -> dict[str, Row]:
    half = pictures.half
    sets = {
        "T(A)": pictures.teacher[:half],
        "T(B)": pictures.teacher[half:],
        "S(B)": pictures.student[half:],
        "C(B)": pictures.ceiling[half:],
    }
    f = {name: _features(network, pixels, name, settings) for name, pixels in sets.items()}
    return {
        "floor: T(A), T(B)": _distance(f["T(A)"], f["T(B)"], settings),
        "student: T(A), S(B)": _distance(f["T(A)"], f["S(B)"], settings),
        f"ceiling: T(A), {pictures.ceiling_name}": _distance(f["T(A)"], f["C(B)"], settings),
        "paired: T(B), S(B)": _distance(f["T(B)"], f["S(B)"], settings),
    }


def _distance(a: Features, b: Features, settings: EvalFid) -> Row:
    # One side with fewer pictures than features: the nuclear-norm form is exact and much quicker.
    quick = min(len(a), len(b)) < a.shape[1]
    fid = (
        frechet.frechet_from_features(a, b)
        if quick
        else frechet.frechet_distance(frechet.fit(a), frechet.fit(b))
    )
    row: Row = {"value": fid, "kid": frechet.kid(a, b)}
    return row | _with_interval(settings, frechet.frechet_interval, a, b)


def _with_interval(settings: EvalFid, method: Any, *values: Features) -> Row:
    if not settings.bootstrap or min(len(v) for v in values) < 2:
        return {"interval": None}
    return {"interval": list(method(*values, rounds=settings.bootstrap, seed=settings.seed))}


def _ceiling(photo: Tensor, settings: EvalFid) -> tuple[Tensor, str]:
    if settings.ceiling == "photos":
        return photo, "photos(B)"
    if settings.ceiling not in config.choices("style"):
        known = ", ".join(["photos", *config.choices("style")])
        raise DistillError(f"ceiling={settings.ceiling}: no such style; allowed: {known}")
    other = config.load("prepare", [f"style={settings.ceiling}"], Prepare)
    teacher = build.teacher(other.style, other.teacher).fast()
    return _draw(teacher, photo, settings.batch_size), f"{settings.ceiling}(B)"


def _folder_features(folder: Path, network: FeatureNetwork, settings: EvalFid) -> Features:
    pictures: list[Tensor] = []
    for photo in find_photos(folder, key="a= or b="):
        try:
            pictures.append(_bytes(to_tensor(read_photo(photo.path, least=1))))
        except BadPhoto as reason:
            print(f"skipped {photo.path}: {reason}")
    if len(pictures) < 2:
        raise DistillError(f"{folder}: needs at least 2 readable pictures")
    return _features(network, pictures, folder.name, settings)


def _features(
    network: FeatureNetwork, pictures: Tensor | Sequence[Tensor], what: str, settings: EvalFid
) -> Features:
    return network.features(_batches(pictures, settings.batch_size), len(pictures), what)


def _batches(pictures: Tensor | Sequence[Tensor], size: int) -> Iterator[Tensor]:
    """Batches of equally large pictures, in order; a change of size starts a new batch."""
    for first in range(0, len(pictures), size):
        group, start = pictures[first : first + size], 0
        for end in range(1, len(group) + 1):
            if end == len(group) or group[end].shape != group[start].shape:
                yield torch.stack([_float(p) for p in group[start:end]])
                start = end


@torch.inference_mode()
def _draw(network: nn.Module, photos: Tensor, batch_size: int) -> Tensor:
    parts = [over_white(network(batch)) for batch in _batches(photos, batch_size)]
    return torch.cat([_bytes(part) for part in parts])


@torch.inference_mode()
def _per_picture(measure: Any, a: Tensor, b: Tensor, size: int) -> Features:
    pairs = zip(_batches(a, size), _batches(b, size), strict=True)
    return np.concatenate([measure(x, y).double().numpy() for x, y in pairs])


def _about(network: FeatureNetwork, count: int) -> Row:
    row: Row = {"features": network.title, "resize": network.resize, "pictures_per_side": count}
    if count < ENOUGH:
        row["warning"] = (
            f"{count} pictures a side: under {ENOUGH} a Fréchet distance is biased upwards"
        )
    return row


def _lines(results: Row) -> list[tuple[str, str, str]]:
    lines = []
    for name, row in (results.get("distances") or {}).items():
        lines.append((f"Fréchet, {name}", f"{row['value']:.3f}", _span(row)))
        lines.append((f"KID ×1000, {name}", f"{1000 * row['kid']:.3f}", ""))
    for name, row in results.get("similarity", {}).items():
        lines.append((name, f"{row['value']:.4g}", _span(row)))
    if results["fid_missing"]:
        lines.insert(0, ("FID", "missing", ""))
    return lines


def _notes(results: Row) -> list[str]:
    notes = [f"pictures: {results.get('pictures', 'none')}"]
    if results["features"]:
        notes += [f"features: {results['features']}", f"resize: {results['resize']}"]
    return notes + ([f"warning: {results['warning']}"] if "warning" in results else [])


def _span(row: Row) -> str:
    return "" if row["interval"] is None else f"{row['interval'][0]:.4g} – {row['interval'][1]:.4g}"


def _bytes(picture: Tensor) -> Tensor:
    return picture.clamp(0, 1).mul(255).round().byte()


def _float(picture: Tensor) -> Tensor:
    return picture.float() / 255
