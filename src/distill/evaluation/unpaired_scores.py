"""The evaluation of recipe=cyclegan: two looks without pairs, drawn there and back.

The real pictures of the wanted look are split into halves, which say how close two sets of real
ones come; what is drawn is compared with the first. There is no right answer to compare a picture
with, but the way back should lead to it (cycle), and a picture in the wanted look should stay as
it is (identity).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from distill.config.settings import EvalFid, Unpaired
from distill.config.validate import check
from distill.core.errors import DistillError
from distill.core.images import as_float, to_bytes
from distill.data.augment import as_square, rng_for
from distill.data.domains import find_unpaired
from distill.data.photos import BadPhoto, Photo, group_of, read_photo
from distill.evaluation.feature_sets import features_of_set
from distill.evaluation.heldout import draw
from distill.evaluation.paired_scores import Row, about, distance, picture_by_picture
from distill.metrics.features import FeatureNetwork
from distill.models.checkpoint import Direction

OTHER: dict[Direction, Direction] = {"AtoB": "BtoA", "BtoA": "AtoB"}


@dataclass(frozen=True)
class Looks:
    """8-bit pictures (n, 3, S, S) of look `given`, drawn in the look `wanted` and drawn back, and
    (m, 3, S, S) real ones of that look, drawn once more; both shuffled, persons together."""

    given: str
    wanted: str
    source: Tensor
    drawn: Tensor
    back: Tensor
    real: Tensor
    same: Tensor
    about: dict[str, Any]

    @property
    def count(self) -> int:
        """Pictures on each side of a distance: half of the real ones, and as many drawn ones."""
        return min(len(self.real) // 2, len(self.source))

    @property
    def titles(self) -> tuple[str, ...]:
        x, y = self.given, self.wanted
        return x, f"{x} to {y}", f"{x} to {y} to {x}", y, f"{y} to {y}"  # the font has no arrow

    def rows(self, count: int) -> list[list[Tensor]]:
        """The first pictures under `titles`, float in [0, 1], for a sheet."""
        columns = (self.source, self.drawn, self.back, self.real, self.same)
        rows = zip(*(column[:count] for column in columns), strict=False)
        return [[as_float(picture) for picture in row] for row in rows]


def held_out(
    there: nn.Module, back: nn.Module, trained: dict[str, Any], settings: EvalFid
) -> Looks:
    """All held-out pictures of a run, or of another folder, and what both generators draw.

    `there` draws in the direction asked for, `back` in the other one.
    """
    if settings.ceiling != "photos":
        raise DistillError(f"ceiling={settings.ceiling}: not for recipe=cyclegan; leave it out")
    other = {"root": settings.photos, "a": None, "b": None} if settings.photos else {}
    d = check(trained["data"] | other, Unpaired)
    root, a, b = (Path(each) if each else None for each in (d.root, d.a, d.b))
    found = find_unpaired(root, a, b, d.val_fraction, d.split_seed)["val"]
    looks = dict(zip("AB", found, strict=True))
    given, wanted = settings.direction.split("to")
    source, real = (_read(looks[look], look, d) for look in (given, wanted))
    drawn = draw(there, source, settings.batch_size, f"{given} to {wanted}")
    returned = draw(back, drawn, settings.batch_size, f"and back to {given}")
    same = draw(there, real, settings.batch_size, f"{wanted} to {wanted}")
    facts = {"run": trained["run"], "recipe": "cyclegan", "direction": settings.direction}
    facts["generator"] = trained["generator"]["name"]
    return Looks(given, wanted, source, drawn, returned, real, same, facts)


def _read(photos: Sequence[Photo], look: str, d: Unpaired) -> Tensor:
    """Every readable picture as validation sees it, in an order that keeps a person together."""
    read = []
    for photo in sorted(photos, key=_by_group):
        try:
            image = read_photo(photo.path, enough=2 * d.crop_size)
        except BadPhoto as reason:
            print(f"skipped {str(photo.path)!r}: {reason}")
            continue
        read.append(to_bytes(as_square(image, d.crop_size, d.pad)).permute(2, 0, 1))
    if not read:
        raise DistillError(f"no held-out picture of {look} can be read")
    return torch.stack(read)


def _by_group(photo: Photo) -> tuple[float, str]:
    return rng_for("half", group_of(photo.key)).random(), photo.key


def scores(looks: Looks, network: FeatureNetwork | None, settings: EvalFid) -> Row:
    """Distances between the looks, and the way back and identity by picture, as plain values."""
    x, y = looks.given, looks.wanted
    compared = {
        f"cycle: {x} → {y} → {x} to {x}": (looks.back, looks.source),
        f"identity: {y} → {y} to {y}": (looks.same, looks.real),
    }
    counts = {x: len(looks.source), y: len(looks.real)}
    results: Row = {"pictures": counts} | looks.about
    results |= {"similarity": picture_by_picture(compared, settings)}
    if network is None:
        return results | {"features": None, "distances": None}
    if looks.count < 2:
        raise DistillError(
            f"{counts[x]} held-out pictures of {x} and {counts[y]} of {y}: too few for 2 and two "
            "halves of 2; hold out more, or use features=none"
        )
    facts = about(network, looks.count)
    return results | facts | {"distances": _distances(looks, network, settings)}


def _distances(looks: Looks, network: FeatureNetwork, settings: EvalFid) -> dict[str, Row]:
    n, x, y = looks.count, looks.given, looks.wanted
    first, second = f"{y}(1)", f"{y}(2)"
    sets = {
        first: looks.real[:n],
        second: looks.real[len(looks.real) // 2 :][:n],
        # Whoever is in both looks lies at the same place in both: the last are others than B(1)'s.
        f"{x} → {y}": looks.drawn[-n:],
        x: looks.source[-n:],
    }
    f = {name: features_of_set(network, pixels, name) for name, pixels in sets.items()}
    return {
        f"floor: {first}, {second}": distance(f[first], f[second], settings),
        f"generator: {first}, {x} → {y}": distance(f[first], f[f"{x} → {y}"], settings),
        f"ceiling: {first}, {x}": distance(f[first], f[x], settings),
    }
