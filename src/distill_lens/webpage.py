"""The page of distill.lens: found built, or built with npm from a checkout's sources."""

import gzip
import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

from filelock import FileLock

from distill.core.errors import DistillError
from distill.core.files import room_in, scratch_folder, write_whole

PAGE = Path(__file__).resolve().parent / "page"
SOURCES = Path(__file__).resolve().parents[2] / "web"
ELEMENT = "element"  # in the built page: what is embedded in others
STAMP = "built.sha256"  # in the built page: what it was built from
NODE = "install Node.js 20 or later (npm comes with it), or install distill from a wheel"
AGAIN = "free some space and run the command again"
UNBUILT = {"node_modules"}
SUFFIX = ".gz"  # of a compressed form, beside its file
WORTH = 0.9  # of a file's bytes: a form that is larger is not kept


def find() -> Path:
    """The folder of the built page, built again where its sources have changed.

    Raises DistillError where there is neither a page nor what it takes to build one.
    """
    if not (SOURCES / "package.json").is_file():  # installed from a wheel
        return _built_page(
            "this installation came without its page: install distill from a wheel, or from a "
            "checkout with pip install -e ., which builds it with npm (Node.js 20 or later)"
        )
    digest = fingerprint(SOURCES)
    if _stamp() == digest:
        return PAGE
    npm = shutil.which("npm")
    if npm is None:
        page = _built_page(f"the page is not built yet, and npm is not here to build it: {NODE}")
        print(f"warning: the page is older than {SOURCES}, and npm is not here", file=sys.stderr)
        return page
    with FileLock(PAGE.with_name(f".{PAGE.name}.lock")):  # tests build from several processes
        if _stamp() != digest:
            with room_in(PAGE, AGAIN):
                build(npm, digest)
    return PAGE


def fingerprint(sources: Path) -> str:
    """SHA-256 of all that a page is built from: names and contents."""
    digest = hashlib.sha256()
    for path in sorted(sources.rglob("*")):
        name = path.relative_to(sources)
        if path.is_file() and not UNBUILT & set(name.parts):
            digest.update(f"{name.as_posix()}\0{path.stat().st_size}\0".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


def build(npm: str, digest: str) -> None:
    """Install what the lock file names, once, and build: a half-built page never gets its place."""
    installed = SOURCES / "node_modules" / ".package-lock.json"
    lock = SOURCES / "package-lock.json"
    if not installed.is_file() or installed.stat().st_mtime < lock.stat().st_mtime:
        print("building the page: npm ci", file=sys.stderr, flush=True)
        _npm(npm, "ci", "--no-audit", "--no-fund", "--ignore-scripts")
    print("building the page: npm run build", file=sys.stderr, flush=True)
    with scratch_folder(PAGE) as scratch:
        page = scratch / "page"
        _npm(npm, "run", "build", "--", "--outDir", str(page), "--emptyOutDir")
        element = ("--outDir", str(page / ELEMENT), "--runtime")
        _npm(npm, "run", "build:element", "--", *element)
        compress(page)
        (page / STAMP).write_text(f"{digest}\n")
        if PAGE.exists():
            PAGE.rename(scratch / "old")
        page.rename(PAGE)


def compress(folder: Path) -> None:
    """Write NAME.gz beside every file of a folder that it makes at least a tenth smaller.

    Web servers look for that name: nginx with `gzip_static on`, and ours. One that does not sends
    the file itself.
    """
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix != SUFFIX:
            content = path.read_bytes()
            packed = gzip.compress(content, mtime=0)  # the same bytes at every build
            if len(packed) <= WORTH * len(content):
                write_whole(path.with_name(path.name + SUFFIX), packed)


def _npm(npm: str, *arguments: str) -> None:
    process = subprocess.run([npm, *arguments], cwd=SOURCES, capture_output=True, text=True)
    if process.returncode:
        lines = (process.stderr + process.stdout).splitlines()
        if any("ENOSPC" in line for line in lines):
            raise DistillError(f"npm {arguments[0]} in {SOURCES}: no space left; {AGAIN}")
        wrong = [line.strip() for line in lines if "error" in line.lower()]
        reason = next(iter(wrong or lines), "no reason")
        raise DistillError(
            f"npm {arguments[0]} in {SOURCES}: {reason}; "
            f"`cd {SOURCES} && npm {' '.join(arguments[:2])}` says more"
        )


def _stamp() -> str:
    path = PAGE / STAMP
    return path.read_text().strip() if path.is_file() else ""


def _built_page(otherwise: str) -> Path:
    if not (PAGE / "index.html").is_file():
        raise DistillError(otherwise)
    return PAGE
