"""Which files are meant and where the output of each goes: settled before any work."""

from __future__ import annotations

import glob
import os
import re
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from typing import Any, ClassVar

from tqdm import tqdm

from distill.core import nodes, plugins
from distill.core.errors import DistillError
from distill.core.files import home_path, real_path
from distill.data.decode import NONE, PICTURES, left_out
from distill.data.photos import SUFFIXES, check_local, walk

IN_NAME = {"style", "model", "run", "direction", "output"}  # of an output, without its setting
DEFAULT = "stylized"  # the folder for outputs without -o
LONGEST = 180  # bytes of a file's stem; file systems take 255, the style and .part are added


class BadFile(Exception):
    """This file of a `FileKind` cannot be used; the message is the reason."""


class NotWhole(Exception):
    """The output is written, but for what the message says."""


class FileKind:
    """Files beside pictures that distill.stylize takes: the class of `files` in a plugin.yaml.

    `noun` is what messages call one. A file of one of `suffixes` is of the kind; one of `outputs`
    keeps its suffix, every other's output gets `other`.
    """

    noun: ClassVar[str]
    suffixes: ClassVar[frozenset[str]]
    outputs: ClassVar[frozenset[str]]
    other: ClassVar[str]

    def check(self) -> None:
        """Raises DistillError where what the kind needs is not installed."""

    def stylise_file(self, job: StylizeJob, setup: Any) -> None:
        """Write the job's output whole, by an `InferenceSetup` of pictures.py.

        Raises BadFile with the reason where it is not, NotWhole where it is in part.
        """
        raise NotImplementedError


def file_kinds() -> list[FileKind]:
    """Those that plug-ins bring. Raises DistillError for one that cannot be built."""
    names = [str(name) for _, name in plugins.entries("files")]
    return [nodes.part("files", {"_target_": name}, FileKind) for name in names]


def kind_of(path: Path, kinds: Sequence[FileKind]) -> FileKind | None:
    """The kind of a file by its name; None: a picture."""
    return next((kind for kind in kinds if path.suffix.lower() in kind.suffixes), None)


@dataclass(frozen=True)
class InputFile:
    """A file and the path that it keeps below the folder for outputs."""

    path: Path
    place: Path


@dataclass(frozen=True)
class StylizeJob:
    """A file and the one to write; `kind` None: a picture."""

    source: Path
    target: Path
    kind: FileKind | None = None

    def say(self, text: str) -> None:
        """A line about the input on standard error."""
        tqdm.write(f"{str(self.source)!r}: {text}", file=sys.stderr)


def find(inputs: Sequence[str], output: str | None) -> tuple[list[InputFile], str]:
    """The files that files, folders (with all below them) and patterns name, once.

    What lies in the folder for outputs is left out where that is below a folder or a pattern's
    root. A name that fits nothing is kept: reading it says so. Raises DistillError for nothing
    named, and for a folder without any. Also how many pictures of other kinds are in the folders.
    """
    if not inputs:
        raise DistillError("no picture named: python -m distill.stylize photo.jpg; see --help")
    if null := next((typed for typed in inputs if "\0" in typed), None):
        raise DistillError(f"{null!r}: no file's name holds a null byte; type another one")
    several, kinds = sum(os.path.isdir(home_path(typed)) for typed in inputs) > 1, file_kinds()
    out = Path(os.path.abspath(home_path(output or DEFAULT)))
    files_by_path: dict[str, InputFile] = {}
    others: list[str] = []
    for typed in inputs:
        check_local(typed)
        path = home_path(typed)
        if os.path.isdir(path):
            within = real_path(path).name if several else ""
            new = _placed(_files_in(path, kinds, others), path, out, within)
        else:
            pattern = glob.has_magic(typed) and not os.path.lexists(path)
            new = _placed(*_matches(path), out) if pattern else []
            new = new or [InputFile(path, Path(path.name))]
        for each in new:
            files_by_path.setdefault(os.path.abspath(each.path), each)
    return list(files_by_path.values()), left_out(others)


def _files_in(folder: Path, kinds: Sequence[FileKind], names: list[str]) -> list[Path]:
    """What can be stylised below a folder; all `names` there are added. Raises DistillError."""
    below, suffixes = [*walk(folder)], PICTURES.union(*(kind.suffixes for kind in kinds))
    files = sorted(p for p in below if p.suffix.lower() in suffixes)
    names += [p.name for p in below]
    if not files:
        none = "".join(f", and no {kind.noun}" for kind in kinds)
        reason = f" ({reason})" if (reason := left_out(names)) else ""
        raise DistillError(f"{folder}: {NONE}{none}{reason}")
    return files


def _matches(pattern: Path) -> tuple[list[Path], Path]:
    """The files that fit a pattern, and the folder above its first wildcard."""
    root = pattern
    while glob.has_magic(str(root)):
        root = root.parent
    matches = sorted(glob.glob(str(pattern), recursive=True))
    return [Path(p) for p in matches if not os.path.isdir(p)], root


