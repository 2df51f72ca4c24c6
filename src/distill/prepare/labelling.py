"""How a teacher labels the photos that settings name: into a folder of pairs."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from distill.config.settings.training import Labelling, PhotoSource, Prepare, Train
from distill.core.engine import HERE, Engine, Here
from distill.core.errors import DistillError, counted
from distill.core.next_step import assigned
from distill.core.nodes import class_of
from distill.data import photo_folders
from distill.data.address import Address
from distill.data.dropped import DropList
from distill.data.kinds.registry import data_source
from distill.data.licence_terms import keep_terms
from distill.data.manifest import Manifest, Precision, manifest_at
from distill.data.pairs import find_pairs
from distill.data.photo_table import DROPPED, SIDES, read_rows
from distill.data.photos import Photo, Side
from distill.data.sampler import check_weights
from distill.data.takedown import record_takedown, taken_down
from distill.models.build import load_teacher
from distill.models.teachers.drawings import FolderTeacher
from distill.models.teachers.teacher import Teacher
from distill.prepare.pair_maker import PairMaker, PairStore
from distill.prepare.set_builder import SetReport, build_set, split_for
from distill.prepare.teacher_check import choose, some_squares
from distill.prepare.teacher_pass import DrawingPass, TeacherPass

if TYPE_CHECKING:
    from distill.data.datamodule import DistillData


def carry_out(settings: Prepare, teacher: Teacher | None = None) -> Path | Address:
    """distill.prepare recipe=distill: label what is missing of the settings' set; gives its place.

    `teacher` is another one than the settings name. Raises DistillError, for what is wrong with the
    settings before weights are fetched.
    """
    source, engine = data_source(settings), class_of("engine", settings.engine)
    if source.labels_itself:
        return source.label(teacher)
    if engine is not Here:
        why = getattr(engine, "no_folder", Engine.no_folder)
        raise DistillError(f"engine: {engine.__name__} {why}")
    check_labelling(settings)
    if teacher is None:
        teacher = load_teacher(settings.style, settings.teacher)
    prepare(settings, teacher)
    return data_source(settings).folder


def check_labelling(settings: PhotoSource) -> None:
    """Raises DistillError as `check_photos`, for data.weights of another number of folders, and for
    a data.root with pairs of one's own, which would get a teacher's beside them.

    Before a teacher's weights are fetched or anything is computed.
    """
    root, d = Path(settings.data.root or ""), settings.data
    if d.root and root.is_dir() and not manifest_at(root) and not read_rows(root):
        try:
            find_pairs(root, settings.style.name, d.val_fraction, d.split_seed)
        except DistillError:  # nothing there that could be mistaken for ours
            pass
        else:
            raise DistillError(
                f"data.root={d.root}: holds pairs of your own, there is nothing to prepare; python "
                f"-m distill.train {assigned('data.root', d.root)} learns from them"
            )
    node = settings.teacher
    if settings.data.kind == "photos" and node and class_of("teacher", node) is FolderTeacher:
        raise DistillError(
            "data=photos: photos are cropped again at every step, and drawings are cut with them "
            "once; leave data=photos out, data.views=N takes N pictures of each"
        )
    data_source(settings).check_sizes()
    photo_folders.check_photos(settings, data_source(settings).folder)
    check_weights(settings.data.weights, len(photo_folders.training_folders(settings)))


def manifest_of(
    settings: PhotoSource,
    teacher: Teacher,
    root: Path | None = None,
    photos: Sequence[Photo] | None = None,
) -> Manifest:
    """What decides every pixel of the set. Raises DistillError for what does not fit.

    The files of the set lie at `root`; None: in its source's `folder`. Without `photos` they are
    looked for where they matter.
    """
    root = root or data_source(settings).folder
    _decide(settings, teacher, root, photos)
    views, folders = settings.data.views, photo_folders.training_folders(settings)
    if not isinstance(views, int) and len(views) != len(folders):
        raise DistillError(
            f"data.views: {counted(len(views), 'number')}, but the photos come from "
            f"{counted(len(folders), 'folder')}; give one number, or one for each folder of "
            "photos=[A,B]"
        )
    # The sizes asked for, and those that the existing set was made with.
    sizes = {*(settings.data.sizes or ()), *(manifest_at(root) or {}).get("sizes", ())}
    if sizes and teacher.fixed:
        raise DistillError(
            f"data.sizes={sorted(sizes)}: this teacher takes pictures of "
            f"{teacher.fixed[1]}×{teacher.fixed[0]} only; leave it out"
        )
    return Manifest(
        style=settings.style.name,
        teacher=teacher.fingerprint(),
        size=settings.style.resolution,
        crop=settings.crop,
        views=views if isinstance(views, int) else tuple(views) if len(views) > 1 else views[0],
        colour=settings.data.colour,
        precision=_precision(settings, teacher, root),
        sizes=tuple(sorted(sizes)),
        **photo_folders.photos_in_manifest(settings, root),
    )


def _decide(
    settings: PhotoSource, teacher: Teacher, root: Path, photos: Sequence[Photo] | None
) -> None:
    """Settle what the teacher leaves open: as the set there has it, or by the photos, once.

    Too few photos leave it at the teacher's default.
    """
    if labeller := (manifest_at(root) or {}).get("teacher"):
        teacher.settle(labeller)
    choices = teacher.open_choices()
    if not choices:
        return
    those = photo_folders.photos(settings) if photos is None else photos
    squares = some_squares(those, settings.style.resolution, settings.crop)
    if squares is None:
        print("teacher: too few photos to choose its upsampling by; set teacher.upsampling")
        return
    name, checks = choose(choices, squares)
    for tried, check in checks.items():
        print(f"{'chosen' if tried == name else 'tried'}: upsampling={tried}, {check}")
    teacher.choose(name)


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
    there = manifest_at(root)
    if there is not None:
        return there["precision"]
    # Matrix units (Intel's AMX): 2.4 times as fast. Without them bfloat16 is the slower one.
    units = getattr(torch.cpu, "_is_amx_tile_supported", lambda: False)
    fast = HERE.device(settings.label.device) == "cpu" and units()
    return "bfloat16" if fast and teacher.takes_bfloat16 else "float32"


def prepare(
    settings: PhotoSource,
    teacher: Teacher,
    photos: Sequence[Photo] | None = None,
    root: Path | None = None,
    sides: Sequence[Side] = SIDES,
) -> SetReport:
    """Label what is missing of the settings' set and say what happened.

    Or only its `sides`, with other `photos`, or into another folder, `root`.
    """
    photos = photo_folders.photos(settings) if photos is None else photos
    fast, manifest = teacher.fast(), manifest_of(settings, teacher, photos=photos)
    maker = teacher_pass(settings.label, fast, manifest, HERE.device(settings.label.device))
    store = PairStore(root or data_source(settings).folder, maker.folders)
    return build(settings, photos, maker, manifest, store, sides)


def split_on_the_fly(settings: PhotoSource, teacher: Teacher) -> dict[Side, list[Photo]]:
    """The photos of all sides, as the set of their pairs would hold them."""
    root, photos = data_source(settings).folder, photo_folders.photos(settings)
    manifest = manifest_of(settings, teacher, root, photos)
    if manifest_at(root) is None:  # without terms a set counts as one from before they were kept
        keep_terms(root, settings)
    return split_for(photos, manifest, root, **_drops(settings))


def prepare_held_out(
    settings: PhotoSource, teacher: Teacher, all_of_them: bool, without: Set[str] = frozenset()
) -> Path:
    """Label the photos for testing, or where there are none those for validation; gives the set.

    Or all of another folder, as one side, but for the photos with the keys `without`: nothing was
    chosen by any of them.
    """
    photos, root = photo_folders.photos(settings), data_source(settings).folder
    if all_of_them:
        photos = [replace(photo, side="val") for photo in photos if photo.key not in without]
        root = root.with_name(f"{root.name}-held-out")
        settings = replace(settings, data=replace(settings.data, test_fraction=0.0))
    tested = photo_folders.photos_in_manifest(settings, root)["test_fraction"] > 0
    if not (tested and prepare(settings, teacher, photos, root, ("test",)).counts["test"]):
        prepare(settings, teacher, photos, root, ("val",))
    return root


def teacher_pass(how: Labelling, teacher: Teacher, manifest: Manifest, device: str) -> TeacherPass:
    """How the settings have a teacher label on a device."""
    if isinstance(teacher, FolderTeacher):
        return DrawingPass(teacher, manifest, how.workers)
    # One picture at a time is the fastest form of the teacher on a CPU (0.28 s against 0.35).
    batch_size = how.batch_size or (1 if device == "cpu" else teacher.batch_size)
    return TeacherPass(teacher, manifest, batch_size, how.workers, device)


def build(
    settings: PhotoSource,
    photos: Sequence[Photo],
    maker: PairMaker,
    manifest: Manifest,
    store: PairStore,
    sides: Sequence[Side] = SIDES,
    engine: Engine = HERE,
) -> SetReport:
    """`build_set` without what the settings' lists leave out. Keep the set's terms, and say what
    happened."""
    report = build_set(photos, maker, manifest, store, sides, **_drops(settings), engine=engine)
    keep_terms(store.folder, settings, "teacher" in manifest.plain())
    print(report)
    for of, pairs in taken_down(store.root.local or store.folder).items():
        print(
            f"taken down of {of}: {counted(len(pairs), 'picture')} of this set, so a student of it "
            f"is not published unasked; drop={of / DROPPED} leaves them out"
        )
    return report


def _drops(settings: PhotoSource) -> dict[str, Any]:
    """The settings' lists, and how to find and say what still holds pictures that these name."""

    def record(store: PairStore, drops: DropList, contents: Sequence[str]) -> None:
        root, runs = store.root.local or store.folder, Path(getattr(settings, "runs", "runs"))
        record_takedown(root, drops.new, runs, store.folder, contents, drops.restored)

    return {**photo_folders.drop_lists(settings), "record": record}


def label_and_load(settings: Train, teacher: Teacher | None) -> DistillData:
    """Training and validation pictures of recipe=distill; makes the pairs that are missing.

    `teacher` may be None where a folder of pairs of one's own is there.
    """
    # With it comes Lightning, which labels need not wait for.
    from distill.data.datamodule import data_module

    split = None
    if settings.data.kind == "photos":
        assert teacher is not None
        split = partial(split_on_the_fly, settings, teacher)
    elif data_source(settings).needs_labels:
        assert teacher is not None
        prepare(settings, teacher)
    return data_module(settings, split)
