import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import Tensor

from distill.config.compose import load
from distill.config.settings.commands import EvalFid
from distill.config.settings.training import Prepare
from distill.core.images import to_uint8
from distill.data.manifest import Manifest, write_manifest
from distill.eval_fid import line_scores, paired_scores, run_scores
from distill.eval_fid.feature_sets import per_picture
from distill.eval_fid.heldout import HeldOut
from distill.metrics.line_figures import displacement
from distill.models import build

SIDE = 64


def lines(*columns: int) -> Tensor:
    """A light picture, uint8 (3, 64, 64), with black lines one pixel wide."""
    picture = torch.full((3, SIDE, SIDE), 200, dtype=torch.uint8)
    picture[..., list(columns)] = 0
    return picture


def texture(count: int, seed: int = 0) -> Tensor:
    rng = torch.Generator().manual_seed(seed)
    coarse = torch.rand(count, 3, SIDE // 2, SIDE // 2, generator=rng)
    return to_uint8(torch.nn.functional.interpolate(coarse, SIDE, mode="bilinear"))


def test_pictures_with_much_ink_count_more():
    """One of two lines and all of six: seven of eight; the mean of pictures is three quarters."""
    target = torch.stack([lines(10, 20), lines(5, 15, 25, 35, 45, 55), lines()])
    output = torch.stack([lines(10), target[1], lines(30)])
    rows = line_scores.ink_rows(line_scores.ink_of(output, target, 2), rounds=50)
    assert rows["ink recall"]["value"] == pytest.approx(7 / 8)
    assert rows["ink precision"]["value"] == pytest.approx(7 / 8)
    assert rows["ink depth"]["value"] == pytest.approx(7 / 8)
    assert {row["pictures"] for row in rows.values()} == {3}
    assert rows["ink mass"]["value"] == pytest.approx(8 / 8)  # one too few, one too many
    assert rows["ink recall"]["interval"] == pytest.approx([0.5, 1])


def test_without_ink_there_is_no_row():
    flat = torch.stack([lines(), lines()])
    assert line_scores.ink_rows(line_scores.ink_of(flat, flat, 2), rounds=5) == {}


def test_a_moved_output_is_off_by_as_much():
    pictures = texture(line_scores.SEEN)
    moved = pictures.roll(2, dims=3)
    row = line_scores.displacement_row(per_picture(displacement, moved, pictures, 4))
    assert row["value"] == pytest.approx(2, abs=0.25)
    assert row["pictures"] == line_scores.SEEN
    still = line_scores.displacement_row(per_picture(displacement, pictures, pictures, 4))
    assert still["value"] == 0


def test_the_worst_part_of_the_picture_counts_and_a_rare_one_does_not():
    found = np.zeros((20, 4, 4, 2))
    found[:, 3, 3, 1] = -1.5
    found[:5, 0, 0] = 9.0  # in a quarter of the pictures: not the median's
    found[:, 1, 2] = np.nan
    found[:7, 1, 2] = 5.0  # seen in seven alone
    assert line_scores.displacement_row(found)["value"] == 1.5
    assert line_scores.displacement_row(found[:7]) == {}


def test_flicker_is_that_of_the_photo_whatever_the_batch():
    photos = texture(5)
    values = [line_scores.flicker_of(torch.nn.Identity(), photos, n, "it") for n in (2, 5)]
    np.testing.assert_allclose(values[0], values[1], rtol=1e-6)
    assert line_scores.flicker_of(torch.nn.Identity(), photos[..., :32, :32], 2, "it") is None
    assert line_scores.flicker_of(torch.nn.Identity(), photos[:0], 2, "it") is None


def test_flicker_of_a_transparent_output_is_that_over_white():
    def with_alpha(photos: Tensor) -> Tensor:
        return torch.cat([photos, torch.zeros_like(photos[:, :1])], 1)

    assert line_scores.flicker_of(with_alpha, texture(2), 2, "it").max() == 0


def held_out(output: Tensor, target: Tensor) -> HeldOut:
    photo = texture(len(output))
    titles = ("photo", "teacher", "student")
    groups = np.array([f"person {i // 2}" for i in range(len(output))])
    return HeldOut(photo, target, output, photo, "photos(B)", {"run": "it"}, titles, groups)


def test_the_rows_of_an_evaluation():
    """A student like its teacher: every line, none off, and its flicker beside the photo's."""
    settings = load("eval_fid", ["features=none", "bootstrap=0", "flicker=2"], EvalFid)
    pictures = texture(8)
    drawn = torch.minimum(pictures, lines(10, 20, 40)[None])
    rows = paired_scores.score_pairs(
        held_out(drawn, drawn), None, settings, {"student": torch.nn.Identity()}
    )["drawing"]
    for figure in ("ink recall", "ink precision", "ink depth"):
        assert rows[f"{figure}, student to teacher"]["value"] == 1
        assert rows[f"{figure}, photo to teacher"]["value"] < 1
    assert rows["displacement (px), student to teacher"]["value"] == 0
    noise = rows["flicker, noise (levels), student"]
    assert noise == rows["flicker, noise (levels), photo"]
    assert noise["value"] == pytest.approx(1.6, abs=0.1)
    assert noise["pictures"] == 2
    assert list(rows)[:2] == ["ink recall, student to teacher", "ink recall, photo to teacher"]
    none = load("eval_fid", ["features=none", "bootstrap=0", "flicker=0"], EvalFid)
    found = paired_scores.score_pairs(
        held_out(drawn, drawn), None, none, {"student": torch.nn.Identity()}
    )
    assert not [name for name in found["drawing"] if "flicker" in name]


def test_intervals_resample_persons_and_results_say_so(tmp_path, capsys):
    settings = load("eval_fid", ["features=none", "bootstrap=50", "flicker=0"], EvalFid)
    pictures = held_out(texture(8), texture(8, seed=1))
    found = paired_scores.score_pairs(pictures, None, settings)
    assert found["resampled"] == {"rounds": 50, "groups": 4}
    one = replace(pictures, groups=np.array(["one person"] * 8))
    rows = paired_scores.score_pairs(one, None, settings)["similarity"]
    # one person says nothing of others
    assert rows["PSNR (dB), student to teacher"]["interval"] is None
    run_scores.write(found | {"fid_missing": None}, tmp_path)
    assert "intervals: 50 resamples of 4 groups (one person's pictures)" in capsys.readouterr().out


def test_too_few_pictures_for_a_distance_leave_the_other_scores(tmp_path, capsys):
    """Two halves of 2 are the least; the network is not asked for features of fewer."""
    settings = load("eval_fid", ["features=mobilenet", "bootstrap=0", "flicker=0"], EvalFid)
    three = held_out(texture(3), texture(3))
    found = paired_scores.score_pairs(three, SimpleNamespace(), settings)
    assert found["similarity"]["SSIM, student to teacher"]["value"] == pytest.approx(1)
    assert found["distances"] is None
    run_scores.write(found, tmp_path)
    why = json.loads((tmp_path / "results.json").read_text())["fid_missing"]
    assert why.startswith("3 held-out pictures: too few for two halves of at least 2; add photos")
    assert "| FID | missing |" in (tmp_path / "results.md").read_text()


def test_only_the_teacher_that_labelled_the_set(tmp_path):
    """By its fingerprint: toon is in the package, so available everywhere."""
    settings = load("prepare", ["style=toon"], Prepare)
    of = (tmp_path, settings.style, settings.teacher)
    assert line_scores.teacher_of(*of) is None  # no set
    teacher = build.load_teacher(settings.style, settings.teacher)
    write_manifest(tmp_path, Manifest("photos", "toon", teacher.fingerprint()), {})
    assert line_scores.teacher_of(*of) is not None
    write_manifest(tmp_path, Manifest("photos", "toon", "another"), {})
    assert line_scores.teacher_of(*of) is None
