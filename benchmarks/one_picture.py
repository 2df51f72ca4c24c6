"""A student of recipe=picture beside the paper's network and beside optimisation.

    python benchmarks/one_picture.py RUN [--steps 1000] [--gatys 300]

What distill.eval_fid says of the run, and the same of the transformation network of Johnson, Alahi
and Li 2016 (its supplement's table, with instance normalisation), trained for `--steps` on the
run's photos and losses, but as in the paper without `stable`; it pads by reflection. Printed as
Markdown; a sheet goes to `--out`.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from distill.config import compose
from distill.config.settings.commands import EvalFid
from distill.core.arrays import save_png
from distill.core.images import sheet, to_float
from distill.data.datamodule import DistillData
from distill.eval_fid.heldout import held_out_photos
from distill.eval_fid.run_scores import score_run
from distill.metrics.complexity import parameters, thop_macs
from distill.models.checkpoint import load_network
from distill.models.teachers.unchanged import Unchanged
from distill.prepare import labelling
from distill.runs.run_folder import Run
from distill.train.student_training import student_module
from distill_picture.picture_scores import run_criterion, score_style
from distill_picture.picture_training import PictureModule
from distill_picture.settings import PictureTrain

JOHNSON_RATE, SIDE = 1e-3, 256


class Residual(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.both = nn.Sequential(*layer(channels, channels, 3), *layer(channels, channels, 3)[:-1])

    def forward(self, x: Tensor) -> Tensor:
        return x + self.both(x)


def layer(given: int, made: int, kernel: int, stride: int = 1) -> list[nn.Module]:
    convolution = nn.Conv2d(given, made, kernel, stride, kernel // 2, padding_mode="reflect")
    return [convolution, nn.InstanceNorm2d(made, affine=True), nn.ReLU()]


def johnson() -> nn.Sequential:
    """9×9 of 32, two halvings to 128, five residual blocks, two doublings, 9×9 of 3."""
    doubled = []
    for given, made in ((128, 64), (64, 32)):
        doubled += [nn.Upsample(scale_factor=2), *layer(given, made, 3)]
    return nn.Sequential(
        *layer(3, 32, 9),
        *layer(32, 64, 3, 2),
        *layer(64, 128, 3, 2),
        *(Residual(128) for _ in range(5)),
        *doubled,
        nn.Conv2d(32, 3, 9, 1, 4, padding_mode="reflect"),
        nn.Sigmoid(),
    )


def trained(module: PictureModule, data: DistillData, steps: int) -> nn.Module:
    """The paper's network after that many steps of the run's loss, at the paper's rate of 1e-3."""
    module.student, said = johnson(), module.settings
    assert said is not None
    optimiser = torch.optim.Adam(module.student.parameters(), JOHNSON_RATE)
    module.train()
    torch.manual_seed(said.seed)
    for number, batch in enumerate(data.first_batches(steps), 1):
        optimiser.zero_grad()
        total, _, _ = module.compare(data.on_after_batch_transfer(batch, 0))
        total.backward()
        optimiser.step()
        if number % 25 == 0:
            print(f"step {number}: loss {float(total):.3f}", file=sys.stderr, flush=True)
    return module.student.eval()


def row(name: str, scores: dict[str, Any], who: str, network: nn.Module | None) -> str:
    rows = scores["similarity"] | scores["drawing"]
    wanted = (f"{term}, {who}" for term in ("content", "style", "flicker, noise (levels)"))
    figures = [f"{rows[each]['value']:.3f}" if each in rows else "–" for each in wanted]
    cost = ["–", "–"]
    if network is not None:
        cost = [f"{parameters(network):,}", f"{thop_macs(network, SIDE) / 1e6:,.0f}"]
    return f"| {' | '.join([name, *cost, *figures])} |"


def main() -> None:
    made = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("run", type=Path)
    made.add_argument("--steps", type=int, default=1000, help="of the paper's network")
    made.add_argument("--gatys", type=int, default=300, help="iterations; 0: without")
    made.add_argument("--out", type=Path, default=Path("runs/benchmarks/one_picture.png"))
    given = made.parse_args()
    words = ["checkpoint=last", "features=none", f"optimised={given.gatys}"]
    settings = compose.load("eval_fid", words, EvalFid)
    checkpoint = Run(given.run).checkpoint("last")
    student, said = load_network(checkpoint)
    assert isinstance(said, PictureTrain)
    sheet_of_all, scores = score_run(checkpoint, settings, None)

    weights = {**said.loss.weights, "stable": 0.0}
    plain = replace(said, loss=replace(said.loss, weights=weights))
    module = student_module(plain, Unchanged().freeze(), PictureModule)
    assert isinstance(module, PictureModule)
    module.criterion.rescale(run_criterion(said, checkpoint).factors)
    network = trained(module, labelling.label_and_load(said, Unchanged().freeze()), given.steps)
    pictures = held_out_photos(network, said, settings)
    settings = replace(settings, optimised=0)
    theirs, their_scores = score_style(pictures, checkpoint, said, {"student": network}, settings)

    print("| | parameters | MACs at 256², M | content | style | flicker, levels |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    print(row("photo", scores, "photo", None))
    print(row("student", scores, "student", student))
    print(row(f"Johnson, {given.steps} steps", their_scores, "student", network))
    if given.gatys:
        print(row(f"optimised, {given.gatys} iterations", scores, "optimised", None))
    given.out.parent.mkdir(parents=True, exist_ok=True)
    columns = (*sheet_of_all.columns, theirs.columns[2])
    rows = [[*map(to_float, each)] for each in zip(*columns, strict=True)]
    save_png(sheet(rows, [*sheet_of_all.titles, "Johnson"]), given.out)
    print(given.out)


if __name__ == "__main__":
    main()
