"""Whose terms a run is under: those of its teacher, pictures and `init`, and of what these were
made from.

ROOT/terms.json    of a set of pairs: the chain of its photos and targets, see core.terms
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import torch
import yaml

from distill.config.groups import conf_folder
from distill.config.registry import settings_of
from distill.config.settings.networks import Description, StudentDescription
from distill.config.settings.training import PhotoSource, Prepare, Train, Training
from distill.core.errors import DistillError
from distill.core.files import git_blob_id, home_path, sha256, write_json
from distill.core.onnx_files import noted, read_graph
from distill.core.terms import NOTE, PLACEHOLDERS, UNSAID, Licence, Terms, read_terms
from distill.core.weights import WeightsFile, find_or_none
from distill.data.address import Address, is_address
from distill.data.kinds.chosen import data_source
from distill.data.manifest import TERMS, manifest_at
from distill.data.set_files import KEPT, SetMetadataStore
from distill.data.takedown import with_takedown
from distill.models import zoo
from distill.models.network_file import is_network_file, read_description
from distill.models.teachers.trained_run import checkpoint_at

PHOTOS = "photos"
UNKNOWN_PHOTOS = Licence(PHOTOS)
DEMO = Licence.said("scikit-image's photographs", "CC0", "https://scikit-image.org")
DEEPEST = 20  # runs that started from each other: a file may name itself
ZOO = "zoo:"


def terms_of(path: Path, depth: int = 0) -> Terms:
    """The terms of a .ckpt, .safetensors or .onnx file, by what it says of itself.

    Files from before this was kept say what their settings do, and are unknown beyond that. Raises
    DistillError for a file that cannot be read. Pictures that were taken down since are among them.
    """
    return with_takedown(_terms_of(path, depth), path)


def _terms_of(path: Path, depth: int) -> Terms:
    if path.suffix.lower() == ".onnx":
        said = noted(read_graph(path), NOTE)
        return Terms((Licence(path.name),)) if said is None else read_terms(said)
    if is_network_file(path):
        return described_terms(read_description(path))
    try:
        saved = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
        trained = settings_of(saved["distill"])
    except Exception as error:  # whatever a damaged file makes torch raise
        raise DistillError(f"{path}: damaged, or no checkpoint of distill.train") from error
    return read_terms(saved["terms"]) if "terms" in saved else terms_of_run(trained, depth)


def described_terms(said: Description) -> Terms:
    """The same of what a safetensors file says of its network."""
    if said.terms is not None:
        return read_terms(said.terms)
    of = Licence("what else it learnt from, which older files do not say")
    if isinstance(said, StudentDescription):
        return Terms((*_of_teacher(asdict(said.style), None, 0), of))
    return Terms((of,))


def terms_of_run(trained: Training, depth: int = 0) -> Terms:
    """The terms of a run by its settings, and by what its pictures say now."""
    stated, found = trained.licence.pictures, list[Licence]()
    try:
        if isinstance(trained, Train):
            source = data_source(trained)
            named = str(source.root) if source.on_disk else "of a loader"
            found += _of_set(named, trained, stated, "", depth)
        else:
            data = getattr(trained, "data", None)
            folders = (getattr(data, key, None) for key in ("root", "a", "b"))
            found += [each for f in folders if f for each in _of_pictures(f, stated)]
    except DistillError:  # a set at an address that is gone
        if isinstance(trained, Train):
            found += _of_teacher(asdict(trained.style), trained.teacher, depth)
        found.append(Licence("what it learnt from, which is gone"))
    if init := getattr(trained, "init", None):
        path, name = zoo.shipped().get(init.removeprefix(ZOO)), init
        if not init.startswith(ZOO):
            path, name = home_path(init), _short(home_path(init))
        found += _of_file(path, f"init {name}", depth)
    return Terms(()).beside(*found)


def keep_terms(folder: Path, settings: PhotoSource, taught: bool = True) -> None:
    """Have the set whose own files lie in `folder` say whose terms it is under.

    What it says already stays: a word of a later command can only add to it. `taught`: a teacher
    made its targets.
    """
    card = settings.card if isinstance(settings, Prepare) else None
    stated, where = (card.licence, card.source or "") if card else (None, "")
    chain = _of_set(str(folder), settings, stated, where, 0, taught)
    if chain != kept_terms(folder) or not (folder / TERMS).is_file():
        with suppress(OSError):  # a finished set may lie where nothing can be written
            write_json(folder / TERMS, Terms(chain).plain())


def kept_terms(folder: Path | str) -> tuple[Licence, ...]:
    """What the set says that a folder or address is, or lies in; empty where none of ours is."""
    if is_address(str(folder)):
        places = [SetMetadataStore(Address(folder)).folder]
    else:
        path = home_path(folder).absolute()
        places = [each for up in (path, *path.parents[:2]) for each in (up, up / KEPT)]
    for place in places:
        with suppress(OSError):
            return read_terms((place / TERMS).read_text(errors="replace")).chain
    for place in places:
        with suppress(DistillError):
            if made := manifest_at(place):  # from before terms were kept
                style = {"name": made.get("style")}
                return (*(_of_teacher(style, None, 0) if style["name"] else ()), UNKNOWN_PHOTOS)
    return ()


def _of_set(
    root: str, source: PhotoSource, stated: str | None, where: str, depth: int, taught: bool = True
) -> tuple[Licence, ...]:
    """`stated` is what the user says of the photos, or of pairs of one's own."""
    if taught and source.teacher is None:
        return _of_pictures(root, stated or source.style.licence)
    links = [*kept_terms(root)]
    if taught:
        links += _of_teacher(asdict(source.style), source.teacher, depth)
    if source.data.kind == "demo":
        links.append(DEMO)
    elif stated:
        links = [each for each in links if each != UNKNOWN_PHOTOS]
        links.append(Licence.said(PHOTOS, stated, where, stated=True))
    elif all(each.of != PHOTOS for each in links):
        links.append(UNKNOWN_PHOTOS)
    return tuple(dict.fromkeys(links))


