from __future__ import annotations

from pathlib import Path

from distill.data.manifest import Manifest, write_manifest
from distill.eval_fid import set_teacher


def test_only_the_teacher_that_labelled_the_set(tmp_path: Path) -> None:
    """By its fingerprint: toon is in the package, so available everywhere."""
    assert set_teacher.style_teacher(tmp_path) is None  # no set
    settings = set_teacher.compose.load("prepare", ["style=toon"], set_teacher.Prepare)
    teacher = set_teacher.build.load_teacher(settings.style, settings.teacher)
    write_manifest(tmp_path, Manifest("photos", "toon", teacher.fingerprint()), {})
    assert set_teacher.style_teacher(tmp_path) is not None
    write_manifest(tmp_path, Manifest("photos", "toon", "another"), {})
    assert set_teacher.style_teacher(tmp_path) is None
    write_manifest(tmp_path, Manifest("photos", "none of ours", "another"), {})
    assert set_teacher.style_teacher(tmp_path) is None
