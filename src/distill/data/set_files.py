"""The files of a set that are no pairs: its manifest, what became of each photo, its teacher.

They lie beside a folder's pairs, and in ROOT/set/ of a set of another form, as they are in the
folder that it was made of or can be made into.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from distill.core.files import cache_folder, write_whole
from distill.data.address import Address
from distill.data.manifest import DRAWINGS, MANIFEST, TEACHER, TERMS
from distill.data.photo_table import DROPPED, PHOTOS, SKIPPED

KEPT = "set"
SIDECARS = (MANIFEST, PHOTOS, DROPPED, SKIPPED, TEACHER, DRAWINGS, TERMS)


def metadata_folder(root: Path) -> Path:
    """Where the set's own files lie: in ROOT/set where there is one, else in ROOT."""
    return kept if (kept := root / KEPT).is_dir() else root


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
