"""The folder that distill.lens serves: the built page, its students, the manifest of them."""

import hashlib
import io
import json
import os
import re
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Literal

from PIL import Image

from distill.core import onnx_files
from distill.core.arrays import over_white, to_array, to_picture
from distill.core.errors import DistillError
from distill.core.files import home_path, real_path, room_in, scratch_folder
from distill.core.licence_terms import NOTE, TAKEN_DOWN, Terms
from distill.models import zoo
from distill.runs import run_folder
from distill.stylize.onnx_student import OnnxStudent
from distill.stylize.stylizing import open_student, terms_of_student
from distill_lens.settings import Lens
from distill_lens.webpage import ELEMENT, SUFFIX

FIRST = "neon"  # of the package's own the most striking one: what a visitor sees first
SKETCHES = Path(__file__).with_name("sketches")  # the package's own, for the drawing mode
SIDE = 256  # of a network that takes any size: what students learn on


@dataclass(frozen=True)
class PageStudent:
    """A student for the page: its network, and what the page must know of it."""

    name: str
    kind: Literal["photo", "sketch"]
    network: OnnxStudent
    terms: Terms

    @property
    def side(self) -> int:
        """Pixels of the longer side that the file names, though it may take other sizes too."""
        sides = [dim.dim_value for dim in self.network.input.type.tensor_type.shape.dim[2:]]
        return max(sides) or SIDE


def choose_students(settings: Lens) -> list[PageStudent]:
    """Every student asked for, opened once. Raises DistillError for one that makes no picture."""
    photo = _items(settings.students)
    if settings.students is None and settings.run is None:
        photo = sorted(zoo.shipped(), key=lambda name: name != FIRST)
    students = [_open(item, "photo", settings) for item in photo]
    if settings.students is None:  # those that may be used for anything first
        students.sort(key=lambda student: ("yes", "unknown", "no").index(student.terms.commercial))
    sketches = _items(settings.sketches)
    if settings.sketches is settings.students is settings.run is None:
        sketches = [str(path) for path in sorted(SKETCHES.glob("*.onnx"))]
    students += [_open(item, "sketch", settings) for item in sketches]
    if settings.run is not None:
        best = run_folder.run_named(settings.run, settings.runs).checkpoint("best")
        network = open_student(best)
        students.insert(0, _of_file(Path(settings.run).name, "photo", network, best, settings))
    if not students:
        raise DistillError("students=[]: no student for the page; name one, or leave it out")
    names = [each.name for each in students]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise DistillError(f"students: two are called {twice!r}; rename one of the files")
    return students


def _items(setting: str | list[str] | None) -> list[str]:
    return [setting] if isinstance(setting, str) else list(setting or [])


def _open(item: str, kind: Literal["photo", "sketch"], settings: Lens) -> PageStudent:
    """A name of the zoo, or a file."""
    path = home_path(item)
    if path.suffix.lower() in (".ckpt", ".onnx", ".safetensors") or "/" in item:
        network = open_student(path, convention=settings)
        if len(network.model.graph.input) > 1:
            raise DistillError(
                f"{path}: has a second input, and the page gives the photo alone; export it again "
                "without exporter.profile"
            )
        return _of_file(path.stem, kind, network, path, settings)
    shipped = zoo.shipped()
    if item not in shipped:
        raise DistillError(
            f"students={item}: no such student in this package (there are: "
            f"{', '.join(shipped) or 'none'}) and no .onnx, .ckpt or .safetensors file"
        )
    return _of_file(item, kind, open_student(shipped[item]), shipped[item], settings)


def _of_file(
    name: str, kind: Literal["photo", "sketch"], network: OnnxStudent, path: Path, settings: Lens
) -> PageStudent:
    """With the terms that the file is under, of which the page's copy keeps a record. Raises
    DistillError where pictures were taken down since."""
    terms = terms_of_student(network, path).published(str(path), settings.takedown.accept)
    if any(each.of.endswith(TAKEN_DOWN) for each in terms.chain):
        onnx_files.note(network.model, NOTE, terms.json())
    return PageStudent(name, kind, network, terms)


MANIFEST = "manifest.json"
# The element <distill-lens>, for pages of one's own.
EMBED = "embed"
MODULE = "distill-lens.js"
NAMES = {"index.js": MODULE, "worker.js": "worker.js"}  # as npm's package names them, and as here
RUNTIME = "runtime"  # where the element looks for ONNX Runtime, beside its module
# The page's own copies of the runtime's parts, which its build names by their content.
PART = re.compile(r"(ort-wasm-simd-threaded(?:\.asyncify)?)-[\w-]{8}(\.(?:mjs|wasm)(?:\.gz)?)")
# Stands for the camera where there is none, and is on the students' buttons: the Golden Gate Bridge
# (CC0: pexels.com/photo/7653, in samples/ of IBM/MAX-Fast-Neural-Style-Transfer).
EXAMPLE = Path(__file__).with_name("example.jpg")
# The same on phones held upright: a dandelion (CC0: Clemens Engelhardt, in Debian's
# lomiri-wallpapers), cropped and sharpened.
TALL = Path(__file__).with_name("example-tall.jpg")
TOWER = (260, 0, 1053, 595)  # left, top, right, bottom
THUMBNAIL = (160, 120)  # pixels of width and height
JPEG = {"quality": 88, "optimize": True}
# What a static build also has: for people, GitHub Pages, and Netlify and Cloudflare Pages.
HOSTING = {
    "README.txt": """Upload everything in this folder to any host that serves files over https:

  GitHub Pages      commit it (with .nojekyll), then Settings > Pages > the branch and its folder
  Netlify           drop the folder on app.netlify.com/drop, or: netlify deploy --prod --dir .
  Cloudflare Pages  npx wrangler pages deploy .
  here, to try it   python -m http.server 8000, then http://localhost:8000/

It may lie below any path. Opened once, it works offline and can be installed ("Add to Home
screen"): its service worker keeps it, and adds the headers that several threads need.
""",
    ".nojekyll": "",
    "_headers": """/*
  Cross-Origin-Opener-Policy: same-origin
  Cross-Origin-Embedder-Policy: require-corp
""",
}
ELSEWHERE = "free some space, or name a folder on another disk with output=DIR"


