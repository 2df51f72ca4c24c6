"""The element <distill-lens> in the folder that distill.lens builds, for pages of one's own."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from distill.core.errors import DistillError
from distill.lens import gzipped
from distill.lens.webpage import ELEMENT

FOLDER = "embed"
MODULE = "distill-lens.js"
NAMES = {"index.js": MODULE, "worker.js": "worker.js"}  # as npm's package names them, and as here
RUNTIME = "runtime"  # where the element looks for ONNX Runtime, beside its module
# The page's own copies of the runtime's parts, which its build names by their content.
PART = re.compile(r"(ort-wasm-simd-threaded(?:\.asyncify)?)-[\w-]{8}(\.(?:mjs|wasm)(?:\.gz)?)")


def place(folder: Path, wanted: bool) -> None:
    """Make embed/ of what the built page in this folder carries for it, or take that away.

    Raises DistillError for a page that was built without the element.
    """
    built = folder / ELEMENT
    if wanted:
        parts = {path: PART.fullmatch(path.name) for path in (folder / "page").iterdir()}
        if not (built / "index.js").is_file() or not any(parts.values()):
            raise DistillError(
                "embed=true: this page was built without the element; reinstall distill from a "
                "newer wheel, or use a checkout with npm"
            )
        runtime = folder / FOLDER / RUNTIME
        shutil.copytree(built / RUNTIME, runtime)
        for path, found in parts.items():
            if found:
                shutil.copyfile(path, runtime / (found[1] + found[2]))
        for name, here in NAMES.items():
            for end in ("", gzipped.SUFFIX):
                if (built / (name + end)).is_file():
                    shutil.copyfile(built / (name + end), folder / FOLDER / (here + end))
    shutil.rmtree(built, ignore_errors=True)


def summary(folder: Path) -> str:
    """How a page takes it, in a line."""
    return f'embed: <script type="module" src="{folder.name}/{FOLDER}/{MODULE}"></script>'
