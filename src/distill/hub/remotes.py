"""Remotes to push to and pull from: a folder, or a repository on the Hugging Face Hub.

Both say of each file what its content is, by a hash, so that nothing is sent or fetched twice and
nothing is written over by mistake.
"""

from __future__ import annotations

import glob
import re
import shutil
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from distill.core.errors import DistillError, needed, reason_of
from distill.core.files import atomic_write, git_blob_id, home_path, sha256

Kind = Literal["model", "dataset"]
REPOSITORY = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*", re.ASCII)
FOLDER = re.compile(r"(~|\.{0,2}/|\.{1,2}$)")  # how the name of a folder begins


@dataclass(frozen=True)
class ContentHash:
    """Of a file's content: `how` it was made, and in hexadecimal."""

    how: Literal["sha256", "git"]
    value: str

    def fits(self, path: Path) -> bool:
        return (sha256(path) if self.how == "sha256" else git_blob_id(path)) == self.value


class FolderRemote:
    """A folder, on a disk or a share: files by their paths below it, with / between folders."""

    def __init__(self, name: str) -> None:
        self.name, self.root = name, home_path(name)

    def sizes(self) -> dict[str, int]:
        """Every file that is there, and its bytes."""
        found = {}
        for path in self.root.rglob("*"):
            name = path.relative_to(self.root)
            if path.is_file() and not any(part.startswith(".") for part in name.parts):
                found[name.as_posix()] = path.stat().st_size
        return found

    def hashes(self, names: Collection[str]) -> dict[str, ContentHash]:
        """Of those of these files that are there."""
        there = ((name, self.root / name) for name in names)
        return {name: ContentHash("sha256", sha256(path)) for name, path in there if path.is_file()}

    def put(self, files: Mapping[str, Path], message: str) -> None:
        """Write files, in the place of others of the same path."""
        for name, path in files.items():
            with atomic_write(self.root / name) as temporary:
                shutil.copyfile(path, temporary)

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
        self._commit: str | None = None

    def sizes(self) -> dict[str, int]:
        return {name: each.size for name, each in self._tree().items()}

    def hashes(self, names: Collection[str]) -> dict[str, ContentHash]:
        found = {}
        for name in (tree := self._tree()).keys() & names:  # large files have a hash of their own
            if large := getattr(tree[name], "lfs", None):
                found[name] = ContentHash("sha256", large.sha256)
            else:
                found[name] = ContentHash("git", tree[name].blob_id)
        return found

    def put(self, files: Mapping[str, Path], message: str) -> None:
        from huggingface_hub import CommitOperationAdd

        with self._problems():
            self.api.create_repo(
                self.name, repo_type=self.kind, private=self.private, exist_ok=True
            )
            adding = [CommitOperationAdd(name, str(path)) for name, path in files.items()]
            self.api.create_commit(
                self.name,
                operations=adding,
                commit_message=message,
                repo_type=self.kind,
                revision=self.revision,
            )

    def fetch(self, paths: Collection[str], into: Path) -> None:
        with self._problems():
            self.api.snapshot_download(
                self.name,
                repo_type=self.kind,
                revision=self._at(),
                allow_patterns=[glob.escape(path) for path in paths],
                local_dir=into,
            )

    def _tree(self) -> dict[str, Any]:
        """What the Hub says of every file; nothing where there is no such repository."""
        with self._problems():
            if not self.api.repo_exists(self.name, repo_type=self.kind):
                return {}
            tree = self.api.list_repo_tree(
                self.name, recursive=True, revision=self._at(), repo_type=self.kind
            )
            return {each.path: each for each in tree if hasattr(each, "blob_id")}

    def _at(self) -> str:
        if self._commit is None:
            found = self.api.repo_info(self.name, revision=self.revision, repo_type=self.kind)
            self._commit = str(found.sha)
        return self._commit

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
