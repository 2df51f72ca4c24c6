"""People or background alone: what is drawn, what stays as the photo has it, and what is said."""

import numpy as np
import pytest
from PIL import Image
from skimage.data import astronaut, rocket

from support.astronaut_parts import PERSON_OF_MEDIAPIPE, person_and_rest
from support.chromium_page import download, show
from support.parts_page import CUT, GONE, SAID, draw, negated, opacity, saved

NETWORK = "**/page/selfie_segmentation-*.onnx"


def test_the_edge_is_soft_and_mediapipes(visit):
    at, _ = negated(visit, "people", astronaut())
    opaque = opacity(at)
    with Image.open(PERSON_OF_MEDIAPIPE) as mask:
        want = np.asarray(mask.resize(opaque.shape[::-1], Image.Resampling.BILINEAR))
    both, either = ((opaque > 127) & (want > 127)).sum(), ((opaque > 127) | (want > 127)).sum()
    assert both / either > 0.97
    soft = (opaque > 0) & (opaque < 255)
    assert 0.01 < soft.mean() < 0.1


@pytest.mark.campaign
def test_parts_go_with_strength_divider_mirror_and_resolution(visit):
    at, photo = negated(visit, "people", astronaut(), "?size=256&strength=0.5&beside=1")
    sure, other = person_and_rest()
    found = saved(at)
    assert np.array_equal(found[:, :250], photo[:, :250])  # left of the divider
    right = np.arange(512) > 262
    assert np.abs(found - 127)[sure & right].mean() < 8  # half a picture, half its negative
    assert np.array_equal(found[other & right], photo[other & right])
    at.page.fill("#strength", "100")
    at.page.uncheck("#beside")
    at.page.click("#mirror")
    at.settle()
    assert np.array_equal(saved(at)[:, ::-1][other], photo[other])
    at.page.select_option("#size", "128")
    at.wait("distill.last().then((last) => last.width === 128)")
    at.settle()
    found = saved(at)[:, ::-1]
    assert np.array_equal(found[other], photo[other])
    assert np.abs(found - photo)[sure].mean() > 60


def test_one_failure_does_not_forget_what_was_set_before(visit):
    at = visit()
    draw(at, "people")
    at.page.route(NETWORK, lambda route: route.fulfill(**GONE))
    at.page.reload()
    at.wait(SAID)
    assert at.page.input_value("#draw") == "everything"
    assert at.page.evaluate("localStorage.getItem('distill-lens')") == '{"draw":"people"}'
    at.noise.clear()


def test_the_camera_goes_on_while_the_network_comes(visit):
    held: list = []
    routes = {NETWORK: lambda route: held.append(route)}
    at = visit("?compare=0&size=256", camera=True, routes=routes)  # a slow machine's choice is 48
    at.wait("document.getElementById('meter').textContent.includes('FPS')")
    at.page.select_option("#draw", "people")
    at.wait_here(lambda: held)
    at.frames(5)
    assert (opacity(at) == 255).all()
    held[0].continue_()
    at.wait(CUT)
    at.frames(3)
    opaque = opacity(at)
    assert (opaque[:6, :6] == 0).all()  # above her shoulder
    assert 0.2 < (opaque == 255).mean() < 0.8
    assert at.text("message") == ""


def behind(at, kind: str) -> None:
    """Pick what stands behind people, and wait until it does."""
    at.page.select_option("#background", kind)
    kept = "JSON.parse(localStorage.getItem('distill-lens') ?? '{}').background ?? ''"
    at.wait(f"({kept}) === '{kind}'")
    at.page.wait_for_timeout(100)  # until its first frame is asked for
    at.settle()


def edges(picture: np.ndarray, where: np.ndarray) -> float:
    """The mean change from a pixel to the next, in levels."""
    return np.abs(np.diff(picture.astype(int), axis=1))[where[:, 1:]].mean()


@pytest.mark.parametrize(
    "full", [0, pytest.param(1, marks=pytest.mark.campaign)], ids=["512", "1024"]
)
@pytest.mark.parametrize(
    "query",
    [
        "&draw=people",
        *(
            pytest.param(q, marks=pytest.mark.campaign)
            for q in ("", "&draw=background&strength=0.5")
        ),
    ],
)
def test_another_background_stands_behind_all_that_is_drawn(visit, query, full):
    at = visit(f"?compare=0&size=256&colour=%23204080{query}")
    show(at, Image.fromarray(astronaut()).resize((512 * (1 + full),) * 2))
    plain = saved(at)
    sure, other = (mask.repeat(1 + full, 0).repeat(1 + full, 1) for mask in person_and_rest())
    behind(at, "clear")
    found = np.asarray(download(at.page, "#save").convert("RGBA")).astype(int)
    assert found.shape[:2] == plain.shape[:2]
    assert (found[other][:, 3] == 0).all()
    assert (found[sure][:, 3] == 255).all()
    assert np.abs(found[..., :3] - plain)[sure].max() <= 2
    behind(at, "colour")
    found = saved(at)
    assert (found[other] == (0x20, 0x40, 0x80)).all()
    assert np.abs(found - plain)[sure].max() <= 2
    behind(at, "blurred")
    found = saved(at)
    assert np.abs(found - plain)[sure].max() <= 2
    assert edges(found, other) < 0.4 * edges(plain, other)
    assert np.abs(found[other].mean(0) - plain[other].mean(0)).max() < 25  # its own colours
    behind(at, "")
    assert np.array_equal(saved(at), plain)


