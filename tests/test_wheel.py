"""The wheel that a release publishes: built as the release does, of the sdist, and it draws."""

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from support.lens_page import BUILT

ROOT = Path(__file__).resolve().parents[1]
PAGE = "src/distill_lens/page"
# Put before everything in the new environment: what asks for another machine ends there.
ALONE = """
import socket

def refuse(*_):
    raise OSError("this test has no network")

socket.socket.connect = socket.getaddrinfo = refuse
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Built of the sdist, which is built of a checkout where `make page` was typed."""
    pytest.importorskip("hatchling", reason="no hatchling: pip install 'distill[dev]'")
    place = tmp_path_factory.mktemp("release")
    checkout = place / "checkout"
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    for name in filter(None, os.fsdecode(listed.stdout).split("\0")):
        if (ROOT / name).is_file():  # one that was just removed is still listed
            (checkout / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, checkout / name)
    for name, content in BUILT.items():
        path = checkout / PAGE / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    _build("sdist", checkout, place)
    (sdist,) = place.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(place / "sdist", filter="data")
    (unpacked,) = (place / "sdist").iterdir()
    _build("wheel", unpacked, place)
    (made,) = place.glob("*.whl")
    return made


def _build(kind: str, source: Path, target: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "--target", kind, "--directory"]
    done = subprocess.run([*command, str(target)], cwd=source, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """The environment of a Python that finds this wheel, not the checkout, and no network."""
    place = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(place)
    (place / "sitecustomize.py").write_text(ALONE)
    # As a path no .pth file in it is read: an editable installation is not seen.
    paths = [str(place), sysconfig.get_paths()["purelib"], sysconfig.get_paths()["platlib"]]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "SITE": str(place)}


@pytest.mark.slow
def test_it_carries_the_page_the_settings_the_students_and_the_licence(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = {*archive.namelist()}
    assert {f"distill_lens/page/{name}" for name in BUILT} <= names
    for folder, inside in (
        ("conf", "distill/conf"),
        ("src/distill/models/zoo", "distill/models/zoo"),
        ("src/distill/stylize/stickers", "distill/stylize/stickers"),
        ("src/distill_diffusion", "distill_diffusion"),
        ("src/distill_formats", "distill_formats"),
        ("src/distill_lens", "distill_lens"),
        ("src/distill_scale", "distill_scale"),
        ("src/distill_search", "distill_search"),
        ("src/distill_sets", "distill_sets"),
        ("src/distill_video", "distill_video"),
        ("web/networks", "distill/networks"),
    ):
        for path in (ROOT / folder).rglob("*.*"):
            built = (ROOT / PAGE) in path.parents  # here; the wheel has the page above
            if path.suffix in (".yaml", ".onnx", ".json") and not built:
                assert f"{inside}/{path.relative_to(ROOT / folder).as_posix()}" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    tops = {name.partition("/")[0] for name in names}
    packages = {path.parent.name for path in (ROOT / "src").glob("*/__init__.py")}
    (said,) = tops - packages  # of the distribution
    assert tops == {*packages, said}
    assert said.endswith(".dist-info")


@pytest.mark.campaign
def test_it_draws_and_builds_the_lens_from_another_folder_without_a_network(installed, tmp_path):
    where = "import distill; print(distill.__file__)"
    (tmp_path / "photos").mkdir()
    pixels = np.random.default_rng(0).integers(0, 256, (90, 120, 3), np.uint8)
    Image.fromarray(pixels).save(tmp_path / "photos/a.png")
    said = ""
    for words in (
        ["-c", where],
        ["-m", "distill", "stylize", "photos/a.png", "-o", "drawn.png"],
        ["-m", "distill", "lens", "serve=false"],
    ):
        command = [sys.executable, "-P", *words]
        done = subprocess.run(command, cwd=tmp_path, env=installed, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        said += done.stdout
    assert Path(said.splitlines()[0]).is_relative_to(installed["SITE"])
    drawn = np.asarray(Image.open(tmp_path / "drawn.png"))
    assert drawn.shape == pixels.shape
    assert (drawn != pixels).any()
    for name in BUILT:
        assert (tmp_path / "lens" / name).is_file()
    assert list((tmp_path / "lens/students").glob("hayao-*.onnx"))
