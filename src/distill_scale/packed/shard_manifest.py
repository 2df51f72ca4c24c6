"""What a set of shards says of itself: dataset.json, written last."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import PurePath
from typing import Any

from pydantic import TypeAdapter

from distill.core.errors import DistillError
from distill.data.address import Address
from distill.data.manifest import MANIFEST
from distill.data.photos import Side
from distill_scale.packed.pair_record import CodecName
from distill_scale.packed.shard_index import pyarrow_parquet


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

    def write(self, root: Address) -> None:
        content = {"format": 1, "kind": "shards", **asdict(self)}
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


def manifest_to_continue(root: Address, key: str) -> ShardManifest | None:
    """The same of shards that are to be made at `root`, which the setting `key` names.

    Raises DistillError where pyarrow is missing, and where a set of another kind lies there.
    """
    pyarrow_parquet()
    there = shard_manifest_at(root)
    if there is None and root.size(MANIFEST) is not None:
        raise DistillError(
            f"{root}: holds a set of another kind; name another place with {key}=ADDRESS"
        )
    return there


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
