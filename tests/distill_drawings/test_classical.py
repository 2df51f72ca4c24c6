"""The classical styles: one tester for all of them, and each against its paper's formulas."""

from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import ndimage, stats
from skimage import color, data
from torch import Tensor

import distill_drawings
from distill.config import compose
from distill.config.settings.training import Train
from distill.core.errors import DistillError
from distill.core.licence_terms import Licence
from distill.models import build
from distill_drawings import abstraction as ab
from distill_drawings.comic import ComicDrawing
from distill_drawings.ink import InkDrawing
from distill_drawings.neon import NeonSign
from distill_drawings.oil import OilPainting
from distill_drawings.pencil import match_histogram, strokes
from distill_drawings.poster import PosterPrint
from distill_drawings.toon import Toon
from distill_drawings.watercolour import Watercolour

CONF = Path(distill_drawings.__file__).parent / "conf/style"
STYLES = [path.stem for path in sorted(CONF.glob("*.yaml")) if path.stem != "toon"]
PHOTO = torch.from_numpy(data.astronaut()[:192, 128:320] / 255).float().movedim(-1, 0)[None]


def composed(name: str) -> Train:
    return compose.load("train", [f"style={name}"], Train)


@pytest.fixture(params=STYLES)
def style(request):
    settings = composed(request.param)
    teacher = build.load_teacher(settings.style, settings.teacher)
    assert isinstance(teacher, ab.Classical)
    return teacher


def test_the_styles_are_found():
    assert {"ink", "oil", "watercolour", "pencil", "comic", "poster", "neon"} <= {*STYLES}


@pytest.mark.parametrize("shape", [(2, 3, 33, 47), (1, 3, 9, 130), (1, 3, 1, 1)])
def test_any_size_to_the_same_size(style, shape):
    output = style(torch.rand(shape, generator=torch.Generator().manual_seed(0)))  # checked
    assert output.shape == shape
    assert output.dtype == torch.float32


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_an_even_photo_gets_no_lines(style, value):
    assert style(torch.full((1, 3, 40, 40), value)).std((2, 3)).max() < 0.08  # grain alone


def test_drawn_twice_and_in_a_batch_it_is_the_same(style):
    photos = torch.cat([PHOTO[..., :48, :40], PHOTO[..., 60:108, 50:90]])
    with torch.autocast("cpu", torch.bfloat16):
        drawn = style(photos)
    assert torch.equal(drawn, style(photos))
    assert torch.allclose(drawn[1:], style(photos[1:]), atol=1e-4)


def test_it_changes_the_photo_more_than_toon_does(style):
    drawn = style(PHOTO)
    assert (drawn - PHOTO).abs().mean() > (Toon()(PHOTO) - PHOTO).abs().mean()


@pytest.mark.parametrize("name", STYLES)
def test_it_is_free_for_commercial_use_and_all_its_settings_are_in_conf(name):
    style, teacher = (settings := composed(name)).style, settings.teacher
    assert Licence.from_text("teacher", style.licence).commercial == "yes"
    made = build.load_teacher(style, teacher)
    assert teacher is not None
    assert {f.name for f in fields(made)} == teacher.keys() - {"_target_"}  # type: ignore[arg-type]
    plain = type(made)()
    other = [f.name for f in fields(made) if list_of(made, f.name) != list_of(plain, f.name)]  # type: ignore[arg-type]
    assert other == {"screenprint": ["palette"], "crayons": ["coloured"]}.get(name, [])


def list_of(teacher: object, name: str) -> object:
    value = getattr(teacher, name)
    return list(value) if name == "palette" else value


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("ink", "ink=black"),
        ("oil", "brush=0"),
        ("poster", "palette=[red]"),
        ("poster", "colours=1"),
    ],
)
def test_a_wrong_setting_is_one_line(name, wrong):
    with pytest.raises(DistillError, match=r"^teacher\.\w+=[^\n]+$"):
        compose.load("train", [f"style={name}", f"teacher.{wrong}"], Train)


def test_every_setting_is_part_of_the_fingerprint():
    assert InkDrawing(width=2.0).fingerprint() != InkDrawing().fingerprint()
    assert InkDrawing().fingerprint() != NeonSign().fingerprint()


# --- what they share


def ring(side: int = 64) -> tuple[Tensor, np.ndarray, np.ndarray]:
    """Light inside a circle, softly, and x, y from its centre."""
    y, x = np.mgrid[:side, :side] - (side - 1) / 2
    light = 1 / (1 + np.exp((np.hypot(x, y) - side / 4) / 2))
    return torch.from_numpy(light).float().expand(1, 3, -1, -1), x, y


