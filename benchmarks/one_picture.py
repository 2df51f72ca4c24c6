"""A student of recipe=picture beside the paper's network and beside optimisation.

    python benchmarks/one_picture.py RUN [--steps 150] [--gatys 300] [--photos 4]

On held-out photos of the run, by the run's own terms: the photos as they are; the student; the
transformation network of Johnson, Alahi and Li 2016 (its supplement's table, with instance
normalisation), trained for `--steps` on the run's pictures and losses; and the pictures
themselves optimised from the photo (Gatys et al. 2016, by Adam). Flicker is the mean change, in
levels of 255, by a camera's noise of 2 levels. Printed as Markdown; a sheet goes to `--out`.
"""

from __future__ import annotations

import argparse
import sys
from itertools import islice
from pathlib import Path

import torch
from torch import Tensor, nn

from distill.config.settings.training import PictureTrain
from distill.core.arrays import save_png
from distill.core.images import sheet
from distill.data.datamodule import DistillData
from distill.metrics.complexity import parameters, thop_macs
from distill.models.checkpoint import load_network
from distill.models.teachers.unchanged import Unchanged
from distill.prepare import labelling
from distill.runs.run_folder import Run
from distill.train.picture import PictureModule
from distill.train.student_training import student_module

NOISE, GATYS_RATE, JOHNSON_RATE = 2 / 255, 0.02, 1e-3


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


def optimised(module: PictureModule, photos: Tensor, iterations: int) -> Tensor:
    """The photos after so many steps on their own pixels; `stable` asks networks."""
    pictures = photos.clone().requires_grad_()
    optimiser = torch.optim.Adam([pictures], GATYS_RATE)
    module.criterion.train()
    weights = module.criterion.weights
    for _ in range(iterations):
        optimiser.zero_grad()
        raw = module.criterion.of_pictures(pictures, photos)
        torch.stack([weights[name] * value for name, value in raw.items()]).sum().backward()
        optimiser.step()
        with torch.no_grad():
            pictures.clamp_(0, 1)
    return pictures.detach()


@torch.no_grad()
def row(
    name: str, module: PictureModule, photos: Tensor, output: Tensor, network: nn.Module | None
) -> str:
    module.criterion.eval()
    raw = module.criterion.of_pictures(output, photos)
    cells = [name, "–", "–", f"{raw['content']:.3f}", f"{raw['style']:.3f}", "–"]
    if network is not None:
        torch.manual_seed(0)
        noisy = (photos + NOISE * torch.randn_like(photos)).clamp(0, 1)
        flicker = 255 * float((network(noisy) - output).abs().mean())
        macs = thop_macs(network, photos.shape[-1]) / 1e6
        cells[1:3] = f"{parameters(network):,}", f"{macs:,.0f}"
        cells[5] = f"{flicker:.2f}"
    return f"| {' | '.join(cells)} |"


def main() -> None:
    made = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("run", type=Path)
    made.add_argument("--checkpoint", default="last")
    made.add_argument("--steps", type=int, default=150, help="of the paper's network; 0: without")
    made.add_argument("--gatys", type=int, default=300, help="iterations; 0: without")
    made.add_argument("--photos", type=int, default=4)
    made.add_argument("--out", type=Path, default=Path("runs/benchmarks/one_picture.png"))
    given = made.parse_args()
    run = Run(given.run)
    said = run.settings()
    assert isinstance(said, PictureTrain)
    torch.manual_seed(said.seed)
    module = student_module(said, Unchanged().freeze(), PictureModule)
    assert isinstance(module, PictureModule)
    saved = torch.load(run.checkpoint(given.checkpoint), map_location="cpu", weights_only=True)
    module.criterion.rescale(saved["loss_factors"])
    data = labelling.training_data(said, Unchanged().freeze())
    held_out = (data.on_after_batch_transfer(each, 0)["photo"] for each in data.val_dataloader())
    photos = torch.cat([*islice(held_out, given.photos)])[: given.photos]
    student, _ = load_network(run.checkpoint(given.checkpoint), "AtoB")
    with torch.no_grad():
        columns = {"photo": photos, "student": student.eval()(photos)}
    networks: dict[str, nn.Module] = {"student": student}
    if given.gatys:
        columns[f"optimised, {given.gatys}"] = optimised(module, photos, given.gatys)
    if given.steps:
        name = f"Johnson, {given.steps} steps"
        networks[name] = trained(module, data, given.steps)
        with torch.no_grad():
            columns[name] = networks[name](photos)
    print("| | parameters | MACs at 256², M | content | style | flicker |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for name, output in columns.items():
        print(row(name, module, photos, output, networks.get(name)))
    given.out.parent.mkdir(parents=True, exist_ok=True)
    rows = [[*each] for each in zip(*columns.values(), strict=True)]
    save_png(sheet(rows, [*columns]), given.out)
    print(given.out)


if __name__ == "__main__":
    main()
