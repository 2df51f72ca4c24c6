"""Held-out pairs of a run of recipe=pix2pix, with its generator's output."""

from dataclasses import replace

from torch import nn

from distill.config.settings.commands import EvalFid
from distill.core.errors import DistillError
from distill.data.kinds import registry
from distill.data.pairs import find_pairs
from distill.data.photos import Photo
from distill.eval_fid.heldout import (
    HeldOut,
    about_side,
    are_others,
    excluded,
    in_groups,
    scored_side,
    with_output,
)
from distill.eval_fid.training_pictures import SeenPictures, of_folder
from distill_gan.settings import PairedDataConfig, Pix2PixTrain


def held_out_pairs(network: nn.Module, trained: Pix2PixTrain, settings: EvalFid) -> HeldOut:
    """The held-out pairs of a run that learnt from pairs, or of another folder of pairs."""
    d = trained.data
    if settings.photos:
        d = replace(d, root=settings.photos, kind="pairs")
    root = registry.folder_of_pairs(d)
    if root is None:
        raise DistillError(
            "data.root=null: the run does not say which pairs; name them: photos=DIR"
        )
    sides = find_pairs(root, None, d.val_fraction, d.split_seed, d.test_fraction)
    side = scored_side(sides)
    others = are_others(settings.photos, trained.data.root or "")
    seen = seen_by_pairs(trained.data) if others else SeenPictures([], "")
    by_name = {pair.name: Photo(pair.photo, pair.name) for pair in sides[side]}
    names, notes = excluded(seen, by_name, settings.photos)
    pairs = [pair for pair in sides[side] if pair.name not in names]
    how = {"channels": trained.channels, "swap": d.direction == "BtoA", "pad": d.pad}
    data = in_groups(pairs, d.crop_size, root, d, **how)
    about = {"run": trained.run, "recipe": trained.recipe} | notes
    about |= {} if others else about_side(side)
    about["generator"] = trained.generator.name
    return with_output(network, data, settings, about, ("input", "target", "generator"))


def seen_by_pairs(learnt: PairedDataConfig) -> SeenPictures:
    """What a run that learnt from pairs has seen."""
    try:
        root = registry.folder_of_pairs(learnt)
    except DistillError as error:  # a set at an address that is gone
        return SeenPictures([], str(error))
    pictures = of_folder(root, None, learnt, None) if root else None
    if pictures is None:
        return SeenPictures([], f"the training pairs {root or ''} are gone")
    out_of_reach = registry.source_named(learnt.kind).out_of_reach(str(learnt.root))
    return SeenPictures([pictures], out_of_reach)