def _of_pictures(folder: str, stated: str | None) -> tuple[Licence, ...]:
    """What the user says of them fills up what nobody else does, or is stricter."""
    name, told = f"pictures {Path(folder).name}", stated not in (None, *PLACEHOLDERS)
    inherited = Terms(kept_terms(folder)).inherited(name)
    said = Licence.said(name, stated or "", stated=told)
    return (*inherited, said) if told or not inherited else inherited


def _of_file(path: Path | None, of: str, depth: int) -> tuple[Licence, ...]:
    """What a network's file says, all of it inherited; unknown where it is gone."""
    if path is not None and depth < DEEPEST:
        with suppress(DistillError):
            return terms_of(path, depth + 1).inherited(of)
    return (Licence(of, text="gone, or not readable"),)


def _short(path: Path) -> str:
    """A checkpoint by its run: no path of this machine goes into a file."""
    return path.parent.parent.name if path.parent.name == "checkpoints" else path.name


def _of_teacher(
    style: Mapping[str, Any], node: Mapping[str, Any] | None, depth: int
) -> tuple[Licence, ...]:
    """By the terms of the published weights that they are, whatever was typed; by those of the run,
    file or pictures that the teacher is; and by what was typed."""
    node, own, name = node or {}, style.get("weights"), style.get("file")
    hashes = {style.get("sha256"), style.get("git_blob")}
    path = home_path(own) if own else None
    if name and not own:
        path = find_or_none(WeightsFile(name, None, style.get("sha256"), style.get("git_blob")))
    with suppress(OSError):  # published weights are known whatever they are called now
        hashes |= {sha256(path), git_blob_id(path)} if path and path.is_file() else set()
    unchanged = str(node.get("_target_")).endswith(".Unchanged")  # recipe=picture
    of = "style picture" if unchanged else "teacher"
    of = f"{of} {path.name if path else name or style.get('name')}"
    links = [
        Licence.said(of, each["licence"], each["source"])
        for each in _published()
        if each["name"] == style.get("name")
        or (each["file"] and each["file"] in (name, path and path.name))
        or {each["sha256"], each["git_blob"]} & hashes - {None}
    ]
    if path and path.suffix.lower() == ".onnx" and not links:
        links += [each for each in _of_file(path, of, depth) if each.text != UNSAID]
    if run := node.get("path"):
        at = Path(run)
        with suppress(DistillError):  # it is gone
            at = checkpoint_at(home_path(run), node.get("checkpoint", "best"))
        links += _of_file(at, f"teacher {_short(at)}", depth)
    if folder := node.get("folder"):
        links += Terms(kept_terms(folder)).inherited(f"teacher {Path(folder).name}")
    typed = style.get("licence") or ""
    if typed not in PLACEHOLDERS and all(typed != each.text for each in links):
        links.append(Licence.said(of, typed, style.get("source") or "", stated=True))
    return tuple(links) or (Licence(of, source=style.get("source") or ""),)


@cache
def _published() -> list[dict[str, Any]]:
    """The shipped styles whose weights' terms are known."""
    files = sorted((conf_folder() / "style").glob("*.yaml"))
    styles = (yaml.safe_load(path.read_text())["style"] for path in files)
    return [each for each in styles if each["licence"] not in PLACEHOLDERS]
