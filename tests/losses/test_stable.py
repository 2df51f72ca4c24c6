from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from distill.core.images import moved
from distill.losses.stable import LEVELS, Stable, overlap
from distill.losses.term import Reads

GREY = torch.full((2, 3, 64, 64), 0.5)


def draws(seed: int, photo: Tensor, shift: int = 3) -> tuple[int, int]:
    """The move that `Stable` draws for a photo after this seed; the seed is set again."""
    torch.manual_seed(seed)
    torch.randn_like(photo)
    down, right = torch.randint(-shift, shift + 1, (2,)).tolist()
    torch.manual_seed(seed)
    return down, right


def test_a_network_that_moves_along_and_sees_no_noise_loses_nothing():
    photo = torch.rand(2, 3, 20, 24)
    for seed in range(20):
        torch.manual_seed(seed)
        assert Stable(noise=0)(lambda x: x, photo, photo).item() == 0
    # Pixel by pixel is moving along, whatever it does to a pixel.
    assert Stable(noise=0)(lambda x: 1 - x**2, photo, 1 - photo**2).item() == 0


def test_noise_that_is_passed_on_costs_its_mean_size():
    """The mean |n| of a Gaussian is σ √(2/π); a flat photo shows no move."""
    value = Stable(noise=4.0)(lambda x: x, GREY, GREY).item()
    assert value == pytest.approx(4 / LEVELS * (2 / torch.pi) ** 0.5 / 2, rel=0.02)


def test_a_noisy_photo_stays_one():
    seen: list[Tensor] = []
    white = torch.ones(1, 3, 32, 32)
    Stable(noise=50.0)(lambda x: seen.append(x) or x, white, white)
    assert seen[0].max() <= 1
    assert seen[0].min() < 0.9
    Stable(noise=50.0)(lambda x: seen.append(x) or x, 1 - white, 1 - white)
    assert seen[2].min() >= 0  # seen[1] moved


def test_a_pattern_that_stands_still_costs_by_how_far_the_photo_moved():
    """S(x) = a ramp over columns, whatever x: moved back by k columns it is k slopes off."""
    slope = 0.01
    ramp = (slope * torch.arange(24.0)).expand(2, 3, 20, 24)
    photo, steps = torch.rand(2, 3, 20, 24), set()
    for seed in range(12):
        _, right = draws(seed, photo)
        value = Stable()(lambda x: ramp, photo, ramp).item()
        assert value == pytest.approx(abs(right) * slope / 2, abs=1e-6)
        steps.add(right)
    assert len(steps) > 3


@pytest.mark.parametrize(("down", "right"), [(0, 0), (2, -3), (-1, 1), (3, 3)])
def test_moved_and_overlap_are_of_one_place(down, right):
    rows, columns = torch.meshgrid(torch.arange(9.0), torch.arange(11.0), indexing="ij")
    picture = torch.stack([rows, columns, rows * 100 + columns])[None]
    after = moved(picture, -down, -right)
    assert after.shape == picture.shape
    assert after[0, :, 4, 5].tolist() == [4 + down, 5 + right, (4 + down) * 100 + 5 + right]
    assert after[0, 0].min() >= 0  # border pixels are repeated, none comes round
    one, other = overlap(after, picture, down, right)
    assert one.shape == (1, 3, 9 - abs(down), 11 - abs(right))
    assert torch.equal(one, other)


def test_every_move_up_to_the_shift_is_drawn():
    asked = {draws(seed, GREY[:1, :, :4, :4], 1) for seed in range(200)}
    assert asked == {(y, x) for y in (-1, 0, 1) for x in (-1, 0, 1)}


def test_transparency_lies_over_white():
    """Colours behind full transparency may change as they like."""
    photo = torch.rand(1, 3, 16, 16)

    def clear(x: Tensor) -> Tensor:
        return torch.cat([x, torch.zeros_like(x[:, :1])], dim=1)

    assert Stable(noise=9)(clear, photo, clear(photo)).item() == 0


def conv() -> nn.Module:
    torch.manual_seed(3)
    return nn.Sequential(nn.Conv2d(3, 4, 3, 2, 1), nn.ReLU(), nn.ConvTranspose2d(4, 3, 2, 2))


def gradients(network: nn.Module, value: Callable[[], Tensor]) -> list[Tensor]:
    network.zero_grad()
    value().backward()
    return [p.grad.clone() for p in network.parameters()]


def test_the_gradient_teaches_the_changed_photos_and_not_the_target():
    network, photo, term = conv(), torch.rand(2, 3, 32, 32), Stable(noise=20)

    def value(output: Tensor) -> Tensor:
        torch.manual_seed(1)
        return term(network, photo, output)

    found = gradients(network, lambda: value(network(photo)))
    assert all(g.abs().sum() > 0 for g in found)
    fixed = gradients(network, lambda: value(network(photo).detach()))
    assert all(torch.equal(a, b) for a, b in zip(found, fixed, strict=True))


def test_states_that_it_reads_the_network():
    assert Stable.reads is Reads.NETWORK
