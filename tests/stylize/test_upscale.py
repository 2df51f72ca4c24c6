"""upscale=whole|tiles|guided: any size in bounded memory, without seams."""

import numpy as np
import onnx
import pytest
import torch
from kornia.filters import box_blur
from PIL import Image
from skimage import data
from torch import Tensor, nn

from distill.core import onnx_files
from distill.export.onnx import OnnxExporter
from distill.models import zoo
from distill.stylize import __main__ as stylize
from distill.stylize import guided, onnx_student, render
from distill.stylize.onnx_student import OnnxStudent
from support.commands import run
from support.stylize_setup import Negative, Reshaped, close, files, picture, pixels, put, shapes_run

SHIPPED = zoo.shipped()


class Blur(nn.Module):
    """A mean over `2·reach + 1` pixels a side: its receptive field is known."""

    def __init__(self, reach: int) -> None:
        super().__init__()
        self.pool = nn.AvgPool2d(2 * reach + 1, 1, reach)

    def forward(self, x: Tensor) -> Tensor:
        return self.pool(x)


class Average(nn.Module):
    """Depends on the whole picture."""

    def forward(self, x: Tensor) -> Tensor:
        return x * 0.2 + 0.8 * x.mean((2, 3), keepdim=True)


def model_of(network: nn.Module) -> OnnxStudent:
    return OnnxStudent(OnnxExporter(size=64).export(network), "network", 1)


def large(width: int, height: int) -> Image.Image:
    return Image.fromarray(data.astronaut()).resize((width, height), Image.Resampling.LANCZOS)


# Receptive fields


@pytest.mark.parametrize("reach", [0, 3, 20])
def test_reach_is_that_of_the_network(reach):
    assert model_of(Blur(reach)).reach == reach


def test_a_network_of_the_whole_picture_reaches_further_than_measured():
    assert model_of(Average()).reach == onnx_student.PATCH


def test_reach_within_one_size():
    assert model_of(Reshaped()).reach == 0


@pytest.mark.parametrize("name", SHIPPED)
def test_tiles_keep_clear_of_what_a_shipped_student_depends_on(name):
    student = OnnxStudent(onnx_files.load_model(SHIPPED[name]), name, 1)
    assert 112 <= student.reach <= 384  # deepest features of stride 16 or 32, context around them
    felt = min(student.reach, render.OVERLAP - render.BLEND)  # further changes are below 1/255
    assert render.margin(student, render.TILE) - render.BLEND // 2 > felt


# Tiles


@pytest.mark.parametrize("network", [Negative, Reshaped], ids=["any size", "one size"])
def test_every_pixel_of_every_tile_comes_once(network, monkeypatch):
    """Whatever comes out, the shares of what overlaps add up to the picture itself."""
    monkeypatch.setattr(render, "TILE", 128)
    negative = model_of(network())
    for width, height in ((400, 300), (129, 128), (128, 1000), (90, 40), (64, 64), (20, 300)):
        photo = picture(width, height)
        stylised = np.asarray(render.stylise_rgb(photo, negative, upscale="tiles")).astype(int)
        assert close(stylised, 255 - np.asarray(photo).astype(int), 1)


def test_tiles_blend_where_a_network_depends_on_everything(monkeypatch):
    """Each tile has a tone of its own; what shows is a slope over BLEND pixels, no edge."""
    monkeypatch.setattr(render, "TILE", 128)
    photo = Image.fromarray(
        np.repeat(np.linspace(0, 255, 1000).astype(np.uint8)[None, :, None], 96, 0).repeat(3, 2)
    )
    stylised = np.asarray(render.stylise_rgb(photo, model_of(Average()), upscale="tiles")).astype(
        int
    )
    assert np.abs(np.diff(stylised[..., 0], axis=1)).max() <= 4


@pytest.mark.campaign
def test_memory_is_that_of_one_tile(monkeypatch):
    seen = shapes_run(monkeypatch)
    stylised = render.stylise_rgb(
        Image.new("RGB", (6000, 4000), (9, 9, 9)), model_of(Negative()), None, "tiles"
    )
    assert stylised.size == (6000, 4000)
    assert set(seen) == {(1, 3, render.TILE, render.TILE)}
    assert stylised.getextrema() == ((246, 246),) * 3


# Guided


def test_a_picture_that_is_a_linear_function_of_the_photo_is_upscaled_exactly():
    """Whatever is linear in the small picture is in the large one, its edges as sharp."""
    photo = large(1000, 700)
    stylised = np.asarray(render.stylise_rgb(photo, model_of(Negative()), upscale="guided")).astype(
        int
    )
    off = np.abs(stylised - (255 - np.asarray(photo).astype(int)))
    # eps counts every slope for a little less than it is, the more so the flatter the window
    assert np.sqrt((off**2).mean()) < 6
    enlarged = render.stylise_rgb(photo, model_of(Negative()), 256)
    plain = np.abs(np.asarray(enlarged).astype(int) - (255 - np.asarray(photo).astype(int)))
    assert np.sqrt((plain**2).mean()) > 1.5 * np.sqrt((off**2).mean())


