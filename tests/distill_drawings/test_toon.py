import kornia
import pytest
import torch
from skimage import data
from torch import Tensor

from distill.config import compose
from distill.config.registry import schema_of
from distill_drawings.toon import Ink, Quantise, Smooth, Toon


@pytest.fixture(scope="module")
def toon():
    return Toon()


def flat(value: float, size: int = 48) -> Tensor:
    return torch.full((1, 3, size, size), value)


def step() -> Tensor:
    """Dark left half, light right half; the edge lies between columns 31 and 32."""
    picture = flat(0.3, 64)
    picture[..., 32:] = 0.8
    return picture


@pytest.mark.parametrize("shape", [(1, 3, 64, 64), (2, 3, 33, 47), (1, 3, 9, 9), (3, 3, 101, 20)])
def test_any_size_to_the_same_size_in_range(toon, shape):
    photo = torch.rand(shape)
    output = toon(photo)
    assert output.shape == photo.shape
    assert output.dtype == torch.float32
    assert output.min() >= 0
    assert output.max() <= 1
    assert output.std() > 0


def test_pictures_of_a_batch_do_not_meet(toon):
    photos = torch.rand(3, 3, 32, 32)
    alone = torch.cat([toon(p[None]) for p in photos])
    torch.testing.assert_close(toon(photos), alone, atol=1e-4, rtol=0)


def test_a_mirrored_photo_gives_the_mirrored_picture(toon):
    """As far as float32 goes: every filter is symmetric. So pairs of it may be mirrored."""
    photo = torch.from_numpy(data.astronaut()[:160, 140:330] / 255).float().movedim(-1, 0)[None]
    off = (toon(photo.flip(3)).flip(3) - toon(photo)).abs()
    assert (off > 0.5 / 255).float().mean() < 1e-4
    assert off.mean() < 1e-5


def test_an_edge_gets_a_dark_line(toon):
    output = toon(step())[0].mean(0)
    dark_side = output[:, 4:12].mean()
    near_edge = output[8:-8, 26:38]
    assert near_edge.min(dim=1).values.max() < 0.6 * dark_side  # in every row, and clearly
    assert output[:, :16].std() < 1e-3
    assert output[:, 48:].std() < 1e-3
    assert output[:, 52:60].mean() > dark_side + 0.3


def test_without_ink_there_is_no_line():
    output = Toon(ink=0.0)(step())[0].mean(0)
    assert output.min() > 0.9 * output[:, 4:12].mean()


@pytest.mark.parametrize("value", [0.1, 0.3, 0.5, 0.7, 0.9])
def test_a_flat_picture_stays_flat(toon, value):
    output = toon(flat(value))
    assert output.flatten(1).std() < 1e-3
    assert (output - value).abs().max() < 0.08  # half a step of 100/8 in L* is at most 0.066


def test_smoothing_keeps_an_edge():
    smooth = Smooth()(step())[0, 0]
    assert smooth[:, 31].max() < 0.35
    assert smooth[:, 32].min() > 0.75


def test_lightness_gathers_around_the_steps():
    """A ramp of lightness turns into plateaus: more than half lies within a fifth of a step."""
    light = torch.linspace(1, 99, 980).view(1, 1, 1, -1)
    ramp = torch.cat([light, torch.zeros(1, 2, 1, 980)], dim=1)
    grey = kornia.color.lab_to_rgb(ramp)
    after = kornia.color.rgb_to_lab(Quantise(levels=4, softness=8.0)(grey))[0, 0]
    centres = torch.tensor([12.5, 37.5, 62.5, 87.5])
    ends = torch.tensor([0.0, 25.0, 50.0, 75.0, 100.0])

    def near(values: Tensor, marks: Tensor) -> float:
        gap = (values.flatten()[:, None] - marks).abs().amin(1)
        return float((gap < 5).float().mean())

    assert near(light, ends) < 0.5
    assert near(after, ends) > 0.7
    assert near(after, centres) < 0.3


def test_ink_is_one_on_paper_and_dark_on_a_line():
    mask = Ink()(step())
    assert mask.shape == (1, 1, 64, 64)
    assert mask[..., :20].min() > 0.7
    assert mask[..., 26:38].min() < 0.1


def test_fingerprint_changes_with_the_ink():
    assert Toon().fingerprint() == Toon().fingerprint()
    assert Toon(ink=0.5).fingerprint() != Toon().fingerprint()


def test_gka_s_layers_are_modules_of_it(toon):
    settings = compose.load("train", ["photos=p", "loss.weights.gka=1"], schema_of)
    layers = {layer for _, layer in settings.gka_layers}
    assert layers
    assert layers <= {name for name, _ in toon.named_modules()}
