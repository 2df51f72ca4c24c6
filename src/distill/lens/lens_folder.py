"""The folder that distill.lens serves: the built page, its students, the manifest of them."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shutil
from collections.abc import Iterable, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from PIL import Image

from distill.config.settings.commands import Lens
from distill.core import onnx_files
from distill.core.arrays import over_white, to_array, to_picture
from distill.core.errors import DistillError
from distill.core.files import home_path, real_path, room_in, scratch_folder
from distill.lens import embedded
from distill.lens.page_students import SIDE, PageStudent
from distill.stylize.onnx_student import OnnxStudent

MANIFEST = "manifest.json"
# Stands for the camera where there is none, and is on the students' buttons: the head and shoulders
# of the astronaut Eileen Collins, 400 × 400 (NASA, public domain), from scikit-image's photograph.
EXAMPLE = Path(__file__).with_name("example.jpg")
FACE = (56, 0, 312, 256)  # left, top, right, bottom
THUMBNAIL = 160  # pixels
JPEG = {"quality": 88, "optimize": True}
ELSEWHERE = "free some space, or name a folder on another disk with output=DIR"


def build(page: Path, students: Sequence[PageStudent], settings: Lens) -> Path:
    """The folder, made beside an earlier one, which it then replaces whole.

    Raises DistillError for a folder of something else, and for a full disk.
    """
    target = check_replaceable(settings)
    with room_in(target, ELSEWHERE):
        _replace(target, page, students, settings)
    return target


def _replace(target: Path, page: Path, students: Sequence[PageStudent], settings: Lens) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with scratch_folder(target) as scratch:
        fresh = scratch / "fresh"
        shutil.copytree(page, fresh)
        embedded.place(fresh, settings.embed)
        (fresh / "students").mkdir()
        shutil.copyfile(EXAMPLE, fresh / EXAMPLE.name)
        stems = _file_stems(student.name for student in students)
        pairs = zip(students, stems, strict=True)
        manifest: dict[str, Any] = {
            "students": [_write(student, stem, fresh) for student, stem in pairs],
            "example": EXAMPLE.name,
            "rate": settings.rate,
            "line": settings.line,
        }
        if settings.embed:
            _name_plainly(manifest["students"], stems, fresh)
        (fresh / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n")
        if target.exists():
            target.rename(scratch / "old")
        fresh.rename(target)


def _name_plainly(entries: list[dict[str, Any]], stems: list[str], folder: Path) -> None:
    """Students beside the element under names that stay: what a page of others links to."""
    for entry, stem in zip(entries, stems, strict=True):
        if entry["kind"] == "photo":
            shutil.copyfile(folder / entry["file"], folder / embedded.FOLDER / f"{stem}.onnx")


def check_replaceable(settings: Lens) -> Path:
    """The folder to build. Raises DistillError but for a new, an empty or an earlier lens's one."""
    target = real_path(home_path(settings.output))
    above = next(each for each in target.parents if each.exists())
    if not above.is_dir() or not os.access(above, os.W_OK):
        reason = "permission denied" if above.is_dir() else "not a directory"
        raise DistillError(f"{above}: {reason}; choose another place with output=DIR")
    if not target.exists() or (target.is_dir() and not any(target.iterdir())):
        return target
    if not (target / MANIFEST).is_file() or not (target / "index.html").is_file():
        raise DistillError(
            f"output={target}: holds something other than a lens; name an empty or a new folder"
        )
    return target


def _file_stems(names: Iterable[str]) -> list[str]:
    """Each name as part of an address: plain letters, no two alike even where case is ignored."""
    found: list[str] = []
    taken: set[str] = set()
    for name in names:
        plain = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-") or "student"
        numbered = (plain if n == 1 else f"{plain}-{n}" for n in count(1))
        found.append(next(each for each in numbered if each.lower() not in taken))
        taken.add(found[-1].lower())
    return found


def _write(student: PageStudent, stem: str, folder: Path) -> dict[str, Any]:
    """The student's files; gives its entry in the manifest, as the page's manifest.ts reads it."""
    network = student.network
    model = network.model if network.fixed else onnx_files.free_size(network.model)
    content = model.SerializeToString()
    # The page keeps what it took for good: another content has another name.
    stem += f"-{hashlib.sha256(content).hexdigest()[:8]}"
    file, thumbnail = f"students/{stem}.onnx", f"students/{stem}.jpg"
    size = (folder / file).write_bytes(content)
    if student.kind == "photo":
        _save(_thumbnail(network), folder / thumbnail)
    return {
        "name": student.name,
        "file": file,
        "bytes": size,
        "kind": student.kind,
        "channels": network.channels,
        "input": network.input.name,
        "output": model.graph.output[0].name,
        "side": student.side,
        "fixed": network.fixed,
        "colours_at": network.colours_at,
        "told": network.told,
        "thumbnail": thumbnail if student.kind == "photo" else None,
        "licence": student.licence,
    }


def _thumbnail(network: OnnxStudent) -> Image.Image:
    """The astronaut's face, stylised and small."""
    height, width = network.fixed or (SIDE, SIDE)
    with Image.open(EXAMPLE) as example:
        face = example.crop(FACE).resize((width, height), Image.Resampling.LANCZOS)
    stylised = to_picture(over_white(network(to_array(face)[None]))[0])
    return stylised.resize((THUMBNAIL, THUMBNAIL), Image.Resampling.LANCZOS)


def _save(picture: Image.Image, path: Path) -> None:
    """As JPEG. Pillow's own writing tells no reason where the disk is full."""
    content = io.BytesIO()
    picture.save(content, "JPEG", **JPEG)
    path.write_bytes(content.getvalue())


def summary(folder: Path, students: Sequence[PageStudent]) -> str:
    """What was built, in a line."""
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    names = ", ".join(each.name for each in students)
    return f"built: {str(folder)!r} ({size / 1e6:.0f} MB) with {names}"
