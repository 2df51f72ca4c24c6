"""Video files on the page: played, drawn whole into a film; and short loops as GIF files."""

import io
import itertools

import numpy as np
import pytest
from PIL import Image

av = pytest.importorskip("av", reason="no PyAV: pip install 'distill[video]'")

from support.small_videos import make, pictures, times  # noqa: E402, needs PyAV

GREEN, GREY = (40, 160, 60), (120, 120, 120)


def clip(count=10):
    """Frames of one colour each, which differ: (count, height, width, 3) bytes."""
    return [np.full((48, 64, 3), 20 * i + 20, np.uint8) for i in range(count)]


def bring(at, path):
    """Open a file on the page."""
    at.settle()
    at.page.set_input_files("#file", str(path))


def play(at, path):
    bring(at, path)
    at.wait("!document.getElementById('film').hidden")
    at.frames(2)


def begun(visit, tmp_path):
    """The page while it draws a film, so long that a busy page is asked before it is done."""
    at = visit("?compare=0")
    play(at, make(tmp_path / "in.mp4", clip(10) * 300))
    at.page.click("#film")
    at.wait("document.getElementById('film-bar').value > 0")
    return at


def drawn(at):
    """Draw the film; gives its path and name."""
    with at.page.expect_download() as found:
        at.page.click("#film")
    return found.value.path(), found.value.suggested_filename


def decoded(path):
    with av.open(str(path)) as video:
        frames = list(video.decode(video=0))
    plain = (frame.reformat(format="rgb24", src_colorspace=frame.colorspace) for frame in frames)
    return [frame.to_ndarray() for frame in plain]


def sounds(path):
    with av.open(str(path)) as video:
        return [stream.codec_context.name for stream in video.streams.audio]


KINDS = [("libx264", "mp4", "aac"), ("libvpx", "webm", "libopus")]


@pytest.mark.parametrize(("codec", "suffix", "sound"), KINDS, ids=["mp4", "webm"])
@pytest.mark.campaign
def test_a_video_is_drawn_frame_by_frame(visit, tmp_path, codec, suffix, sound):
    """With its own times and its sound."""
    stamps = [0, 1, 2, 3, 6, 7, 8, 12, 13, 14]  # of 1/25 s: no even rate
    frames = clip(10)
    source = make(
        tmp_path / f"in.{suffix}", frames, codec=codec, options={}, sound=sound,
        pts=[512 * stamp for stamp in stamps],
    )  # fmt: skip
    at = visit("?compare=0&steady=0")
    play(at, source)
    path, name = drawn(at)
    assert name.startswith("in-negative.")
    got = decoded(path)
    assert len(got) == len(frames)
    assert np.allclose([float(t) for t in times(path)[0]], np.array(stamps) / 25, atol=2e-3)
    for before, after in zip(decoded(source), got, strict=True):
        assert abs(255 - before.mean() - after.mean()) < 4
    assert len(sounds(path)) == 1
    at.wait("document.getElementById('message').textContent.includes('10 frames')")
    at.wait("document.getElementById('film-progress').hidden")
    at.frames(2)  # and it plays again


def test_a_film_stands_upright(visit, tmp_path):
    """A phone's video, which is turned only by what its file says; its colours are BT.709's."""
    frame = np.full((48, 64, 3), GREY, np.uint8)
    frame[:, :32] = GREEN
    source = make(tmp_path / "in.mp4", [frame] * 6, turn=(90, False, False), colours=(1, 1, 1, 1))
    at = visit("?compare=0&steady=0")
    play(at, source)
    got = decoded(drawn(at)[0])[-1]
    assert got.shape[0] > got.shape[1]
    height = got.shape[0]
    # Its left half has become the lower one.
    wanted = {"top": 255 - np.array(GREY), "bottom": 255 - np.array(GREEN)}
    found = {"top": got[: height // 4], "bottom": got[-height // 4 :]}
    for half, colour in wanted.items():
        assert np.abs(np.median(found[half], axis=(0, 1)) - colour).max() < 8, half


@pytest.mark.campaign
def test_a_film_that_is_cancelled_leaves_the_video_playing(visit, tmp_path):
    at = begun(visit, tmp_path)
    assert at.page.inner_text("#film").strip() == "Cancel"
    assert "%" in at.text("film-text")
    at.page.click("#film", force=True)  # at once: waiting for its place, a busy page ends the film
    at.wait("document.getElementById('film-progress').hidden")
    assert at.page.inner_text("#film").strip() == "Save film"
    assert at.text("message") == ""
    at.frames(3)


def test_what_is_no_video_is_said(visit, tmp_path):
    at = visit()
    path = tmp_path / "broken.mp4"
    path.write_bytes(b"no video at all" * 100)
    bring(at, path)
    at.wait("document.getElementById('message').textContent !== ''")
    assert at.text("message").startswith("broken.mp4: no video this browser can play")
    assert at.page.is_hidden("#film")


@pytest.mark.campaign
def test_a_loop_plays_there_and_back(visit, tmp_path):
    at = visit("?compare=0&steady=0")
    play(at, make(tmp_path / "in.mp4", pictures(count=24)))
    with at.page.expect_download() as found:
        at.page.click("#loop")
    assert found.value.suggested_filename.endswith(".gif")
    gif = Image.open(io.BytesIO(found.value.path().read_bytes()))
    shown = []
    for at_frame in range(gif.n_frames):
        gif.seek(at_frame)
        shown.append((np.asarray(gif.convert("RGB")).astype(int), gif.info["duration"]))
    assert gif.info["loop"] == 0
    forth = len(shown) // 2 + 1
    assert len(shown) == 2 * forth - 2
    for there, back in zip(shown[1 : forth - 1], shown[: forth - 1 : -1], strict=True):
        assert np.array_equal(there[0], back[0])
    assert 1900 <= sum(duration for _, duration in shown[:forth]) <= 3500
    moved = [np.abs(a - b).mean() for (a, _), (b, _) in itertools.pairwise(shown[:forth])]
    assert max(moved) > 1
    # The clip's wedge has a blue of 60, its negative one of 195.
    assert abs(np.median(shown[0][0][..., 2]) - 195) < 15
    at.wait("document.getElementById('message').textContent.includes('GIF')")


def test_a_loop_of_the_camera_can_be_left(visit):
    at = visit(camera=True)
    at.wait("!document.getElementById('loop').hidden")
    at.page.click("#loop")
    assert at.page.get_attribute("#loop", "aria-pressed") == "true"
    at.page.click("#loop")
    assert at.page.get_attribute("#loop", "aria-pressed") == "false"
    assert at.page.inner_text("#loop").strip() == "Loop"
    at.page.click("#camera")
    at.wait("document.getElementById('loop').hidden")