def test_the_flow_of_a_ring_goes_round():
    photo, x, y = ring()
    tangent, anisotropy = ab.flow(ab.structure(photo, 1.0))
    edge = torch.from_numpy(np.abs(np.hypot(x, y) - 16) < 4)
    radial = torch.from_numpy(np.stack([x, y]) / np.hypot(x, y)).float()
    assert (tangent[0] * radial).sum(0)[edge].abs().max() < 0.05
    assert anisotropy[0, 0][edge].min() > 0.9
    assert torch.allclose(tangent.norm(dim=1), torch.ones(1, 64, 64))


def test_a_line_integral_along_rows_is_a_gaussian_of_the_rows():
    noise = torch.rand(1, 1, 20, 30, generator=torch.Generator().manual_seed(1))
    right = torch.tensor([1.0, 0.0]).view(1, 2, 1, 1).expand(1, 2, 20, 30).clone()
    right[..., ::3, :] *= -1  # a tangent's sign means nothing
    weights = np.exp(-(np.arange(-5, 6) ** 2) / (2 * 2.5**2))
    want = ndimage.correlate1d(noise[0, 0].numpy(), weights / weights.sum(), mode="nearest")
    assert np.allclose(ab.along(noise, right, 2.5)[0, 0].numpy(), want, atol=1e-5)


def test_the_pen_is_xdog_across_a_step():
    """Constant along the flow, so the line integrals change nothing."""
    light = torch.full((1, 1, 24, 60), 0.3)
    light[..., 30:] = 0.8
    tangent = torch.tensor([0.0, 1.0]).view(1, 2, 1, 1).expand(1, 2, 24, 60)
    row, off = light[0, 0, 12].numpy(), np.arange(-6, 7)
    fine, coarse = (np.exp(-(off**2) / (2 * s * s)) for s in (1.5, 2.4))
    fine, coarse = (ndimage.correlate1d(row, w / w.sum(), mode="nearest") for w in (fine, coarse))
    u = 11 * fine - 10 * coarse
    want = np.where(u > 0.2, 1, 1 + np.tanh(40 * (u - 0.2)))
    five = np.exp(-(np.arange(-2, 3) ** 2) / 0.5)
    want = ndimage.correlate1d(want, five / five.sum(), mode="nearest")
    drawn = ab.pen(light, tangent, 1.5, 10.0, 0.2)[0, 0, 12].numpy()
    assert np.allclose(drawn, want, atol=1e-3)
    assert drawn[26:30].min() < 0.15 < 0.95 < min(drawn[:24].min(), drawn[31:].min())  # one line


