"""A small built page in the place of the real one."""

import pytest

from distill_lens import webpage
from support.lens_page import BUILT


@pytest.fixture
def page(tmp_path, monkeypatch):
    """A page that is built already, in the place of the real one: no npm."""
    folder = tmp_path / "built"
    for name, content in BUILT.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    monkeypatch.setattr(webpage, "PAGE", folder)
    monkeypatch.setattr(webpage, "SOURCES", tmp_path / "none")
    monkeypatch.chdir(tmp_path)
    return folder
