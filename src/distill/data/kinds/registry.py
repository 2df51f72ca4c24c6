"""The kinds of sources of pictures, and the one that settings choose by `data.kind`."""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from distill.config.groups import choices
from distill.config.settings.training import PhotoSource
from distill.core import nodes, plugins
from distill.core.errors import DistillError
from distill.core.files import home_path, real_path
from distill.data.address import Address, is_address
from distill.data.cards.set_formats import FolderFormat, SetFormat
from distill.data.kinds.live_photos import LivePhotos
from distill.data.kinds.pair_folder import DemoPairs, PairFolder, UserLoader
from distill.data.kinds.source import Source
from distill.data.photo_folders import usual_name

KINDS: Mapping[str, type[Source]] = {
    "pairs": PairFolder,
    "photos": LivePhotos,
    "demo": DemoPairs,
    "loader": UserLoader,
}
_PLAIN = re.compile(r"[\w-]+")  # a name that Hydra takes as it is


def source_named(kind: str) -> type[Source]:
    """The class of a `data.kind`: of distill, or of a plug-in's `sources`. Raises DistillError."""
    if kind in KINDS:
        return KINDS[kind]
    for name in plugins.values("sources", kind):
        source: type[Source] = nodes.check_base(f"sources.{kind}", {"_target_": name}, Source)
        if missing := sorted(source.__abstractmethods__):
            raise DistillError(f"data.kind={kind}: {name} has no {', '.join(missing)}")
        return source
    raise DistillError(nodes.unknown_name(kind, [*KINDS, *kinds_of_plugins()], "data.kind"))


def kinds_of_plugins() -> list[str]:
    """The kinds of data that plug-ins bring."""
    return [kind for kind, _ in plugins.entries("sources")]


def set_forms() -> list[type[SetFormat]]:
    """The forms that a set may have; a folder of pairs, which any other might be, is the last."""
    forms = [source_named(kind).form for kind in kinds_of_plugins()]
    return [*dict.fromkeys(form for form in forms if form is not FolderFormat), FolderFormat]


def form_at(root: Path | Address) -> SetFormat:
    """The set at a folder or an address, in whichever form. Raises DistillError."""
    address = root if isinstance(root, Address) else Address(root)
    for form in set_forms():
        if source := form.at(address):
            return source
    raise DistillError(f"{root}: no set of pairs lies there")


def data_source(settings: Any) -> Source:
    """Where the pictures come from that settings choose by `data.kind`."""
    return source_named(settings.data.kind)(settings)


def folder_of_pairs(learnt: Any) -> Path | None:
    """Where the pairs of a run without photos lie, None where none are named; as `Source.folder`.

    Raises DistillError where there are none.
    """
    return source_named(learnt.kind).folder_at(learnt.root) if learnt.root else None


def overrides_for_user_pairs(typed: Mapping[str, Any]) -> list[str]:
    """What follows for distill.train from `typed`, settings by key with a data.root, where that is
    a set of pairs and no style or teacher is named: style=own, of a set that a teacher of ours made
    its style.

    Raises DistillError where photos are named too, which would be labelled for nothing."""
    root, choice = typed["data.root"], typed.get("data", "pairs")
    kind = "pairs" if choice == "sizes" else choice
    source = source_named(kind) if kind in (*KINDS, *kinds_of_plugins()) else None
    students = typed.get("recipe", "distill") == "distill"  # another recipe has no style
    if {"style", "teacher"} & typed.keys() or not students:
        return []
    if source is None or not source.own_pairs or (made := source.made_of(str(root))) is None:
        return []
    if "teacher" in made:  # the style and size that it names; of one's own the name alone
        name, size = str(made["style"]), made["size"]
        words = [f"style={name}"]
        if name not in choices("style") or name == "custom":
            words = ["style=own", *([f"style.name={name}"] if _PLAIN.fullmatch(name) else [])]
        words = [word for word in words if word.partition("=")[0] not in typed]
        return words if "style.resolution" in typed else [*words, f"style.resolution={size}"]
    if extra := [key for key in source.superfluous if key in typed]:
        raise DistillError(
            f"{extra[0]}={typed[extra[0]]}: data.root={root} holds pairs of your own, which nobody "
            f"labels; leave {extra[0]} out, or name a teacher to label them: style=STYLE"
        )
    return ["style=own"]


def seen_from_here(trained: Any, checkpoint: Path) -> Any:
    """A run's settings, for a command in another folder than the run was trained in.

    Paths that lead nowhere from here are taken from the folder that its `runs` lay in, where they
    lead somewhere. A set without a data.root gets one then.
    """
    runs = Path(trained.runs)
    above = real_path(checkpoint).parents[len(runs.parts) + 2 :]
    if runs.is_absolute() or not above:
        return trained

    def place_of(path: Any) -> Any:
        if isinstance(path, list):
            return [place_of(each) for each in path]
        if path is None or is_address(str(path)) or home_path(path).exists():
            return path
        there = above[0] / path
        return str(there) if there.exists() else path

    places: Any = {key: place_of(getattr(trained.data, key, None)) for key in ("root", "a", "b")}
    data = replace(
        trained.data, **{k: places[k] for k in places.keys() & vars(trained.data).keys()}
    )
    if not isinstance(trained, PhotoSource):
        return replace(trained, data=data)
    usual = source_named(data.kind).place / usual_name(trained)
    if data.root is None and (there := place_of(usual)) != usual:
        data = replace(data, root=there)
    style = replace(trained.style, weights=place_of(trained.style.weights))
    folders = {"photos": place_of(trained.photos), "val_photos": place_of(trained.val_photos)}
    folders |= {key: place_of(getattr(trained, key)) for key in getattr(trained, "files", ())}
    return replace(trained, data=data, style=style, **folders)
