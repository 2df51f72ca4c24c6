"""Where pictures come from: photos, the teacher that labels them, and the set of pairs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import Any

import torch

from distill.config.compose import choices
from distill.config.settings.training import Paired, PhotoSource, Train
from distill.core.engine import HERE
from distill.core.errors import DistillError
from distill.core.files import real_path
from distill.core.nodes import class_of
from distill.data.lock import check_writable
from distill.data.manifest import Manifest, Precision, is_complete, manifest_at
from distill.data.pairs import find_pairs
from distill.data.photos import (
    Photo,
    Side,
    check_folders,
    demo_photos,
    find_all,
    folder_names,
)
from distill.data.register import SIDES, read_rows
from distill.data.sampler import check_weights
from distill.data.shards.address import Address, folder_at
from distill.data.shards.shard_manifest import shard_manifest_at
from distill.data.shards.unpacking import held_out_folder
from distill.models.teachers.drawings import FolderTeacher
from distill.models.teachers.teacher import Teacher
from distill.prepare.drawing_pass import DrawingPass
from distill.prepare.set_builder import SetReport, build_set, split_for
from distill.prepare.teacher_check import choose, some_squares
from distill.prepare.teacher_pass import TeacherPass

_PLAIN = re.compile(r"[\w-]+")  # a name that Hydra takes as it is


def photos(settings: PhotoSource) -> list[Photo]:
    """The photos of photos=DIR or photos=[DIR,DIR] and val_photos, or those of data=demo."""
    if settings.data.kind == "demo":
        return demo_photos()
    return find_all(*_folders(settings), settings.label.listing)


def has_photos(settings: PhotoSource) -> bool:
    """Whether the photos' folders are there, whatever is in them; not those at an address that
    cannot be reached."""
    return all(_is_there(folder) for part in _folders(settings) for folder in part)


def _is_there(folder: Path | Address) -> bool:
    if not isinstance(folder, Address):
        return folder.is_dir()
    try:
        return folder.is_there()
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
    where = [
        str(folder if isinstance(folder, Address) else real_path(folder))
        for part in _folders(settings)
        for folder in part
    ]
    return {
        "photos": " + ".join(where) or "scikit-image",
        "val_fraction": 0.0 if val else settings.data.val_fraction,
        "test_fraction": 0.0 if two_sided else settings.data.test_fraction,
        "seed": settings.data.split_seed,
        "folders": tuple(train) if len(train) > 1 or val else (),
        "val_folders": tuple(val),
    }


def drop_list(settings: PhotoSource) -> Path | None:
    """The file of drop=FILE, None without one."""
    return Path(settings.drop) if settings.drop else None


def check_photos(settings: PhotoSource, root: Path | None = None) -> None:
    """Raises DistillError for photos, a drop list or a folder for the set that cannot be used.

    Photos at an address are not listed for that.
    """
    if settings.data.kind != "demo":
        check_folders(*_folders(settings))
    drop = drop_list(settings)
    if drop and not drop.is_file():
        raise DistillError(
            f"drop={drop}: no such file; write the pictures to leave out, one a line"
        )
    if root is not None and not is_complete(root):
        check_writable(root)


def needs_labels(settings: Train) -> bool:
    """Whether the teacher is needed: always for photos on the fly, and for a set of ours that is
    not there yet or not complete. A folder of pairs of one's own and shards are taken as they are.
    """
    if settings.teacher is None or settings.data.kind == "shards":
        return False
    if settings.data.kind == "photos" or settings.data.root is None:
        return True
    root = Path(settings.data.root)
    return not root.is_dir() or (manifest_at(root) is not None and not is_complete(root))


def words_for_own_pairs(typed: Mapping[str, Any]) -> list[str]:
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
        return _words_for_style(shards.recipe, typed) if shards.made_by_teacher else ["style=own"]
    folder = Path(str(root))
    if not folder.is_dir():
        return []
    made = manifest_at(folder) or {}
    if "teacher" in made:
        return _words_for_style(made, typed) if is_complete(folder) else []
    if extra := [key for key in ("photos", "val_photos") if key in typed]:
        raise DistillError(
            f"{extra[0]}={typed[extra[0]]}: data.root={root} holds pairs of your own, which have "
            f"their photos; leave {extra[0]} out, or name a teacher to label them: style=STYLE"
        )
    return ["style=own"]


def _words_for_style(made: Mapping[str, Any], typed: Mapping[str, Any]) -> list[str]:
    """The style and size that a set's recipe names; of a teacher of one's own the name alone."""
    name, size = str(made["style"]), made["size"]
    words = [f"style={name}"]
    if name not in choices("style") or name == "custom":
        words = ["style=own", *([f"style.name={name}"] if _PLAIN.fullmatch(name) else [])]
    words = [word for word in words if word.partition("=")[0] not in typed]
    return words if "style.resolution" in typed else [*words, f"style.resolution={size}"]


def check_labelling(settings: PhotoSource) -> None:
    """Raises DistillError as `check_photos`, for data.weights of another number of folders, and for
    a data.root with pairs of one's own, which would get a teacher's beside them.

    Before a teacher's weights are fetched or anything is computed.
    """
    if settings.data.kind == "shards":
        raise DistillError(
            "data=shards: a teacher labels into a folder of pairs; prepare it without data=shards, "
            "then python -m distill.shards data.root=SET packs it"
        )
    _check_not_own(settings)
    node = settings.teacher
    if settings.data.kind == "photos" and node and class_of("teacher", node) is FolderTeacher:
        raise DistillError(
            "data=photos: photos are cut anew at every step, and drawings are cut with them once; "
            "leave data=photos out, data.views=N takes N pictures of each"
        )
    check_sizes(settings)
    check_photos(settings, pairs_root(settings))
    check_weights(settings.data.weights, len(training_folders(settings)))


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
            f"{asked}: whole pictures are labelled once, and data=photos labels squares anew at "
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
    if crop > side and d.share_of_sizes < 1:
        raise DistillError(
            f"data.crop_size={crop}: larger than the centre squares, style.resolution={side}; "
            "data.share_of_sizes=1 trains on crops of whole pictures alone"
        )


def _check_not_own(settings: PhotoSource) -> None:
    root, d = Path(settings.data.root or ""), settings.data
    if d.root is None or not root.is_dir() or manifest_at(root) or read_rows(root):
        return
    try:
        find_pairs(root, settings.style.name, d.val_fraction, d.split_seed)
    except DistillError:  # nothing there that could be mistaken for ours
        return
    raise DistillError(
        f"data.root={d.root}: holds pairs of your own, there is nothing to prepare; python -m "
        f"distill.train data.root={quote(d.root)} learns from them"
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


def folder_of_pairs(learnt: Paired) -> Path | None:
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


def manifest(
    settings: PhotoSource,
    teacher: Teacher,
    root: Path | None = None,
    found: Sequence[Photo] | None = None,
) -> Manifest:
    """What decides every pixel of the set. Raises DistillError for what does not fit.

    The files of the set lie at `root`; None: at `pairs_root`. `found` are the photos, None: they
    are looked for where they matter.
    """
    root = root or pairs_root(settings)
    _decide(settings, teacher, root, found)
    views, folders = settings.data.views, training_folders(settings)
    if not isinstance(views, int) and len(views) != len(folders):
        raise DistillError(
            f"data.views: {len(views)} numbers, but the photos come from {len(folders)} "
            f"folder{'s' * (len(folders) > 1)}; give one number, or one for each folder of "
            "photos=[A,B]"
        )
    return Manifest(
        style=settings.style.name,
        teacher=teacher.fingerprint(),
        size=settings.style.resolution,
        crop=settings.crop,
        views=views if isinstance(views, int) else tuple(views) if len(views) > 1 else views[0],
        colour=settings.data.colour,
        precision=_precision(settings, teacher, root),
        sizes=_sizes(settings, teacher, root),
        **photos_in_manifest(settings, root),
    )


def _sizes(settings: PhotoSource, teacher: Teacher, root: Path) -> tuple[int, ...]:
    """Those asked for, and those that the set there has: it keeps to them."""
    sizes = {*(settings.data.sizes or ()), *(manifest_at(root) or {}).get("sizes", ())}
    if sizes and teacher.fixed:
        raise DistillError(
            f"data.sizes={sorted(sizes)}: this teacher takes pictures of "
            f"{teacher.fixed[1]}×{teacher.fixed[0]} only; leave it out"
        )
    return tuple(sorted(sizes))


def settle(settings: PhotoSource, teacher: Teacher, root: Path | None = None) -> None:
    """Make of an open teacher the one that labelled the set there, if one of them did."""
    made = manifest_at(root or pairs_root(settings))
    if made and "teacher" in made:  # sketches have none
        teacher.settle(made["teacher"])


def _decide(
    settings: PhotoSource, teacher: Teacher, root: Path, found: Sequence[Photo] | None
) -> None:
    """Settle what the teacher leaves open: as the set there has it, or by the photos, once.

    Too few photos leave it at the teacher's default.
    """
    settle(settings, teacher, root)
    choices = teacher.open_choices()
    if not choices:
        return
    those = photos(settings) if found is None else found
    squares = some_squares(those, settings.style.resolution, settings.crop)
    if squares is None:
        print("teacher: too few photos to choose its upsampling by; set teacher.upsampling")
        return
    chosen, checks = choose(choices, squares)
    for name, check in checks.items():
        print(f"{'chosen' if name == chosen else 'tried'}: upsampling={name}, {check}")
    teacher.choose(chosen)


def _precision(settings: PhotoSource, teacher: Teacher, root: Path) -> Precision:
    """As asked for; else as the set there was made, or what is fast here and close enough."""
    asked = settings.label.precision
    if asked == "bfloat16" and not teacher.takes_bfloat16:
        raise DistillError(
            "label.precision=bfloat16: this teacher's output would change too much, or cannot be "
            "had; leave it out"
        )
    if asked != "auto":
        return asked
    made = manifest_at(root)
    if made is not None:
        return made["precision"]
    # Matrix units (Intel's AMX): 2.4 times as fast. Without them bfloat16 is the slower one.
    units = getattr(torch.cpu, "_is_amx_tile_supported", lambda: False)
    fast = labelling_device(settings) == "cpu" and units()
    return "bfloat16" if fast and teacher.takes_bfloat16 else "float32"


def labelling_device(settings: PhotoSource) -> str:
    """What this machine labels on: cpu, cuda or mps."""
    return HERE.device(settings.label.device)


def prepare(settings: PhotoSource, teacher: Teacher) -> SetReport:
    """Label what is missing of the settings' set and say what happened."""
    return _label(settings, teacher, photos(settings), pairs_root(settings), SIDES)


