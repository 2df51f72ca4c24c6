"""Whole pictures of several sizes: how close a student is to the teacher's own output at each.

A student that is close at the size it learnt at may be farther from its teacher than the untouched
photo at the sizes that people look at. A set with `data.sizes` has, beside the centre square
PAIR.png, whole pictures in their own proportions, PAIR-sSIZE.png by their long side.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from distill.core.arrays import over_white
from distill.core.errors import counted
from distill.core.images import batches, to_float, to_pixels, to_uint8
from distill.core.progress import track
from distill.data.pairs import ReadablePair
from distill.data.photo_table import size_of
from distill.eval_fid import line_scores
from distill.eval_fid.feature_sets import Row, Values, interval, mean_row
from distill.metrics import frechet, similarity
from distill.metrics.features import BATCH, FeatureNetwork
from distill.metrics.line_figures import MARGIN, displacement, flicker
from distill.metrics.metric import Measure

PHOTO, ENLARGED = "photo", "teacher at 256, enlarged"  # what a student must beat
THUMBNAIL, CROP = 256, 256  # pixels: long side of what is enlarged, side of the crops
_WHOLE = re.compile(r"(-[0-9a-f]{8})-s(\d+)(\.\w+)$")  # behind the name that Photo.pair_name gives

Infer = Callable[[Tensor], Tensor]  # (1, 3, H, W) in [0, 1] to (1, 3 or 4, H, W)


def square_name(name: str) -> str:
    """The file name of the pair's centre square."""
    return _WHOLE.sub(r"\1\3", name)


def by_size(pairs: Iterable[ReadablePair]) -> dict[int, list[ReadablePair]]:
    """The whole pictures among pairs by their long side, smallest first."""
    sizes: dict[int, list[ReadablePair]] = {}
    for pair in pairs:
        if (size := size_of(pair.name)) is not None:
            sizes.setdefault(size, []).append(pair)
    return dict(sorted(sizes.items()))


