"""Masks of networks, folders and alpha."""

from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from PIL import Image

from distill.core.errors import DistillError
from distill.core.images import IMAGENET_MEAN, IMAGENET_STD
from distill.data.decode import BadPhoto
from distill_sets.sketches.masks import MaskFolder, SaliencyNetwork, of_alpha
from support.saliency_networks import brightness


def halves(left, right, size=64):
    picture = torch.full((3, size, size), float(left))
    picture[:, :, size // 2 :] = right
    return picture


def test_probabilities_are_the_mask(tmp_path):
    network = SaliencyNetwork(brightness(tmp_path / "a.onnx"), 32, "none")
    mask = network(halves(0.2, 0.9))
    assert mask.shape == (1, 64, 64)
    torch.testing.assert_close(mask[0, :, :24], torch.full((64, 24), 0.2))
    torch.testing.assert_close(mask[0, :, 40:], torch.full((64, 24), 0.9))


def test_logits_go_through_a_sigmoid_and_probabilities_that_overshoot_do_not(tmp_path):
    network = SaliencyNetwork(brightness(tmp_path / "a.onnx", scale=10, offset=-5), 32, "none")
    mask = network(halves(0.0, 0.7))
    torch.testing.assert_close(mask[0, 0, [0, -1]], torch.tensor([-5.0, 2.0]).sigmoid())
    network = SaliencyNetwork(brightness(tmp_path / "b.onnx", scale=1.1, offset=-0.05), 32, "none")
    mask = network(halves(0.0, 1.0))
    torch.testing.assert_close(mask[0, 0, [0, -1]], torch.tensor([0.0, 1.0]))


def test_mean_and_deviation_of_imagenet(tmp_path):
    """A picture of the mean colour, one deviation brighter, is 1 everywhere."""
    colour = torch.tensor(IMAGENET_MEAN) + torch.tensor(IMAGENET_STD)
    network = SaliencyNetwork(brightness(tmp_path / "a.onnx", scale=0.5), 32, "imagenet")
    mask = network(colour[:, None, None].expand(3, 40, 40))
    torch.testing.assert_close(mask, torch.full((1, 40, 40), 0.5))


@pytest.mark.parametrize(("sides", "side"), [((48, 48), 48), (("h", "w"), 32)])
def test_the_file_s_own_size_comes_first(tmp_path, sides, side):
    network = SaliencyNetwork(brightness(tmp_path / "a.onnx", sides), 32, "none")
    assert network._opened[2] == side
    assert network(halves(0, 1)).shape == (1, 64, 64)


@pytest.mark.parametrize(
    ("options", "reason"),
    [({"channels": 1}, "takes no picture"), ({"sides": (48, 40)}, "not a square"),
     ({"outputs": ["z"]}, r"first output is \(1, 3, 32, 32\), not N×1×S×S")],
)  # fmt: skip
def test_other_networks_are_refused(tmp_path, options, reason):
    path = brightness(tmp_path / "a.onnx", **options)
    if "outputs" in options:  # only the picture itself comes out
        model = onnx.load(path)
        del model.graph.node[:3]
        onnx.save(model, path)
    with pytest.raises(DistillError, match=rf"sketch\.mask=.*a\.onnx: .*{reason}"):
        SaliencyNetwork(path, 32, "none")(halves(0, 1))


def test_a_file_that_is_no_network_is_refused(tmp_path):
    (tmp_path / "a.onnx").write_bytes(b"no")
    with pytest.raises(DistillError, match="not a readable ONNX file"):
        SaliencyNetwork(tmp_path / "a.onnx", 32, "none")(halves(0, 1))


def test_masks_of_a_folder_have_their_photo_s_stem(tmp_path):
    half = np.zeros((20, 30), np.uint8)
    half[:, 15:] = 255
    Image.fromarray(half).save(tmp_path / "a.b.png")
    masks = MaskFolder(tmp_path)
    mask = masks(Path("elsewhere/a.b.jpg"), (90, 60))
    assert mask.shape == (1, 60, 90)
    assert mask[0, :, :40].max() == 0
    assert mask[0, :, 50:].min() == 1
    with pytest.raises(BadPhoto, match="no mask of the name 'c'"):
        masks(Path("c.jpg"), (90, 60))
    with pytest.raises(BadPhoto, match="its mask is 30×20, which does not fit 90×90"):
        masks(Path("a.b.jpg"), (90, 90))


def test_bad_masks_are_refused(tmp_path):
    with pytest.raises(DistillError, match="no masks in it"):
        MaskFolder(tmp_path)
    (tmp_path / "a.png").write_bytes(b"no")
    with pytest.raises(BadPhoto, match=r"its mask 'a\.png': not a picture"):
        MaskFolder(tmp_path)(Path("a.jpg"), (9, 9))


def test_alpha():
    picture = Image.new("RGBA", (8, 8), (1, 2, 3, 51))
    torch.testing.assert_close(of_alpha(picture), torch.full((1, 8, 8), 0.2))
    with pytest.raises(BadPhoto, match="nothing in it is transparent"):
        of_alpha(Image.new("RGBA", (8, 8), (1, 2, 3, 255)))
