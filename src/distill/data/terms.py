"""Whose terms a run is under: those of its teacher, pictures and `init`, and of what these were
made from.

ROOT/terms.json    of a set of pairs: the chain of its photos and targets, see core.terms
"""

from __future__ import annotations

import re
from ast import literal_eval
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import torch
import yaml

from distill.config.groups import conf_folder
from distill.config.registry import settings_of
from distill.config.settings.base import LicenceSettings
from distill.config.settings.networks import Description, StudentDescription
from distill.config.settings.training import PhotoSource, Prepare, SetCard, Train, Training
from distill.core import plugins
from distill.core.errors import DistillError, counted
from distill.core.files import git_blob_id, home_path, sha256, write_json
from distill.core.onnx_files import noted, read_graph
from distill.core.terms import (
    NOTE,
    PLACEHOLDERS,
    STYLE,
    UNSAID,
    Licence,
    Terms,
    pictures_of,
    read_terms,
)
from distill.core.weights import WeightsFile, find_or_none
from distill.data import sources
from distill.data.address import Address, is_address
from distill.data.decode import PICTURES
from distill.data.kinds.chosen import data_source, seen_from_here
from distill.data.manifest import SUMS, TERMS, manifest_at
from distill.data.photo_table import RUN_PAIRS, pair_of, read_rows, read_sides
from distill.data.photo_terms import (
    FILE,
    PhotoTerms,
    photo_links,
    read_photo_terms,
    terms_by_row,
    written_on,
)
from distill.data.photos import walk
from distill.data.set_files import KEPT, SetMetadataStore
from distill.data.takedown import learnt_before, with_takedown
from distill.models import zoo
from distill.models.network_file import is_network_file, read_description
from distill.models.teachers.trained_run import checkpoint_at

PHOTOS = "photos"
UNKNOWN_PHOTOS = Licence(PHOTOS)
DEMO = Licence.from_text("scikit-image's photographs", "CC0", "https://scikit-image.org")
DEEPEST = 20  # runs that started from each other: a file may name itself
ZOO = "zoo:"
# Collections of photos that are for research alone, by what their folders are called.
_RESEARCH = re.compile(
    r"(?i)celeb-?a|(?<![a-z])(lfw|ffhq|afhq|umdfaces|utk-?face|casia|megaface|wider-?face)(?![a-z])"
    r"|imagenet|ms-?celeb|vgg-?face|selfie2anime|danbooru"
)


def terms_of(path: Path, depth: int = 0) -> Terms:
    """The terms of a .ckpt, .safetensors or .onnx file, by what it says of itself.

    Files from before this was kept say what their settings do, and are unknown beyond that. Raises
    DistillError for a file that cannot be read. Pictures that were taken down since are among them.
    """
    return with_takedown(_terms_of(path, depth), path)


def _terms_of(path: Path, depth: int, typed: Training | None = None) -> Terms:
    """The same, by the settings `typed` now, where a run has any, in the place of its own."""
    if path.suffix.lower() == ".onnx":
        said = noted(read_graph(path), NOTE)
        return Terms((Licence(path.name),)) if said is None else read_terms(said)
    if is_network_file(path):
        return described_terms(read_description(path))
    saved, trained = _saved(path)
    if "terms" not in saved:
        return terms_of_run(typed or trained, depth)
    terms = read_terms(saved["terms"])
    if (run := _run_at(path)) is None:
        return terms
    with suppress(OSError):
        kept = read_terms((run / TERMS).read_text(errors="replace"))
        terms = replace(terms.amended(kept.chain), permission=kept.permission or terms.permission)
    of = {pictures_of(each.of) for each in terms.chain}
    fresh, trained = typed is not None, typed or seen_from_here(trained, path)
    now = terms_of_run(trained, depth, fresh, run).chain
    return terms.amended((each for each in now if pictures_of(each.of) in of), fresh)


