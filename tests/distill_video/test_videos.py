"""distill.stylize with videos: among pictures, interrupted, killed, damaged, without PyAV."""

import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from distill.data.faces import Box, Face
from distill.stylize import __main__ as stylize
from distill.stylize import jobs, portraits
from distill_video import videos
from support.commands import run
from support.stylize_setup import files, put

INSTALLED = importlib.util.find_spec("av") is not None
needs_av = pytest.mark.skipif(not INSTALLED, reason="PyAV is missing: pip install 'distill[video]'")
if INSTALLED:
    import av

    from support import small_videos


def video_file(path, count=12, width=64, height=48, **options):
    return small_videos.make(Path(path), small_videos.pictures(count, width, height), **options)


@needs_av
def test_a_video_and_nothing_else_is_enough(shipped_students, capsys):
    source = video_file("clip.mp4", sound="aac")
    assert run(stylize, "clip.mp4") == 0
    said = capsys.readouterr()
    first, last = said.out.splitlines()
    assert first.startswith("12 frames, ")
    assert "busy: read " in first
    assert last == "written: 'stylized/clip-hayao.mp4'"
    assert files() == ["clip.mp4", "stylized/clip-hayao.mp4"]
    stylised = small_videos.decoded("stylized/clip-hayao.mp4")
    for have, picture in zip(stylised, small_videos.pictures(), strict=True):
        assert np.abs(have - (255 - picture.astype(int))).mean() < 6
    assert small_videos.times("stylized/clip-hayao.mp4") == small_videos.times(source)


@needs_av
def test_a_weaker_video_is_nearer_to_its_input(shipped_students):
    video_file("clip.mp4")
    assert run(stylize, "clip.mp4", "strength=0.25") == 0
    stylised = small_videos.decoded("stylized/clip-hayao.mp4")
    for have, picture in zip(stylised, small_videos.pictures(), strict=True):
        expected = picture + 0.25 * (255.0 - 2 * picture.astype(float))
        assert np.abs(have - expected).mean() < 6


@needs_av
def test_progress_shows_the_pace_and_the_time_left(shipped_students, capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    video_file("clip.mp4")
    assert run(stylize, "clip.mp4") == 0
    assert "| 0/12 [" in capsys.readouterr().err  # the number is known beforehand


@needs_av
def test_folders_and_patterns_hold_both(shipped_students, capsys):
    put("in/a.png")
    video_file("in/sub/b.mkv")
    video_file("in/c.AVI", codec="mpeg4", time_base=small_videos.Fraction(1, 25), format="avi")
    assert run(stylize, "in", "-o", "out") == 0
    assert files("out") == ["a-hayao.png", "c-hayao.mp4", "sub/b-hayao.mkv"]
    assert capsys.readouterr().out.endswith("written: 3 files, in 'out'\n")
    assert run(stylize, "in/**/*.mkv", "-o", "other") == 0
    assert files("other") == ["sub/b-hayao.mkv"]


@needs_av
def test_a_damaged_frame_is_said_and_the_status_is_one(shipped_students, capsys):
    source = video_file("clip.mp4", options={"preset": "ultrafast", "g": "1"})
    with av.open(str(source)) as container:
        packet = [p for p in container.demux(video=0) if p.size][4]
        place, size = packet.pos, packet.size
    content = bytearray(source.read_bytes())
    content[place + 8 : place + size] = b"\0" * (size - 8)
    source.write_bytes(content)
    assert run(stylize, "clip.mp4") == 1
    said = capsys.readouterr()
    assert "'clip.mp4': stylised, but 1 damaged frame left out\n" in said.err
    assert said.err.endswith("error: 1 of 1 videos not whole\n")
    assert said.out.endswith("written: 'stylized/clip-hayao.mp4'\n")
    assert len(small_videos.times("stylized/clip-hayao.mp4")[0]) == 11


REFUSED = {
    ("clip.mp4", "-o", "x.png"): "-o x.png: a video is .m4v, .mkv, .mov, .mp4, .webm; a fold",
    ("a.png", "-o", "x.mp4"): "-o x.mp4: a picture is .jpeg, .jpg, .png, .webp; a folder's name",
    ("clip.mp4", "a.png", "-o", "x.mp4"): "-o x.mp4: is one file, name a folder (2 files found)",
    ("clip.mp4", "-o", "clip.mp4"): "clip.mp4: is itself an input and is not written over",
    ("clip.mp4", "smooth=1"): "smooth=1: input should be less than or equal to 0.95",
    ("clip.mp4", "crf=52"): "crf=52: input should be less than or equal to 51",
}


@needs_av
@pytest.mark.parametrize("typed", REFUSED)
def test_refused_in_one_line_before_any_work(shipped_students, typed, capsys):
    video_file("clip.mp4")
    put("a.png")
    Path("clip.avi").write_bytes(b"?")
    before = files()
    assert run(stylize, *typed) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"error: {REFUSED[typed]}")
    assert len(said.splitlines()) == 1
    assert files() == before


