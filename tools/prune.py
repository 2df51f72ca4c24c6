"""Make a trained student narrower: its channels are chosen, and refitted, by least squares.

    python tools/prune.py hayao FILE.safetensors --photos DIR --expansion 4,4,6,6,6 --steps 3000
    python tools/prune.py crayons FILE.safetensors --photos DIR --half 24

--expansion narrows the encoder's blocks inside, stage by stage, as encoder.expansion has them,
--half decoder=detail at half size. --steps then trains all layers to give the features and outputs
that the student gave before, on the same crops: so wide layers do not learn a crop's context, which
training on crops of a teacher's whole pictures would teach them. The student, of the package or a
file, keeps its terms. FILE is for distill.train init=FILE with the same encoder.expansion or
decoder.build.half, and for distill.export model=FILE.
"""

import argparse
import random
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import cache
from pathlib import Path

import torch
import torch.nn.functional as F
from kornia.filters import spatial_gradient
from PIL import Image
from torch import Tensor, nn
from tqdm import trange

import distill
from distill.core.errors import DistillError, OneLine
from distill.core.images import to_tensor
from distill.data.photos import centre_square, find_all, read_photo
from distill.models.batchnorm import fold_batchnorm
from distill.models.students.decoders.detail import Detail
from distill.models.students.student import Student
from distill.runs.published_student import PublishedStudent

PHOTOS, PIXELS = 32, 2000  # that the channels are chosen by; pixels of a photo
SIDES = (512, 256, 384, 512, 768, 1024)
STAGES = (range(2, 4), range(4, 7), range(7, 11), range(11, 14), range(14, 17))  # blocks
CROP, BATCH, RATE, SOBEL, FEATURES = 224, 6, 1.5e-4, 6.0, 0.05


def fitted(inputs: Tensor, targets: Tensor, count: int) -> tuple[list[int], Tensor]:
    """The `count` rows of `inputs` (C, N) from which `targets` (K, N) follow best, and the weights
    (K, count); a row of ones among the inputs, the last, stays and is not counted.

    Backward elimination: in turn the row goes without which the squared error grows least.
    """
    gram, cross = inputs @ inputs.T, inputs @ targets.T
    gram += 1e-8 * gram.diagonal().mean() * torch.eye(len(gram), dtype=gram.dtype)
    ones = bool((inputs[-1] == 1).all())
    keep = [*range(len(inputs))]

    def explained(rows: list[int]) -> float:
        return float((torch.linalg.solve(gram[rows][:, rows], cross[rows]) * cross[rows]).sum())

    while len(keep) > count + ones:
        candidates = keep[:-1] if ones else keep
        worst = max(candidates, key=lambda row: explained([each for each in keep if each != row]))
        keep.remove(worst)
    weights = torch.linalg.solve(gram[keep][:, keep], cross[keep]).T
    return (keep[:-1] if ones else keep), weights


def features(
    network: nn.Module, photos: Sequence[Tensor], modules: Sequence[nn.Module]
) -> list[Tensor]:
    """The outputs (C, N) of these modules at the same N pixels, drawn from each photo."""
    drawn: list[list[Tensor]] = [[] for _ in modules]
    generator = torch.Generator().manual_seed(0)
    now = dict[int, Tensor]()
    hooks = [
        module.register_forward_hook(lambda _, __, output, at=at: now.update({at: output}))
        for at, module in enumerate(modules)
    ]
    with torch.no_grad():
        for photo in photos:
            network(photo[None])
            count = now[0].shape[-2] * now[0].shape[-1]
            places = torch.randint(count, (min(count, PIXELS),), generator=generator)
            for at, columns in enumerate(drawn):
                columns.append(now[at][0].flatten(1)[:, places].double())
    for hook in hooks:
        hook.remove()
    return [torch.cat(columns, 1) for columns in drawn]


def narrow_block(
    conv: nn.Sequential, encoder: nn.Module, photos: Sequence[Tensor], to: int
) -> None:
    """Leave `to` channels inside an inverted residual, BatchNorm folded."""
    widen, depthwise, project = (
        next(each for each in part.modules() if isinstance(each, nn.Conv2d)) for part in conv[:3]
    )
    inside, outside = features(encoder, photos, (conv[1], conv[2]))
    ones = torch.ones(1, inside.shape[1], dtype=inside.dtype)
    keep, weights = fitted(torch.cat([inside, ones]), outside, to)
    for layer in (widen, depthwise):
        narrow(layer, keep)
    depthwise.groups = depthwise.in_channels = to
    project.weight = nn.Parameter(weights[:, :-1, None, None].float())
    project.bias = nn.Parameter(weights[:, -1].float())
    project.in_channels = to


def narrow(layer: nn.Conv2d, keep: list[int]) -> None:
    layer.weight, layer.out_channels = nn.Parameter(layer.weight[keep]), len(keep)
    if layer.bias is not None:
        layer.bias = nn.Parameter(layer.bias[keep])


def narrow_half(student: PublishedStudent, photos: Sequence[Tensor], to: int) -> None:
    """Leave `to` channels of decoder=detail at half size."""
    decoder = student.student.decoder
    before = nn.Identity()
    decoder.at2.append(before)  # to read what the last layer is given
    (inputs,) = features(student, photos, (before,))
    del decoder.at2[-1]
    weight = decoder.out.weight.detach().double()  # (C, K, 2, 2)
    keep, weights = fitted(inputs, weight.flatten(1).T @ inputs, to)
    for block in decoder.at2:
        depthwise, pointwise = (m for m in block.modules() if isinstance(m, nn.Conv2d))
        narrow(depthwise, keep)
        narrow(pointwise, keep)
        depthwise.groups = depthwise.in_channels = pointwise.in_channels = to
        pointwise.weight = nn.Parameter(pointwise.weight[:, keep])
    for layer in (decoder.up2[0], decoder.patches):
        narrow(layer, keep)
    decoder.out.weight = nn.Parameter(weights.T.reshape(to, *weight.shape[1:]).float())
    decoder.out.in_channels = to


