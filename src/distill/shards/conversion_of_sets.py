"""distill.shards, step by step: which way, from where to where, and what to type next."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from distill.config.compose import choices
from distill.config.settings.commands import ShardSettings
from distill.core.errors import DistillError
from distill.core.files import home_path, real_path
from distill.core.next_step import next_step
from distill.data.manifest import manifest_at
from distill.data.shards.address import Address
from distill.data.shards.shard_manifest import shard_manifest_at
from distill.data.shards.unpacking import unpack
from distill.shards.litdata_export import export_litdata
from distill.shards.packing import pack

SHARDS = "data/shards"
Done = Callable[[Path | Address, Path | Address], None]  # of what was made, into what


def convert(settings: ShardSettings, done: Done) -> None:
    """Pack or unpack, as `to` says; `done` follows where it is a set again. Raises DistillError."""
    root = settings.data.root
    if root is None:
        what = "the set of pairs" if settings.to == "shards" else "the shards"
        raise DistillError(f"data.root=null: name {what} with data.root=DIR")
    if settings.to == "shards":
        _to_shards(settings, root, done)
    elif settings.to == "litdata":
        shards = Address(_typed(root))
        print(export_litdata(shards, _local_output(settings, shards, "litdata")))
    else:
        _to_pairs(settings, Address(_typed(root)), done)


def _to_shards(settings: ShardSettings, root: str, done: Done) -> None:
    given = Address(_typed(root))
    if given.local is None or shard_manifest_at(given) is not None:
        raise DistillError(
            f"data.root={root}: only a local folder of pairs is packed; for the way back add "
            "to=pairs"
        )
    folder, d = given.local, settings.data
    target = Address(_typed(settings.output or f"{SHARDS}/{real_path(folder).name}"))
    if target.local is not None and real_path(target.local) == real_path(folder):
        raise DistillError(f"output={settings.output}: that is the set itself; name another place")
    split = (d.val_fraction, d.split_seed, d.test_fraction)
    print(pack(folder, target, settings.codec, settings.pairs, split, settings.workers, d.style))
    done(folder, target)
    known = d.style is not None and d.style in choices("style")
    what = {"style": str(d.style)} if known else _learnt_from(folder)
    print(next_step("train", **what, data="shards", **{"data.root": str(target)}))


def _to_pairs(settings: ShardSettings, root: Address, done: Done) -> None:
    folder = _local_output(settings, root, "pairs")
    print(unpack(root, folder))
    done(root, folder)
    print(next_step("train", **_learnt_from(folder), **{"data.root": str(folder)}))


def _local_output(settings: ShardSettings, root: Address, kind: str) -> Path:
    """Where what is made of shards goes: `output`, or beside them. Raises DistillError."""
    if "://" in str(settings.output):
        raise DistillError(f"output={settings.output}: pairs are unpacked into a local folder")
    beside = f"{root}-{kind}" if root.local is not None else f"data/{kind}/{root.name}"
    return home_path(settings.output or beside)


def _learnt_from(folder: Path) -> dict[str, str]:
    """The style to train with where a teacher's set says so, the recipe of a set of sketches."""
    made = manifest_at(folder)
    if made is None:
        return {}
    return {"style": made["style"]} if "teacher" in made else {"recipe": "pix2pix"}


def _typed(text: str) -> str:
    return text if "://" in text else str(home_path(text))
