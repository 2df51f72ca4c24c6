"""The documentation as a site, and the notebooks: they are made, not only written."""

import os
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NOTEBOOKS = {"photo_to_lens": 10, "python_api": 8}  # and their cells of code


@pytest.fixture
def site(tmp_path):
    """tools/docs_site.py, with its pages elsewhere."""
    spec = spec_from_file_location("docs_site", ROOT / "tools/docs_site.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    module.PAGES = tmp_path
    return module


def test_links_between_the_repository_s_files_are_links_between_pages(site, tmp_path):
    found = site.pages()
    site.gather(found)
    home = (tmp_path / "index.md").read_text()
    assert "](quickstart.md)" in home
    assert "](students/hayao.md)" in home
    assert "![photo, teacher, student: the astronaut was held out](files/demo.png)" in home
    assert (tmp_path / "files/demo.png").read_bytes() == (ROOT / "docs/demo.png").read_bytes()
    assert "](../files/hayao.jpg)" in (tmp_path / "students/hayao.md").read_text()
    assert "](benchmarks-scripts.md#students-side-by-side)" in "".join(
        (tmp_path / name.name).read_text() for name in found.values() if name.parent.name == ""
    )


@pytest.mark.slow
def test_every_setting_is_listed_with_its_default_and_comment(site, tmp_path):
    site.settings()
    page = (tmp_path / "reference/settings.md").read_text()
    assert "## distill.train" in page
    row = "| `seed` | `N` | `0` | of the order, the augmentation and the initial weights [below"
    assert f"{row} 4294967296] |" in page
    assert "## loss=ink" in page


def test_a_link_to_what_is_no_page_is_refused(site):
    with pytest.raises(ValueError, match=r"README.md: docs/nothing.md is no page"):
        site._moved("docs/nothing.md", ROOT / "README.md", site.pages()[ROOT / "README.md"], {})


@pytest.mark.campaign
def test_the_site_is_built_without_a_warning_and_fetches_nothing():
    pytest.importorskip("zensical", reason="no Zensical: pip install 'distill[docs]'")
    done = subprocess.run([sys.executable, "tools/docs_site.py"], cwd=ROOT, capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr
    place = ROOT / "dist/docs"
    home = (place / "index.html").read_text()
    assert 'src="https:' not in home
    assert "fonts.googleapis" not in home
    adversarial = (place / "reference/distill_gan/index.html").read_text()
    assert "are the ranges that the discriminator's labels are sampled from" in adversarial
    assert (place / "gallery/hayao/astronaut.jpg").is_file()


@pytest.mark.parametrize(("name", "cells"), NOTEBOOKS.items())
def test_the_notebook_for_colab_is_that_of_the_script(name, cells):
    jupytext = pytest.importorskip("jupytext", reason="no jupytext: pip install 'distill[docs]'")
    ours, shown = (jupytext.read(ROOT / f"notebooks/{name}.{end}") for end in ("py", "ipynb"))
    kinds_and_sources = [
        [(cell.cell_type, cell.source) for cell in each.cells] for each in (ours, shown)
    ]
    assert kinds_and_sources[0] == kinds_and_sources[1]
    assert not [cell for cell in shown.cells if cell.get("outputs")]
    badge = "colab.research.google.com/github/OWNER/distill/blob/main/notebooks"
    assert f"{badge}/{name}.ipynb" in shown.cells[0].source
    assert sum(cell.cell_type == "code" for cell in shown.cells) == cells


@pytest.mark.campaign
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("photo_to_lens", ["runs/notebook/export/student.onnx", "lens-notebook/index.html"]),
        ("python_api", ["runs/called/export/student.onnx", "runs/own/checkpoints/best.ckpt"]),
    ],
)
def test_the_notebook_runs_from_its_first_cell_to_its_last(name, files, tmp_path):
    pytest.importorskip("nbmake", reason="no nbmake: pip install 'distill[docs]'")
    made = tmp_path / f"{name}.ipynb"
    convert = [sys.executable, "-m", "jupytext", "--to", "notebook", "-o", str(made)]
    script = str(ROOT / f"notebooks/{name}.py")
    subprocess.run([*convert, script], check=True, capture_output=True)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    run = [sys.executable, "-m", "pytest", "-p", "no:xdist", "--nbmake", "--nbmake-timeout=900"]
    done = subprocess.run(
        [*run, "--overwrite", str(made)], cwd=tmp_path, capture_output=True, text=True,
        env=os.environ | {"STEPS": "4", "PYTEST_ADDOPTS": ""},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert all((tmp_path / file).is_file() for file in files)
    assert '"image/png"' in made.read_text()
