"""docs/install.md by its text: what it installs is declared, and fits PyTorch's own CPU builds."""

import re
import shlex
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PAGE = (ROOT / "docs/install.md").read_text()
PYTORCH = ("torch", "torchvision")
INDEX = "https://download.pytorch.org/whl/cpu"


def declared() -> dict[str, Requirement]:
    found = map(Requirement, PROJECT["dependencies"])
    return {each.name: each for each in found}


def typed() -> list[list[str]]:
    """The lines of the page's blocks, in words."""
    lines = re.findall(r"(?m)^ {4}(.+)$", PAGE)
    return [shlex.split(line, comments=True) for line in lines]


def closure() -> Iterator[tuple[str, Requirement]]:
    """All that the package asks for, directly or not, as installed here: who asks, for what."""
    waiting, seen = [*declared().values()], set[str]()
    for requirement in waiting:
        yield "distill", requirement
    while waiting:
        name = canonicalize_name(waiting.pop().name)
        if name in seen:
            continue
        seen.add(name)
        try:
            asked = map(Requirement, metadata.requires(name) or [])
        except metadata.PackageNotFoundError:  # only wanted on another system
            continue
        for requirement in asked:
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                waiting.append(requirement)
                yield name, requirement


@pytest.mark.parametrize("package", PYTORCH)
def test_a_cpu_build_satisfies_everybody_who_asks_for_it(package):
    here = metadata.version(package).partition("+")[0]
    asked = [(by, each) for by, each in closure() if canonicalize_name(each.name) == package]
    assert "distill" in {by for by, _ in asked}
    assert len(asked) > 1
    for by, requirement in asked:
        assert requirement.specifier.contains(f"{here}+cpu"), f"{by}: {requirement}"


@pytest.mark.parametrize(
    ("version", "taken"),
    [("2.10.1+cpu", False), ("2.11.0+cpu", True), ("2.13.0+cpu", False), ("2.13.1+cpu", True)],
)
def test_the_build_that_breaks_torchvision_is_left_out_for_a_cpu_too(version, taken):
    assert declared()["torch"].specifier.contains(version) is taken


def cpu_lines() -> list[tuple[str, list[str]]]:
    """Every command that names PyTorch's index for CPUs, and the file it stands in."""
    found = [("docs/install.md", words) for words in typed() if INDEX in words]
    docker = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    release = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())
    steps = (step.get("run", "") for job in release["jobs"].values() for step in job["steps"])
    for name, text in (("Dockerfile", docker), ("release.yml", "\n".join(steps))):
        for line in text.splitlines():
            if INDEX in line:
                found.append((name, shlex.split(line.partition(";;")[0])))
    return found


def test_each_line_for_a_cpu_asks_for_what_the_package_asks_for():
    lines = cpu_lines()
    assert {name for name, _ in lines} == {"docs/install.md", "Dockerfile", "release.yml"}
    for name, words in lines:
        asked = [Requirement(word) for word in words if word.startswith("torch")]
        assert asked == [declared()[package] for package in PYTORCH], name


def test_every_extra_that_users_need_is_in_the_table_and_no_other():
    rows = re.findall(r"(?m)^\| `(\w+)` \|", PAGE)
    of_ours = {"dev", "docs", "browser", "stores", "mutants"}  # for the tests and the site
    assert rows == sorted(PROJECT["optional-dependencies"].keys() - of_ours)


def test_the_tests_have_every_extra_that_they_can_run():
    lists = re.findall(r"--editable '\.\[(.+?)\]'", (ROOT / "Makefile").read_text())
    without = {"camera", "heic"}  # one needs a driver; photos of the other would have to be shipped
    assert {*",".join(lists).split(",")} == PROJECT["optional-dependencies"].keys() - without


def test_the_wheel_that_is_named_is_this_one():
    import distill

    assert f"distill-{distill.__version__}-py3-none-any.whl" in PAGE
