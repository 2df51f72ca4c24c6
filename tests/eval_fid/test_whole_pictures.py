"""Figures of whole pictures by size: known shifts of brightness and lines give known figures."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from distill.data.photo_table import size_of
from distill.eval_fid import __main__ as eval_fid
from distill.eval_fid.whole_pictures import (
    ENLARGED,
    PHOTO,
    by_size,
    score_sizes,
    square_name,
    table,
)
from distill.metrics.frechet import polynomial
from support.commands import go, run

NAME = "photo-0123abcd"


@dataclass
class InMemory:
    """A pair whose photo is the teacher's picture, darker by 51 of 255 levels."""

    name: str
    target: NDArray[np.uint8]
    photo: str = ""

    def read(self, alpha: bool = False, swap: bool = False) -> tuple[Image.Image, Image.Image]:
        return Image.fromarray(self.target - 51), Image.fromarray(self.target)

    def pixels(self, swap: bool = False) -> None:
        return None


def lines(width: int, height: int, every: int = 16) -> NDArray[np.uint8]:
    picture = np.full((height, width, 3), 220, np.uint8)
    picture[:, every // 2 :: every] = 100
    return picture


def pair(size: int, number: int = 0) -> InMemory:
    return InMemory(f"photo-{number:08x}-s{size}.png", lines(size, size // 2))


def group(pair: Any) -> str:
    return square_name(pair.name)


class Means:
    """Stands in for a feature network: mean and deviation of each colour."""

    kid, kernel = "K", staticmethod(polynomial)

    def features(self, batches: Any, total: int, what: str) -> NDArray[np.float64]:
        found = [torch.cat([x.mean((2, 3)), x.std((2, 3))], 1) for x in batches]
        assert sum(map(len, found)) == total
        return torch.cat(found).double().numpy()


def brighter(photo: Tensor) -> Tensor:
    return photo + 51 / 255


def test_sizes_stand_behind_the_name_of_the_square():
    assert size_of(f"{NAME}-s1024.png") == 1024
    assert square_name(f"{NAME}-s1024.png") == f"{NAME}.png"
    for name in (f"{NAME}.png", f"{NAME}-v001.png", "canon-s95.png"):  # the last is a camera
        assert size_of(name) is None
        assert square_name(name) == name
    pairs = [pair(512), pair(256), pair(512, 1), InMemory(f"{NAME}.png", lines(64, 64))]
    found = by_size(pairs)
    assert list(found) == [256, 512]
    assert [each.name for each in found[512]] == [pairs[0].name, pairs[2].name]


def test_a_student_that_is_the_teacher_and_a_photo_that_is_darker():
    sizes = by_size([pair(256), pair(384)])
    found = score_sizes(sizes, {"student": brighter}, None, group)
    assert [row["pictures"] for row in found.values()] == [1, 1]
    for size, row in found.items():
        exact, dark = row["scores"]["student"], row["scores"][PHOTO]
        assert exact["PSNR (dB)"]["value"] == pytest.approx(100, abs=0.1)
        assert dark["PSNR (dB)"]["value"] == pytest.approx(20 * np.log10(5), abs=1e-3)
        for scores in (exact, dark):  # its lines are as deep
            for name in ("ink recall at 0.3", "ink precision", "ink mass", "sharpness"):
                assert scores[name]["value"] == pytest.approx(1, abs=1e-3)
            assert scores["chamfer distance (px)"]["value"] == 0
        assert (ENLARGED in row["scores"]) == (size == "384")
    # Every line of 256 is one and a half wide at 384, and in another place.
    assert found["384"]["scores"][ENLARGED]["PSNR (dB)"]["value"] < 30


def test_the_enlarged_baseline_is_the_teacher_s_small_picture():
    """Flat pictures stay what they are; without the small one of every picture it is left out."""
    flat = [InMemory(f"{NAME}-s{size}.png", np.full((size, size, 3), 90, np.uint8))
            for size in (256, 320)]  # fmt: skip
    scores = score_sizes(by_size(flat), {}, None, group)["320"]["scores"]
    assert scores[ENLARGED]["PSNR (dB)"]["value"] == 100
    other = InMemory("other-0123abcd-s320.png", flat[1].target)
    assert ENLARGED not in score_sizes(by_size([*flat, other]), {}, None, group)["320"]["scores"]


def test_a_metric_of_one_s_own_has_its_figure_at_every_size():
    own = {"levels": lambda output, target: 255 * (output - target).abs().mean((1, 2, 3))}
    sizes = by_size([pair(256), pair(384)])
    found = score_sizes(sizes, {"student": brighter}, None, group, metrics=own)
    for row in found.values():
        assert row["scores"][PHOTO]["levels"]["value"] == pytest.approx(51, abs=1e-3)
        assert row["scores"]["student"]["levels"]["value"] == pytest.approx(0, abs=1e-3)
    assert table(found)[0][2:5] == ["PSNR (dB)", "SSIM", "levels"]


def test_kernel_distance_of_crops_and_flicker():
    rng = np.random.default_rng(0)
    noise = [rng.integers(60, 200, (96, 128, 3), dtype=np.uint8) for _ in range(3)]
    pairs = [InMemory(f"photo-{i:08x}-s128.png", x) for i, x in enumerate(noise)]
    network: Any = Means()
    found = score_sizes(
        by_size(pairs), {"student": brighter}, network, group, rounds=20, flickering=2
    )["128"]["scores"]
    exact, dark = found["student"]["K, crops"], found[PHOTO]["K, crops"]
    assert exact["pictures"] == 4 * 3
    assert abs(exact["value"]) < abs(dark["value"])
    low, high = dark["interval"]
    assert low <= dark["value"] <= high
    noise_levels = found["student"]["flicker, noise (levels)"]
    assert noise_levels["pictures"] == 2
    assert noise_levels["value"] == pytest.approx(1.6, abs=0.1)  # sigma · sqrt(2 / pi)


def test_intervals_are_of_groups():
    one = [InMemory(f"photo-0123abcd-s{64}.png", lines(64, 64, every)) for every in (8, 16)]
    row = score_sizes(by_size(one), {}, None, group, rounds=5)["64"]["scores"][PHOTO]
    assert row["PSNR (dB)"]["interval"] is None  # both are of one photo


def test_the_table_has_a_row_for_each_size_and_output():
    value = {"value": 0.5, "pictures": 2, "interval": None}
    scores = {"ink recall": value, "ink recall at 0.2": value, "ink mass": value}
    sizes = {
        "256": {"pictures": 2, "scores": {"photo": scores, "it": scores | {"SSIM": value}}},
    }
    assert table(sizes) == [
        ["long side", "output", "ink recall at .1/.2/.3", "ink mass", "SSIM"],
        ["256 (2 pictures)", "photo", "0.5/0.5", "0.5", "–"],
        ["256 (2 pictures)", "it", "0.5/0.5", "0.5", "0.5"],
    ]


@pytest.mark.slow
def test_an_evaluation_of_a_set_with_whole_pictures(here, capsys):
    """Their figures stand by size, and no square's figure has anything of them."""
    assert go("run=it", "trainer.max_steps=1", "trainer.val_every=1", "photos=photos") == 0
    words = ("features=none", "bootstrap=0", "flicker=1", "sheet=1", "run=it")
    assert run(eval_fid, *words) == 0
    before = json.loads(Path("runs/it/eval/results.json").read_text())
    assert "sizes" not in before

    (photos,) = Path("data/pairs").glob(f"*/{before['side']}/photo")
    for square in sorted(photos.glob("*.png")):
        for size in (64, 96):
            for kind in ("photo", "stylized"):
                with Image.open(photos.parent / kind / square.name) as picture:
                    whole = picture.resize((size, 64))
                whole.save(photos.parent / kind / f"{square.stem}-s{size}.png")
    assert run(eval_fid, *words) == 0
    after = json.loads(Path("runs/it/eval/results.json").read_text())
    assert {k: v for k, v in after.items() if k != "sizes"} == before
    assert list(after["sizes"]) == ["64", "96"]
    assert after["sizes"]["96"]["pictures"] == before["pictures"]
    student = after["sizes"]["96"]["scores"]["student"]
    assert {"PSNR (dB)", "SSIM", "ink mass", "sharpness", "flicker, noise (levels)"} <= set(student)
    page = Path("runs/it/eval/results.md").read_text()
    assert "| long side | output | PSNR (dB) |" in page
    assert "student, 96" in capsys.readouterr().out


def test_outputs_are_rounded_as_a_file_would_hold_them():
    """A network that is off by less than half a level is exact."""
    sizes = by_size([pair(64)])
    found = score_sizes(sizes, {"it": lambda photo: brighter(photo) + 0.4 / 255}, None, group)
    assert found["64"]["scores"]["it"]["PSNR (dB)"]["value"] == 100