def _saved(checkpoint: Path) -> tuple[dict[str, Any], Training]:
    """What a checkpoint holds, and its settings. Raises DistillError."""
    try:
        saved = torch.load(checkpoint, map_location="cpu", weights_only=True, mmap=True)
        return saved, settings_of(saved["distill"])
    except Exception as error:  # whatever a damaged file makes torch raise
        raise DistillError(f"{checkpoint}: damaged, or no checkpoint of distill.train") from error


def _run_at(checkpoint: Path) -> Path | None:
    """The run that a checkpoint lies in; None where it was copied out of it."""
    run = checkpoint.parent.parent
    inside = checkpoint.parent.name == "checkpoints" and (run / "config.yaml").is_file()
    return run if inside else None


def state_terms(checkpoint: Path, licence: LicenceSettings) -> Terms:
    """The terms of a file with what its owner states of the pictures; RUN/terms.json keeps that.

    Raises DistillError as `check_stated`."""
    run = _run_at(checkpoint)
    if run is not None:
        check_stated(licence, seen_from_here(_saved(checkpoint)[1], checkpoint))
    terms = _terms_of(checkpoint, 0)
    if licence.pictures is not None:
        before = terms
        terms = (before if run else before.of_others).restated(licence.pictures)
        _keep_of_run(run, terms, before)
    return with_takedown(terms, checkpoint)


def keep_terms_of_run(checkpoint: Path, typed: Training) -> None:
    """Have RUN/terms.json say what the settings of a run that is trained, `typed` now, do."""
    terms = _terms_of(checkpoint, 0, typed).permitted("train", typed.licence.i_have_permission)
    _keep_of_run(_run_at(checkpoint), terms, _terms_of(checkpoint, 0))


def _keep_of_run(run: Path | None, terms: Terms, before: Terms) -> None:
    if run is not None and terms != before:
        write_json(run / TERMS, terms.plain())
        print(f"terms: {terms.line}; kept in {run / TERMS}")


def described_terms(said: Description) -> Terms:
    """The same of what a safetensors file says of its network."""
    if said.terms is not None:
        return read_terms(said.terms)
    of = Licence("what else it learnt from, which older files do not say")
    if isinstance(said, StudentDescription):
        return Terms((*_of_teacher(asdict(said.style), None, 0), of))
    return Terms((of,))


def terms_of_run(
    trained: Training, depth: int = 0, fresh: bool = False, run: Path | None = None
) -> Terms:
    """The terms of a run by its settings, and by what its pictures say now, those among them that
    its set left out since the `run` learnt from them; `fresh`: its settings are typed now."""
    stated, links = trained.licence.pictures, list[Licence]()
    try:
        if isinstance(trained, Train):
            source = data_source(trained)
            named = str(source.root) if source.on_disk else "of a loader"
            listed = terms_of_photos(named, trained, run)
            links += _of_set(named, trained, stated, "", depth, listed, fresh=fresh, run=run)
        else:
            data = getattr(trained, "data", None)
            folders = (getattr(data, key, None) for key in ("root", "a", "b"))
            links += [each for f in folders if f for each in _of_pictures(f, stated, run)]
    except DistillError:  # a set at an address that is gone
        if isinstance(trained, Train):
            links += _of_teacher(asdict(trained.style), trained.teacher, depth)
        links.append(Licence("what it learnt from, which is gone"))
    if init := getattr(trained, "init", None):
        path, name = zoo.shipped().get(init.removeprefix(ZOO)), init
        if not init.startswith(ZOO):
            path, name = home_path(init), _short(home_path(init))
        links += _of_file(path, f"init {name}", depth)
    return Terms(()).beside(*links)