def test_what_is_see_through_is_saved_as_png(visit):
    at = visit("?compare=0&size=256&format=jpeg")
    show(at, Image.fromarray(astronaut()))
    behind(at, "clear")
    assert at.page.is_disabled("#format")
    assert at.page.input_value("#format") == "png"
    assert at.page.is_hidden("#quality-row")
    picture = download(at.page, "#save")
    assert picture.getchannel("A").getextrema() == (0, 255)
    behind(at, "colour")
    assert at.page.input_value("#format") == "jpeg"
    assert at.page.is_visible("#colour")


def test_where_nobody_is_a_pictures_background_stays_and_that_is_said(visit):
    at = visit("?compare=0&size=256")
    show(at, Image.fromarray(rocket()))
    plain = saved(at)
    at.page.select_option("#background", "colour")
    at.wait(SAID)
    assert at.text("message").startswith("Nobody was found in this picture")
    assert np.abs(saved(at) - plain).mean() < 2  # perhaps enlarged in another way
    behind(at, "")
    assert at.text("message") == ""


def test_films_and_loops_of_the_camera_are_see_through(visit):
    """VP9 with AlphaMode in WebM, which Chromium writes; a GIF with a colour that is not seen."""
    at = visit("?compare=0&size=256&background=clear", camera=True)
    at.wait("document.getElementById('meter').textContent.includes('FPS')")
    at.frames(3)
    assert opacity(at)[:6, :6].max() == 0
    at.page.click("#record")
    at.wait("document.getElementById('record').getAttribute('aria-pressed') === 'true'")
    at.frames(8)
    with at.page.expect_download() as film:
        at.page.click("#record")
    assert film.value.suggested_filename.endswith(".webm")
    assert b"\x53\xc0\x81\x01" in film.value.path().read_bytes()
    assert not at.text("message").startswith("This browser writes no film")
    with at.page.expect_download() as loop:
        at.page.click("#loop")
    with Image.open(loop.value.path()) as gif:
        for frame in range(gif.n_frames):
            gif.seek(frame)
            seen = np.asarray(gif.convert("RGBA"))[..., 3]
            assert (seen[:4, :4] == 0).all()
            assert 0.2 < (seen == 255).mean() < 0.8


def test_a_film_that_is_not_see_through_is_said(visit):
    """Where the browser's file does not say that it has opacity."""
    script = "Blob.prototype.slice = () => new Blob([]);"
    at = visit("?compare=0&size=256&background=clear", camera=True, script=script)
    at.wait("document.getElementById('meter').textContent.includes('FPS')")
    at.page.click("#record")
    at.wait("document.getElementById('record').getAttribute('aria-pressed') === 'true'")
    at.frames(4)
    with at.page.expect_download():
        at.page.click("#record")
    at.wait(
        "document.getElementById('message').textContent.startsWith('This browser writes no film')"
    )


NO_VP9 = """
const ask = VideoEncoder.isConfigSupported.bind(VideoEncoder);
VideoEncoder.isConfigSupported = async (config) =>
  /^vp/.test(config.codec) ? { supported: false, config } : ask(config);
"""


@pytest.mark.parametrize("clear", [pytest.param(True, marks=pytest.mark.campaign), False])
def test_a_videos_film_is_see_through_or_on_black_and_that_is_said(visit, tmp_path, clear):
    av = pytest.importorskip("av", reason="no PyAV: pip install 'distill[video]'")
    from support.small_videos import make

    count = 60 if clear else 10  # beyond a key frame of VP9
    make(tmp_path / "in.mp4", [astronaut()[::2, ::2]] * count, sound="aac")
    script = "" if clear else NO_VP9
    at = visit("?compare=0&size=256&background=clear", script=script)
    at.page.set_input_files("#file", tmp_path / "in.mp4")
    at.wait("!document.getElementById('film').hidden")
    at.frames(2)
    with at.page.expect_download(timeout=240_000) as film:
        at.page.click("#film")
    at.wait("document.getElementById('message').textContent !== ''")
    with av.open(str(film.value.path())) as video:
        decoder = av.CodecContext.create("libvpx-vp9", "r") if clear else None
        frames = []
        for packet in video.demux(video=0):
            frames += decoder.decode(packet) if decoder else packet.decode()
    assert len(frames) == count
    _, other = (mask[::2, ::2] for mask in person_and_rest())
    for frame in (frames[0], frames[-1]):
        seen = frame.to_ndarray(format="rgba" if clear else "rgb24")
        assert seen[other][:, -1 if clear else 0].mean() < 12
        assert seen[~other][:, -1 if clear else 0].mean() > 30
    if clear:
        assert film.value.suggested_filename.endswith(".webm")
        assert (frames[-1].to_ndarray(format="rgba")[..., 3] > 250).mean() > 0.2
        assert at.text("message").startswith("The film is saved: 60 frames.")
    else:
        assert at.text("message").startswith("This browser writes no film with transparency")
    # A video that is put away while it loads.
    at.noise[:] = [line for line in at.noise if not line.startswith("failed: blob:")]
