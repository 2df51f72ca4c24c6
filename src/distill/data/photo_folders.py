"""Which photos the settings mean, and what a set of pairs remembers of them."""

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from distill.config.settings.training import PhotoSource
from distill.core.errors import DistillError
from distill.core.files import home_path, real_path
from distill.data.address import Address, folder_at
from distill.data.manifest import check_writable, is_complete, manifest_at, metadata_folder
from distill.data.photos import Photo, check_folders, demo_photos, find_all, folder_names


def photos(settings: PhotoSource) -> list[Photo]:
    """The photos of photos=DIR or photos=[DIR,DIR] and val_photos, or those of data=demo."""
    if settings.data.kind == "demo":
        return demo_photos(held_out=4)  # as a Fréchet distance needs
    train, val = _folders(settings)
    return find_all([*train.values()], [*val.values()], settings.label.listing)


def has_photos(settings: PhotoSource) -> bool:
    """Whether the photos' folders are there, whatever is in them; not those at an address that
    cannot be reached."""
    with suppress(DistillError):
        train, val = _folders(settings)
        return all(Address(str(each)).is_there() for each in (train | val).values())
    return False


def of_set(settings: PhotoSource, root: str) -> PhotoSource:
    """With the photos that the set at `root` was labelled from: a run of data.root=DIR names none.
    Those of the settings where the set's have moved with the run, or its manifest is damaged."""
    folder, labelled = metadata_folder(root), ""
    with suppress(DistillError):
        labelled = (manifest_at(folder) or {}).get("photos", "")
    if labelled in ("", photos_in_manifest(settings, folder)["photos"]):
        return settings
    of_labels = replace(settings, photos=labelled.split(" + "), val_photos=None)
    moved = Path(labelled).is_absolute() and not has_photos(of_labels)
    return settings if moved and has_photos(settings) else of_labels


def at_addresses(settings: PhotoSource) -> list[Address]:
    """Those of the photos' folders that are at an address."""
    train, val = _folders(settings)
    return [each for each in (train | val).values() if isinstance(each, Address)]


def _folders(
    settings: PhotoSource,
) -> tuple[dict[str, Path | Address], dict[str, Path | Address]]:
    """The folders for training (or both sides) and those for validation, by names that are all
    different; none of data=demo."""
    if settings.data.kind == "demo":
        return {}, {}
    train, val = settings.photos, settings.val_photos or []
    first, second = ([each] if isinstance(each, str) else each for each in (train, val))
    folders = [*map(folder_at, (*first, *second))]
    named = [*zip(folder_names(folders), folders, strict=True)]
    return dict(named[: len(first)]), dict(named[len(first) :])


def folders_by_name(settings: PhotoSource) -> dict[str, Path | Address]:
    """The folders of the photos by the name that each has in the set: "" where it is the only one.

    It is what `Photo.folder` says, and what a photo's key is relative to.
    """
    if settings.data.kind == "demo":
        return {"": demo_photos()[0].local.parent}
    train, val = _folders(settings)
    folders = train | val
    return folders if len(folders) > 1 else dict(zip([""], folders.values(), strict=True))


def training_folders(settings: PhotoSource) -> list[str]:
    """The names of the folders of photos that training takes from; `demo` of data=demo."""
    return [*_folders(settings)[0]] or ["demo"]


def set_name(settings: PhotoSource) -> str:
    """The photos' part in the name of a set: A+B, or A+B-val-C with folders for validation."""
    val = _folders(settings)[1]
    return "+".join(training_folders(settings)) + (f"-val-{'+'.join(val)}" if val else "")


def photos_in_manifest(settings: PhotoSource, root: Path) -> dict[str, Any]:
    """What the manifest at `root` says of the photos and their split, by the names of its fields.

    Nothing is held out for testing beside folders for validation, nor of a set that has two sides
    already: one from before there were three is gone on with as it is.
    """
    train, val = _folders(settings)
    two_sided = bool(val) or (manifest_at(root) or {}).get("test_fraction") == 0
    folders = (*train.values(), *val.values())
    where = [str(f if isinstance(f, Address) else real_path(f)) for f in folders]
    return {
        "photos": " + ".join(where) or "scikit-image",
        "val_fraction": 0.0 if val else settings.data.val_fraction,
        "test_fraction": 0.0 if two_sided else settings.data.test_fraction,
        "seed": settings.data.split_seed,
        "folders": tuple(train) if len(train) > 1 or val else (),
        "val_folders": tuple(val),
    }


def drop_lists(settings: Any) -> dict[str, Path | None]:
    """The files of drop=FILE and restore=FILE, None without one. Raises DistillError."""
    named = {"drop": settings.drop, "restore": settings.restore}
    files = {key: home_path(file) if file else None for key, file in named.items()}
    for key, file in files.items():
        if file and not file.is_file():
            raise DistillError(f"{key}={file}: no such file; write one picture a line")
        if file and b"\0" in file.read_bytes():
            raise DistillError(f"{key}={file}: is no text; write one picture a line")
    return files


def check_photos(settings: PhotoSource, root: Path | None = None) -> None:
    """Raises DistillError for photos, a drop list or a folder for the set that cannot be used.

    Photos at an address are not listed for that.
    """
    if settings.data.kind != "demo":
        train, val = _folders(settings)
        check_folders([*train.values()], [*val.values()])
    drop_lists(settings)
    if root is not None and not is_complete(root):
        check_writable(root)


def usual_name(settings: PhotoSource) -> str:
    """The folder's name of a set without a data.root: STYLE-PHOTOS-SIZE."""
    style = settings.style
    crop = "" if settings.crop == 1 else f"-crop{round(settings.crop * 100)}"
    return f"{style.name}-{set_name(settings)}-{style.resolution}{crop}"
