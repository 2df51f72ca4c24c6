"""8-bit pictures and tensors, PNG files, contact sheets."""

import numpy as np
import pytest
import torch
from PIL import Image

from distill.core.arrays import over_white, save_png
from distill.core.images import sheet, to_image, to_tensor


@pytest.mark.parametrize("channels", [3, 4])
def test_every_8_bit_value_survives_the_way_to_a_tensor_and_back(channels):
    values = np.arange(256 * channels, dtype=np.uint8).reshape(16, 16, channels)
    picture = to_tensor(Image.fromarray(values))
    assert picture.shape == (channels, 16, 16)
    assert picture.dtype == torch.float32
    assert (np.asarray(to_image(picture)) == values).all()


def test_a_tensor_is_rgb_in_rows_and_columns_from_0_to_1():
    image = Image.new("RGB", (3, 2))
    image.putpixel((2, 1), (255, 51, 0))
    assert to_tensor(image)[:, 1, 2].tolist() == pytest.approx([1.0, 0.2, 0.0])


def test_an_image_is_rounded_to_the_nearest_and_clamped():
    picture = torch.tensor([10.4, 10.6, 0.0]).view(3, 1, 1) / 255
    assert to_image(picture).getpixel((0, 0)) == (10, 11, 0)
    assert to_image(torch.tensor([-3.0, 1.7, 1.0]).view(3, 1, 1)).getpixel((0, 0)) == (0, 255, 255)


def test_an_image_keeps_alpha():
    image = to_image(torch.tensor([1.0, 0.0, 0.0, 0.2]).view(4, 1, 1))
    assert (image.mode, image.getpixel((0, 0))) == ("RGBA", (255, 0, 0, 51))


def test_over_white_blends_by_alpha_and_leaves_rgb_alone():
    rgba = torch.tensor([0.5, 0.0, 1.0, 0.25]).view(1, 4, 1, 1)
    # c·a + (1 − a)
    assert over_white(rgba).flatten().tolist() == pytest.approx([0.875, 0.75, 1.0])
    rgb = torch.rand(2, 3, 4, 4)
    assert torch.equal(over_white(rgb), rgb)


def test_a_png_is_lossless_and_its_folder_is_made(tmp_path):
    noise = np.random.default_rng(0).integers(0, 256, (40, 30, 3), np.uint8)
    path = tmp_path / "new" / "folder" / "x.png"
    save_png(Image.fromarray(noise), path)
    with Image.open(path) as read:
        assert read.format == "PNG"
        assert (np.asarray(read) == noise).all()


def test_a_png_that_cannot_be_written_leaves_the_old_one(tmp_path):
    save_png(Image.new("RGB", (4, 4), "red"), tmp_path / "x.png")
    before = (tmp_path / "x.png").read_bytes()
    with pytest.raises(OSError, match="HSV"):  # a mode that PNG does not know
        save_png(Image.new("HSV", (4, 4)), tmp_path / "x.png")
    assert [p.name for p in tmp_path.iterdir()] == ["x.png"]
    assert (tmp_path / "x.png").read_bytes() == before


def test_a_sheet_shows_every_picture_whole_in_its_row_and_column():
    colours = torch.tensor(
        [[[1.0, 0, 0], [0, 1, 0]], [[0, 0, 1], [0, 0, 0]], [[1, 1, 0], [0, 1, 1]]]
    )
    rows = [[colour.view(3, 1, 1).expand(3, 30, 20) for colour in row] for row in colours]
    page = np.asarray(sheet(rows, ["photo", "stylised"])).astype(int)
    for colour in colours.view(-1, 3):
        found = (page == (colour * 255).int().numpy()).all(-1)
        if colour.sum() == 0:
            found[: page.shape[0] - 3 * 34 - 4] = False  # the titles above are black as well
        top, left = np.argwhere(found).min(0)
        assert found.sum() == 30 * 20
        assert found[top : top + 30, left : left + 20].all()
    assert page.shape[1] == 2 * (20 + 4) + 4


def test_a_sheet_puts_transparency_over_white():
    clear = torch.zeros(4, 64, 64)
    page = np.asarray(sheet([[clear]], [""]))
    assert (page == 255).all()


def test_a_sheet_writes_its_titles():
    blank = torch.ones(3, 64, 64)
    assert (np.asarray(sheet([[blank]], ["student"])) < 128).any()
