"""Photos through the teacher to pairs of PNG files: read ahead, drawn, written behind."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from distill.core.images import save_png, to_image
from distill.core.process import starter
from distill.core.progress import bar
from distill.data.augment import rng_for, view
from distill.data.labelled.manifest import Recipe
from distill.data.photos import BadPhoto, Photo, Side, read_photo


@dataclass(frozen=True)
class PairJob:
    """One pair to make."""

    photo: Photo
    side: Side
    number: int

    @property
    def name(self) -> str:
        return self.photo.pair_name + (f"-v{self.number:03d}" if self.number else "") + ".png"

    def files(self, root: Path) -> tuple[Path, Path]:
        return root / self.side / "photo" / self.name, root / self.side / "stylized" / self.name


def plan(sides: Iterable[tuple[Photo, Side]], views: int) -> list[PairJob]:
    """Every pair the set shall hold, in the photos' order; only training has several views."""
    count = {"train": views, "val": 1}
    return [PairJob(photo, side, n) for photo, side in sides for n in range(count[side])]


Good = Sequence[tuple[PairJob, Tensor]]


def draw_all(
    jobs: Sequence[PairJob],
    teacher: nn.Module,
    recipe: Recipe,
    root: Path,
    batch_size: int,
    workers: int,
    device: str,
) -> dict[str, str]:
    """Make the pair of every job; gives the photos that could not be read, with the reason."""
    skipped: dict[str, str] = {}
    if not jobs:
        return skipped
    loader: DataLoader = DataLoader(
        Views(jobs, recipe),
        batch_size,
        num_workers=min(workers, len(jobs)),
        collate_fn=list,
        worker_init_fn=starter(give_way=device == "cpu"),
    )
    teacher = teacher.to(device)
    with bar(len(jobs), " pictures", "labelling") as progress, _Saver(root) as saver:
        for batch in loader:
            good = [(jobs[i], item) for i, item in batch if not isinstance(item, str)]
            skipped |= {jobs[i].photo.key: item for i, item in batch if isinstance(item, str)}
            if good:
                stacked = torch.stack([pixels for _, pixels in good])
                saver.put(good, _draw(teacher, stacked.to(device)))
            progress.set_postfix(skipped=len(skipped), refresh=False)
            progress.update(len(batch))
    return skipped


class Views(Dataset):
    """Reads the photo of each job; gives (index, its pixels, uint8 (S, S, 3)) or (index, reason).

    Tensors go through shared memory. Pictures would fill the pipe, on which the reader of a killed
    command would then wait for ever.
    """

    def __init__(self, jobs: Sequence[PairJob], recipe: Recipe) -> None:
        self.jobs, self.recipe = jobs, recipe

    def __len__(self) -> int:
        return len(self.jobs)

    def __getitem__(self, index: int) -> tuple[int, Tensor | str]:
        job, recipe = self.jobs[index], self.recipe
        image = read_or_reason(job.photo)
        if isinstance(image, str):
            return index, image
        rng = rng_for(recipe.seed, job.photo.key, job.number)
        picture = view(image, job.number, recipe.size, recipe.crop, recipe.colour, rng)
        return index, torch.from_numpy(np.array(picture))


def read_or_reason(photo: Photo) -> Image.Image | str:
    """The picture, or why it cannot be used."""
    try:
        return read_photo(photo.path)
    except BadPhoto as reason:
        return str(reason) if os.path.lexists(photo.path) else "no longer there"


@torch.inference_mode()
def _draw(teacher: nn.Module, pixels: Tensor) -> Tensor:
    return teacher(pixels.permute(0, 3, 1, 2).float() / 255).cpu()


class _Saver(ExitStack):
    """Writes pairs in a thread beside the teacher, at most one batch behind."""

    def __init__(self, root: Path) -> None:
        super().__init__()
        self.root = root
        self._last: Future[None] | None = None
        self._pool = self.enter_context(ThreadPoolExecutor(1))
        self.callback(self._wait)

    def put(self, good: Good, drawn: Tensor) -> None:
        """Hand over a batch; raises what went wrong with the one before it."""
        self._wait()
        self._last = self._pool.submit(_save, good, drawn, self.root)

    def _wait(self) -> None:
        last, self._last = self._last, None
        if last:
            last.result()


def _save(good: Good, drawn: Tensor, root: Path) -> None:
    for (job, pixels), picture in zip(good, drawn, strict=True):
        photo, stylized = job.files(root)
        save_png(Image.fromarray(pixels.numpy()), photo)
        try:
            save_png(to_image(picture), stylized)
        except BaseException:
            photo.unlink(missing_ok=True)  # half a pair is none
            raise
