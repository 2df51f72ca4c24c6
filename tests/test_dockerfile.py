"""The Dockerfile by its text: what it copies is there, what it installs is declared.

Docker is not needed; .github/workflows/image.yml builds it.
"""

import fnmatch
import json
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest

from distill import __main__ as script

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def instructions() -> list[tuple[str, str]]:
    """Each instruction and its words, continued lines joined, comments left out."""
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    text = "\n".join(line for line in lines if not line.lstrip().startswith("#"))
    joined = re.sub(r"\\\n", " ", text)
    found = [line.split(maxsplit=1) for line in joined.splitlines() if line.strip()]
    return [(name, words) for name, words in found]


def stages() -> dict[str, list[tuple[str, str]]]:
    """The instructions of each stage by its name, those of the stage it is built on first."""
    found: dict[str, list[tuple[str, str]]] = {}
    name = ""
    for instruction, words in instructions():
        if instruction == "FROM":
            below, as_, name = words.split()
            assert as_ == "AS"
            assert name not in found
            found[name] = [*found.get(below, [])]
        elif name:
            found[name].append((instruction, words))
    return found


def sent(path: str) -> bool:
    """Whether .dockerignore lets a path into the build, by Docker's rule: the last match counts."""
    kept = True
    for line in (ROOT / ".dockerignore").read_text().splitlines():
        pattern = line.strip().removeprefix("!")
        if not pattern or pattern.startswith("#"):
            continue
        parts = path.split("/")
        above = ["/".join(parts[: n + 1]) for n in range(len(parts))]
        if any(_fits(each, pattern) for each in above):
            kept = line.startswith("!")
    return kept


def _fits(path: str, pattern: str) -> bool:
    if pattern.startswith("**/"):
        return fnmatch.fnmatchcase(path.rpartition("/")[2], pattern.removeprefix("**/"))
    same = path.count("/") == pattern.count("/")
    return same and fnmatch.fnmatchcase(path, pattern)


def copies() -> list[tuple[str, str]]:
    """Each COPY of the build's own files: the stage and the source."""
    return [
        (stage, source)
        for stage, lines in stages().items()
        for name, words in lines
        if name == "COPY" and "--from" not in words
        for source in words.split()[:-1]
    ]


@pytest.mark.parametrize(("stage", "source"), sorted({*copies()}))
def test_what_is_copied_is_there_and_is_sent(stage, source):
    path = ROOT / source
    assert path.exists()
    some = next(path.rglob("*.*")) if path.is_dir() else path
    assert sent(some.relative_to(ROOT).as_posix())


@pytest.mark.parametrize(
    "path",
    [
        "data/photos/me.jpg", "runs/mine/checkpoints/last.ckpt", ".venv/bin/python", ".git/config",
        "tools/card.py", "web/node_modules/vite/index.js", "src/distill_lens/page/index.html",
        "src/distill/__pycache__/train.pyc", "tests/conftest.py",
    ],
)  # fmt: skip
def test_what_is_nobody_s_business_stays_here(path):
    assert not sent(path)


def test_what_is_taken_from_a_stage_is_made_there():
    taken = [words for _, words in instructions() if words.startswith("--from=")]
    assert taken
    for words in taken:
        stage, source, _ = words.removeprefix("--from=").split()
        assert any(source in said for name, said in stages()[stage] if name == "RUN")


def runs(stage: str) -> list[list[str]]:
    """The commands of a stage's RUN lines, one by one, in words."""
    found: list[list[str]] = [[]]
    for text in (words for name, words in stages()[stage] if name == "RUN"):
        parts = shlex.shlex(text, posix=True, punctuation_chars=True)
        parts.whitespace_split = True
        found.append([])
        for word in parts:
            if set(word) <= set("();&|"):
                found.append([])
            else:
                found[-1].append(word)
    return [words for words in found if words]


def arguments(stage: str) -> dict[str, str]:
    given = [words.partition("=") for name, words in stages()[stage] if name == "ARG"]
    return {name: value for name, _, value in given}


def test_the_wheel_is_built_from_what_the_package_names():
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    included = tool["targets"]["wheel"]["force-include"]
    wanted = {PROJECT["readme"], *PROJECT["license-files"], *included, "pyproject.toml", "src"}
    copied = {source for stage, source in copies() if stage == "wheel"}
    assert {each for each in wanted if not each.startswith("web/")} <= copied
    assert "web" in copied
    names = [
        name for name, words in stages()["wheel"] if "webpage.find" in words or "--wheel" in words
    ]
    assert names == ["RUN", "RUN"]  # the page first


def test_extras_are_declared():
    extras = arguments("full")["EXTRAS"].split(",")
    assert set(extras) <= PROJECT["optional-dependencies"].keys()
    assert "dev" not in extras
    assert any("[${EXTRAS}]" in word for words in runs("full") for word in words)


def test_the_small_image_installs_what_drawing_needs_and_no_more():
    installs = [words for words in runs("draw") if words[:2] == ["pip", "install"]]
    assert len(installs) == 2
    listed = next(words[words.index("-r") + 1] for words in installs if "-r" in words)
    assert f"tools/draw-requirements.txt {listed}" in [
        w for n, w in stages()["draw"] if n == "COPY"
    ]
    assert ["--no-deps" in words for words in installs] == [False, True]


@pytest.mark.parametrize("stage", ["draw", "full"])
def test_it_runs_the_command_and_not_as_root(stage):
    last: dict[str, Any] = dict(stages()[stage])
    assert json.loads(last["ENTRYPOINT"]) == [*PROJECT["scripts"]]
    user = last["USER"]
    assert any(f"useradd --create-home {user}" in words for _, words in stages()[stage])
    assert last["WORKDIR"] == "/work"


def test_the_commands_shown_are_commands_and_settings_of_the_build():
    shown = [line for line in (ROOT / "Dockerfile").read_text().splitlines() if "docker " in line]
    assert len(shown) == 4
    for line in shown:
        for name in re.findall(r"--build-arg (\w+)=", line):
            assert name in arguments("full")
        for target in re.findall(r"--target (\w+)", line):
            assert target in stages()
        for command in re.findall(r"distill (\w+)", line.partition("docker run --rm")[2]):
            assert command in script.COMMANDS
