"""Whose terms a run is under: those of its teacher, pictures and `init`, and of what these were
made from.

ROOT/terms.json    of a set of pairs: the chain of its photos and targets, see core.licence_terms
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import yaml

from distill.config.groups import conf_folder
from distill.config.settings.base import LicenceSettings
from distill.config.settings.networks import Description, StudentDescription
from distill.config.settings.training import PhotoSource, Prepare, SetCard, Train, Training
from distill.core import plugins
from distill.core.errors import DistillError, counted
from distill.core.files import git_blob_id, home_path, sha256, write_json
from distill.core.licence_terms import (
    NOTE,
    PLACEHOLDERS,
    STYLE,
    UNSAID,
    Licence,
    Terms,
    pictures_of,
    read_terms,
)
from distill.core.onnx_files import noted, read_graph
from distill.core.weights import WeightsFile, find_or_none
from distill.data import photo_folders
from distill.data.address import Address, is_address
from distill.data.decode import PICTURES
from distill.data.kinds.registry import data_source, seen_from_here
from distill.data.manifest import SUMS, TERMS, manifest_at, metadata_folder
from distill.data.photo_table import names_learnt, pair_of, read_rows
from distill.data.photo_terms import (
    FILE,
    PhotoTerms,
    photo_links,
    read_photo_terms,
    terms_by_row,
    written_on,
)
from distill.data.photos import walk
from distill.data.takedown import learnt_before, with_takedown
from distill.models import zoo
from distill.models.checkpoint import saved_values
from distill.models.network_file import is_network_file, read_description
from distill.models.teachers.trained_run import checkpoint_at

PHOTOS = "photos"
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


def _terms_of(path: Path, depth: int = 0, typed: Training | None = None) -> Terms:
    """The same, by the settings `typed` now, where a run has any, in the place of its own."""
    if path.suffix.lower() == ".onnx":
        stored = noted(read_graph(path), NOTE)
        return Terms((Licence(path.name),)) if stored is None else read_terms(stored)
    if is_network_file(path):
        return described_terms(read_description(path))
    saved, trained = _saved(path)
    if "terms" not in saved:
        return terms_of_run(typed or trained, depth)
    terms = read_terms(saved["terms"])
    if (run := _run_at(path)) is None:
        return terms
    with suppress(OSError):
        terms = read_terms((run / TERMS).read_text(errors="replace"))
    of, fresh = {pictures_of(each.of) for each in terms.chain}, typed is not None
    now = terms_of_run(typed or seen_from_here(trained, path), depth, fresh, run).chain
    return terms.amended((each for each in now if pictures_of(each.of) in of), fresh)


def _saved(checkpoint: Path) -> tuple[dict[str, Any], Training]:
    """What a checkpoint holds, and its settings. Raises DistillError."""
    try:
        return saved_values(checkpoint)
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
    run, terms = _run_at(checkpoint), _terms_of(checkpoint)
    if run is not None:
        check_stated(licence, seen_from_here(_saved(checkpoint)[1], checkpoint))
    if licence.pictures is not None:
        stated = (terms if run else terms.of_others).restated(licence.pictures)
        terms = _kept_in(run, stated, terms)
    return with_takedown(terms, checkpoint)


def keep_terms_of_run(checkpoint: Path, typed: Training) -> None:
    """Have RUN/terms.json say what the settings of a run that is trained, `typed` now, do."""
    terms = _terms_of(checkpoint, 0, typed).permitted("train", typed.licence.i_have_permission)
    _kept_in(_run_at(checkpoint), terms, _terms_of(checkpoint))


def _kept_in(run: Path | None, terms: Terms, before: Terms) -> Terms:
    if run is not None and terms != before:
        write_json(run / TERMS, terms.plain())
        print(f"terms: {terms.line}; kept in {run / TERMS}")
    return terms


def described_terms(about: Description) -> Terms:
    """The same of what a safetensors file says of its network."""
    if about.terms is not None:
        return read_terms(about.terms)
    style = asdict(about.style) if isinstance(about, StudentDescription) else None
    teacher = _of_teacher(style, None, 0) if style else ()
    return Terms((*teacher, Licence("what else it learnt from, which older files do not say")))


def terms_of_run(
    trained: Training, depth: int = 0, fresh: bool = False, run: Path | None = None
) -> Terms:
    """The terms of a run by its settings, and by what its pictures say now, those among them that
    its set left out since the `run` learnt from them; `fresh`: its settings are typed now."""
    stated, links = trained.licence.pictures, list[Licence]()
    try:
        if isinstance(trained, Train):
            source = data_source(trained)
            root = str(source.root) if source.on_disk else "of a loader"
            if trained.teacher is None:
                links += _of_pictures(root, stated or trained.style.licence, run)
            else:
                teacher = _of_teacher(asdict(trained.style), trained.teacher, depth, stated)
                photos = terms_of_photos(root, photo_folders.of_set(trained, root), run)
                now = (*teacher, *photos.links(PHOTOS, stated))
                links += Terms(kept_terms(root)).amended(now, fresh).chain
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
    photos = terms_of_photos(str(folder), settings)
    if idle := photos.idle:
        print(f"{FILE}: {counted(len(idle), 'row')} of no photo in the set, such as {idle[0]!r}")
    teacher = _of_teacher(asdict(settings.style), settings.teacher, 0, stated) if taught else ()
    now = (*teacher, *photos.links(PHOTOS, stated, where))
    # Of a set without the file `now` says all: the usual "not said" would stay beside the demo's.
    kept = kept_terms(folder) if (folder / TERMS).is_file() else ()
    chain = Terms(kept).amended(now, fresh=True).chain
    if chain != kept:
        with suppress(OSError):  # a finished set may lie where nothing can be written
            write_json(folder / TERMS, Terms(chain).plain())


def kept_terms(folder: Path | str) -> tuple[Licence, ...]:
    """What the set says that a folder or address is, or lies in; empty where none of ours is."""
    if is_address(str(folder)):
        places = [metadata_folder(str(folder))]
    else:
        path = home_path(folder).absolute()
        places = [metadata_folder(each) for each in (path, *path.parents[:2])]
    for place in places:
        with suppress(OSError):
            terms = read_terms((place / TERMS).read_text(errors="replace"))
            pulled = (place / SUMS).is_file() or (place.parent / SUMS).is_file()
            return (terms.of_others if pulled else terms).chain
    for place in places:
        with suppress(DistillError):
            if made := manifest_at(place):  # from before terms were kept
                style = {"name": made.get("style")}
                return (*(_of_teacher(style, None, 0) if style["name"] else ()), Licence(PHOTOS))
    return ()


@dataclass(frozen=True)
class ListedTerms:
    """What terms.csv in the folders of photos says of each of them, nothing without one; its rows
    that are of no photo there; when it was written, as a link notes it; and what is `known` of
    these photos besides, as of the demo's."""

    photos: Sequence[PhotoTerms] = ()
    idle: Sequence[str] = ()
    note: str = ""
    known: Sequence[Licence] = ()

    def links(self, of: str, stated: str | None, where: str = "") -> list[Licence]:
        """Of each author, source and licence, and of all of them what the user states, who names
        `where` they are from; that it is unknown where nothing says it of every photo."""
        links = [*photo_links(of, self.photos, self.note), *self.known]
        listed = self.photos and all(each.licence for each in self.photos)
        if stated or not (listed or self.known):
            where = where if stated else ""
            links.append(Licence.from_text(of, stated or "", where, stated=bool(stated)))
        return links