def _placed(files: Sequence[Path], root: Path, out: Path, within: str = "") -> list[InputFile]:
    """Files below `root`, without those in `out`, the folder for outputs, where that is there."""
    absolute = Path(os.path.abspath(root))
    if out != absolute and out.is_relative_to(absolute):  # it has the outputs of earlier runs
        files = [p for p in files if not Path(os.path.abspath(p)).is_relative_to(out)]
    return [InputFile(file, within / file.relative_to(root)) for file in files]


def plan(
    files: Sequence[InputFile],
    inputs: Sequence[str],
    output: str | None,
    ending: str,
    channels: int,
    swept: Sequence[str] = (),
) -> list[StylizeJob]:
    """Where each output goes: OUT/PLACE/STEM-ENDING.SUFFIX, or the one file that OUT names.

    What -m has `swept`, KEY=VALUE, is part of a name. jpg, jpeg, png and webp stay what they are,
    every other picture becomes png; where the student's output has 4 `channels` so does jpg, where
    it is grey every picture. Files of other kinds as these say. No two get one name.
    Raises DistillError where an input would be written over.
    """
    others = [word for word in swept if re.split("[.=]", word)[0] not in IN_NAME]
    for model in (Path(word[6:]) for word in swept if word.startswith("model=")):
        # Files of several folders have one name, as RUN/export/student.onnx.
        others.append(model.parents[model.parent.name == "export"].name)
    ending = "-".join([ending, *(re.sub(r"[^\w.=-]", "_", word) for word in others if word)])
    folders = any(os.path.isdir(home_path(typed)) for typed in inputs)
    alone = len(files) == 1 and not folders
    out, kinds = home_path(output or DEFAULT), file_kinds()
    kept = {1: {".png"}, 4: SUFFIXES - {".jpg", ".jpeg"}}.get(channels, SUFFIXES)
    folder = out
    if _names_a_file(output or DEFAULT, alone, files, kinds):
        if swept and not any(word.startswith("output=") for word in swept):
            raise DistillError(f"-o {output}: is one file, and -m has several; name a folder")
        source, folder = files[0].path, out.parent
        jobs = [StylizeJob(source, out, kind_of(source, kinds))]
    else:

        def output_name(place: Path) -> Path:
            return place.with_name(_name(place, kind_of(place, kinds), ending, kept))

        # a.bmp and a.tif are a-bmp and a-tif: both become png. What still gets a name that is
        # taken is numbered; not every file system tells A.jpg from a.jpg.
        times = Counter(output_name(each.place) for each in files)
        jobs, names = [], set[str]()
        for each in files:
            target, suffix = output_name(each.place), each.place.suffix
            if times[target] > 1 and target.suffix != suffix.lower():
                target = output_name(each.place.with_stem(f"{each.place.stem}-{suffix[1:]}"))
            numbered = (target.with_stem(f"{target.stem}-{number}") for number in count(2))
            target = next(p for p in chain([target], numbered) if str(p).casefold() not in names)
            names.add(str(target).casefold())
            jobs.append(StylizeJob(each.path, out / target, kind_of(each.path, kinds)))
    _check(jobs)
    nearest = next(path for path in (folder, *folder.absolute().parents) if os.path.lexists(path))
    if not nearest.is_dir():
        raise DistillError(f"{nearest}: cannot be written into, it is no folder; choose another -o")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise DistillError(f"{nearest}: cannot be written into by you; choose another -o")
    return jobs


def _names_a_file(
    output: str, alone: bool, files: Sequence[InputFile], kinds: Sequence[FileKind]
) -> bool:
    path = home_path(output)
    if path.is_dir() or output.endswith(("/", os.sep)) or not path.suffix:
        return False
    suffix = path.suffix.lower()
    if not alone:
        if suffix not in SUFFIXES.union(*(kind.outputs for kind in kinds)):
            return False
        what = "files" if any(kind_of(f.path, kinds) for f in files) else "pictures"
        raise DistillError(f"-o {output}: is one file, name a folder ({len(files)} {what} found)")
    kind = kind_of(files[0].path, kinds)
    allowed = kind.outputs if kind else SUFFIXES
    if suffix not in allowed:
        what, suffixes = kind.noun if kind else "picture", ", ".join(sorted(allowed))
        raise DistillError(f"-o {output}: a {what} is {suffixes}; a folder's name ends with /")
    return True


def _name(place: Path, kind: FileKind | None, ending: str, kept: set[str]) -> str:
    suffix = place.suffix.lower()
    if kind:
        suffix = suffix if suffix in kind.outputs else kind.other
    elif suffix not in kept:
        suffix = ".png"
    stem = place.stem
    if len(os.fsencode(stem)) > LONGEST:
        stem = os.fsencode(stem)[:LONGEST].decode(errors="ignore")
    return f"{stem}-{ending}{suffix}"


def _check(jobs: Sequence[StylizeJob]) -> None:
    inputs = {_identity(job.source) for job in jobs}
    for job in jobs:
        if job.target.is_dir():
            raise DistillError(f"{job.target}: is a folder and no file to write")
        if _identity(job.target) in inputs - {None}:
            raise DistillError(
                f"{job.target}: is itself an input and is not written over; name another place "
                "with -o OUT"
            )


def _identity(path: Path) -> tuple[int, int] | None:
    """The same for two names of one file; None where there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
