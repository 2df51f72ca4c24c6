"""What the docs name exists: links, paths, modules, commands with their settings, make targets."""

import importlib
import re
import shlex
from itertools import chain
from pathlib import Path

import pytest

from distill.core.moved import current_name
from support.commands import run

ROOT = Path(__file__).parents[1]
README, CHANGELOG = ROOT / "README.md", ROOT / "CHANGELOG.md"
DOCS = sorted((ROOT / "docs").glob("*.md"))
BENCHMARKS = ROOT / "benchmarks" / "README.md"
PAGES = [README, CHANGELOG, ROOT / "CONTRIBUTING.md", BENCHMARKS, *DOCS]
LINK = re.compile(r"\]\(([^)\s]+)\)")
PATH = re.compile(r"(?<![\w./~$-])(?:src|conf|benchmarks|tests|tools|web|docs)/[\w./*-]*")
PLACEHOLDER = re.compile(r"[A-Z]{2,}\w*")  # NAME, STYLE, GROUP
MODULE = re.compile(r"`(distill(?:\.\w+)+)`")
BLOCK = re.compile(r"(?m)(?:^ {4}.*\n)+")
INLINE = re.compile(r"`([^`]+)`")
COMMAND = re.compile(r"python -m distill\.(\w+)")
VARIABLE = re.compile(r"\b([A-Z]+)=(?:\"([^\"]*)\"|'([^']*)')")  # SET="style=hayao photos=DIR"
of_page = {"ids": lambda page: page.relative_to(ROOT).as_posix()}


def slugs(page: Path) -> set[str]:
    """The anchors that GitHub makes of a page's headings."""
    heads = re.findall(r"(?m)^#+ (.+)$", page.read_text())
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def code(page: Path) -> list[str]:
    """Lines of the page's indented blocks, continued ones joined, and what stands in backticks."""
    text = re.sub(r"(?ms)^```.*?^```$", "", page.read_text())  # files, and what a test runs
    blocks = "".join(BLOCK.findall(text)).replace("\\\n", " ")
    inline = [" ".join(each.split()) for each in INLINE.findall(BLOCK.sub("\n", text))]
    return [line.strip() for line in blocks.splitlines()] + inline


def shown(pages: list[Path]) -> list[list[str]]:
    """Each command of the package that the pages show, once: its name, then its arguments."""
    found = []
    for page in pages:
        variables = {name: a or b for name, a, b in VARIABLE.findall(page.read_text())}
        for line in code(page):
            if command := COMMAND.search(line):
                typed = line[command.start() :]
                for name, value in variables.items():
                    typed = typed.replace(f"${name}", value)
                words = [command[1], *shlex.split(typed, comments=True)[3:]]
                if words not in found:
                    found.append(words)
    return found


@pytest.mark.parametrize("page", PAGES, **of_page)
def test_links_lead_somewhere(page):
    for link in LINK.findall(page.read_text()):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert not anchor or anchor in slugs(target), link


@pytest.mark.parametrize("page", PAGES, **of_page)
def test_paths_exist(page):
    for named in PATH.findall(page.read_text()):
        path = Path(named.rstrip("."))
        while PLACEHOLDER.search(path.name) and path.name != "README.md":
            path = path.parent
        assert any(ROOT.glob(str(path))), named


def test_scripts_of_the_benchmarks_exist():
    for named in INLINE.findall(BENCHMARKS.read_text()):
        if re.fullmatch(r"[\w*]+\.py", named):
            assert any(BENCHMARKS.parent.glob(named)), named


@pytest.mark.parametrize("page", PAGES, **of_page)
def test_modules_exist(page):
    for named in MODULE.findall(page.read_text()):
        place = ROOT / "src" / current_name(named).replace(".", "/")
        assert place.is_dir() or place.with_suffix(".py").is_file(), named


@pytest.mark.parametrize("words", shown([README, BENCHMARKS, *DOCS]), ids=shlex.join)
@pytest.mark.slow
def test_a_command_is_taken_as_typed(words):
    # --cfg job composes and checks all settings, and goes no further. Of -m the first values.
    name, *arguments = words
    if "-m" in arguments:
        numbers = r"(?<==)(?:tag\(log,)?(?:interval|range)\(([^,]+),.*"
        arguments = [re.sub(numbers, r"\1", each) for each in arguments]
        arguments = [re.sub(r"(?<==)(\[[^]]*\]|[^\[,]+),.*", r"\1", each) for each in arguments]
        arguments.remove("-m")
    flags = [] if "--help" in arguments else ["--cfg", "job"]
    assert not run(importlib.import_module(f"distill.{name}.__main__"), *arguments, *flags)


@pytest.mark.parametrize("page", [*PAGES, ROOT / "campaigns" / "README.md"], **of_page)
def test_targets_of_make_exist_and_read_the_variables(page):
    rules = re.findall(r"(?m)^([a-z-]+):.*\n((?:\t.*\n)*)", (ROOT / "Makefile").read_text())
    reads = {target: set(re.findall(r"\$\(([A-Z]+)\)", recipe)) for target, recipe in rules}
    for line in code(page):
        if found := re.match(r"make ([a-z-]+)(?: (.*))?$", re.split(r" &&| #", line)[0].strip()):
            assert found[1] in reads, line
            for word in shlex.split(found[2] or ""):
                name, equals, _ = word.partition("=")
                assert equals, line
                assert name in reads[found[1]], line


def test_every_page_and_picture_is_linked():
    linked = chain.from_iterable(
        (
            (page.parent / link.partition("#")[0]).resolve()
            for link in LINK.findall(page.read_text())
        )
        for page in PAGES
    )
    assert set((ROOT / "docs").iterdir()) <= set(linked)
    readme = {(ROOT / link).resolve() for link in LINK.findall(README.read_text())}
    assert set(DOCS) <= readme


def test_the_readme_is_read_in_minutes_and_a_release_on_one_page():
    assert len(README.read_text().splitlines()) <= 150
    _, first, *_ = re.split(r"(?m)^(?=## )", CHANGELOG.read_text())
    assert first.startswith("## 0.1.0")
    assert len(first.splitlines()) <= 60