def keep_terms(folder: Path, settings: PhotoSource, taught: bool = True) -> None:
    """Have the set whose own files lie in `folder` say whose terms it is under.

    What other people's terms fix stays; what its owner stated may be corrected. `taught`: a teacher
    made its targets. Raises DistillError as `check_stated`.
    """
    if isinstance(settings, Prepare):
        stated, where = settings.card.licence, settings.card.source or ""
        check_stated(settings.card, settings)
    else:
        stated, where = getattr(settings, "licence", LicenceSettings()).pictures, ""
    listed = terms_of_photos(str(folder), settings)
    if idle := listed.idle:
        print(f"{FILE}: {counted(len(idle), 'row')} of no photo in the set, such as {idle[0]!r}")
    chain = _of_set(str(folder), settings, stated, where, 0, listed, taught, fresh=True)
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
            terms = read_terms((place / TERMS).read_text(errors="replace"))
            pulled = (place / SUMS).is_file() or (place.parent / SUMS).is_file()
            return (terms.of_others if pulled else terms).chain
    for place in places:
        with suppress(DistillError):
            if made := manifest_at(place):  # from before terms were kept
                style = {"name": made.get("style")}
                return (*(_of_teacher(style, None, 0) if style["name"] else ()), UNKNOWN_PHOTOS)
    return ()


def _of_set(
    root: str,
    source: PhotoSource,
    stated: str | None,
    where: str,
    depth: int,
    listed: ListedTerms,
    taught: bool = True,
    fresh: bool = False,
    run: Path | None = None,
) -> tuple[Licence, ...]:
    """`stated` is what the user states of the photos, or of pairs of one's own, `listed` what
    terms.csv does of each photo."""
    if taught and source.teacher is None:
        return _of_pictures(root, stated or source.style.licence, run)
    now = list[Licence]()
    if taught:
        now += _of_teacher(asdict(source.style), source.teacher, depth, stated)
    now += photo_links(PHOTOS, listed.photos, listed.note)
    if source.data.kind == "demo":
        now.append(DEMO)
    if stated:
        now.append(Licence.from_text(PHOTOS, stated, where, stated=True))
    elif source.data.kind != "demo" and not (
        listed.photos and all(each.licence for each in listed.photos)
    ):
        now.append(UNKNOWN_PHOTOS)
    return Terms(kept_terms(root)).amended(now, fresh).chain


class ListedTerms(NamedTuple):
    """What terms.csv in the folders of photos says of each photo of a set, nothing without one; its
    rows that are of no photo there; when it was written, as a link notes it."""

    photos: list[PhotoTerms]
    idle: list[str]
    note: str


def terms_of_photos(root: str, source: PhotoSource, run: Path | None = None) -> ListedTerms:
    """Of the photos of a set, and those that it left out since a `run` learnt from them. Raises
    DistillError for a terms.csv that is no such table."""
    if is_address(root):
        root = str(SetMetadataStore(Address(root)).folder)
    folders: Mapping[str, Path | Address] = {}
    with suppress(DistillError):  # an address that cannot be reached
        folders = sources.photo_folders(source)
    tables = {name: read_photo_terms(folder) for name, folder in folders.items()}
    if not any(tables.values()):
        return ListedTerms([], [], "")
    keys = learnt_before(run) if run else {}
    with suppress(DistillError):  # a damaged photos.tsv
        rows = read_rows(Path(root)) or read_rows(Path(root, KEPT))
        keys |= {row.pair: literal_eval(row.key) for row in rows.values() if row.side}
    if not _has_all(keys, run):
        return ListedTerms([], [], "")
    listed, idle = list[PhotoTerms](), list[str]()
    for name, table in tables.items():
        inside = f"{name}/" if name else ""
        below = (key.removeprefix(inside) for key in keys.values() if key.startswith(inside))
        found, unused = terms_by_row(below, table)
        listed, idle = listed + found, idle + unused
    return ListedTerms(listed, idle, written_on(folders.values()))


def _has_all(pairs: Iterable[str], run: Path | None) -> bool:
    """Whether all that a run began with is among these pairs: of what is gone its earlier terms
    stay, which no table beside the others counts."""
    return run is None or {pair_of(name) for name, _ in read_sides(run / RUN_PAIRS)} <= {*pairs}


