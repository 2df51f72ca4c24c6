from collections import OrderedDict
from pathlib import Path

import pytest
import torch
from PIL import Image
from torch import Tensor, nn
from torch.nn import functional as F

from distill.core.errors import DistillError
from distill.prepare import __main__ as prepare
from distill.train import __main__ as train
from distill_gan.cyclegan_port import CycleGANTeacher
from support.commands import QUICK, run

WIDTH = 8


def public(blocks: int, seed: int = 0) -> dict[str, Tensor]:
    """A state dict in the published layout: N counts padding, convolution, norm and ReLU alike."""
    numbers = torch.Generator().manual_seed(seed)
    state: dict[str, Tensor] = OrderedDict()

    def convolution(name: str, *shape: int, biases: int | None = None) -> None:
        state[f"{name}.weight"] = torch.randn(shape, generator=numbers) * 0.2
        state[f"{name}.bias"] = torch.randn(biases or shape[0], generator=numbers) * 0.2

    w = WIDTH
    convolution("model.1", w, 3, 7, 7)
    convolution("model.4", 2 * w, w, 3, 3)
    convolution("model.7", 4 * w, 2 * w, 3, 3)
    for i in range(blocks):
        convolution(f"model.{10 + i}.conv_block.1", 4 * w, 4 * w, 3, 3)
        convolution(f"model.{10 + i}.conv_block.5", 4 * w, 4 * w, 3, 3)
    convolution(f"model.{10 + blocks}", 4 * w, 2 * w, 3, 3, biases=2 * w)
    convolution(f"model.{13 + blocks}", 2 * w, w, 3, 3, biases=w)
    convolution(f"model.{17 + blocks}", 3, w, 7, 7)
    return state


def published(state: dict[str, Tensor], blocks: int, photo: Tensor) -> Tensor:
    """The paper's network on such a state dict, written as plain formulas; [0, 1] in and out."""

    def conv(x: Tensor, name: str, pad: int = 0, stride: int = 1) -> Tensor:
        if pad:
            x = F.pad(x, (pad,) * 4, mode="reflect")
        return F.conv2d(x, state[f"{name}.weight"], state[f"{name}.bias"], stride, int(stride > 1))

    def norm(x: Tensor) -> Tensor:
        mean, var = x.mean((2, 3), keepdim=True), x.var((2, 3), unbiased=False, keepdim=True)
        return (x - mean) / (var + 1e-5).sqrt()

    x = norm(conv(photo * 2 - 1, "model.1", pad=3)).clamp_min(0)
    x = norm(conv(x, "model.4", stride=2)).clamp_min(0)
    x = norm(conv(x, "model.7", stride=2)).clamp_min(0)
    for i in range(blocks):
        y = norm(conv(x, f"model.{10 + i}.conv_block.1", pad=1)).clamp_min(0)
        x = x + norm(conv(y, f"model.{10 + i}.conv_block.5", pad=1))
    for n in (10 + blocks, 13 + blocks):
        weight, bias = state[f"model.{n}.weight"], state[f"model.{n}.bias"]
        up = F.conv_transpose2d(x, weight, bias, 2, 1, output_padding=1)
        x = norm(up).clamp_min(0)
    return torch.tanh(conv(x, f"model.{17 + blocks}", pad=3)) / 2 + 0.5


def saved(path: Path, state: dict[str, Tensor]) -> Path:
    torch.save(state, path)
    return path


@pytest.mark.parametrize("blocks", [9, 6])
def test_gives_what_the_published_network_gives(tmp_path, blocks):
    state = public(blocks)
    teacher = CycleGANTeacher(saved(tmp_path / "latest_net_G.pth", state))
    photo = torch.rand(2, 3, 36, 44)
    expected = published(state, blocks, photo)
    torch.testing.assert_close(teacher(photo), expected, atol=2e-5, rtol=0)
    assert expected.std() > 0.1


def test_files_of_old_pytorch_versions_hold_statistics_that_nothing_uses(tmp_path):
    state = public(6)
    plain = CycleGANTeacher(saved(tmp_path / "new.pth", state)).fingerprint()
    for name in ("model.2", "model.11.conv_block.6"):
        state[f"{name}.running_mean"] = torch.rand(WIDTH)
        state[f"{name}.running_var"] = torch.rand(WIDTH)
        state[f"{name}.num_batches_tracked"] = torch.tensor(7)
    assert CycleGANTeacher(saved(tmp_path / "old.pth", state)).fingerprint() == plain
    wrapped = {f"module.{name}": tensor for name, tensor in state.items()}
    assert CycleGANTeacher(saved(tmp_path / "gpus.pth", wrapped)).fingerprint() == plain


def test_any_size(tmp_path):
    teacher = CycleGANTeacher(saved(tmp_path / "g.pth", public(6)))
    assert teacher.multiple == 4
    assert teacher(torch.rand(1, 3, 37, 42)).shape == (1, 3, 37, 42)


def message(path: Path | None) -> str:
    with pytest.raises(DistillError) as error:
        CycleGANTeacher(path)
    return str(error.value)


def test_other_files_are_refused_in_one_line(tmp_path):
    assert message(None).startswith("style.weights: missing; teacher=cyclegan needs")
    other = saved(tmp_path / "vgg.pth", nn.Conv2d(3, 3, 3).state_dict())
    assert "no generator of CycleGAN: no tensor model.1.weight" in message(other)
    (tmp_path / "cut.pth").write_bytes(b"PK\x03\x04")
    assert "not a readable weights file" in message(tmp_path / "cut.pth")
    batch_norm = public(6)
    batch_norm["model.2.weight"] = torch.ones(WIDTH)
    assert (
        "does not fit ResNetGenerator: missing, unknown or of another shape: 1 tensor,"
        in message(saved(tmp_path / "b.pth", batch_norm))
    )
    dropout = {k.replace("block.5", "block.6"): v for k, v in public(6).items()}
    assert "does not fit ResNetGenerator" in message(saved(tmp_path / "d.pth", dropout))
    grey = public(6) | {"model.1.weight": torch.rand(WIDTH, 1, 7, 7)}
    assert "does not fit ResNetGenerator" in message(saved(tmp_path / "grey.pth", grey))


@pytest.mark.campaign
def test_labels_pairs_and_gives_gka_its_layers(here):
    saved(here / "g.pth", public(6))
    words = ["style=custom", "teacher=cyclegan", "style.weights=g.pth", "photos=photos"]
    gka = ["loss.weights.gka=0.1", "data.batch_size=4", "trainer.max_steps=1", "decoder=residual"]
    assert run(train, *words, *QUICK, *gka) == 0
    made = next((here / "data/pairs").glob("custom-photos-64*/train/stylized/*.png"))
    assert Image.open(made).mode == "RGB"


def test_a_published_style_is_not_downloaded_unchecked(here, no_downloads, capsys):
    assert run(prepare, "style=monet", "photos=photos") == 1
    said = capsys.readouterr().err
    assert "style_monet.pth: not found, and not downloaded, since nothing could check it" in said
    assert "pass style.weights=FILE" in said
    assert "https://" in said or "http://" in said