def test_videos_of_one_stem_get_names_of_their_own(tmp_path):
    for name in ("clip.mp4", "clip.avi", "clip.MP4", "clip.wmv", "clip.mov"):
        (tmp_path / name).touch()
    found, _ = jobs.find([str(tmp_path)], "out")
    planned = jobs.plan(found, [str(tmp_path)], "out", "ink", channels=3)
    assert {job.source.name: job.target.name for job in planned} == {
        "clip.MP4": "clip-ink.mp4",
        "clip.mp4": "clip-ink-2.mp4",
        "clip.avi": "clip-avi-ink.mp4",
        "clip.wmv": "clip-wmv-ink.mp4",
        "clip.mov": "clip-ink.mov",
    }


def test_without_pyav_one_line_says_what_to_install(shipped_students, monkeypatch, capsys):
    monkeypatch.setattr(videos, "find_spec", lambda name: None)
    Path("clip.mp4").write_bytes(b"whatever it is")
    put("a.png")
    assert run(stylize, "clip.mp4", "a.png") == 1
    assert capsys.readouterr().err == "error: videos need PyAV: pip install 'distill[video]'\n"
    assert run(stylize, "a.png") == 0


@needs_av
def test_stability_is_printed_and_kept(shipped_students, capsys):
    video_file("clip.mp4", width=320, height=240)  # the bar is a small part of what stands still
    assert run(stylize, "clip.mp4", "stability=true", "smooth=0.5") == 0
    assert files("stylized") == ["clip-hayao.mp4", "clip-hayao.stability.json"]
    found = json.loads(Path("stylized/clip-hayao.stability.json").read_text())
    assert found["pairs"] == 11
    assert found["smooth"] == 0.5
    assert found["ratio"] == pytest.approx(found["drawings"] / found["pictures"])
    assert found["unsmoothed"] == pytest.approx(found["pictures"], rel=0.1)  # of the negative
    said = capsys.readouterr().out
    assert f"by {found['drawings']:.2f} levels of 255" in said
    assert f"{found['unsmoothed']:.2f} before smooth=0.5" in said


@needs_av
def test_crops_are_for_pictures(shipped_students, capsys):
    video_file("clip.mp4")
    assert run(stylize, "clip.mp4", "face=crop") == 1
    assert "face=crop is for pictures; leave it off" in capsys.readouterr().err


@needs_av
@pytest.mark.parametrize("blend", ["feathered", "poisson"])
def test_faces_pasted_into_every_frame(shipped_students, capsys, monkeypatch, blend):
    """Of grey frames the negative is darker, which Poisson blending takes away again."""
    small_videos.make("clip.mp4", [np.full((120, 160, 3), 200, np.uint8)] * 9)
    coming = iter([[Face(Box(40, 60, 40, 40))]] * 3 + [[]] * 6)
    monkeypatch.setattr(portraits, "lbp_faces", lambda _photo: next(coming))
    assert run(stylize, "clip.mp4", "face=paste", f"blend={blend}") == 0
    made = np.array(small_videos.decoded("stylized/clip-hayao.mp4"), int)
    opacity = np.array([1, 1, 1, 0.8, 0.6, 0.4, 0.2, 0, 0]) * (blend == "feathered")
    np.testing.assert_allclose(made[:, 60, 80].mean(1), 200 + (55 - 200) * opacity, atol=4)
    np.testing.assert_allclose(made[:, :, :40], 200, atol=4)
    assert "no face found in 6 of 9 frames" in capsys.readouterr().err


@needs_av
def test_a_see_through_output_lies_on_white(shipped_students):
    import onnx

    from distill.export.onnx import OnnxExporter
    from support.stylize_setup import Negative

    onnx.save(OnnxExporter(size=32).export(Negative(4)), "clear.onnx")
    video_file("clip.mp4", 3)
    assert run(stylize, "clip.mp4", "model=clear.onnx") == 0
    stylised = small_videos.decoded("stylized/clip-clear.mp4")[0]
    expected = 255 - small_videos.pictures(1)[0] / 2  # half of the negative, half of white
    assert np.abs(stylised - expected).mean() < 5
