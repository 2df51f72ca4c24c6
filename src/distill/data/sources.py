"""Where pictures lie: photos, and the set of pairs or the shards that are made of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from distill.config.groups import choices
from distill.config.settings.training import (
    Adversarial,
    PairedDataConfig,
    PhotoSource,
    PictureTrain,
    Train,
    Training,
)
from distill.core.errors import DistillError
from distill.core.files import home_path, real_path
from distill.data.manifest import check_writable, is_complete, manifest_at
from distill.data.photos import Photo, check_folders, demo_photos, find_all, folder_names
from distill.data.shards.address import Address, folder_at, is_address
from distill.data.shards.shard_manifest import shard_manifest_at
from distill.data.shards.unpacking import held_out_folder

_PLAIN = re.compile(r"[\w-]+")  # a name that Hydra takes as it is


def photos(settings: PhotoSource) -> list[Photo]:
    """The photos of photos=DIR or photos=[DIR,DIR] and val_photos, or those of data=demo."""
    if settings.data.kind == "demo":
        return demo_photos()
    return find_all(*_folders(settings), settings.label.listing)


def has_photos(settings: PhotoSource) -> bool:
    """Whether the photos' folders are there, whatever is in them; not those at an address that
    cannot be reached."""
    train, val = _folders(settings)
    try:
        return all(
            each.is_there() if isinstance(each, Address) else each.is_dir()
            for each in (*train, *val)
        )
    except DistillError:
        return False


def at_addresses(settings: PhotoSource) -> list[Address]:
    """Those of the photos' folders that are at an address."""
    return [f for part in _folders(settings) for f in part if isinstance(f, Address)]


def _folders(settings: PhotoSource) -> tuple[list[Path | Address], list[Path | Address]]:
    """The folders for training (or both sides) and those for validation; none of data=demo."""
    if settings.data.kind == "demo":
        return [], []
    train, val = settings.photos, settings.val_photos or []
    first, second = ([each] if isinstance(each, str) else each for each in (train, val))
    return [folder_at(each) for each in first], [folder_at(each) for each in second]


def photo_folders(settings: PhotoSource) -> dict[str, Path | Address]:
    """The folders of the photos by the name that each has in the set: "" where it is the only one.

    It is what `Photo.folder` says, and what a photo's key is relative to.
    """
    if settings.data.kind == "demo":
        return {"": demo_photos()[0].local.parent}
    train, val = _folders(settings)
    folders = [*train, *val]
    names = [""] if len(folders) == 1 else folder_names(folders)
    return dict(zip(names, folders, strict=True))


def _folder_names(settings: PhotoSource) -> tuple[list[str], list[str]]:
    """The names of the same folders, all different; `demo` of data=demo."""
    train, val = _folders(settings)
    names = folder_names([*train, *val])
    return names[: len(train)] or ["demo"], names[len(train) :]


def training_folders(settings: PhotoSource) -> list[str]:
    """The names of the folders of photos that training takes from."""
    return _folder_names(settings)[0]


def set_name(settings: PhotoSource) -> str:
    """The photos' part in the name of a set: A+B, or A+B-val-C with folders for validation."""
    train, val = _folder_names(settings)
    return "+".join(train) + (f"-val-{'+'.join(val)}" if val else "")


def photos_in_manifest(settings: PhotoSource, root: Path) -> dict[str, Any]:
    """What the manifest at `root` says of the photos and their split, by the names of its fields.

    Nothing is held out for testing beside folders for validation, nor of a set that has two sides
    already: one from before there were three is gone on with as it is.
    """
    train, val = _folder_names(settings)
    two_sided = bool(val) or (manifest_at(root) or {}).get("test_fraction") == 0
    first, second = _folders(settings)
    where = [str(f if isinstance(f, Address) else real_path(f)) for f in (*first, *second)]
    return {
        "photos": " + ".join(where) or "scikit-image",
        "val_fraction": 0.0 if val else settings.data.val_fraction,
        "test_fraction": 0.0 if two_sided else settings.data.test_fraction,
        "seed": settings.data.split_seed,
        "folders": tuple(train) if len(train) > 1 or val else (),
        "val_folders": tuple(val),
    }


