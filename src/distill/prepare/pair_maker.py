"""How the pairs of a set are made: photos read ahead by workers, what is made is kept behind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from PIL import Image

from distill.core.arrays import save_png
from distill.core.errors import DistillError
from distill.core.process import processor, worker_init_fn
from distill.core.progress import bar
from distill.core.threads import adapting
from distill.data.photo_table import LAYER_FOLDER
from distill.data.photos import BadPhoto, Photo, Side
from distill.data.worker_loader import ErrorForwardingLoader, Mapped
from distill.models.teachers.teacher import BadPicture

Pictures = tuple[Image.Image, ...]  # a pair, and perhaps the layer of lines
Keep = Callable[[Sequence["PairJob"], Iterable[Pictures]], None]


@dataclass(frozen=True, slots=True)
class PairJob:
    """One pair to make: of a photo on its side the view `number`, 0 for the plain centre square.

    With a `size` it is the whole photo with that long side in pixels, and no view.
    """

    photo: Photo
    side: Side
    number: int
    size: int | None = None

    @property
    def name(self) -> str:
        which = f"-v{self.number:03d}" if self.number else ""
        return self.photo.pair_name + (f"-s{self.size}" if self.size else which) + ".png"


def plan(
    sides: Sequence[tuple[Photo, Side]],
    views_of: Callable[[Photo], int],
    sizes_of: Callable[[Photo, Side], Sequence[int]] = lambda photo, side: (),
) -> list[PairJob]:
    """Every pair the set shall hold: squares in the photos' order, of which only training has
    several views, then whole pictures, the small ones first."""
    squares = [
        PairJob(photo, side, n)
        for photo, side in sides
        for n in range(views_of(photo) if side == "train" else 1)
    ]
    whole = [PairJob(photo, side, 0, n) for photo, side in sides for n in sizes_of(photo, side)]
    return squares + sorted(whole, key=lambda job: job.size or 0)


class PairMaker(ABC):
    """Makes pairs of photos: with a teacher, or as sketches.

    `folders` are those of a pair's two pictures; the one in the second is written last. `read`
    reads the photo of a job, or raises BadPhoto; it is sent to a worker process alone, without the
    maker, which may hold a network. `low_priority` as for `worker_init_fn`; `adapts`: torch
    computes the pairs on the CPU, on as many threads as `adapting` chooses; `doing` names the
    progress bar, and `extras` are files that the finished set has beside its pairs.
    """

    folders: tuple[str, str]
    doing: str
    read: Callable[[PairJob], Any]
    batch_size: int = 1
    workers: int = 0
    low_priority: bool = False
    adapts: bool = False
    extras: tuple[str, ...] = ()

    @property
    def device_name(self) -> str:
        """What the set says made its pairs: the processor's or the GPU's own name."""
        return processor()

    def lacking(self, photos: Sequence[Photo]) -> dict[str, str]:
        """Photos that no pair can be made of, with the reason, known without reading any of them.

        The set is planned without them; called once, before anything else.
        """
        return {}

    @abstractmethod
    def pairs(self, batch: Sequence[Any]) -> Iterable[Pictures]:
        """The pictures of a pair for each of up to `batch_size` results of `read`.

        The iterable is walked through in the thread that writes: what encodes may be lazy.
        """

    @abstractmethod
    def still_bad(self, photo: Photo, reason: str, since: float) -> bool:
        """Whether a photo that was listed with this reason, at that time, is not worth a try."""

    @abstractmethod
    def nothing_usable(self, listed: Path, others: int) -> str:
        """How an error goes on after "no SIDE photo": that side has no pair, the other `others`."""

    @abstractmethod
    def check(self, root: Path, todo: Sequence[PairJob], done: Sequence[PairJob]) -> None:
        """Raises DistillError, before anything is written, where pairs cannot be made or added."""

    def begin(self, root: Path, jobs: Sequence[PairJob]) -> None:  # noqa: B027
        """What is done once, before the first pair of these jobs is made."""

    def finish(self, root: Path, done: Sequence[PairJob]) -> None:  # noqa: B027
        """Write the `extras`, once all pairs are there."""


def _read(read: Callable[[PairJob], Any], job: PairJob) -> Any:
    """What `read` gives, or the reason why the photo is bad."""
    try:
        return read(job)
    except BadPhoto as reason:
        return str(reason)


def make_pairs(
    jobs: Sequence[PairJob], maker: PairMaker, keep: Keep, doing: str | None = None
) -> dict[str, str]:
    """Make the pair of every job; gives the photos that cannot be used, with the reason.

    `keep` is given jobs in their order, each with its pictures, in a thread of its own. `doing`
    names a progress bar that does not stay.
    """
    bad: dict[str, str] = {}
    if not jobs:
        return bad
    loader = ErrorForwardingLoader(
        Mapped(partial(_read, maker.read), jobs),
        maker.batch_size,
        num_workers=min(maker.workers, len(jobs)),
        collate_fn=list,
        worker_init_fn=worker_init_fn(maker.low_priority),
    )
    writing: Future[None] | None = None  # of the batch before: no more than one is ever behind
    shown = bar(len(jobs), "picture", doing or maker.doing, leave=doing is None)
    with shown as progress, ThreadPoolExecutor(1) as thread:
        left = iter(jobs)
        for batch in adapting(loader) if maker.adapts else loader:
            found = [(next(left), read) for read in batch]
            good = [(job, read) for job, read in found if not isinstance(read, str)]
            bad |= {job.photo.key: read for job, read in found if isinstance(read, str)}
            if good:
                try:
                    pairs = maker.pairs([read for _, read in good])
                except BadPicture as wrong:
                    name = good[wrong.index][0].photo.key
                    raise DistillError(f"{wrong} (photo {name!r})") from None
                if writing:
                    writing.result()  # raises what went wrong with it
                writing = thread.submit(keep, [job for job, _ in good], pairs)
            progress.set_postfix(skipped=len(bad), refresh=False)
            progress.update(len(batch))
        if writing:
            writing.result()
    return bad


def write_pngs(
    folders: tuple[str, str], root: Path, jobs: Sequence[PairJob], pairs: Iterable[Pictures]
) -> None:
    """Both pictures of each pair as PNG, in these `folders` of its side below `root`, and the layer
    of lines beside them."""
    for job, (first, last, *layers) in zip(jobs, pairs, strict=True):
        places = [folders[0], *[LAYER_FOLDER] * len(layers), folders[1]]
        paths = [root / job.side / folder / job.name for folder in places]
        try:
            for picture, path in zip((first, *layers, last), paths, strict=True):
                save_png(picture, path)
        except BaseException:
            for path in paths[:-1]:
                path.unlink(missing_ok=True)  # half a pair is none
            raise