def terms_of_photos(root: str, source: PhotoSource, run: Path | None = None) -> ListedTerms:
    """Of the photos of a set, and those that it left out since a `run` learnt from them. Raises
    DistillError for a terms.csv that is no such table."""

    def photos() -> Iterator[tuple[str, str]]:
        keys = learnt_before(run) if run else {}
        with suppress(DistillError):  # a damaged photos.tsv
            rows = read_rows(metadata_folder(root)).values()
            keys |= {row.pair: row.photo for row in rows if row.side}
        yield from keys.items()

    if source.data.kind == "demo":
        return ListedTerms(known=[DEMO])
    folders: Mapping[str, Path | Address] = {}
    with suppress(DistillError):  # an address that cannot be reached
        folders = photo_folders.folders_by_name(source)
    return _listed(folders, photos(), run)


def _listed(
    folders: Mapping[str, Path | Address], photos: Iterable[tuple[str, str]], run: Path | None
) -> ListedTerms:
    """Of `photos`, pair name and key each, in folders by the names with which keys begin. Nothing
    where some are gone that the `run` learnt from: their earlier terms stay."""
    tables = {name: read_photo_terms(folder) for name, folder in folders.items()}
    there = [*photos] if any(tables.values()) else []
    learnt = set(map(pair_of, names_learnt(run))) if run else set()
    if not there or not learnt <= {pair for pair, _ in there}:
        return ListedTerms()
    listed, idle = list[PhotoTerms](), list[str]()
    for name, table in tables.items():
        inside = f"{name}/" if name else ""
        below = (key.removeprefix(inside) for _, key in there if key.startswith(inside))
        found, unused = terms_by_row(below, table)
        listed, idle = listed + found, idle + unused
    return ListedTerms(listed, idle, written_on(folders.values()))


