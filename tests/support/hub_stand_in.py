"""A Hub of this process: what HfApi is asked for by distill.hub, over a folder."""

from __future__ import annotations

import fnmatch
import hashlib
import inspect
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

LARGE = 10_000  # bytes from which the Hub tells a file by its own hash


def as_typed(api: HubStandIn) -> Any:
    """The stand-in, whose calls must be such as the library's own class takes them."""
    from huggingface_hub import HfApi

    class Checked:
        def __getattr__(self, name: str) -> Any:
            signature = inspect.signature(getattr(HfApi, name))

            def call(*values: Any, **named: Any) -> Any:
                signature.bind(self, *values, **named)
                return getattr(api, name)(*values, **named)

            return call

    return Checked()


class HubStandIn:
    """Keeps every commit it is given; `broken` raises at that many commits."""

    def __init__(self, folder: Path, broken: int | None = None) -> None:
        self.folder, self.broken = folder, broken
        self.commits: list[list[str]] = []
        self.made: dict[str, Any] = {}
        self.fetched: list[str] = []

    def repo_exists(self, repo: str, repo_type: str) -> bool:
        return repo in self.made

    def create_repo(self, repo: str, repo_type: str, private: bool, exist_ok: bool) -> None:
        assert exist_ok
        self.made.setdefault(repo, (repo_type, private))

    def repo_info(self, repo: str, revision: str | None, repo_type: str) -> Any:
        return SimpleNamespace(sha=f"commit-{len(self.commits)}")

    def list_repo_tree(self, repo: str, recursive: bool, revision: str, repo_type: str) -> Any:
        assert recursive
        for path in sorted(self.folder.rglob("*")):
            name = path.relative_to(self.folder).as_posix()
            if path.is_dir():
                yield SimpleNamespace(path=name, tree_id="x")
                continue
            content = path.read_bytes()
            own = SimpleNamespace(sha256=hashlib.sha256(content).hexdigest())
            blob = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
            large = len(content) >= LARGE
            yield SimpleNamespace(
                path=name, size=len(content), blob_id=blob, lfs=own if large else None
            )

    def create_commit(self, repo: str, operations: list[Any], **how: Any) -> None:
        if self.broken == len(self.commits):
            raise ConnectionError("the line\nis cut")
        self.commits.append([each.path_in_repo for each in operations])
        for each in operations:
            target = self.folder / each.path_in_repo
            if not hasattr(each, "path_or_fileobj"):  # CommitOperationDelete
                target.unlink()
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(each.path_or_fileobj, target)

    def snapshot_download(
        self, repo: str, allow_patterns: list[str], local_dir: Path, **how: Any
    ) -> None:
        for path in self.folder.rglob("*"):
            name = path.relative_to(self.folder).as_posix()
            if path.is_file() and any(fnmatch.fnmatchcase(name, p) for p in allow_patterns):
                self.fetched.append(name)
                (local_dir / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, local_dir / name)