def test_the_fit_is_least_squares():
    """Against numpy's own solver, in one window: the middle pixel before the functions' mean."""
    rng = np.random.default_rng(3)
    photo, stylised = (rng.random((count, 3, 3), np.float32) for count in (3, 2))
    x = np.concatenate([photo.reshape(3, 9).T, np.ones((9, 1))], 1).astype(float)
    eps = 0.01
    penalty = 9 * eps * np.diag([1, 1, 1, 0])  # ridge on the weights, none on what is added
    expected = np.linalg.solve(x.T @ x + penalty, x.T @ stylised.reshape(2, 9).T)
    functions = guided.fit(photo, stylised, radius=1, eps=eps)
    np.testing.assert_allclose(functions[..., 1, 1], expected, atol=2e-4)


def test_strips_fit_together(monkeypatch):
    photo = large(300, 500)
    small, stylised = photo.resize((60, 100)), picture(60, 100)
    at_once = np.asarray(guided.upscale(photo, small, stylised)).astype(int)
    monkeypatch.setattr(guided, "STRIP", 37)
    assert (
        np.abs(np.asarray(guided.upscale(photo, small, stylised)).astype(int) - at_once).max() <= 1
    )


def test_the_functions_are_enlarged_as_pytorch_does():
    functions = torch.rand(4, 3, 7, 9)
    expected = torch.nn.functional.interpolate(
        functions, (50, 40), mode="bilinear", align_corners=False
    )
    own = [guided._enlarge(functions.numpy(), *rows, 50, 40) for rows in ((0, 32), (32, 50))]
    np.testing.assert_allclose(np.concatenate(own, 2), expected, atol=1e-6)


@pytest.mark.parametrize("radius", [1, 2])
def test_the_mean_of_a_window_is_that_of_kornia(radius):
    x = torch.rand(4, 3, 7, 9)
    expected = box_blur(x, 2 * radius + 1, border_type="replicate", separable=True)
    np.testing.assert_allclose(guided._mean(x.numpy(), radius), expected, atol=1e-6)


def test_a_small_picture_needs_no_upscaling():
    photo, negative = picture(100, 90), model_of(Negative())
    assert render.stylise_rgb(photo, negative, None, "guided") == render.stylise_rgb(
        photo, negative
    )


# As a command


@pytest.mark.parametrize("upscale", ["tiles", "guided"])
@pytest.mark.parametrize("size", [(1, 1), (3, 600), (700, 401), (300, 257)])
def test_every_size_comes_out_as_it_went_in(shipped_students, upscale, size):
    put("photo.png", picture(*size))
    assert run(stylize, "photo.png", f"upscale={upscale}") == 0
    stylised = pixels("stylized/photo-hayao.png")
    assert stylised.shape == (size[1], size[0], 3)
    if upscale == "tiles":
        assert close(stylised, 255 - pixels("photo.png"), 1)


@pytest.mark.parametrize("upscale", ["tiles", "guided"])
def test_transparency_goes_along(shipped_students, upscale):
    onnx.save(OnnxExporter(size=32).export(Negative(4)), "clear.onnx")
    photo = picture(400, 300, "RGBA")
    photo.putalpha(Image.fromarray(np.full((300, 400), 128, np.uint8)))
    put("photo.png", photo)
    assert run(stylize, "photo.png", "model=clear.onnx", f"upscale={upscale}") == 0
    stylised = pixels("stylized/photo-clear.png", "RGBA")
    assert close(stylised[..., 3], np.full((300, 400), 64), 1)


def test_tiles_are_of_the_picture_s_own_size(shipped_students, monkeypatch):
    seen = []
    stylise_tiled = render.stylise_tiled
    monkeypatch.setattr(
        render, "stylise_tiled", lambda p, *h: (seen.append(p.size), stylise_tiled(p, *h))[1]
    )
    put("photo.png", picture(1500, 40))
    assert run(stylize, "photo.png", "upscale=tiles") == 0
    assert run(stylize, "photo.png", "upscale=tiles", "size=5000") == 0
    assert [size[0] for size in seen] == [1504, 5024]


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("size=4097", "size=4097: at most 4096 in one piece; add upscale=tiles"),
        ("size=40000", "size=40000: input should be less than or equal to 32768"),
        ("upscale=4", "upscale=4: input should be 'whole', 'tiles' or 'guided'"),
    ],
)
def test_refused(shipped_students, typed, said, capsys):
    put("photo.png")
    assert run(stylize, "photo.png", typed) == 1
    assert capsys.readouterr().err == f"error: {said}\n"
    assert files() == ["photo.png"]
