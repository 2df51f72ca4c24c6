"""Scores of runs with a discriminator: of two domains there and back, and of pairs."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor, nn

from distill.config.compose import load
from distill.config.settings.commands import EvalFid
from distill.eval_fid import __main__ as eval_fid
from distill.eval_fid import paired_scores
from distill.metrics import frechet
from distill_gan import held_out_pairs, unpaired_scores
from support.commands import run
from support.feature_networks import Corner
from support.gan_runs import RESNET, SIDE, built, settings, write


class Shift(nn.Module):
    """Adds a number of 255ths."""

    def __init__(self, levels: int) -> None:
        super().__init__()
        self.levels = levels

    def forward(self, photo: Tensor) -> Tensor:
        return (photo + self.levels / 255).clamp(0, 1)


def grey(path: Path, levels: list[int], size: tuple[int, int] = (80, 64)) -> None:
    """Pictures of one grey each, of one person each."""
    path.mkdir(parents=True)
    for i, level in enumerate(levels):
        Image.new("RGB", size, (level,) * 3).save(path / f"Person{'abcdefghij'[i]}_0001.png")


def chosen(*overrides: str) -> EvalFid:
    return load("eval_fid", list(overrides), EvalFid)


A, B = [10, 20, 30, 40, 50, 60], [100, 110, 120, 130, 140, 150, 160, 170]


@pytest.fixture
def trained(tmp_path, monkeypatch):
    """The settings of a run on two domains, of which testA and testB are held out."""
    monkeypatch.chdir(tmp_path)
    for name, levels in (("trainA", [0, 1]), ("trainB", [2, 3]), ("testA", A), ("testB", B)):
        grey(tmp_path / "set" / name, levels)
    return settings("cyclegan", RESNET, root="set")


def test_translated_there_and_back(trained):
    found = unpaired_scores.held_out_domains(Shift(30), Shift(-29), trained, chosen())
    assert sorted(found.source[:, 0, 0, 0].tolist()) == A
    assert sorted(found.real[:, 0, 0, 0].tolist()) == B
    assert torch.equal(found.translated, found.source + 30)
    assert torch.equal(found.reconstructed, found.source + 1)
    assert torch.equal(found.identity, found.real + 30)
    assert found.source.shape[2:] == (SIDE, SIDE)
    assert found.titles == ("A", "A to B", "A to B to A", "B", "B to B")
    assert [len(column) for column in found.columns] == [len(A)] * 3 + [len(B)] * 2


def test_the_other_direction(trained):
    found = unpaired_scores.held_out_domains(
        Shift(-29), Shift(30), trained, chosen("direction=BtoA")
    )
    assert sorted(found.source[:, 0, 0, 0].tolist()) == B
    assert sorted(found.real[:, 0, 0, 0].tolist()) == A
    assert found.titles[1:3] == ("B to A", "B to A to B")


def test_scores_are_the_formulas_on_the_halves(trained):
    """Of greys the Fréchet distance is that of one number, times its three equal channels."""
    found = unpaired_scores.held_out_domains(Shift(30), Shift(-29), trained, chosen())
    scores = unpaired_scores.score_domains(found, Corner(), chosen("bootstrap=0"))
    real, source = (v[:, 0, 0, 0].double().numpy() / 255 for v in (found.real, found.source))

    def expected(x: np.ndarray, y: np.ndarray) -> float:
        return 3 * ((x.mean() - y.mean()) ** 2 + (x.std(ddof=1) - y.std(ddof=1)) ** 2)

    values = {name: row["value"] for name, row in scores["distances"].items()}
    assert values == {
        "floor: B(1), B(2)": pytest.approx(expected(real[:4], real[4:]), abs=1e-6),
        "generator: B(1), A → B": pytest.approx(
            expected(real[:4], source[-4:] + 30 / 255), abs=1e-6
        ),
        "ceiling: B(1), A": pytest.approx(expected(real[:4], source[-4:]), abs=1e-6),
    }
    kid = frechet.kid(
        np.repeat(real[:4, None], 3, 1), np.repeat(source[-4:, None] + 30 / 255, 3, 1)
    )
    assert scores["distances"]["generator: B(1), A → B"]["kid"] == pytest.approx(kid, rel=1e-4)
    assert scores["pictures_per_side"] == 4
    assert scores["pictures"] == {"A": 6, "B": 8}
    similarity = scores["similarity"]
    psnr = 20 * np.log10(255)  # of one level of 255
    assert similarity["PSNR (dB), cycle: A → B → A to A"]["value"] == pytest.approx(psnr, abs=1e-3)
    psnr = 20 * np.log10(255 / 30)
    assert similarity["PSNR (dB), identity: B → B to B"]["value"] == pytest.approx(psnr, abs=1e-3)


def test_who_is_in_both_domains_is_not_compared_with_himself(trained, tmp_path):
    """The floor is of different persons; with everyone in both domains the others are too."""
    grey(tmp_path / "both/testA", B)
    grey(tmp_path / "both/testB", B)
    for name in ("trainA", "trainB"):
        grey(tmp_path / "both" / name, [1])
    found = unpaired_scores.held_out_domains(
        Shift(0), Shift(0), replace(trained, data=replace(trained.data, root="both")), chosen()
    )
    distances = unpaired_scores.score_domains(found, Corner(), chosen("bootstrap=0"))["distances"]
    assert torch.equal(found.translated, found.real)
    floor, *others = distances.values()
    assert floor["value"] > 1e-4
    assert others == [floor, floor]


@pytest.mark.parametrize(("direction", "place"), [("AtoB", "eval"), ("BtoA", "eval/BtoA")])
def test_the_command_on_a_cyclegan(trained, tmp_path, capsys, direction, place):
    there, back = built(RESNET, seed=1), built(RESNET, seed=2)
    write(tmp_path / "runs/c", trained, a_to_b=there, b_to_a=back)
    words = ["run=c", "features=none", f"direction={direction}", "bootstrap=5"]
    assert run(eval_fid, *words) == 0
    results = json.loads((tmp_path / "runs/c" / place / "results.json").read_text())
    x, y = direction.split("to")
    assert f"PSNR (dB), cycle: {x} → {y} → {x} to {x}" in results["similarity"]
    assert results["direction"] == direction
    assert "pictures: " in capsys.readouterr().out
    sheet = Image.open(tmp_path / "runs/c" / place / "contact_sheet.png")
    assert sheet.size == (5 * (SIDE + 4) + 4, 18 + 6 * (SIDE + 4) + 4)


def test_bad_pictures_are_named_and_left_out(trained, tmp_path, capsys):
    (tmp_path / "set/testA/Personz_0001.png").write_bytes(b"no picture")
    found = unpaired_scores.held_out_domains(Shift(0), Shift(0), trained, chosen())
    assert len(found.source) == len(A)
    assert "skipped 'set/testA/Personz_0001.png'" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["ceiling=toon"], "ceiling=toon: not for recipe=cyclegan; leave it out"),
        (["photos=gone"], "data.root=gone: no such folder"),
    ],
)
def test_what_goes_wrong_is_one_line(trained, tmp_path, capsys, monkeypatch, words, said):
    monkeypatch.setattr(paired_scores, "feature_network", lambda _name: Corner())
    write(tmp_path / "runs/c", trained, a_to_b=built(RESNET), b_to_a=built(RESNET))
    assert run(eval_fid, "run=c", *words) == 1
    lines = capsys.readouterr().err.splitlines()
    assert [line for line in lines if line.startswith("error: ")] == [lines[-1]]
    assert said in lines[-1]


def test_too_few_pictures_leave_the_other_scores(trained, tmp_path, capsys, monkeypatch):
    for name in "AB":
        grey(tmp_path / "few" / f"train{name}", [1])
        grey(tmp_path / "few" / f"test{name}", [1])
    monkeypatch.setattr(paired_scores, "feature_network", lambda _name: Corner())
    write(tmp_path / "runs/c", trained, a_to_b=built(RESNET), b_to_a=built(RESNET))
    assert run(eval_fid, "run=c", "photos=few") == 3
    why = "1 held-out picture of A and 1 of B: too few for 2 and two halves of 2"
    assert f"error: FID is missing: {why}" in capsys.readouterr().err
    results = json.loads((tmp_path / "runs/c/eval/results.json").read_text())
    assert results["fid_missing"].startswith(why)
    assert "PSNR (dB), cycle: A → B → A to A" in results["similarity"]


# Pairs


def on_pairs(tmp_path: Path, levels: int, direction: str = "AtoB") -> held_out_pairs.HeldOut:
    """The held-out pairs, whose B is 100 levels above A, with a generator of so many levels."""
    grey(tmp_path / "p/val/A", A)
    grey(tmp_path / "p/val/B", [level + 100 for level in A])
    said = settings("pix2pix", RESNET, root=str(tmp_path / "p"), direction=direction)
    return held_out_pairs.held_out_pairs(Shift(levels), said, chosen())


@pytest.mark.parametrize("direction", ["AtoB", "BtoA"])
def test_pairs_in_both_directions(tmp_path, direction):
    step = 100 if direction == "AtoB" else -100
    found = on_pairs(tmp_path, step, direction)
    assert torch.equal(found.output, found.target)
    assert found.input[:, 0, 0, 0].tolist() == [v - step for v in found.target[:, 0, 0, 0].tolist()]
    assert sorted(found.input[:, 0, 0, 0].tolist()) == (A if step > 0 else [v + 100 for v in A])


def test_scores_of_pairs_name_input_target_and_generator(tmp_path):
    found = on_pairs(tmp_path, 90)
    scores = paired_scores.score_pairs(found, Corner(), chosen("bootstrap=0"))
    assert list(scores["distances"]) == [
        "floor: T(A), T(B)", "generator: T(A), G(B)",
        "ceiling: T(A), inputs(B)", "paired: T(B), G(B)",
    ]  # fmt: skip
    paired = scores["distances"]["paired: T(B), G(B)"]["value"]
    assert paired == pytest.approx(3 * (10 / 255) ** 2, abs=1e-6)
    similarity = scores["similarity"]
    psnr = similarity["PSNR (dB), generator to target"]["value"]
    assert psnr == pytest.approx(20 * np.log10(255 / 10), abs=1e-3)
    assert similarity["PSNR (dB), input to target"]["value"] == pytest.approx(
        20 * np.log10(255 / 100), abs=1e-3
    )
    assert (scores["run"], scores["generator"]) == ("pix2pix-x", "resnetgenerator")


def test_an_output_like_its_target_is_at_zero(tmp_path):
    """Paired draws too: without them the interval of no distance at all would have a width."""
    found = on_pairs(tmp_path, 100)
    distances = paired_scores.score_pairs(found, Corner(), chosen("bootstrap=20"))["distances"]
    paired = distances["paired: T(B), G(B)"]
    assert paired["kid"] == pytest.approx(0, abs=1e-12)
    assert [paired["value"], *paired["interval"]] == pytest.approx([0, 0, 0], abs=1e-7)
    low, high = distances["generator: T(A), G(B)"]["interval"]
    assert high - low > 1e-3


def test_the_kernel_distance_of_pairs_leaves_out_a_picture_and_its_own_target():
    a, b = np.random.default_rng(0).normal(size=(2, 12, 5))
    near = a + 0.3 * b
    row = paired_scores.distance(a, near, chosen("bootstrap=0"), paired=True)
    cross = (a @ near.T / 5 + 1) ** 3
    own = [((x @ x.T / 5 + 1) ** 3)[~np.eye(12, dtype=bool)].mean() for x in (a, near)]
    apart = cross[~np.eye(12, dtype=bool)].mean()
    assert row["kid"] == pytest.approx(sum(own) - 2 * apart)
    unlike = paired_scores.distance(a, near, chosen("bootstrap=0"))
    assert unlike["kid"] == pytest.approx(sum(own) - 2 * cross.mean())


def test_the_command_on_pairs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for side in "AB":
        grey(tmp_path / "p" / side, A)
    write(tmp_path / "runs/p", settings("pix2pix", RESNET, root="p"), generator=built(RESNET))
    assert run(eval_fid, "run=p", "features=none", "bootstrap=5") == 0
    results = json.loads((tmp_path / "runs/p/eval/results.json").read_text())
    assert 1 <= results["pictures"] < len(A)  # the held-out half alone
    assert Image.open(tmp_path / "runs/p/eval/contact_sheet.png").size[0] == 3 * (SIDE + 4) + 4
    assert run(eval_fid, "run=p", "direction=BtoA", "features=none") == 1
    assert "trains one network, which goes one way" in capsys.readouterr().err