def split_on_the_fly(settings: PhotoSource, teacher: Teacher) -> dict[Side, list[Photo]]:
    """The photos of all sides, as the set of their pairs would hold them."""
    root, found = pairs_root(settings), photos(settings)
    made_with = manifest(settings, teacher, root, found)
    return split_for(found, made_with, root, drop_list(settings))


def prepare_held_out(
    settings: PhotoSource, teacher: Teacher, all_of_them: bool, without: Set[str] = frozenset()
) -> Path:
    """Label the photos for testing, or where there are none those for validation; gives the set.

    Or all of another folder, as one side, but for the photos with the keys `without`: nothing was
    chosen by any of them.
    """
    found, root = photos(settings), pairs_root(settings)
    if all_of_them:
        found = [replace(photo, side="val") for photo in found if photo.key not in without]
        root = root.with_name(f"{root.name}-held-out")
        settings = replace(settings, data=replace(settings.data, test_fraction=0.0))
    tested = photos_in_manifest(settings, root)["test_fraction"] > 0
    if not (tested and _label(settings, teacher, found, root, ("test",)).counts["test"]):
        _label(settings, teacher, found, root, ("val",))
    return root


def teacher_pass(
    settings: PhotoSource, teacher: Teacher, made_with: Manifest, device: str
) -> TeacherPass:
    """How the settings have a teacher label on a device."""
    how = settings.label
    if isinstance(teacher, FolderTeacher):
        return DrawingPass(teacher, made_with, how.workers)
    # One picture at a time is the fastest form of the teacher on a CPU (0.28 s against 0.35).
    batch_size = how.batch_size or (1 if device == "cpu" else teacher.batch_size)
    return TeacherPass(teacher, made_with, batch_size, how.workers, device)


def _label(
    settings: PhotoSource,
    teacher: Teacher,
    found: Sequence[Photo],
    root: Path,
    sides: Sequence[Side],
) -> SetReport:
    fast, made_with = teacher.fast(), manifest(settings, teacher, found=found)
    maker = teacher_pass(settings, fast, made_with, labelling_device(settings))
    report = build_set(found, maker, made_with, root, sides, drop_list(settings))
    print(report)
    return report
