"""People or background alone: what is drawn, what stays as the photo has it, and what is said."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import numpy as np
import pytest
from PIL import Image
from scipy.ndimage import maximum_filter, minimum_filter
from skimage.data import astronaut

from support.chromium_page import FLAGS, canvas, chromium, noisy_camera, show
from support.onnx_networks import negative
from support.parts_page import GONE, SAID, draw, negated, saved

# What MediaPipe itself gives for the astronaut: 255 where a pixel shows her for sure.
OF_MEDIAPIPE = Path(__file__).parents[2] / "tools/mediapipe_astronaut.png"
NETWORK = "**/page/selfie_segmentation-*.onnx"


def masks() -> tuple[np.ndarray, np.ndarray]:
    """Where the astronaut surely is and is not, with some distance to her outline: (512, 512).

    Not at the flag and not at her helmet: there the network is unsure, and a mirrored photo, or one
    made smaller in another way, gives another answer.
    """
    with Image.open(OF_MEDIAPIPE) as picture:
        mask = np.asarray(picture.resize((512, 512), Image.Resampling.BILINEAR))
    sure, other = minimum_filter(mask, 41) > 250, maximum_filter(mask, 41) < 5
    sure[360:] = other[140:] = False
    return sure, other


@pytest.mark.parametrize("part", ["people", "background"])
def test_what_is_not_drawn_is_the_photos_own(visit, part):
    at, photo = negated(visit, part, astronaut())
    found = saved(at)
    drawn, left = masks() if part == "people" else masks()[::-1]
    assert drawn.mean() > 0.1
    assert left.mean() > 0.1
    assert np.array_equal(found[left], photo[left])
    assert np.array_equal(photo, astronaut())  # at its own size, not the network's
    # Drawn at the network's size, so it is as sharp as that at the best.
    blurred = np.asarray(Image.fromarray((255 - photo).astype(np.uint8)).resize((240, 240)))
    blurred = np.asarray(Image.fromarray(blurred).resize((512, 512))).astype(int)
    assert np.abs(found - blurred)[drawn].mean() < 4
    assert np.abs(found - photo)[drawn].mean() > 60


def test_the_part_alone_is_drawn_at_full_size(visit):
    at = visit("?compare=0")
    large = Image.fromarray(astronaut()).resize((1536, 1536), Image.Resampling.NEAREST)
    show(at, large)
    draw(at, "people")
    at.page.click("#mirror")
    at.settle()
    found, photo = saved(at)[:, ::-1], np.asarray(large).astype(int)
    assert found.shape == photo.shape
    sure, other = (mask.repeat(3, 0).repeat(3, 1) for mask in masks())
    assert np.array_equal(found[other], photo[other])
    assert np.abs(found - (255 - photo))[sure].max() <= 1  # at its own sharpness


def test_the_edge_is_soft_and_mediapipes(visit):
    at, _ = negated(visit, "people", astronaut())
    opaque = canvas(at.page, "stylised")[..., 3]
    with Image.open(OF_MEDIAPIPE) as mask:
        want = np.asarray(mask.resize(opaque.shape[::-1], Image.Resampling.BILINEAR))
    both, either = ((opaque > 127) & (want > 127)).sum(), ((opaque > 127) | (want > 127)).sum()
    assert both / either > 0.97
    soft = (opaque > 0) & (opaque < 255)
    assert 0.01 < soft.mean() < 0.1


def test_parts_go_with_strength_divider_mirror_and_resolution(visit):
    at, photo = negated(visit, "people", astronaut(), "?size=256&strength=0.5&full=0")
    sure, other = masks()
    found = saved(at)
    assert np.array_equal(found[:, :250], photo[:, :250])  # left of the divider
    right = np.arange(512) > 262
    assert np.abs(found - 127)[sure & right].mean() < 8  # half a picture, half its negative
    assert np.array_equal(found[other & right], photo[other & right])
    at.page.fill("#strength", "100")
    at.page.click("#compare")
    at.page.click("#mirror")
    at.settle()
    assert np.array_equal(saved(at)[:, ::-1][other], photo[other])
    at.page.select_option("#size", "128")
    at.wait("distill.last().then((last) => last.width === 128)")
    at.settle()
    found = saved(at)[:, ::-1]
    assert np.array_equal(found[other], photo[other])
    assert np.abs(found - photo)[sure].mean() > 60


def test_parts_of_what_a_network_of_ones_own_draws(visit, tmp_path):
    at, photo = negated(visit, "people", astronaut())
    negative(side=96, reshaped=True).save(str(tmp_path / "mine.onnx"))
    at.page.set_input_files("#file", tmp_path / "mine.onnx")
    at.wait("document.getElementById('tag').textContent === 'mine'")
    at.settle()
    found = saved(at)
    sure, other = masks()
    assert np.array_equal(found[other], photo[other])
    assert np.abs(found - photo)[sure].mean() > 60


def test_everything_again_leaves_nothing_see_through(visit):
    at, photo = negated(visit, "background", astronaut())
    draw(at, "everything")
    assert (canvas(at.page, "stylised")[..., 3] == 255).all()
    assert np.abs(saved(at) - photo).mean() > 60
    assert at.page.evaluate("document.querySelector('.viewer.blended')") is None


def test_the_network_comes_once_and_only_where_it_is_wanted(visit):
    asked: list[str] = []
    note = {NETWORK: lambda route: (asked.append(route.request.url), route.continue_())}
    at = visit(routes=note)
    at.settle()
    assert at.page.input_value("#draw") == "everything"
    assert asked == []
    for part in ("people", "background", "everything", "people"):
        draw(at, part)
    assert len(asked) == 1


@pytest.mark.slow
def test_what_is_drawn_is_remembered_and_in_links_until_it_is_forgotten(visit):
    at = visit(permissions=["clipboard-read", "clipboard-write"])
    draw(at, "people")
    assert at.page.evaluate("localStorage.getItem('distill-lens')") == '{"draw":"people"}'
    at.page.click("#link")
    at.wait(SAID)
    link = urlsplit(at.page.evaluate("navigator.clipboard.readText()")).query
    assert dict(parse_qsl(link))["draw"] == "people"
    at.page.reload()
    at.wait("document.querySelector('.viewer.blended') !== null")
    assert at.page.input_value("#draw") == "people"
    at.page.click("#forget")
    at.wait("document.querySelector('.viewer.blended') === null")
    assert at.page.input_value("#draw") == "everything"
    assert at.page.evaluate("localStorage.getItem('distill-lens')") is None
    other = visit("?" + link)
    other.wait("document.querySelector('.viewer.blended') !== null")
    assert other.page.input_value("#draw") == "people"
    unknown = visit("?draw=hands")
    assert unknown.page.input_value("#draw") == "everything"


BROKEN = {
    "missing": (GONE, "did not arrive: the server answers 404"),
    "damaged": ({"body": b"no network"}, "People cannot be told from the background: "),
}


@pytest.mark.parametrize("how", BROKEN)
def test_without_its_network_everything_is_drawn_and_said(visit, how):
    reply, words = BROKEN[how]
    at = visit()
    at.page.route(NETWORK, lambda route: route.fulfill(**reply))
    at.page.select_option("#draw", "people")
    at.wait(SAID)
    assert words in at.text("message")
    assert at.text("message").endswith(". Everything is drawn.")
    assert at.page.input_value("#draw") == "everything"
    assert at.page.evaluate("localStorage.getItem('distill-lens')") is None
    at.settle()
    assert (canvas(at.page, "stylised")[..., 3] == 255).all()
    at.page.unroute(NETWORK)
    draw(at, "people")  # asked for anew
    assert at.text("message") == ""
    assert canvas(at.page, "stylised")[..., 3].min() == 0
    at.noise.clear()  # what the browser and ONNX Runtime tell the console


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
    assert (canvas(at.page, "stylised")[..., 3] == 255).all()
    held[0].continue_()
    at.wait("document.querySelector('.viewer.blended') !== null")
    at.frames(3)
    opaque = canvas(at.page, "stylised")[..., 3]
    assert (opaque[:6, :6] == 0).all()  # above her shoulder
    assert 0.2 < (opaque == 255).mean() < 0.8
    assert at.text("message") == ""


@pytest.mark.slow
def test_webgpu_finds_the_same_people(visit, playwright):
    """Emulated on the CPU. The student stays there, too."""
    emulated = ["--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader"]
    browser = playwright.chromium.launch(executable_path=chromium(), args=[*FLAGS, *emulated])
    opaque = []
    for query in ("?backend=wasm", "?backend=webgpu"):
        at = visit(query + "&size=256&draw=people", browser=browser)
        at.wait("document.querySelector('.viewer.blended') !== null")
        at.settle()
        name = at.page.evaluate("distill.speed().backend.name")
        opaque.append(canvas(at.page, "stylised")[..., 3].astype(int))
        assert name == {"?backend=wasm": "WASM"}.get(query, "WebGPU")
        at.noise.clear()  # what drivers say
    assert np.abs(opaque[0] - opaque[1]).max() <= 2
    assert opaque[0].min() == 0


@pytest.mark.slow
def test_a_still_scenes_edge_is_steady(visit, playwright, tmp_path):
    browser = noisy_camera(playwright, tmp_path / "noise.y4m", 5)

    def flicker(query):
        at = visit(f"{query}&size=256&draw=people", camera=True, browser=browser)
        at.wait("document.getElementById('meter').textContent.includes('FPS')")
        at.wait("document.querySelector('.viewer.blended') !== null")
        at.frames(12)
        seen = []
        for _ in range(5):
            at.frames(2)
            seen.append(canvas(at.page, "stylised")[..., 3].astype(float))
        return np.mean([np.abs(a - b).mean() for a, b in zip(seen, seen[1:], strict=False)])

    plain, steadied = flicker("?steady=0"), flicker("?steady=0.95")
    assert plain > 0.1
    assert steadied < 0.5 * plain


@pytest.mark.slow
def test_films_and_loops_have_the_part_alone(visit, tmp_path):
    av = pytest.importorskip("av", reason="no PyAV: pip install 'distill[video]'")
    from support.small_videos import make

    picture = astronaut()[::2, ::2]
    make(tmp_path / "in.mp4", [picture] * 60)
    at = visit("?compare=0&size=256&draw=people")
    at.page.set_input_files("#file", tmp_path / "in.mp4")
    at.wait("!document.getElementById('film').hidden")
    at.wait("document.querySelector('.viewer.blended') !== null")
    at.frames(2)
    with at.page.expect_download() as found:
        at.page.click("#film")
    with av.open(str(found.value.path())) as video:
        film = [frame.to_ndarray(format="rgb24").astype(int) for frame in video.decode(video=0)]
    at.wait("!document.getElementById('loop').disabled")
    at.frames(2)
    with at.page.expect_download() as found:
        at.page.click("#loop")
    with Image.open(found.value.path()) as loop:
        gif = np.asarray(loop.convert("RGB")).astype(int)
    # A video that is put away while it loads.
    at.noise[:] = [line for line in at.noise if not line.startswith("failed: blob:")]
    sure, other = (mask[::2, ::2] for mask in masks())
    for shown in (film[3], film[-1], gif):
        assert shown.shape == picture.shape
        assert np.abs(shown - picture)[other].mean() < 12  # codecs, and a GIF's 256 colours
        assert np.abs(shown - picture)[sure].mean() > 60