def check_stated(stated: LicenceSettings | SetCard, source: Training | PhotoSource) -> None:
    """Raises DistillError for a terms.csv that is no such table; and for one licence that allows
    commercial use, where pictures look like a collection that is for research alone and no
    terms.csv lies beside them."""
    if isinstance(stated, SetCard):
        key, licence, permitted = "card.licence", stated.licence, False
    else:
        key, licence, permitted = "licence.pictures", stated.pictures, stated.i_have_permission
    careless = not permitted and Licence.from_text("", licence or "").commercial == "yes"
    for folder in _picture_folders(source):
        if read_photo_terms(folder) or not careless:
            continue
        files = walk(folder) if folder.is_dir() else ()
        names = (file.relative_to(folder).as_posix() for file in files)
        match = next(filter(None, map(_RESEARCH.search, chain(folder.parts[-3:], names))), None)
        if match:
            raise DistillError(
                f"{key}={licence}: {folder} looks like {match[0]}, a collection for research only; "
                f"state in {folder / FILE} what is under which terms (photo,author,source,licence; "
                "* is all)" + ", or licence.i_have_permission=true" * (key == "licence.pictures")
            )


def _picture_folders(source: Training | PhotoSource) -> Iterator[Path]:
    """The folders of this machine that a set or run takes pictures from, or was labelled from."""
    data = getattr(source, "data", None)
    named = (getattr(data, key, None) for key in ("root", "a", "b"))
    folders = [home_path(each) for each in named if each and not is_address(each)]
    if (
        isinstance(source, PhotoSource)
        and source.data.kind != "demo"
        and source.teacher is not None
    ):
        folders += [f for f in sources.photo_folders(source).values() if isinstance(f, Path)]
    for folder in folders:
        yield folder
        with suppress(DistillError):
            if photos := (manifest_at(folder) or {}).get("photos"):
                yield from map(Path, photos.split(" + "))


def _of_pictures(folder: str, stated: str | None, run: Path | None = None) -> tuple[Licence, ...]:
    """What the user states of them, and terms.csv of each, beside what the set in there says."""
    name, told = f"pictures {Path(folder).name}", stated not in (None, *PLACEHOLDERS)
    inherited = Terms(kept_terms(folder)).inherited(name)
    place, listed = home_path(folder), list[PhotoTerms]()
    if rows := read_photo_terms(place):
        files = [p.relative_to(place) for p in walk(place) if p.suffix.lower() in PICTURES]
        if _has_all((pair_of(file.name) for file in files), run):
            listed, _ = terms_by_row((file.as_posix() for file in files), rows)
    links = (*inherited, *photo_links(name, listed, written_on([place])))
    unsaid = not links or any(not each.licence for each in listed)
    return (*links, Licence.from_text(name, stated or "", stated=told)) if told or unsaid else links


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
    style: Mapping[str, Any],
    node: Mapping[str, Any] | None,
    depth: int,
    stated: str | None = None,
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
    unchanged = str(node.get("_target_")).endswith(".Unchanged")
    of = STYLE if unchanged else "teacher "
    of += f"{path.name if path else name or style.get('name')}"
    links = [
        Licence.from_text(of, each["licence"], each["source"])
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
    if unchanged and typed in PLACEHOLDERS:  # licence.pictures is of style pictures too
        typed = stated or ""
    if typed not in PLACEHOLDERS and all(typed != each.text for each in links):
        links.append(Licence.from_text(of, typed, style.get("source") or "", stated=True))
    return tuple(links) or (Licence(of, source=style.get("source") or ""),)


@cache
def _published() -> list[dict[str, Any]]:
    """The shipped styles whose weights' terms are known."""
    folders = [conf_folder(), *plugins.conf_folders(ours=True)]
    files = [path for folder in folders for path in sorted((folder / "style").glob("*.yaml"))]
    styles = (yaml.safe_load(path.read_text())["style"] for path in files)
    return [each for each in styles if each["licence"] not in PLACEHOLDERS]
