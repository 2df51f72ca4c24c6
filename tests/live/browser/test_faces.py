"""Faces alone: what is drawn of a picture, what stays as the photo has it, and what is said."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import numpy as np
import pytest
from PIL import Image, ImageDraw
from skimage.data import astronaut, coffee

from support.chromium_page import FLAGS, chromium, noisy_camera, show
from support.onnx_networks import negative
from support.parts_page import CUT, GONE, SAID, draw, negated, opacity, saved

# What MediaPipe itself finds in the astronaut, in shares of her picture.
OF_MEDIAPIPE = Path(__file__).parents[2] / "tools/blazeface_astronaut.json"
NETWORK = "**/page/blazeface_short_range-*.onnx"
NO_FACE = "No face was found in this picture: it stays as it is."
# The outline of her face in the photo's pixels, drawn by hand; her forehead under the fringe is in.
OUTLINE = np.array(
    [
        *[(190, 73), (200, 67), (213, 63), (226, 62), (240, 64), (253, 69), (263, 79), (269, 93)],
        *[(271, 106), (270, 121), (267, 137), (262, 152), (252, 165), (240, 174), (228, 178)],
        *[(215, 177), (203, 171), (192, 162), (185, 150), (182, 135), (180, 115), (182, 93)],
    ]
)


def outlined(grown: float, size: tuple[int, int] = (512, 512)) -> np.ndarray:
    """What lies inside of her outline, grown about its middle: (height, width)."""
    middle = (OUTLINE.min(0) + OUTLINE.max(0)) / 2
    mask = Image.new("1", (512, 512))
    ImageDraw.Draw(mask).polygon([*map(tuple, middle + grown * (OUTLINE - middle))], fill=1)
    return np.asarray(mask.resize(size))


def surely() -> tuple[np.ndarray, np.ndarray]:
    """Her face within its edge, and all but her face and what is around it."""
    return outlined(0.75), ~outlined(1.35)


def twice() -> np.ndarray:
    """Two of her side by side, the second one lower by 64 pixels."""
    return np.hstack([astronaut(), np.roll(astronaut(), 64, 0)])


def test_her_face_is_drawn_and_all_else_is_the_photos_own(visit):
    at, photo = negated(visit, "faces", astronaut())
    found = saved(at)
    face, other = surely()
    assert face.mean() > 0.015
    assert other.mean() > 0.9  # shoulders, flag, helmet, hair
    assert np.array_equal(found[other], photo[other])
    assert np.array_equal(photo, astronaut())
    blurred = Image.fromarray((255 - photo).astype(np.uint8)).resize((240, 240)).resize((512, 512))
    assert np.abs(found - np.asarray(blurred).astype(int))[face].mean() < 6
    assert np.abs(found - photo)[face].mean() > 60
    assert at.text("message") == ""


def test_the_oval_is_her_faces_outline(visit):
    at, _ = negated(visit, "faces", astronaut())
    opaque = opacity(at)
    want = outlined(1, opaque.shape[::-1])
    both, either = ((opaque > 127) & want).sum(), ((opaque > 127) | want).sum()
    assert both / either > 0.88
    points = np.array(json.loads(OF_MEDIAPIPE.read_text())["mediapipe"]["points"])
    for x, y in points[:4]:  # eyes, nose and mouth
        assert opaque[int(256 * y), int(256 * x)] == 255
    soft = (opaque > 0) & (opaque < 255)
    assert 0.1 < soft.sum() / (opaque > 0).sum() < 0.4


def test_every_face_of_a_picture_is_drawn(visit):
    at, photo = negated(visit, "faces", twice())
    found = saved(at)
    face, other = surely()
    faces = np.hstack([face, np.roll(face, 64, 0)])
    others = np.hstack([other, np.roll(other, 64, 0)])
    assert np.abs(found - photo)[faces].mean() > 60
    assert np.array_equal(found[others], photo[others])


def test_a_small_face_is_found_in_a_part_of_the_picture(visit):
    """A fifteenth of its width: the detector sees nothing of it in the whole."""
    large = np.full((800, 1100, 3), 150, np.uint8)
    large[300:700, 600:1000] = np.asarray(Image.fromarray(astronaut()).resize((400, 400)))
    at = visit("?compare=0&size=256")
    show(at, Image.fromarray(large))
    draw(at, "faces")
    found = saved(at)  # at its own size
    assert found.shape == large.shape
    changed = np.abs(found - large.astype(int)).max(2) > 0
    face = np.zeros_like(changed)
    face[300:700, 600:1000] = outlined(0.5, (400, 400))
    assert np.abs(found - (255 - large.astype(int)))[face].max() <= 1
    near = np.zeros_like(changed)
    near[300:700, 600:1000] = outlined(1.5, (400, 400))
    assert not (changed & ~near).any()


def test_without_a_face_the_photo_stays_and_that_is_said(visit):
    at, photo = negated(visit, "faces", coffee())
    assert np.array_equal(saved(at), photo)
    at.page.click("#mirror")
    at.settle()
    assert at.text("message") == NO_FACE
    show(at, Image.fromarray(astronaut()))
    assert at.text("message") == ""
    show(at, Image.fromarray(coffee()))
    assert at.text("message") == NO_FACE
    draw(at, "background")
    assert at.text("message") == ""
    assert opacity(at).max() == 255


def test_faces_go_with_strength_divider_mirror_and_full_size(visit):
    at, photo = negated(visit, "faces", astronaut(), "?size=256&strength=0.5&full=0")
    face, other = surely()
    found = saved(at)
    assert np.array_equal(found[:, :250], photo[:, :250])  # left of the divider
    right = np.arange(512) > 262
    assert (
        np.abs(found - 127)[outlined(0.9) & right].mean() < 8
    )  # half a picture, half its negative
    assert np.array_equal(found[other & right], photo[other & right])
    at.page.fill("#strength", "100")
    at.page.click("#compare")
    at.page.click("#mirror")
    at.settle()
    found = saved(at)[:, ::-1]
    assert np.array_equal(found[other], photo[other])
    assert np.abs(found - photo)[face].mean() > 60
    large = Image.fromarray(astronaut()).resize((1536, 1536), Image.Resampling.NEAREST)
    at.page.check("#full")
    show(at, large)
    at.page.click("#mirror")
    at.settle()
    found, photo = saved(at)[:, ::-1], np.asarray(large).astype(int)
    other = other.repeat(3, 0).repeat(3, 1)
    assert found.shape == photo.shape
    assert np.array_equal(found[other], photo[other])
    inner = outlined(0.6).repeat(3, 0).repeat(3, 1)
    assert np.abs(found - (255 - photo))[inner].max() <= 1  # at its own sharpness


def test_faces_that_a_network_of_ones_own_draws(visit, tmp_path):
    at, photo = negated(visit, "faces", astronaut())
    negative(side=96, reshaped=True).save(str(tmp_path / "mine.onnx"))
    at.page.set_input_files("#file", tmp_path / "mine.onnx")
    at.wait("document.getElementById('tag').textContent === 'mine'")
    at.settle()
    found = saved(at)
    face, other = surely()
    assert np.array_equal(found[other], photo[other])
    assert np.abs(found - photo)[face].mean() > 60


def test_from_people_to_faces_and_back(visit):
    at, _ = negated(visit, "people", astronaut())
    people = opacity(at)
    draw(at, "faces")
    faces = opacity(at)
    draw(at, "people")
    assert np.array_equal(opacity(at), people)
    assert 0.02 < (faces > 127).mean() < 0.1 < (people > 127).mean()


def test_the_network_comes_once_and_only_where_it_is_wanted(visit):
    asked: list[str] = []
    note = {NETWORK: lambda route: (asked.append(route.request.url), route.continue_())}
    at = visit(routes=note)
    for part in ("people", "background"):
        draw(at, part)
    assert asked == []
    for part in ("faces", "everything", "faces"):
        draw(at, part)
    assert len(asked) == 1


@pytest.mark.slow
def test_faces_are_remembered_and_in_links_until_they_are_forgotten(visit):
    at = visit(permissions=["clipboard-read", "clipboard-write"])
    draw(at, "faces")
    assert at.page.evaluate("localStorage.getItem('distill-lens')") == '{"draw":"faces"}'
    at.page.click("#link")
    at.wait(SAID)
    link = urlsplit(at.page.evaluate("navigator.clipboard.readText()")).query
    assert dict(parse_qsl(link))["draw"] == "faces"
    at.page.reload()
    at.wait(CUT)
    assert at.page.input_value("#draw") == "faces"
    at.page.click("#forget")
    at.wait("!" + f"({CUT})")
    assert at.page.input_value("#draw") == "everything"
    other = visit("?" + link)
    other.wait(CUT)
    assert other.page.input_value("#draw") == "faces"


BROKEN = {
    "missing": (GONE, "did not arrive: the server answers 404"),
    "damaged": ({"body": b"no network"}, "Faces cannot be told from the rest: "),
}


@pytest.mark.parametrize("how", BROKEN)
def test_without_its_network_everything_is_drawn_and_said(visit, how):
    reply, words = BROKEN[how]
    at = visit()
    draw(at, "people")
    at.page.route(NETWORK, lambda route: route.fulfill(**reply))
    at.page.select_option("#draw", "faces")
    at.wait(SAID)
    assert words in at.text("message")
    assert at.text("message").startswith("Faces cannot be told from the rest: ")
    assert at.text("message").endswith(". Everything is drawn.")
    assert at.page.input_value("#draw") == "everything"
    at.settle()
    assert (opacity(at) == 255).all()
    at.page.unroute(NETWORK)
    draw(at, "faces")  # asked for anew
    assert at.text("message") == ""
    assert opacity(at).min() == 0
    at.noise.clear()  # what the browser and ONNX Runtime tell the console


def test_faces_under_the_camera(visit):
    at = visit("?compare=0&size=256&draw=faces", camera=True)  # a slow machine's choice is 48
    at.wait("document.getElementById('meter').textContent.includes('FPS')")
    at.wait(CUT)
    at.frames(3)
    opaque = opacity(at)
    assert 0.05 < (opaque == 255).mean() < 0.3
    assert (opaque[:, :20] == 0).all()  # her collar, and what is behind her
    assert (opaque[-20:] == 0).all()
    assert at.text("message") == ""


@pytest.mark.slow
def test_a_camera_that_sees_no_face_says_nothing(visit, playwright, tmp_path):
    browser = noisy_camera(playwright, tmp_path / "coffee.y4m", 5, Image.fromarray(coffee()))
    at = visit("?compare=0&size=256&draw=faces", camera=True, browser=browser)
    at.wait("document.getElementById('meter').textContent.includes('FPS')")
    at.wait(CUT)
    at.page.evaluate("document.getElementById('message').textContent = ''")  # of the example before
    at.frames(5)
    assert opacity(at).max() == 0
    assert at.text("message") == ""


@pytest.mark.slow
def test_webgpu_finds_the_same_faces(visit, playwright):
    """Emulated on the CPU."""
    emulated = ["--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader"]
    browser = playwright.chromium.launch(executable_path=chromium(), args=[*FLAGS, *emulated])
    opaque = []
    for query in ("?backend=wasm", "?backend=webgpu"):
        at = visit(query + "&size=256&draw=faces", browser=browser)
        at.wait(CUT)
        at.settle()
        name = at.page.evaluate("distill.speed().backend.name")
        opaque.append(opacity(at))
        assert name == {"?backend=wasm": "WASM"}.get(query, "WebGPU")
        at.noise.clear()  # what drivers say
    assert np.abs(opaque[0] - opaque[1]).max() <= 4
    assert opaque[0].max() == 255


@pytest.mark.slow
def test_a_still_scenes_oval_is_steady(visit, playwright, tmp_path):
    browser = noisy_camera(playwright, tmp_path / "noise.y4m", 5)

    def flicker(query):
        at = visit(f"{query}&size=256&draw=faces", camera=True, browser=browser)
        at.wait("document.getElementById('meter').textContent.includes('FPS')")
        at.wait(CUT)
        at.frames(12)
        seen = []
        for _ in range(5):
            at.frames(2)
            seen.append(opacity(at).astype(float))
        return np.mean([np.abs(a - b).mean() for a, b in zip(seen, seen[1:], strict=False)])

    plain, steadied = flicker("?steady=0"), flicker("?steady=0.95")
    assert plain > 0.05
    assert steadied < 0.5 * plain


@pytest.mark.slow
def test_films_and_loops_have_the_face_alone(visit, tmp_path):
    av = pytest.importorskip("av", reason="no PyAV: pip install 'distill[video]'")
    from support.small_videos import make

    picture = astronaut()[::2, ::2]
    make(tmp_path / "in.mp4", [picture] * 60)
    at = visit("?compare=0&size=256&draw=faces")
    at.page.set_input_files("#file", tmp_path / "in.mp4")
    at.wait("!document.getElementById('film').hidden")
    at.wait(CUT)
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
    face, other = (mask[::2, ::2] for mask in surely())
    for shown in (film[3], film[-1], gif):
        assert shown.shape == picture.shape
        assert np.abs(shown - picture)[other].mean() < 12  # codecs, and a GIF's 256 colours
        assert np.abs(shown - picture)[face].mean() > 60