def score_sizes(
    pairs: Mapping[int, Sequence[ReadablePair]],
    networks: Mapping[str, Infer],
    features: FeatureNetwork | None,
    group_of: Callable[[ReadablePair], str],
    rounds: int = 0,
    seed: int = 0,
    flickering: int = 0,
    metrics: Mapping[str, Measure] = MappingProxyType({}),
) -> dict[str, Row]:
    """{size: {pictures, scores: {name: {figure: row}}}} of networks, the photo and the thumbnail.

    The thumbnail is the teacher's output at long side 256, enlarged by bicubic interpolation, where
    the set has all of them. Means of PSNR and SSIM; ink, sharpness and chamfer distance of all
    pictures together; kernel distance of four crops each; flicker of the first `flickering`
    pictures; means of the user's `metrics`. Intervals resample the groups that `group_of` names.
    """
    small = {square_name(pair.name): pair for pair in pairs.get(THUMBNAIL, ())}
    results: dict[str, Row] = {}
    for size, each in pairs.items():
        has_small = all(square_name(pair.name) in small for pair in each)
        untouched = [PHOTO, *([ENLARGED] if has_small and size > THUMBNAIL else [])]
        compared: dict[str, Infer] = {**dict.fromkeys(untouched, lambda photo: photo), **networks}
        figures = {name: _Figures(metrics) for name in compared}
        teacher_crops: list[Tensor] = []
        for number, pair in enumerate(track(each, len(each), "picture", f"long side {size}")):
            photo, target = map(_tensor, pair.read())
            teacher_crops += _crops(target) if features else []
            for name, network in compared.items():
                if name == ENLARGED:
                    _, drawing = small[square_name(pair.name)].read()
                    at = target.shape[2], target.shape[1]
                    output = _tensor(drawing.resize(at, Image.Resampling.BICUBIC))
                else:
                    with torch.inference_mode():
                        output = to_uint8(over_white(network(to_float(photo)[None])))[0]
                figures[name].add(output, target, crops=features is not None)
                large = min(photo.shape[-2:]) > 2 * MARGIN
                if number < flickering and name != ENLARGED and large:
                    figures[name].add_flicker(network, photo, number)
        groups = np.array([group_of(pair) for pair in each])
        how: Row = {"rounds": rounds, "seed": seed, "groups": groups}
        rows = {name: of_name.rows(how) for name, of_name in figures.items()}
        if features is not None:
            t = _features(features, teacher_crops, "teacher")
            for name, of_name in figures.items():
                s = _features(features, of_name.crops, name)
                of = groups.repeat(len(t) // len(groups))  # crops of a group are resampled together
                by = how | {"groups": (of, of), "paired": True, "kernel": features.kernel}
                spread = interval(frechet.kid_interval, t, s, **by)
                rows[name][f"{features.kid}, crops"] = {
                    "value": 1000 * frechet.kid(t, s, True, features.kernel),
                    "pictures": len(t),
                    "interval": [1000 * end for end in spread] if spread else None,
                }
        results[str(size)] = {"pictures": len(each), "scores": rows}
    return results


def table(sizes: Mapping[str, Row]) -> list[list[str]]:
    """Header and rows of results by size, for people: a row for each size and output.

    Recall and precision at depths .1, .2 and .3 share a cell, and so do the kinds of flicker.
    """
    every = [each for row in sizes.values() for each in row["scores"].values()]
    columns: dict[str, list[str]] = {}  # their titles, and the figures that each shows
    for figure in dict.fromkeys(figure for scores in every for figure in scores):
        title = figure
        for start in ("ink recall", "ink precision"):
            if figure.startswith(start):
                title = f"{start} at .1/.2/.3"
        if figure in line_scores.FLICKER:
            title = "flicker: noise/1 px/pan (levels)"
        columns.setdefault(title, []).append(figure)
    lines = [["long side", "output", *columns]]
    for size, row in sizes.items():
        for name, scores in row["scores"].items():
            line = [f"{size} ({counted(row['pictures'], 'picture')})", name]
            for figures in columns.values():
                values = [f"{scores[f]['value']:.3g}" if scores.get(f) else "–" for f in figures]
                line.append("/".join(values) if any(map(scores.get, figures)) else "–")
            lines.append(line)
    return lines


class _Figures:
    """What is kept of one network's outputs for the pictures of one size."""

    def __init__(self, metrics: Mapping[str, Measure]) -> None:
        self.measures = {"PSNR (dB)": similarity.psnr, "SSIM": similarity.ssim, **metrics}
        self.similar: list[Values] = []
        self.ink: list[Values] = []
        self.places: list[Values] = []
        self.flicker: list[Values] = []
        self.crops: list[Tensor] = []

    def add(self, output: Tensor, target: Tensor, crops: bool) -> None:
        """Of uint8 (3, H, W)."""
        a, b = to_float(output)[None], to_float(target)[None]
        similar = [measure(a, b) for measure in self.measures.values()]
        self.similar.append(torch.cat(similar).double().numpy())
        self.ink.append(line_scores.ink_of(output[None], target[None], 1)[0])
        self.places.append(displacement(a, b)[0].double().numpy())
        self.crops += _crops(output) if crops else []

    def add_flicker(self, network: Infer, photo: Tensor, number: int) -> None:
        """Of uint8 (3, H, W), in levels."""
        levels = flicker(
            lambda x: over_white(network(x)).clamp(0, 1), to_float(photo)[None], number
        )
        self.flicker.append(levels[0].double().numpy())

    def rows(self, how: Row) -> dict[str, Row]:
        columns = zip(self.measures, np.stack(self.similar).T, strict=True)
        rows = {name: mean_row(values, **how) for name, values in columns}
        rows |= line_scores.ink_rows(np.stack(self.ink), **how)
        rows[line_scores.OFF] = line_scores.displacement_row(np.stack(self.places))
        if self.flicker:
            groups = how["groups"][: len(self.flicker)]
            rows |= line_scores.flicker_rows(np.stack(self.flicker), **how | {"groups": groups})
        return {name: row for name, row in rows.items() if row}


def _tensor(picture: Image.Image) -> Tensor:
    """uint8 (3, H, W)."""
    return to_pixels(picture).permute(2, 0, 1)


def _crops(picture: Tensor) -> list[Tensor]:
    """Squares at the four corners of uint8 (3, H, W); they overlap where it is small."""
    side = min(CROP, *picture.shape[-2:])
    ends = slice(None, side), slice(-side, None)
    return [picture[:, rows, columns].clone() for rows in ends for columns in ends]


def _features(network: FeatureNetwork, crops: list[Tensor], what: str) -> Values:
    return network.features(batches(crops, BATCH), len(crops), f"crops, {what}")
