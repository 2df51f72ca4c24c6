"""The metadata files of a set of shards that is labelled, kept in a local folder."""

from __future__ import annotations

import hashlib
from pathlib import Path

from distill.core.files import cache_folder, write_whole
from distill.data.shards.address import Address
from distill.data.shards.shard_manifest import KEPT, SIDECARS


class SetMetadataStore:
    """ROOT/set, or a copy of it in the cache where ROOT is an object store's address."""

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
        if self.root.local is not None:
            return
        for name in SIDECARS:
            if (self.folder / name).is_file():
                self.root.write(f"{KEPT}/{name}", (self.folder / name).read_bytes())
            else:
                self.root.remove(f"{KEPT}/{name}")