def check_stated(stated: LicenceSettings | SetCard, source: Training | PhotoSource) -> None:
    """Raises DistillError for a terms.csv that is no such table; and for one licence that allows
    commercial use, where pictures look like a collection that is for research alone and no
    terms.csv lies beside them.

    Looked at are the folders of this machine that a set or run takes pictures from, or was labelled
    from."""
    if isinstance(stated, SetCard):
        key, licence, permitted, more = "card.licence", stated.licence, False, ""
    else:
        key, licence, permitted = "licence.pictures", stated.pictures, stated.i_have_permission
        more = ", or licence.i_have_permission=true"
    named = (getattr(getattr(source, "data", None), name, None) for name in ("root", "a", "b"))
    folders = [home_path(each) for each in named if each and not is_address(each)]
    if isinstance(source, PhotoSource) and source.teacher and source.data.kind != "demo":
        labelled = photo_folders.folders_by_name(source).values()
        folders += [each for each in labelled if isinstance(each, Path)]
    for folder in [*folders]:
        with suppress(DistillError):
            photos = (manifest_at(folder) or {}).get("photos")
            folders += map(Path, photos.split(" + ") if photos else ())
    careless = not permitted and Licence.from_text("", licence or "").commercial == "yes"
    for folder in folders:
        if read_photo_terms(folder) or not careless:
            continue
        files = walk(folder) if folder.is_dir() else ()
        names = (file.relative_to(folder).as_posix() for file in files)
        parts = (*folder.parts[-3:], *folder.resolve().parts[-3:])  # `.`, or a link
        match = next(filter(None, map(_RESEARCH.search, chain(parts, names))), None)
        if match:
            raise DistillError(
                f"{key}={licence}: {folder} looks like {match[0]}, a collection for research only; "
                f"state in {folder / FILE} what is under which terms (photo,author,source,licence; "
                f"* is all){more}"
            )


def _of_pictures(folder: str, stated: str | None, run: Path | None = None) -> tuple[Licence, ...]:
    """What the user states of them, and terms.csv of each, beside what the set in there says."""
    name, place = f"pictures {Path(folder).name}", home_path(folder)
    stated = None if stated in PLACEHOLDERS else stated
    files = (p.relative_to(place) for p in walk(place) if p.suffix.lower() in PICTURES)
    listed = _listed({"": place}, ((pair_of(f.name), f.as_posix()) for f in files), run)
    kept = Terms(kept_terms(folder)).inherited(name)
    if kept and not (listed.photos or stated):
        return kept
    return (*kept, *listed.links(name, stated))


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
    style: Mapping[str, Any], node: Mapping[str, Any] | None, depth: int, stated: str | None = None
) -> tuple[Licence, ...]:
    """By the terms of the published weights that they are, whatever was typed; by those of the run,
    file or pictures that the teacher is; and by what was typed."""
    node, own, name = node or {}, style.get("weights"), style.get("file")
    known = style.get("sha256"), style.get("git_blob")
    path = (
        home_path(own) if own else find_or_none(WeightsFile(name, None, *known)) if name else None
    )
    hashes = {*known} - {None}
    with suppress(OSError):  # published weights are known whatever they are called now
        hashes |= {sha256(path), git_blob_id(path)} if path and path.is_file() else set()
    unchanged = str(node.get("_target_")).endswith(".Unchanged")
    of = f"{STYLE if unchanged else 'teacher '}{path.name if path else name or style.get('name')}"
    # A style without a file is the code at its source: another teacher under its name is not it.
    target, published = str(node.get("_target_") or ""), _published()
    called_so = [each for each in published if each["name"] == style.get("name")]
    codes = [each for each in called_so if target and not each["file"]]
    foreign = [each for each in codes if not target.startswith(each["source"])]
    links = [
        Licence.from_text(of, each["licence"], each["source"])
        for each in published
        if (each in called_so and each not in foreign)
        or (each["file"] and each["file"] in (name, path and path.name))
        or {each["sha256"], each["git_blob"]} & hashes
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
    typed, source = style.get("licence") or "", style.get("source") or ""
    if any(typed == each["licence"] for each in foreign):
        typed = source = ""
    if unchanged and typed in PLACEHOLDERS:  # licence.pictures is of style pictures too
        typed = stated or ""
    if typed not in PLACEHOLDERS and all(typed != each.text for each in links):
        links.append(Licence.from_text(of, typed, source, stated=True))
    return tuple(links) or (Licence(of, source=source),)


@cache
def _published() -> list[dict[str, Any]]:
    """The shipped styles whose weights' terms are known."""
    folders = [conf_folder(), *plugins.conf_folders(ours=True)]
    files = [path for folder in folders for path in sorted((folder / "style").glob("*.yaml"))]
    styles = (yaml.safe_load(path.read_text())["style"] for path in files)
    return [each for each in styles if each["licence"] not in PLACEHOLDERS]