def crops(paths: Sequence[Path]) -> Iterator[Tensor]:
    """Batches (BATCH, 3, CROP, CROP) of photos, their long sides one of SIDES."""
    draw = random.Random(0)

    @cache
    def photo_at(path: Path) -> Image.Image:
        return scaled(read_photo(path), max(SIDES))

    def scaled(photo: Image.Image, side: int) -> Image.Image:
        scale = max(min(1, side / max(photo.size)), CROP / min(photo.size))
        width, height = (max(CROP, round(scale * each)) for each in photo.size)
        return photo.resize((width, height), Image.Resampling.LANCZOS)

    while True:
        batch = []
        for path in draw.choices(paths, k=BATCH):
            photo = scaled(photo_at(path), draw.choice(SIDES))
            left, top = (draw.randint(0, side - CROP) for side in photo.size)
            crop = to_tensor(photo.crop((left, top, left + CROP, top + CROP)))
            batch.append(crop.flip(2) if draw.random() < 0.5 else crop)
        yield torch.stack(batch)


def train(student: Student, before: Student, paths: Sequence[Path], steps: int) -> None:
    """Have a student give the features and outputs of the one that it was `before`."""

    def features_and_output(network: Student, photos: Tensor) -> list[Tensor]:
        outputs = list[Tensor]()
        hook = network.encoder.register_forward_hook(lambda _, __, output: outputs.extend(output))
        picture = network(photos)
        hook.remove()
        # The thumbnail's come first; the photo itself and what is at half its size are as before.
        return [*outputs[-len(network.encoder.strides) :][2:], picture]

    optimizer = torch.optim.Adam(student.parameters(), RATE)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1, 0, steps)
    progress = trange(steps, desc="fitting", unit="step")
    for photos, _ in zip(crops(paths), progress, strict=False):
        with torch.no_grad():
            *targets, target = features_and_output(before, photos)
        *outputs, output = features_and_output(student, photos)
        loss = F.l1_loss(output, target)
        loss += SOBEL * F.l1_loss(spatial_gradient(output), spatial_gradient(target))
        for one, other in zip(outputs, targets, strict=True):
            scale = other.std((0, 2, 3), keepdim=True) + 1e-3
            loss += FEATURES * ((one - other) / scale).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        progress.set_postfix(loss=f"{loss.item():.4f}", refresh=False)


def prune(
    student: PublishedStudent,
    paths: Sequence[Path],
    expansion: Sequence[int] = (),
    half: int | None = None,
    steps: int = 0,
) -> PublishedStudent:
    """The student, narrower; BatchNorm is folded."""
    if not student.description.folded:
        folded = replace(student.description, folded=True)
        student = PublishedStudent(folded, fold_batchnorm(student.student))
    about, encoder = student.description, student.student.encoder
    chosen = random.Random(0).sample([*paths], min(PHOTOS, len(paths)))
    photos = [
        to_tensor(centre_square(read_photo(path), SIDES[number % 2]))
        for number, path in enumerate(chosen)
    ]
    before = deepcopy(student.student)
    if half is not None:
        decoder = student.student.decoder
        if not isinstance(decoder, Detail) or not 12 <= half <= decoder.out.in_channels:
            raise DistillError(f"--half {half}: of decoder=detail, from 12 to what it has")
        narrow_half(student, photos, half)
        build = {**about.decoder.build, "half": half}
        about = replace(about, decoder=replace(about.decoder, build=build))
    for number, block in enumerate(encoder.blocks[2:] if expansion else (), 2):
        factor = next(f for f, stage in zip(expansion, STAGES, strict=True) if number in stage)
        if not isinstance(block, nn.Identity):  # left out by encoder.without
            widen = block.conv[0][0]
            if (to := factor * widen.in_channels) > widen.out_channels:
                has = widen.out_channels // widen.in_channels
                raise DistillError(f"--expansion {factor}: block {number} has {has} alone")
            if to < widen.out_channels:
                narrow_block(block.conv, encoder, photos, to)
    if expansion:
        about = replace(about, encoder={**about.encoder, "expansion": [*expansion]})
    if steps:
        train(student.student, before, paths, steps)
    return PublishedStudent(about, student.student)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("student", help="name of one of the package, or a file of distill.export")
    parser.add_argument("file", type=Path, help="the .safetensors file to write")
    parser.add_argument("--photos", required=True, help="folders, with commas between them")
    parser.add_argument("--expansion", type=lambda text: [*map(int, text.split(","))], default=[])
    parser.add_argument("--half", type=int)
    parser.add_argument("--steps", type=int, default=0)
    args = parser.parse_args()
    if args.expansion and (len(args.expansion) != len(STAGES) or min(args.expansion) < 2):
        raise DistillError("--expansion: five numbers from 2 on, with commas between them")
    paths = [photo.path for photo in find_all([*map(Path, args.photos.split(","))], [])]
    if not paths:
        raise DistillError(f"--photos {args.photos}: no photos")
    student = distill.student_network(args.student)
    torch.manual_seed(0)
    prune(student, paths, args.expansion, args.half, args.steps).save(args.file)
    print(
        f"written: {args.file}\nnext: python -m distill.train init={args.file}, with the same shape"
    )


if __name__ == "__main__":
    with OneLine():
        main()
