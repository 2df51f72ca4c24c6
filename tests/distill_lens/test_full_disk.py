"""A disk that fills while the page or its folder is built: one line, and nothing half-made."""

import errno
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from distill_lens import __main__ as lens
from distill_lens import webpage
from support.commands import run
from support.lens_page import BUILT

FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))  # of a write: it names no file
REMEDY = "no space left on device; free some space, or name a folder on another disk"


def fails(*_args, **_more):
    raise FULL


def fill(monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    """The disk is full from this step on."""
    if where == "a picture":

        def full_for(self: Path, content: bytes) -> int:
            if self.suffix == ".jpg":
                raise FULL
            return plain(self, content)

        plain = Path.write_bytes
        monkeypatch.setattr(Path, "write_bytes", full_for)
    elif where == "the page":  # copytree gathers what fails in shutil.Error
        monkeypatch.setattr(shutil, "copyfile", fails)
    else:
        monkeypatch.setattr(Path, "write_text", fails)


@pytest.mark.parametrize("where", ["the page", "a picture", "the manifest"])
@pytest.mark.parametrize("earlier", [False, True])
def test_a_full_disk_ends_in_one_line_and_leaves_what_was(
    page, monkeypatch, capsys, where, earlier
):
    if earlier:
        assert run(lens, "serve=false", "students=[toon]") == 0
    before = sorted(str(path) for path in Path().rglob("*"))
    fill(monkeypatch, where)
    capsys.readouterr()
    assert run(lens, "serve=false", "students=[hayao]") == 1
    said = capsys.readouterr().err
    assert said == f"error: {Path('lens').resolve()}: {REMEDY} with output=DIR\n"
    assert sorted(str(path) for path in Path().rglob("*")) == before


def test_other_errors_of_the_system_keep_their_own_line(page, monkeypatch, capsys):
    denied = OSError(errno.EACCES, os.strerror(errno.EACCES), "lens/students")
    monkeypatch.setattr(shutil, "copytree", lambda *_: (_ for _ in ()).throw(denied))
    assert run(lens, "serve=false", "students=[hayao]") == 1
    assert capsys.readouterr().err.startswith("error: lens/students: permission denied; ")


@pytest.fixture
def sources(page, tmp_path, monkeypatch):
    """Sources that the page is older than, and an npm that builds them."""
    folder = tmp_path / "web"
    folder.mkdir()
    for name in ("package.json", "package-lock.json"):
        (folder / name).write_text("{}")
    monkeypatch.setattr(webpage, "SOURCES", folder)
    monkeypatch.setattr(webpage.shutil, "which", lambda _: "npm")

    def npm(command, **_):
        if command[1] == "run":
            out = Path(command[command.index("--outDir") + 1])
            out.mkdir()
            (out / "index.html").write_text("new " * 1000)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(webpage.subprocess, "run", npm)
    return folder


def test_a_page_that_cannot_be_written_whole_is_not_taken_for_one(
    page, sources, monkeypatch, capsys
):
    with monkeypatch.context() as patch:
        patch.setattr(webpage, "write_whole", fails)
        assert run(lens, "serve=false", "students=[hayao]") == 1
    said = capsys.readouterr().err.splitlines()
    assert said[-1] == (
        f"error: {page}: no space left on device; free some space and run the command again"
    )
    assert (page / "index.html").read_bytes() == BUILT["index.html"]
    assert not list(page.parent.glob(".built.*/*"))
    assert not Path("lens").exists()
    assert webpage.find() == page  # with room, the same command builds it
    assert (page / "index.html").read_text().startswith("new")
    assert (page / "index.html.gz").is_file()


def test_a_disk_that_fills_while_npm_runs_is_told(page, sources, monkeypatch, capsys):
    said = "npm error code ENOSPC\nnpm error nospc ENOSPC: no space left on device, write"
    full = subprocess.CompletedProcess([], 1, "", said)
    monkeypatch.setattr(webpage.subprocess, "run", lambda *_, **__: full)
    assert run(lens, "serve=false", "students=[hayao]") == 1
    assert capsys.readouterr().err.splitlines()[-1] == (
        f"error: npm ci in {sources}: no space left; free some space and run the command again"
    )


def test_what_a_killed_build_left_beside_the_folder_goes_with_the_next(page):
    put = Path(".lens.part/fresh/students")
    put.mkdir(parents=True)
    (put / "toon.onnx").write_bytes(b"half of it")
    assert run(lens, "serve=false", "students=[toon]") == 0
    assert [path.name for path in Path().iterdir() if path.name.startswith(".")] == []
