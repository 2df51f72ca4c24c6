"""Scores of two domains without pairs: translated from one to the other, and back.

The real pictures of the target domain are split into halves, which say how close two sets of real
ones come; the translated ones are compared with the first. No picture has a target of its own, but
the way back should lead to it (cycle), and a picture of the target domain should stay as it is
(identity).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from distill.config.settings.base import Direction
from distill.config.settings.commands import EvalFid
from distill.core.errors import DistillError, counted
from distill.core.files import real_path
from distill.core.images import to_pixels
from distill.data.augment import as_square
from distill.data.photos import BadPhoto, Photo, group_of, read_photo
from distill.eval_fid.feature_sets import features_of_set
from distill.eval_fid.heldout import about_side, excluded, half_order, infer
from distill.eval_fid.paired_scores import (
    NO_DISTANCES,
    Row,
    distance,
    feature_facts,
    picture_by_picture,
    resampling,
)
from distill.eval_fid.training_pictures import SeenPictures, SetPictures
from distill.metrics.features import FeatureNetwork
from distill_gan.domains import find_unpaired
from distill_gan.settings import CycleGANTrain, UnpairedDataConfig

Domains = dict[str, Sequence[Photo]]  # A and B

OTHER: dict[Direction, Direction] = {"AtoB": "BtoA", "BtoA": "AtoB"}


@dataclass(frozen=True)
class Translations:
    """Held-out pictures of two domains and both generators' output, uint8.

    `source` (n, 3, S, S), of the domain x, is `translated` to the domain y and `reconstructed`
    from that; `real` (m, 3, S, S), of y, goes through the same generator to `identity`. Both are
    shuffled, one person's pictures together: `groups` of x and of y say whose they are.
    """

    x: str
    y: str
    source: Tensor
    translated: Tensor
    reconstructed: Tensor
    real: Tensor
    identity: Tensor
    about: dict[str, Any]
    groups: tuple[NDArray[Any], NDArray[Any]]

    @property
    def count(self) -> int:
        """Pictures on each side of a distance: half of the real ones, as many translated ones."""
        return min(len(self.real) // 2, len(self.source))

    @property
    def titles(self) -> tuple[str, ...]:
        x, y = self.x, self.y
        return x, f"{x} to {y}", f"{x} to {y} to {x}", y, f"{y} to {y}"  # the font has no arrow

    @property
    def columns(self) -> tuple[Tensor, ...]:
        """The pictures of each title."""
        return self.source, self.translated, self.reconstructed, self.real, self.identity


def held_out_domains(
    forth: nn.Module, back: nn.Module, trained: CycleGANTrain, settings: EvalFid
) -> Translations:
    """All held-out pictures of a run, or of another folder, and the output of both generators.

    `forth` translates in the direction asked for, `back` in the other one.
    """
    if settings.ceiling != "photos":
        raise DistillError(
            f"ceiling={settings.ceiling}: not for recipe={trained.recipe}; leave it out"
        )
    d = trained.data
    if settings.photos:
        d = replace(d, root=settings.photos, a=None, b=None)
    val = find_unpaired(d.root, d.a, d.b, d.val_fraction, d.split_seed)["val"]
    photos: Domains = dict(zip("AB", val, strict=True))
    about: dict[str, str] = {}
    if settings.photos and real_path(Path(settings.photos)) != real_path(
        Path(trained.data.root or "")
    ):
        both = {f"{domain}/{photo.key}": photo for domain in photos for photo in photos[domain]}
        names, about = excluded(seen_by_domains(trained.data), both, settings.photos)
        photos = {
            domain: [photo for photo in each if f"{domain}/{photo.key}" not in names]
            for domain, each in photos.items()
        }
    x, y = settings.direction.split("to")
    (source, of_x), (real, of_y) = (_read(photos[domain], domain, d) for domain in (x, y))
    translated = infer(forth, source, settings.batch_size, f"{x} to {y}")
    back_again = infer(back, translated, settings.batch_size, f"and back to {x}")
    identity = infer(forth, real, settings.batch_size, f"{y} to {y}")
    about |= {"run": trained.run, "recipe": trained.recipe, "direction": settings.direction}
    about["generator"] = trained.generator.name
    about |= {} if settings.photos else about_side("val")
    groups = of_x, of_y
    return Translations(x, y, source, translated, back_again, real, identity, about, groups)


def seen_by_domains(learnt: UnpairedDataConfig) -> SeenPictures:
    """What a run that learnt from two domains has seen."""
    folders = learnt.root, learnt.a, learnt.b
    where = Path(learnt.root or f"{learnt.a} and {learnt.b}")
    try:
        photos = find_unpaired(*folders, learnt.val_fraction, learnt.split_seed)["train"]
    except DistillError:
        return SeenPictures([], f"the training pictures of {where} are gone")
    domains = zip("AB", photos, strict=True)
    pictures = {f"{name}/{photo.key}": photo for name, each in domains for photo in each}
    return SeenPictures([SetPictures(real_path(where), pictures)], "")


def _read(
    photos: Sequence[Photo], domain: str, d: UnpairedDataConfig
) -> tuple[Tensor, NDArray[Any]]:
    """Every readable picture as validation sees it, in an order that keeps a person together, and
    its group."""
    read, groups = [], []
    for photo in sorted(photos, key=lambda each: half_order(group_of(each.key), each.key)):
        try:
            image = read_photo(photo.path, enough=2 * d.crop_size)
        except BadPhoto as reason:
            print(f"skipped {str(photo.path)!r}: {reason}")
            continue
        read.append(to_pixels(as_square(image, d.crop_size, d.pad)).permute(2, 0, 1))
        groups.append(group_of(photo.key))
    if not read:
        raise DistillError(f"no held-out picture of {domain} can be read; name others: photos=DIR")
    return torch.stack(read), np.array(groups)


def score_domains(pictures: Translations, network: FeatureNetwork | None, settings: EvalFid) -> Row:
    """Distances between the domains, and cycle and identity by picture, as plain values."""
    x, y = pictures.x, pictures.y
    cycle = {f"cycle: {x} → {y} → {x} to {x}": (pictures.reconstructed, pictures.source)}
    identity = {f"identity: {y} → {y} to {y}": (pictures.identity, pictures.real)}
    of_x, of_y = pictures.groups
    counts = {x: len(pictures.source), y: len(pictures.real)}
    results: Row = {"pictures": counts} | pictures.about
    results |= resampling(settings.bootstrap, of_x, of_y)
    rows = picture_by_picture(cycle, settings, of_x)
    results["similarity"] = rows | picture_by_picture(identity, settings, of_y)
    if network is None or pictures.count < 2:
        few = (
            f"{counted(counts[x], 'held-out picture')} of {x} and {counts[y]} of {y}: too few "
            "for 2 and two halves of 2; hold out more, or use features=none"
        )
        return results | NO_DISTANCES | ({} if network is None else {"fid_missing": few})
    facts = feature_facts(network, pictures.count)
    return results | facts | {"distances": _distances(pictures, network, settings)}


def _distances(
    pictures: Translations, network: FeatureNetwork, settings: EvalFid
) -> dict[str, Row]:
    n, x, y = pictures.count, pictures.x, pictures.y
    first, second = f"{y}(1)", f"{y}(2)"
    sets = {
        first: pictures.real[:n],
        second: pictures.real[len(pictures.real) // 2 :][:n],
        # Whoever is in both domains has the same place in both: the last are others than B(1)'s.
        f"{x} → {y}": pictures.translated[-n:],
        x: pictures.source[-n:],
    }
    f = {name: features_of_set(network, pixels, name) for name, pixels in sets.items()}
    of_x, of_y = pictures.groups
    real, others, source = of_y[:n], of_y[len(of_y) // 2 :][:n], of_x[-n:]

    def row(other: str, groups: NDArray[Any]) -> Row:
        return distance(f[first], f[other], settings, groups=(real, groups), kernel=network.kernel)

    return {
        f"floor: {first}, {second}": row(second, others),
        f"generator: {first}, {x} → {y}": row(f"{x} → {y}", source),
        f"ceiling: {first}, {x}": row(x, source),
    }
