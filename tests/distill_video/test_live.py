"""distill.stylize camera=, with a file in the place of a camera and a list in that of a window."""

import importlib.util
import signal
import sys
import threading
import types
from pathlib import Path

import numpy as np
import pytest

from distill.stylize import __main__ as stylize
from support.commands import run
from support.stylize_setup import files, put

if importlib.util.find_spec("av") is None:
    pytest.skip("PyAV is missing: pip install 'distill[video]'", allow_module_level=True)

import av

from distill_video import camera as cameras
from support import small_videos


class Shown:
    """A screen that keeps what it is shown, and may be closed after so many frames."""

    closes_after = 10**6

    def __init__(self, title, size):
        self.title, self.size, self.frames, self.closed = title, size, [], False
        Shown.last = self

    def show(self, picture):
        self.frames.append(picture)
        return len(self.frames) < self.closes_after

    def close(self):
        self.closed = True


@pytest.fixture
def screen(shipped_students, monkeypatch):
    monkeypatch.setitem(cameras.SCREENS, "window", Shown)
    small_videos.make(Path("clip.mp4"), small_videos.pictures(12, 64, 48))
    return Shown


def test_a_file_plays_as_a_camera_to_its_end(screen, capsys):
    assert run(stylize, "camera=clip.mp4") == 0
    shown = screen.last
    assert (shown.title, shown.size, shown.closed) == ("distill: hayao", (64, 48), True)
    inverted = [255 - each.astype(int) for each in small_videos.pictures(12, 64, 48)]
    for frame in shown.frames:  # each is one of the file's, as the student inverts it
        assert min(np.abs(frame - each).mean() for each in inverted) < 6
    output = capsys.readouterr()
    last = output.out.splitlines()[-1]
    assert last.startswith(f"{len(shown.frames)} frame")
    assert int(last.split("; ")[1].split()[0]) == 12 - len(shown.frames)
    assert not output.err
    assert files() == ["clip.mp4"]


def test_smoothing_works_on_a_camera_too(screen):
    assert run(stylize, "camera=clip.mp4", "smooth=0.8") == 0
    assert screen.last.frames[-1].shape == (48, 64, 3)


def test_a_closed_window_ends_it(screen, monkeypatch, capsys):
    monkeypatch.setattr(Shown, "closes_after", 2)
    assert run(stylize, "camera=clip.mp4") == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("2 frames in ")


def test_ctrl_c_ends_it_and_the_count_is_said(screen, monkeypatch, capsys):
    def interrupted(self, picture):
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Shown, "show", interrupted)
    assert run(stylize, "camera=clip.mp4") == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("1 frame in ")
    assert screen.last.closed


REFUSED = {
    ("camera=99",): "camera=99: cannot be opened (no such file or directory); cameras here: ",
    ("camera=broken.mp4",): "camera=broken.mp4: cannot be opened (not a video, or damaged at its",
    ("camera=clip.mp4", "face=crop"): "face=crop is for pictures; leave it off",
    ("camera=clip.mp4", "a.png"): "camera=clip.mp4: is shown as it comes; leave a.png out",
    ("camera=clip.mp4", "-o", "x"): "camera=clip.mp4: is shown as it comes; leave -o out",
    ("camera=clip.mp4", "screen=virtual"): "screen=virtual: needs pyvirtualcam; pip install 'dis",
    ("camera=clip.mp4", "screen=wall"): "screen='wall': input should be 'window' or 'virtual'",
}


@pytest.mark.skipif(sys.platform != "linux", reason="other systems name their cameras otherwise")
@pytest.mark.parametrize("typed", REFUSED)
def test_refused_in_one_line(screen, typed, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyvirtualcam", None)
    Path("broken.mp4").write_text("a text\n" * 99)
    put("a.png")
    assert run(stylize, *typed) == 1
    errors = capsys.readouterr().err
    assert errors.startswith(f"error: {REFUSED[typed]}")
    assert len(errors.splitlines()) == 1


class Device:
    """In the place of a camera's container: so many frames, then what the last one says."""

    def __init__(self, frames, then):
        self.frames, self.then, self.closed = frames, then, threading.Event()

    def decode(self, stream):
        for picture in self.frames:
            yield av.VideoFrame.from_ndarray(picture, format="rgb24")
        self.then()

    def close(self):
        self.closed.set()


def unplugged():
    raise av.FFmpegError(19, "No such device")


@pytest.mark.parametrize(
    ("then", "line"),
    [
        (unplugged, "camera=0: stopped (no such device); is it unplugged?"),
        (lambda: None, "camera=0: stopped (no more frames); is it unplugged?"),
        (threading.Event().wait, "camera=0: no frame for 0.5 seconds; is it in use, or unplugged?"),
    ],
)
def test_a_camera_that_stops_is_one_line_after_the_count(screen, monkeypatch, capsys, then, line):
    device = Device(small_videos.pictures(1, 64, 48), then)
    monkeypatch.setattr(cameras, "PATIENCE", 0.5)
    monkeypatch.setattr(cameras.av, "open", lambda name, format: device)
    monkeypatch.setattr(cameras, "first_video", lambda container, remarks: None)
    assert run(stylize, "camera=0") == 1
    output = capsys.readouterr()
    assert output.err == f"error: {line}\n"
    assert output.out.splitlines()[-1].startswith("1 frame in ")
    assert screen.last.closed


def test_a_virtual_camera_gets_the_frames_or_says_what_is_missing(screen, monkeypatch, capsys):
    sent = []
    driver = types.SimpleNamespace(device="/dev/video9", send=sent.append, close=lambda: None)
    package = types.ModuleType("pyvirtualcam")
    package.Camera = lambda width, height, fps: driver
    monkeypatch.setitem(sys.modules, "pyvirtualcam", package)
    assert run(stylize, "camera=clip.mp4", "screen=virtual") == 0
    assert sent[0].shape == (48, 64, 3)
    assert sent[0].dtype == np.uint8
    assert "virtual camera: /dev/video9\n" in capsys.readouterr().out

    def none(width, height, fps):
        raise RuntimeError("v4l2loopback:\n no device found")

    package.Camera = none
    assert run(stylize, "camera=clip.mp4", "screen=virtual") == 1
    assert capsys.readouterr().err == (
        "error: screen=virtual: no virtual camera (v4l2loopback: no device found); Linux: sudo "
        "modprobe v4l2loopback, Windows and macOS: install OBS\n"
    )


def test_without_a_display_one_line_names_the_other_screen(shipped_students, monkeypatch, capsys):
    pytest.importorskip("tkinter")
    monkeypatch.delenv("DISPLAY", raising=False)
    if sys.platform != "linux":
        pytest.skip("other systems need no DISPLAY")
    small_videos.make(Path("clip.mp4"), small_videos.pictures(2, 64, 48))
    assert run(stylize, "camera=clip.mp4") == 1
    errors = capsys.readouterr().err
    assert errors.startswith("error: screen=window: no display to open it on (")
    assert errors.endswith("; use screen=virtual\n")
    assert len(errors.splitlines()) == 1
