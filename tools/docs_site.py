"""Build the documentation as a site, without a network: `make docs`.

Gathers into dist/docs-pages the repository's Markdown files (the README is the first page), the
students' cards, a gallery of their output, all settings with defaults and help lines, and
an API page for each package from its docstrings. Links are adapted. Zensical then builds dist/docs
by mkdocs.yml and ends with status 1 at a broken link.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from importlib import import_module
from itertools import takewhile
from os.path import relpath
from pathlib import Path, PurePosixPath

import numpy as np
from PIL import Image
from skimage import data

from distill.__main__ import commands
from distill.config import groups, help
from distill.models.zoo import shipped

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "dist/docs-pages"
LINK = re.compile(r"(!?\[[^\]]*\]\()([^)\s]+)(\))")
FIRST_LINE = re.compile(r'"""(.+?)(?:"""|\n|$)')
SHOWN = {"astronaut": data.astronaut, "cat": data.cat, "coffee": data.coffee, "rocket": data.rocket}


def pages() -> dict[Path, PurePosixPath]:
    """Each Markdown file of the repository that is a page, and where it lies on the site."""
    found = {
        "README.md": "index.md",
        "benchmarks/README.md": "benchmarks-scripts.md",
        "campaigns/README.md": "campaigns.md",
        "CHANGELOG.md": "changelog.md",
        "CONTRIBUTING.md": "contributing.md",
        "SECURITY.md": "security.md",
    }
    found |= {f"docs/{path.name}": path.name for path in (ROOT / "docs").glob("*.md")}
    for folder in ("src/distill/models/zoo", "src/distill_lens/sketches"):
        cards = (ROOT / folder).glob("*.md")
        found |= {f"{folder}/{path.name}": f"students/{path.name}" for path in cards}
    return {ROOT / source: PurePosixPath(target) for source, target in found.items()}


def gather(found: dict[Path, PurePosixPath]) -> None:
    """Write the pages with links that fit, and the files that they show. Raises ValueError."""
    for source, target in found.items():
        text = LINK.sub(
            lambda link, source=source, target=target: (
                link[1] + _moved(link[2], source, target, found) + link[3]
            ),
            source.read_text(encoding="utf-8"),
        )
        _write(target, text)


def _moved(link: str, source: Path, target: PurePosixPath, found: dict[Path, PurePosixPath]) -> str:
    """A link of one page, as its copy needs it; a picture or table is copied beside the pages."""
    path, sign, anchor = link.partition("#")
    if not path or "://" in path:
        return link
    leads = (source.parent / path).resolve()
    if leads not in found:
        if not leads.is_file() or leads.suffix == ".md":
            raise ValueError(f"{source.relative_to(ROOT)}: {link} is no page of the site")
        found_at = PurePosixPath("files", leads.name)
        (PAGES / found_at).parent.mkdir(exist_ok=True)
        shutil.copy2(leads, PAGES / found_at)
    else:
        found_at = found[leads]
    return relpath(found_at, target.parent) + sign + anchor


def gallery() -> None:
    """Stylize scikit-image's photographs with each student of the package."""
    photos, drawn = PAGES / "gallery/photo", PAGES / "gallery"
    photos.mkdir(parents=True)
    for name, load in SHOWN.items():
        _save(load(), photos / f"{name}.jpg")
    rows = ["| | " + " | ".join(SHOWN) + " |", "| --- |" + " --- |" * len(SHOWN)]
    rows.append(_row("photo", "photo"))
    for style in shipped():
        command = [sys.executable, "-m", "distill.stylize", str(photos), f"style={style}"]
        subprocess.run([*command, "-o", str(drawn / style)], check=True, cwd=PAGES)
        for file in sorted((drawn / style).iterdir()):
            file.rename(file.with_stem(file.stem.removesuffix(f"-{style}")))
        rows.append(_row(f"[{style}](students/{style}.md)", style))
    says = (
        "---\nhide: [navigation, toc]\n---\n\n# Gallery\n\n"
        "Photographs of scikit-image, stylized by the students of the package:\n\n"
        "    python -m distill.stylize PHOTOS style=hayao\n\nEach student's card states its data, "
        "terms and limits.\n\n"
    )
    _write(PurePosixPath("gallery.md"), says + "\n".join(rows) + "\n")


def _row(title: str, folder: str) -> str:
    files = {name: f"gallery/{folder}/{name}.jpg" for name in SHOWN}
    shown = (f"[![{name}, {folder}]({file})]({file})" for name, file in files.items())
    return f"| {title} | {' | '.join(shown)} |"


def settings() -> None:
    """A page of every setting: those of commands, as in --help, then the files of each group."""
    text = (
        "# Settings\n\nSettings of a command are typed as `KEY=VALUE`, a file of a group of "
        "`conf/` is chosen by `GROUP=NAME`. `python -m distill.NAME --help` shows the same.\n"
    )
    said: dict[str, str] = {}
    for name, each in commands().items():
        command = import_module(f"{each.package}.__main__").main
        for section in command.sections():
            recipe = section.title if "=" in section.title.partition(",")[0] else ""
            said |= {row.key: row.about for row in section.rows}
            text += f"\n## distill.{name} {recipe}".rstrip() + f"\n\n{section.title}:\n\n"
            text += "| setting | value | default | |\n| --- | --- | --- | --- |\n"
            for row in section.rows:
                shown = (f"`{row.key}`", f"`{row.kind}`", f"`{row.default}`", row.about)
                text += f"| {' | '.join(map(_cell, shown))} |\n"
    files = [file for conf in groups.conf_folders() for file in conf.glob("*/*.yaml")]
    for file in sorted(files, key=lambda file: file.parts[-2:]):
        lines = file.read_text(encoding="utf-8").splitlines()
        about = " ".join(line.lstrip("# ") for line in takewhile(lambda x: x[:1] == "#", lines))
        about = about.removeprefix("@package _global_").strip()
        text += f"\n## {file.parent.name}={file.stem}\n\n{about}\n"
        if rows := help.described(file):
            text += "\n| setting | value | |\n| --- | --- | --- |\n"
        for row in rows:
            words = row.about or said.get(row.key, "")
            text += f"| `{row.key}` | {_cell(f'`{row.default}`')} | {_cell(words)} |\n"
    _write(PurePosixPath("reference/settings.md"), text)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def reference() -> None:
    """An API page for each package from its docstrings, read without importing."""
    source = ROOT / "src"
    said = ["# API\n\nThe docstrings of each package. [Settings](settings.md) have their own page."]
    for init in sorted(source.rglob("__init__.py")):
        modules = sorted(path for path in init.parent.glob("*.py") if path.name[0] != "_")
        if not modules:
            continue
        name = ".".join(init.parent.relative_to(source).parts)
        blocks = [f"# {name}\n"]
        blocks += [f"## {path.stem}\n\n::: {name}.{path.stem}\n" for path in modules]
        _write(PurePosixPath(f"reference/{name}.md"), "\n".join(blocks))
        rows = [f"| [{path.stem}]({name}.md#{path.stem}) | {_about(path)} |" for path in modules]
        said.append(f"## [{name}]({name}.md)\n\n| module | |\n| --- | --- |\n" + "\n".join(rows))
    _write(PurePosixPath("reference/index.md"), "\n\n".join(said) + "\n")


def _about(path: Path) -> str:
    """The first line of a module's docstring, as a cell of a table."""
    found = FIRST_LINE.match(path.read_text(encoding="utf-8"))
    return found[1].replace("|", "\\|") if found else ""


def _save(pixels: np.ndarray, path: Path) -> None:
    Image.fromarray(pixels).save(path, quality=90)


def _write(place: PurePosixPath, text: str) -> None:
    (PAGES / place).parent.mkdir(parents=True, exist_ok=True)
    (PAGES / place).write_text(text, encoding="utf-8")


def main() -> None:
    shutil.rmtree(PAGES, ignore_errors=True)
    PAGES.mkdir(parents=True)
    gather(pages())
    gallery()
    settings()
    reference()
    command = [str(Path(sys.executable).with_name("zensical")), "build", "--strict", "--clean"]
    sys.exit(subprocess.run(command, cwd=ROOT).returncode)


if __name__ == "__main__":
    main()
