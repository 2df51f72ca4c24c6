"""Photos to sketch → photo sets by the settings: what is needed is found, then the set is made."""

from __future__ import annotations

from pathlib import Path

from distill import sources, weights
from distill.data import yunet
from distill.data.dropping import check_list
from distill.data.folders import folder_names
from distill.data.labelling import Report
from distill.data.recipe import is_complete
from distill.data.writing import check_writable
from distill.errors import DistillError
from distill.settings import Prepare
from distill.sketches import hed
from distill.sketches.making import make
from distill.sketches.masks import Folder, Network
from distill.sketches.recipe import SketchRecipe, of_settings
from distill.sketches.steps import Masks, Sketcher


def prepare(settings: Prepare) -> Report:
    """Make what is missing of the settings' set and say what happened."""
    check(settings)
    photos, root = sources.photos(settings), sketches_root(settings)
    masks, files = _masks(settings), _weights(settings)
    sketcher = Sketcher(settings.sketch, settings.crop, masks, **files)
    made_by = _recipe(settings, masks, files.get("hed"))
    drop = Path(settings.drop) if settings.drop else None
    report = make(photos, sketcher, made_by, root, settings.label.workers, drop)
    print(report)
    return report


def check(settings: Prepare) -> None:
    """What settings contradict each other, before a file is fetched or read."""
    chosen = settings.sketch
    if chosen.marks and chosen.points is None:
        raise DistillError("sketch.marks=true: needs sketch.points=cat or faces, to know where")
    if chosen.rgba and chosen.mask is None:
        raise DistillError("sketch.rgba=true: needs sketch.mask=FILE, DIR or alpha, to know what")
    if chosen.canny.low > chosen.canny.high:
        raise DistillError(
            f"sketch.canny.low={chosen.canny.low}: above sketch.canny.high={chosen.canny.high}"
        )
    if settings.drop:
        check_list(Path(settings.drop))
    if not is_complete(sketches_root(settings)):
        check_writable(sketches_root(settings))


def sketches_root(settings: Prepare) -> Path:
    """Where the set lies: data.root, or data/sketches/PHOTOS-SIZE."""
    if settings.data.root:
        return Path(settings.data.root)
    train, val = _names(settings)
    name = "+".join(train) + (f"-val-{'+'.join(val)}" if val else "")
    return Path("data/sketches") / f"{name}-{settings.sketch.size}"


def _masks(settings: Prepare) -> Masks:
    chosen = settings.sketch
    if chosen.mask in (None, "alpha"):
        return None
    path = Path(chosen.mask).expanduser()
    if path.is_dir():
        return Folder(path)
    if not path.is_file():
        raise DistillError(f"sketch.mask={chosen.mask}: no such file or folder, and not alpha")
    return Network(path, chosen.saliency.size, chosen.saliency.norm)


def _weights(settings: Prepare) -> dict[str, Path]:
    """The files of the networks that the settings name, by the Sketcher's arguments."""
    chosen, found = settings.sketch, {}
    if chosen.points == "faces":
        found["detector"] = weights.find(yunet.FILE)
    if chosen.outline == "hed":
        own, key = chosen.hed.weights, "sketch.hed.weights"
        there = None if own else weights.find_or_none(hed.FILE, hed.PORT)
        found["hed"] = there or weights.find(hed.FILE, own, key)
    return found


def _recipe(settings: Prepare, masks: Masks, hed_file: Path | None) -> SketchRecipe:
    train, val = _names(settings)
    hashes = {"hed": weights.sha256(hed_file)} if hed_file else {}
    if isinstance(masks, Network):
        hashes["mask"] = weights.sha256(masks.path)
    return of_settings(
        settings.sketch,
        hashes,
        photos=" + ".join(str(folder.resolve()) for folder in _folders(settings)) or "scikit-image",
        crop=1.0 if settings.sketch.points else settings.crop,
        val_fraction=0.0 if val else settings.data.val_fraction,
        seed=settings.data.split_seed,
        folders=tuple(train) if len(train) > 1 or val else (),
        val_folders=tuple(val),
    )


def _folders(settings: Prepare) -> list[Path]:
    if settings.data.kind == "demo":
        return []
    given = [settings.photos, settings.val_photos or []]
    return [Path(each) for part in given for each in ([part] if isinstance(part, str) else part)]


def _names(settings: Prepare) -> tuple[list[str], list[str]]:
    """The names of the folders for training (or both sides) and of those for validation."""
    train = sources.training_folders(settings)
    return train, folder_names(_folders(settings))[len(train) :]