def drop_lists(settings: PhotoSource) -> dict[str, Path | None]:
    """The files of drop=FILE and restore=FILE, None without one."""
    named = {"drop": settings.drop, "restore": settings.restore}
    return {key: home_path(file) if file else None for key, file in named.items()}


def check_photos(settings: PhotoSource, root: Path | None = None) -> None:
    """Raises DistillError for photos, a drop list or a folder for the set that cannot be used.

    Photos at an address are not listed for that.
    """
    if settings.data.kind != "demo":
        check_folders(*_folders(settings))
    for key, file in drop_lists(settings).items():
        if file and not file.is_file():
            what = "leave out" if key == "drop" else "let in again"
            raise DistillError(
                f"{key}={file}: no such file; write the pictures to {what}, one a line"
            )
    if root is not None and not is_complete(root):
        check_writable(root)


def needs_labels(settings: Train) -> bool:
    """Whether the teacher is needed: always for photos on the fly, and for a set of ours that is
    not there yet or not complete. A folder of pairs of one's own, shards and a loader are taken
    as they are.
    """
    if settings.teacher is None or settings.data.kind in ("shards", "loader"):
        return False
    if settings.data.kind == "photos" or settings.data.root is None:
        return True
    root = Path(settings.data.root)
    return not root.is_dir() or (manifest_at(root) is not None and not is_complete(root))


def overrides_for_user_pairs(typed: Mapping[str, Any]) -> list[str]:
    """What follows for distill.train from `typed`, settings by key, where data.root=DIR is a folder
    or shards of pairs and no style or teacher is named: style=own, of a set that a teacher of ours
    made its style.

    Raises DistillError where photos are named too, which would be labelled for nothing."""
    root, kind = typed.get("data.root"), typed.get("data", "pairs")
    students = typed.get("recipe", "distill") == "distill"  # another recipe has no style
    named = {"style", "teacher"} & typed.keys()
    if not root or kind not in ("pairs", "sizes", "shards") or named or not students:
        return []
    if kind == "shards":
        shards = shard_manifest_at(Address(str(root)))
        if shards is None:
            return []
        return (
            _overrides_for_style(shards.recipe, typed) if shards.made_by_teacher else ["style=own"]
        )
    folder = Path(str(root))
    if not folder.is_dir():
        return []
    made = manifest_at(folder) or {}
    if "teacher" in made:
        return _overrides_for_style(made, typed) if is_complete(folder) else []
    if extra := [key for key in ("photos", "val_photos") if key in typed]:
        raise DistillError(
            f"{extra[0]}={typed[extra[0]]}: data.root={root} holds pairs of your own, which have "
            f"their photos; leave {extra[0]} out, or name a teacher to label them: style=STYLE"
        )
    return ["style=own"]


def _overrides_for_style(made: Mapping[str, Any], typed: Mapping[str, Any]) -> list[str]:
    """The style and size that a set's recipe names; of a teacher of one's own the name alone."""
    name, size = str(made["style"]), made["size"]
    words = [f"style={name}"]
    if name not in choices("style") or name == "custom":
        words = ["style=own", *([f"style.name={name}"] if _PLAIN.fullmatch(name) else [])]
    words = [word for word in words if word.partition("=")[0] not in typed]
    return words if "style.resolution" in typed else [*words, f"style.resolution={size}"]