def test_kuwahara_by_its_definition():
    """At some pixels of a chequer, sector by sector, with SciPy's bilinear interpolation."""
    rows, columns = np.mgrid[:40, :40]
    chequer = np.where((rows // 10 + columns // 10) % 2, 0.8, 0.2)
    photo = torch.from_numpy(chequer).float().expand(1, 3, -1, -1)
    tangent = torch.tensor([0.6, 0.8]).view(1, 2, 1, 1).expand(1, 2, 40, 40)
    painted = ab.kuwahara(photo, tangent, torch.full((1, 1, 40, 40), 0.5), 4.0)[0, 0]
    disc = ab.spiral(32).numpy()
    seen = ab.blur(photo, 0.7 * 4 * np.sqrt(np.pi / 32))[0, 0].numpy()
    turned = [np.arctan2(disc[:, 1], disc[:, 0]) - 2 * np.pi * k / 8 for k in range(8)]
    radius, edge = np.hypot(*disc.T), 3 * np.pi / 16
    eta = (0.1 + np.cos(edge)) / np.sin(edge) ** 2
    for y, x in [(10, 10), (14, 9), (15, 15), (23, 30)]:
        u, v = 6.0 * disc[:, 0], 4 / 1.5 * disc[:, 1]  # along (0.6, 0.8), and along (0.8, -0.6)
        found = ndimage.map_coordinates(seen, [y + 0.8 * u - 0.6 * v, x + 0.6 * u + 0.8 * v],
                                        order=1, mode="nearest")  # fmt: skip
        total, shares = 0.0, 0.0
        for angle in turned:
            polynomial = radius * np.cos(angle) + 0.1 - eta * (radius * np.sin(angle)) ** 2
            weight = np.maximum(polynomial, 0) ** 2 * np.exp(-2 * radius**2)
            mean = np.average(found, weights=weight)
            variance = 3 * np.average((found - mean) ** 2, weights=weight)  # of three channels
            share = 1 / (1 + (255 * variance) ** 4)
            total, shares = total + share * mean, shares + share
        assert painted[y, x] == pytest.approx(total / shares, abs=2e-3)


def test_a_brush_keeps_an_edge_and_takes_noise():
    step = torch.full((1, 3, 40, 40), 0.2)
    step[..., 20:] = 0.8
    noisy = step + 0.05 * torch.randn(step.shape, generator=torch.Generator().manual_seed(2))
    painted = ab.paint(noisy, 6.0, 3.0, 1.0)
    assert (painted - step)[..., [*range(18), *range(22, 40)]].std() < 0.015
    assert painted[..., 18].max() < 0.35 < 0.65 < painted[..., 21].min()


@pytest.mark.parametrize("middle", [0.4, 0.6])
def test_the_median_of_a_ramp_lies_at_the_middle(middle):
    ramp = torch.linspace(0.1, 0.9, 200).expand(1, 1, 4, 200)
    light = ab.exposed(ramp, middle)
    assert light.median() == pytest.approx(middle, abs=0.01)
    assert light[..., 0].max() < 0.01
    assert light[..., -1].min() > 0.99
    for even in (0.0, 1.0):  # stays
        assert ab.exposed(torch.full((1, 1, 8, 8), even), middle).mean() == pytest.approx(
            even, abs=0.011
        )


def test_steps_of_a_ramp():
    light = torch.linspace(0, 0.999, 1000)
    after = ab.stepped(light, 4, 10.0)
    assert torch.all(after.diff() >= -1e-6)
    assert torch.allclose(after[::250], torch.tensor([0, 0.25, 0.5, 0.75]), atol=1e-3)
    assert ((after * 4 - (after * 4).round()).abs() < 0.1).float().mean() > 0.7


# --- each by itself


def lab(red: float, green: float, blue: float) -> np.ndarray:
    return color.rgb2lab(np.array([[[red, green, blue]]]))[0, 0]


def rgb(light: float, a: float, b: float) -> np.ndarray:
    return color.lab2rgb(np.array([[[light, a, b]]]))[0, 0].clip(0, 1)


def even(red: float, green: float, blue: float) -> Tensor:
    return torch.tensor([red, green, blue]).view(1, 3, 1, 1).expand(1, 3, 32, 32)


def test_ink_is_black_in_the_dark_half_and_paper_in_the_light_one():
    step = even(0.1, 0.1, 0.1).clone()
    step[..., 16:] = 0.9
    drawn = InkDrawing(ink="#000080", paper="#ffff00")(step)[0]
    assert np.allclose(drawn[:, 16, 4], [0, 0, 128 / 255], atol=0.01)
    assert np.allclose(drawn[:, 16, 27], [1, 1, 0], atol=0.01)


def test_oil_of_one_colour():
    """The tone in steps, lights warmer: no relief where nothing is."""
    red, green, blue = 0.8, 0.6, 0.5
    light, a, b = lab(red, green, blue)
    tone = light / 100
    exposed = tone ** np.clip(np.log(0.5) / np.log(tone), 0.5, 2)
    tone = (exposed + tone) / 2
    middle = (np.floor(9 * tone) + 0.5) / 9
    tone = middle + np.tanh(3 * 9 * (tone - middle)) / np.tanh(1.5) / 18
    warm = 10 * (tone - 0.5)
    want = rgb(100 * tone, 1.35 * a + 0.4 * warm, 1.35 * b + 2 * warm)
    drawn = OilPainting(bristles=0.0)(even(red, green, blue))[0]
    assert np.allclose(drawn[:, 16, 16], want, atol=0.01)
    assert drawn.std((1, 2)).max() < 1e-3


def test_the_density_of_watercolour(monkeypatch):
    """C' = C - (C - C²)(d - 1), of white paper."""
    photo, plain = even(0.5, 0.3, 0.6), Watercolour(pools=0.0, grain=0.0, paper="#ffffff")
    monkeypatch.setattr(ab, "grain", lambda photo, sigma, seed: torch.ones(1, 1, 32, 32))
    wash = plain(photo)
    denser = Watercolour(pools=0.25, grain=0.1, paper="#ffffff")(photo)
    assert torch.allclose(denser, wash - (wash - wash**2) * (0.25 * 1.6 + 0.1), atol=1e-5)


def test_pigment_gathers_inside_the_edge_of_a_wash():
    step = torch.full((1, 3, 64, 256), 0.9)
    step[..., :128] = torch.tensor([0.25, 0.35, 0.6]).view(1, 3, 1, 1)
    row = Watercolour(pools=0.0, grain=0.0)(step)[0].mean(0)[32]
    assert 120 < row[:128].argmin() < 128
    assert row[:128].min() < row[:100].min() - 0.02


def test_the_tones_of_pencil_have_the_published_histogram():
    ramp = torch.arange(256.0).repeat_interleave(16).view(1, 1, 64, 64) / 255
    tones = np.sort(match_histogram(ramp).flatten().numpy() * 255)
    value = np.arange(256)
    dark = stats.norm(90, 11)
    wanted = 0.52 * stats.expon(scale=9).sf(255 - value) + 0.11 * dark.cdf(value)
    wanted += 0.37 * stats.uniform(105, 120).cdf(value)
    wanted /= wanted[-1]
    found = np.searchsorted(tones, value, side="right") / len(tones)
    assert np.abs(found - wanted).max() < 0.02


@pytest.mark.parametrize("turned", [False, True])
def test_a_straight_edge_is_its_own_stroke(turned):
    """Of eight directions its own answers most, and a mean along it is the slope itself."""
    light = torch.zeros(1, 1, 40, 40)
    light[..., 20:] = 0.6
    slope = torch.zeros(1, 1, 40, 40)
    slope[..., 19:21] = 0.3  # Sobel, normalised: half of the step in each column beside it
    if turned:
        light, slope = light.mT, slope.mT
    assert torch.allclose(strokes(light, 6), slope, atol=1e-5)


def test_comic_inks_an_edge_and_no_shading():
    ramp = torch.linspace(0.45, 0.75, 96).expand(1, 3, 64, 96)
    assert ComicDrawing()(ramp)[0].mean(0).diff(dim=1).min() > -1e-3  # lighter all along
    step = ramp.clone()
    step[..., 48:] += 0.2
    inked = ComicDrawing()(step)[0].mean(0)[8:-8]
    assert inked[:, 44:50].amin(1).max() < 0.2


def test_a_palette_prints_a_ramp_from_dark_to_light_in_equal_parts():
    light = color.lab2rgb(np.stack([np.linspace(0, 100, 240), *np.zeros((2, 240))], -1)[None])
    ramp = torch.from_numpy(light[0].T.copy()).float()[None, :, None].expand(1, 3, 60, 240)
    inks = ("#000000", "#ff0000", "#00ff00", "#ffffff")
    row = PosterPrint(palette=inks, local=0.0)(ramp)[0, :, 30]
    for k, ink in enumerate([(0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 1)]):
        assert np.allclose(row[:, 60 * k + 30], ink, atol=0.01)
    assert (row[0, 62:178] - row[2, 62:178]).round().sum() == pytest.approx(60, abs=4)  # red


def test_a_poster_of_three_colours_has_these():
    stripes = torch.zeros(1, 3, 60, 90)
    colours = [(0.1, 0.1, 0.1), (0.8, 0.2, 0.2), (0.9, 0.9, 0.5)]
    for k, each in enumerate(colours):
        stripes[..., 30 * k : 30 * k + 30] = torch.tensor(each).view(1, 3, 1, 1)
    drawn = PosterPrint(colours=3, saturation=1.0, local=0.0)(stripes)[0]
    for k, each in enumerate(colours):
        want, found = lab(*each), lab(*drawn[:, 30, 30 * k + 15].tolist())
        assert np.allclose(found[1:], want[1:], atol=3)  # hues; tones are exposed
    assert len(np.unique((drawn * 255).round().int().flatten(1).T.numpy()[::7], axis=0)) < 60


def test_neon_without_an_edge_is_the_night_and_a_little_of_the_scene():
    red, green, blue = 0.2, 0.5, 0.3
    light, a, b = lab(red, green, blue)
    a, b = a + 8, b - 12
    strength = 85 / (np.hypot(a, b) + 3)
    tone = (light / 100) ** np.clip(np.log(0.6) / np.log(light / 100), 0.5, 2)
    want = np.array([10, 6, 24]) / 255 + 0.16 * tone * rgb(68, strength * a, strength * b)
    assert np.allclose(NeonSign()(even(red, green, blue))[0, :, 16, 16], want, atol=0.01)


def test_neon_glows_around_an_edge_and_fades():
    step = even(0.2, 0.2, 0.2).clone()
    step[..., 16:] = 0.9
    row = NeonSign()(step)[0].mean(0)[16]
    lit = int(row.argmax())
    assert row[lit] > 0.6
    assert torch.all(row[lit:28].diff() < 0.02)
    assert row[0] < 0.5 * row[lit]
