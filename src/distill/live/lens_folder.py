"""The steps of distill.lens: the folder that shows some students."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from distill.config.settings import Lens
from distill.core import sessions
from distill.core.errors import DistillError
from distill.live import example, page_students
from distill.live.page_students import Shown

MANIFEST = "manifest.json"
EXAMPLE = "example.jpg"


@dataclass(frozen=True)
class Entry:
    """A student in the manifest, as the page's manifest.ts reads it."""

    name: str
    file: str
    bytes: int
    kind: str
    channels: int
    input: str
    output: str
    side: int
    fixed: tuple[int, int] | None
    thumbnail: str | None
    licence: str


def build(page: Path, students: Sequence[Shown], settings: Lens) -> Path:
    """The page with its students, made aside; gives the folder, which replaces an earlier one."""
    target = Path(settings.output).expanduser().resolve()
    _check_replaceable(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as aside:
        fresh = Path(aside) / "fresh"
        shutil.copytree(page, fresh)
        example.save_example(fresh / EXAMPLE)
        stems = page_students.stems(student.name for student in students)
        pairs = zip(students, stems, strict=True)
        entries = [_write(student, stem, fresh) for student, stem in pairs]
        manifest = {
            "students": [asdict(entry) for entry in entries],
            "example": EXAMPLE,
            "rate": settings.rate,
            "line": settings.line,
        }
        (fresh / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n")
        if target.exists():
            target.rename(Path(aside) / "old")
        fresh.rename(target)
    return target


def _check_replaceable(target: Path) -> None:
    """Only an empty folder or an earlier lens is replaced. Raises DistillError."""
    if not target.exists() or (target.is_dir() and not any(target.iterdir())):
        return
    if not (target / MANIFEST).is_file() or not (target / "index.html").is_file():
        raise DistillError(
            f"output={target}: holds something else than a lens; name an empty or a new folder"
        )


def _write(student: Shown, stem: str, folder: Path) -> Entry:
    fixed = student.painter.fixed
    model = student.model if fixed else sessions.free_size(student.model)
    file = folder / "students" / f"{stem}.onnx"
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(model.SerializeToString())
    thumbnail = None
    if student.kind == "photo":
        thumbnail = f"students/{stem}.jpg"
        example.save_thumbnail(student.painter, folder / thumbnail)
    return Entry(
        name=student.name,
        file=f"students/{file.name}",
        bytes=file.stat().st_size,
        kind=student.kind,
        channels=student.painter.channels,
        input=student.input.name,
        output=model.graph.output[0].name,
        side=student.side,
        fixed=fixed,
        thumbnail=thumbnail,
        licence=student.licence,
    )


def told(folder: Path, students: Sequence[Shown]) -> str:
    """What was built, in a line."""
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    names = ", ".join(each.name for each in students)
    return f"built: {str(folder)!r} ({size / 1e6:.0f} MB) with {names}"
