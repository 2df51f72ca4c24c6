"""Files to a remote and from one: a folder, or a repository on the Hugging Face Hub.

Both say of each file what its content is, by a hash: what is there already stays, and what differs
is never written over by mistake. Killed at any time, it resumes when run again: files travel in
batches, and those that say that all is there come last."""

import filecmp
import glob
import os
import re
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal

from distill.core.errors import DistillError, counted, needed, reason_of
from distill.core.files import atomic_write, git_blob_id, home_path, scratch_folder, sha256
from distill.core.progress import track
from distill.data.manifest import SUMS

Kind = Literal["model", "dataset"]
REPOSITORY = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*", re.ASCII)
FOLDER = re.compile(r"(~|\.{0,2}/|\.{1,2}$)")  # how the name of a folder begins


@dataclass(frozen=True)
class RemoteFile:
    """A file of a remote: its bytes, and whether one on this machine has the same content."""

    bytes: int
    fits: Callable[[Path], bool]


class FolderRemote:
    """A folder, on a disk or a share: files by their paths below it, with / between folders."""

    def __init__(self, name: str) -> None:
        self.name, self.root = name, home_path(name)

    def files(self, names: Collection[str]) -> dict[str, RemoteFile]:
        """Those of these files that are there."""
        there = {name: self.root / name for name in names if (self.root / name).is_file()}
        return {
            name: RemoteFile(path.stat().st_size, partial(filecmp.cmp, path, shallow=False))
            for name, path in there.items()
        }

    def put(self, files: Mapping[str, Path], message: str) -> None:
        """Write files, in the place of others of the same path."""
        for name, path in files.items():
            with atomic_write(self.root / name) as temporary:
                shutil.copyfile(path, temporary)

    def remove(self, names: Collection[str]) -> None:
        for name in names:
            (self.root / name).unlink(missing_ok=True)

    def fetch(self, paths: Collection[str], into: Path) -> None:
        """Copy files to the same paths below `into`."""
        for name in paths:
            (into / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(self.root / name, into / name)


class HubRemote:
    """The same of a repository on the Hub, by its library; a batch of files is one commit.

    `private` is that of a repository which the first push makes. What is fetched comes from one
    commit, that of `revision` when it was first asked.
    """

    def __init__(self, name: str, kind: Kind, revision: str | None, private: bool) -> None:
        with needed("the Hub needs huggingface_hub", "pip install 'distill[hub]'"):
            from huggingface_hub import HfApi
        self.name, self.kind, self.revision, self.private = name, kind, revision, private
        self.api: Any = HfApi()

    def files(self, names: Collection[str]) -> dict[str, RemoteFile]:
        def same(there: Any, path: Path) -> bool:  # large files have a hash of their own
            large = getattr(there, "lfs", None)
            return sha256(path) == large.sha256 if large else git_blob_id(path) == there.blob_id

        if not self._ask(self.api.repo_exists):
            return {}
        with self._problems():  # it asks for more while it is walked through
            tree = self._ask(self.api.list_repo_tree, recursive=True, revision=self._commit)
            there = {each.path: each for each in tree if hasattr(each, "blob_id")}
        return {n: RemoteFile(there[n].size, partial(same, there[n])) for n in there.keys() & names}

    def put(self, files: Mapping[str, Path], message: str) -> None:
        from huggingface_hub import CommitOperationAdd

        self._ask(self.api.create_repo, private=self.private, exist_ok=True)
        self._write([CommitOperationAdd(name, str(path)) for name, path in files.items()], message)

    def remove(self, names: Collection[str]) -> None:
        """From what is shown; the repository's history keeps them."""
        from huggingface_hub import CommitOperationDelete

        self._write([CommitOperationDelete(name) for name in names], "left out")

    def _write(self, operations: list[Any], message: str) -> None:
        how = {"operations": operations, "commit_message": message}
        self._ask(self.api.create_commit, revision=self.revision, **how)

    def fetch(self, paths: Collection[str], into: Path) -> None:
        how = {"allow_patterns": [*map(glob.escape, paths)], "local_dir": into}
        self._ask(self.api.snapshot_download, revision=self._commit, **how)

    @cached_property
    def _commit(self) -> str:
        return str(self._ask(self.api.repo_info, revision=self.revision).sha)

    def _ask(self, method: Callable[..., Any], **how: Any) -> Any:
        with self._problems():
            return method(self.name, repo_type=self.kind, **how)

    @contextmanager
    def _problems(self) -> Iterator[None]:
        """The library and the one below it raise classes of their own, without a common base."""
        try:
            yield
        except DistillError:
            raise
        except Exception as error:
            raise DistillError(
                f"repo={self.name}: {type(error).__name__}: {reason_of(error, 200)}; log in with: "
                "hf auth login"
            ) from error


Remote = FolderRemote | HubRemote


def remote_of(repo: str, kind: Kind, revision: str | None = None, private: bool = True) -> Remote:
    """USER/NAME is on the Hub, a path that begins with /, ./, ../ or ~ a folder.

    Raises DistillError for another name, and without what it needs.
    """
    if FOLDER.match(repo):
        return FolderRemote(repo)
    if not REPOSITORY.fullmatch(repo):
        raise DistillError(f"repo={repo}: USER/NAME on the Hub, or a folder: ./DIR, /DIR or ~/DIR")
    return HubRemote(repo, kind, revision, private)


# Of a batch, which is one commit on the Hub, and what a killed command may have to send again.
BATCH, BATCH_BYTES = 500, 10**9  # files; a larger file is one by itself
_SUM = re.compile(r"([0-9a-f]{64})  ([^\0\r\n\\]+)")


def sums_of(files: Mapping[str, Path]) -> str:
    """The text of sha256sums.txt, as `sha256sum -c` reads it."""
    return "".join(f"{sha256(files[name])}  {name}\n" for name in sorted(files))


def read_sums(text: str, where: str) -> dict[str, str]:
    """SHA-256 by path. Raises DistillError for another file, and for paths that lead elsewhere."""
    sums = {}
    for number, line in enumerate(text.splitlines(), start=1):
        row = _SUM.fullmatch(line)
        # No part is empty, as a path from / begins with one, nor .., nor hidden.
        if row is None or not all(p and not p.startswith(".") for p in row[2].split("/")):
            raise DistillError(f"{where}: {SUMS}: damaged in line {number}; push the set again")
        sums[row[2]] = row[1]
    return sums


def fetch_one(name: str, there: RemoteFile, place: Remote, into: Path) -> Path:
    """A file by itself, in the folder `into`. Raises DistillError where it comes damaged."""
    place.fetch([name], into)
    if not there.fits(into / name):
        raise DistillError(f"repo={place.name}: {name} was damaged in transfer; pull again")
    return into / name


def push(files: Mapping[str, Path], place: Remote, last: Sequence[str], replace: bool) -> int:
    """Write what is not there yet, those named `last` after all others; gives how many.

    Raises DistillError where files of other content are there, unless they are to be replaced.
    """
    there = place.files(files)
    sizes = {name: path.stat().st_size for name, path in files.items()}
    for name in track([*filter(there.get, files)], len(there), "file", "comparing"):
        if there[name].fits(files[name]):
            del sizes[name], there[name]
    if there and not replace:
        raise DistillError(
            f"repo={place.name}: {_files([*filter(there.get, files)])} there with other content; "
            "replace=true replaces them, another repo= keeps them"
        )
    for names in track(_batches(sizes, last), len(sizes), "file", "pushing", len):
        message = counted(len(names), "file") if len(names) > 1 else names[0]
        place.put({name: files[name] for name in names}, message)
    return len(sizes)


def pull(
    expected: Mapping[str, str], place: Remote, root: Path, last: Sequence[str], replace: bool
) -> int:
    """Fetch what is not at `root` yet, checked by its SHA-256; gives how many files.

    Raises DistillError where a file of other content is there, unless those are to be replaced,
    and where one comes.
    """
    new = [name for name, digest in expected.items() if not _is(root / name, digest)]
    different = [name for name in new if (root / name).exists()]
    if different and not replace:
        raise DistillError(
            f"{root}: {_files(different)} here with other content; replace=true replaces them, "
            "another folder keeps them"
        )
    there = place.files(new) if new else {}
    if gone := [name for name in new if name not in there]:
        raise DistillError(f"repo={place.name}: {_files(gone)} missing there; push the set again")
    for name in {*last}.intersection(different):  # killed on the way, what is there is no set
        (root / name).unlink()
    sizes = {name: there[name].bytes for name in new}
    for names in track(_batches(sizes, last), len(new), "file", "pulling", len):
        fetch(names, expected, place, root)
    return len(new)


def fetch(names: Collection[str], expected: Mapping[str, str], place: Remote, root: Path) -> None:
    """A batch, by way of a folder beside `root`: none is there under its name until checked."""
    with scratch_folder(root.with_name(f"{root.name}.pulled")) as scratch:
        place.fetch(names, scratch)
        for name in names:
            if not _is(scratch / name, expected[name]):
                raise DistillError(
                    f"repo={place.name}: {name}: not what {SUMS} says; push the set again"
                )
        for name in names:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            os.replace(scratch / name, root / name)


def _is(path: Path, digest: str) -> bool:
    return path.is_file() and sha256(path) == digest


def _batches(sizes: Mapping[str, int], last: Sequence[str]) -> Iterator[Sequence[str]]:
    """These files, of so many bytes each; those named last by themselves, in their order, when all
    others are there."""
    batch, size = list[str](), 0
    for name, more in sizes.items():
        if name in last:
            continue
        if batch and (len(batch) == BATCH or size + more > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(name)
        size += more
    if batch:
        yield batch
    if closing := [name for name in last if name in sizes]:
        yield closing


def _files(names: Sequence[str]) -> str:
    more = f" and {len(names) - 1:,} more are" if len(names) > 1 else " is"
    return f"{names[0]}{more}"
