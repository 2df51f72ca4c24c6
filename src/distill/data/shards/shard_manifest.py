"""What a set of shards says of itself: dataset.json, written last, and the files of the set that
they were made of."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePath
from typing import Any

from pydantic import TypeAdapter

from distill.core.errors import DistillError
from distill.core.files import cache_folder, write_whole
from distill.data.address import Address
from distill.data.manifest import DRAWINGS, MANIFEST, TEACHER, TERMS
from distill.data.photo_table import DROPPED, PHOTOS, SKIPPED
from distill.data.photos import Side
from distill.data.shards.pair_record import CodecName

# Of the set that the shards were made of, kept as they are in ROOT/set/, so that it can be whole
# again: its manifest, what became of each photo, its teacher.
KEPT = "set"
SIDECARS = (MANIFEST, PHOTOS, DROPPED, SKIPPED, TEACHER, DRAWINGS, TERMS)


@dataclass(frozen=True)
class ShardManifest:
    """What decides every byte of the shards: `layout` names the folders of a pair's two pictures.

    `recipe` is the manifest of the set that they were made of, empty of pairs of one's own.
    `counts` are the pairs of each side; None while the shards are being made.
    """

    codec: CodecName
    pairs_a_shard: int
    layout: tuple[str, str]
    recipe: Mapping[str, Any] = field(default_factory=dict)
    counts: Mapping[Side, int] | None = None

    @property
    def made_by_teacher(self) -> bool:
        return "teacher" in self.recipe


def write_shard_manifest(
    root: Address, manifest: ShardManifest, counts: Mapping[Side, int] | None = None
) -> None:
    content = {"format": 1, "kind": "shards", **asdict(manifest), "counts": counts}
    root.write(MANIFEST, (json.dumps(content, indent=2) + "\n").encode())


def shard_manifest_at(root: Address) -> ShardManifest | None:
    """The manifest of the shards at `root`; None where none are.

    Raises DistillError for a damaged file.
    """
    try:
        content = json.loads(root.read(MANIFEST))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (ValueError, RecursionError):
        content = {"kind": "shards"}
    if not isinstance(content, dict) or content.get("kind") != "shards":
        return None
    values = {key: value for key, value in content.items() if key not in ("format", "kind")}
    try:
        manifest = TypeAdapter(ShardManifest).validate_python(values)
        for name in manifest.layout:  # pictures are unpacked below such names
            if not PurePath(name).name == name not in ("", "..") or set("\\\0") & set(name):
                raise ValueError
        return manifest
    except ValueError:  # pydantic's own too
        raise DistillError(
            f"{root}/{MANIFEST}: damaged; delete it and run the command that made the set again"
        ) from None


def finished_shards(root: Address) -> ShardManifest:
    """The same of a finished set. Raises DistillError where there is none, or an unfinished one."""
    manifest = shard_manifest_at(root)
    if manifest is None:
        raise DistillError(
            f"{root}: no shards there; python -m distill.shards data.root=SET makes them of a set "
            "of pairs, and says where"
        )
    if manifest.counts is None:
        raise DistillError(
            f"{root}: shards that are not finished; run the command that made them again to resume"
        )
    return manifest


def write_sidecars(root: Address, folder: Path) -> None:
    """Have ROOT/set hold the set's own files as they are in `folder`."""
    for name in SIDECARS:
        if (folder / name).is_file():
            root.write(f"{KEPT}/{name}", (folder / name).read_bytes())
        else:
            root.remove(f"{KEPT}/{name}")


class SetMetadataStore:
    """The set's own files in a local folder: ROOT/set, or a copy of it in the cache where ROOT is
    an object store's address."""

    def __init__(self, root: Address) -> None:
        self.root = root
        if root.local is not None:
            self.folder: Path = root.local / KEPT
            return
        digest = hashlib.sha256(root.text.encode()).hexdigest()[:12]
        self.folder = cache_folder() / "labelling" / f"{root.name}-{digest}"
        for name in SIDECARS:
            if root.size(f"{KEPT}/{name}") is not None:
                write_whole(self.folder / name, root.read(f"{KEPT}/{name}"))
            else:
                (self.folder / name).unlink(missing_ok=True)

    def publish(self) -> None:
        """Have the address hold what the folder does."""
        if self.root.local is None:
            write_sidecars(self.root, self.folder)