def build(page: Path, students: Sequence[PageStudent], settings: Lens) -> Path:
    """The folder, made beside an earlier one, which it then replaces whole.

    Raises DistillError for a folder of something else, and for a full disk.
    """
    target = check_replaceable(settings.output)
    with room_in(target, ELSEWHERE):
        target.parent.mkdir(parents=True, exist_ok=True)
        with scratch_folder(target) as scratch:
            fresh = scratch / "fresh"
            shutil.copytree(page, fresh)
            _place_element(fresh, settings.embed)
            (fresh / "students").mkdir()
            for example in (EXAMPLE, TALL):
                shutil.copyfile(example, fresh / example.name)
            stems = _file_stems(student.name for student in students)
            entries = [_write(*pair, fresh) for pair in zip(students, stems, strict=True)]
            if settings.embed:  # beside the element under names that stay: others link to them
                for entry, stem in zip(entries, stems, strict=True):
                    if entry["kind"] == "photo":
                        shutil.copyfile(fresh / entry["file"], fresh / EMBED / f"{stem}.onnx")
            manifest = {
                "students": entries,
                "example": EXAMPLE.name,
                "example_tall": TALL.name,
                "rate": settings.rate,
                "line": settings.line,
            }
            (fresh / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n")
            if settings.static is not None:
                for name, content in HOSTING.items():
                    (fresh / name).write_text(content)
            if target.exists():
                target.rename(scratch / "old")
            fresh.rename(target)
    return target


def _place_element(folder: Path, embed: bool) -> None:
    """Make embed/ of what the built page in this folder carries for it, or take that away.

    Raises DistillError for a page that was built without the element.
    """
    element = folder / ELEMENT
    if embed:
        parts = {path: PART.fullmatch(path.name) for path in (folder / "page").iterdir()}
        if not (element / "index.js").is_file() or not any(parts.values()):
            raise DistillError(
                "embed=true: this page was built without the element; reinstall distill from a "
                "newer wheel, or use a checkout with npm"
            )
        runtime = folder / EMBED / RUNTIME
        shutil.copytree(element / RUNTIME, runtime)
        for path, part in parts.items():
            if part:
                shutil.copyfile(path, runtime / (part[1] + part[2]))
        for name, here in NAMES.items():
            for end in ("", SUFFIX):
                if (element / (name + end)).is_file():
                    shutil.copyfile(element / (name + end), folder / EMBED / (here + end))
    shutil.rmtree(element, ignore_errors=True)


def check_replaceable(output: str) -> Path:
    """The folder to build. Raises DistillError but for a new, an empty or an earlier lens's one."""
    target = real_path(home_path(output))
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
    stems: list[str] = []
    used: set[str] = set()
    for name in names:
        plain = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-") or "student"
        numbered = (plain if n == 1 else f"{plain}-{n}" for n in count(1))
        stems.append(next(each for each in numbered if each.lower() not in used))
        used.add(stems[-1].lower())
    return stems


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
        _write_thumbnail(network, folder / thumbnail)
    about = json.loads(onnx_files.noted(network.model, onnx_files.ABOUT) or "{}")
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
        "told": network.takes_summary,
        "thumbnail": thumbnail if student.kind == "photo" else None,
        "licence": student.terms.line,
        "commercial": student.terms.commercial,
        "faceless": "face" not in str(about.get("style", "face")).lower(),
    }


def _write_thumbnail(network: OnnxStudent, path: Path) -> None:
    """The bridge's tower, stylised and small."""
    height, width = network.fixed or (SIDE * 3 // 4, SIDE)
    with Image.open(EXAMPLE) as example:
        tower = example.crop(TOWER).resize((width, height), Image.Resampling.LANCZOS)
    stylised = to_picture(over_white(network(to_array(tower)[None]))[0])
    small, content = stylised.resize(THUMBNAIL, Image.Resampling.LANCZOS), io.BytesIO()
    small.save(content, "JPEG", **JPEG)  # Pillow's own writing tells no reason at a full disk
    path.write_bytes(content.getvalue())


def summary(folder: Path, students: Sequence[PageStudent], embed: bool) -> str:
    """What was built, in a line, and in another how a page in that folder takes the element."""
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    names = ", ".join(each.name for each in students)
    line = f"built: {str(folder)!r} ({size / 1e6:.0f} MB) with {names}"
    if not embed:
        return line
    return f'{line}\nembed: <script type="module" src="{EMBED}/{MODULE}"></script>'
