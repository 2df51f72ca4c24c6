"""A plain training loop over pairs on disk, and what loading one pair costs in the product."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
import torch.nn.functional as F
from forms import RATE, photos, settings_of
from PIL import Image
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, default_collate
from torch.utils.tensorboard import SummaryWriter
from torchvision import transforms

from distill.data.datasets import PairSet
from distill.data.pairs import find_pairs
from distill.losses.criterion import make_criterion
from distill.models import build

_ACROSS = torch.tensor([[-1.0, 0.0, 1.0], [-2.0, 0.0, 2.0], [-1.0, 0.0, 1.0]]) / 8


class Files(Dataset):
    """Both files of a pair, resized. As long as the run, so that no new epoch costs anything."""

    def __init__(self, root: Path, size: int, length: int) -> None:
        self.photos = sorted((root / "train" / "photo").iterdir())
        self.targets = root / "train" / "stylized"
        self.length = length
        self.transform = transforms.Compose(
            [transforms.Resize((size, size)), transforms.ToTensor()]
        )

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        photo = self.photos[index % len(self.photos)]
        return self._read(photo), self._read(self.targets / photo.name)

    def _read(self, path: Path) -> Tensor:
        return self.transform(Image.open(path).convert("RGB"))


def plain_loss(output: Tensor, target: Tensor) -> Tensor:
    """SmoothL1 (β 0.05) plus the mean difference of Sobel gradients: `loss=l1_sobel` by hand."""
    kernels = torch.stack([_ACROSS, _ACROSS.T])[:, None].repeat(3, 1, 1, 1)
    edges = [
        F.conv2d(F.pad(picture, (1, 1, 1, 1), mode="replicate"), kernels, groups=3)
        for picture in (output, target)
    ]
    return F.smooth_l1_loss(output, target, beta=0.05) + (edges[0] - edges[1]).abs().mean()


def plain(root: Path, workers: int, batch: int, warm: int, steps: int, size: int) -> float:
    """Pictures a second, from the end of step `warm` to that of `warm + steps`."""
    length = batch * (warm + steps + 5)  # loading goes on behind the last step that counts
    loader = DataLoader(
        Files(root, size, length), batch, shuffle=True, num_workers=workers, drop_last=True
    )
    settings = settings_of(size)
    student = build.build_student(settings.encoder, settings.decoder.build, settings.channels)
    student.train()
    optimiser = torch.optim.Adam(student.parameters(), lr=RATE)
    seconds = []
    with tempfile.TemporaryDirectory() as folder, SummaryWriter(folder) as writer:
        for step, (photo, target) in enumerate(loader):
            optimiser.zero_grad()
            loss = plain_loss(student(photo), target)
            loss.backward()
            optimiser.step()
            writer.add_scalar("Loss/train", loss.item(), step)
            print(f"[{step}] train loss: {loss.item():.5f}", file=sys.stderr)
            seconds.append(time.perf_counter())
    return steps * batch / (seconds[warm + steps - 1] - seconds[warm - 1])


def loss_difference(size: int) -> float:
    """Of the two losses, on random pictures: nothing but rounding."""
    output, target = photos(4, size), photos(4, size)
    said = settings_of(size).loss
    ours, _ = make_criterion(said.terms, said.weights, said.start)(output, target)
    return abs(float(ours - plain_loss(output, target)))


def loading_costs(root: Path, batch: int, size: int) -> dict[str, float]:
    """Milliseconds of the product's loading, each part alone in one thread."""
    torch.set_num_threads(1)
    pairs = find_pairs(root, "toon", 0.1, 0)["train"][:batch]
    data = PairSet(pairs, size, train=True)
    samples = [data[i] for i in range(batch)]
    return {
        "open and decode the two files of a pair": _ms(lambda: [p.read() for p in pairs]) / batch,
        "a sample, with tensors and mirroring": _ms(lambda: [data[i] for i in range(batch)])
        / batch,
        f"collate {batch}": _ms(lambda: default_collate(samples)),
        f"collate and hand over {batch} from a worker": _handover(samples[0], batch),
    }


class _Resident(Dataset):
    """The same sample again and again: what is left is the way from a worker."""

    def __init__(self, sample: dict, length: int) -> None:
        self.sample, self.length = sample, length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> dict:
        return self.sample


def _handover(sample: dict, batch: int, batches: int = 40) -> float:
    """Milliseconds a batch from one worker that has nothing to load; its start is not counted."""
    resident = DataLoader(_Resident(sample, (batches + 5) * batch), batch, num_workers=1)
    seconds = [time.perf_counter() for _ in resident]
    return 1000 * (seconds[-1] - seconds[4]) / batches


def _ms(run: Callable[[], object], times: int = 5) -> float:
    run()
    begun = time.perf_counter()
    for _ in range(times):
        run()
    return 1000 * (time.perf_counter() - begun) / times