def check_sizes(settings: PhotoSource) -> None:
    """Raises DistillError for data.sizes that cannot be labelled, or of which nothing can be cut.

    Centre squares stand for the sizes that are no larger: training cuts out of larger pictures.
    """
    d, side = settings.data, settings.style.resolution
    if d.sizes is None:
        return
    asked, crop = f"data.sizes={d.sizes}", d.crop_size or side
    if d.kind == "photos":
        raise DistillError(
            f"{asked}: whole pictures are labelled once, and data=photos labels new squares at "
            "every step; leave data=photos out"
        )
    if d.align:
        raise DistillError(f"data.align=true: of squares only; leave it or {asked} out")
    larger = [size for size in d.sizes if size > side]
    if not larger:
        raise DistillError(
            f"{asked}: none is larger than style.resolution={side}, the centre squares that "
            "training has anyway; add a larger one"
        )
    if crop > larger[0]:
        raise DistillError(
            f"data.crop_size={crop}: larger than pictures of {asked}, of which {larger[0]} is the "
            "smallest that is trained on; take a smaller crop, or leave that size out"
        )


def pairs_root(settings: PhotoSource) -> Path:
    """Where the set of pairs lies: data.root, or data/pairs/STYLE-PHOTOS-SIZE.

    Of shards the folder that their held-out pairs are unpacked into, once.
    """
    if settings.data.kind == "shards":
        return held_out_folder(shards_root(settings))
    if settings.data.root:
        return Path(settings.data.root)
    return Path("data/pairs") / _usual_name(settings)


def seen_from_here(trained: Training, checkpoint: Path) -> Any:
    """A run's settings, for a command in another folder than the run was trained in.

    Paths that lead nowhere from here are taken from the folder that its `runs` lay in, where they
    lead somewhere. A set without a data.root gets one then.
    """
    runs = Path(trained.runs)
    above = real_path(checkpoint).parents[len(runs.parts) + 2 :]
    if runs.is_absolute() or not above:
        return trained

    def found(path: Any) -> Any:
        if isinstance(path, list):
            return [found(each) for each in path]
        if path is None or is_address(str(path)) or home_path(path).exists():
            return path
        there = above[0] / path
        return str(there) if there.exists() else path

    assert isinstance(trained, PhotoSource | Adversarial)
    given: Any = {key: found(getattr(trained.data, key, None)) for key in ("root", "a", "b")}
    data = replace(trained.data, **{k: given[k] for k in given.keys() & vars(trained.data).keys()})
    if isinstance(trained, Adversarial):
        return replace(trained, data=data)
    usual = Path(f"data/{'shards' if data.kind == 'shards' else 'pairs'}") / _usual_name(trained)
    if data.root is None and (there := found(usual)) != usual:
        data = replace(data, root=there)
    style = replace(trained.style, weights=found(trained.style.weights))
    folders = {"photos": found(trained.photos), "val_photos": found(trained.val_photos)}
    if isinstance(trained, PictureTrain):
        folders["style_image"] = found(trained.style_image)
    return replace(trained, data=data, style=style, **folders)


def folder_of_pairs(learnt: PairedDataConfig) -> Path | None:
    """Where the pairs of recipe=pix2pix lie, None where none are named; of shards as `pairs_root`.

    Raises DistillError where there are no shards.
    """
    if learnt.root is None:
        return None
    return held_out_folder(Address(learnt.root)) if learnt.kind == "shards" else Path(learnt.root)


def shards_root(settings: PhotoSource) -> Address:
    """Where the shards lie: data.root, or data/shards/STYLE-PHOTOS-SIZE. Raises DistillError."""
    return Address(settings.data.root or Path("data/shards") / _usual_name(settings))


def _usual_name(settings: PhotoSource) -> str:
    style = settings.style
    crop = "" if settings.crop == 1 else f"-crop{round(settings.crop * 100)}"
    return f"{style.name}-{set_name(settings)}-{style.resolution}{crop}"


def labelled_by(settings: PhotoSource, root: Path | None = None) -> str | None:
    """The fingerprint of the teacher that labelled the set there; None of sketches or no set."""
    return (manifest_at(root or pairs_root(settings)) or {}).get("teacher")
