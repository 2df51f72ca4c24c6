"""How the pairs of a set are made: photos read ahead by workers, what is made is kept behind.

    ROOT/SIDE/FOLDER/NAME.png   train, val or test, and in it the two folders of a pair's pictures

A pair is done when both of its files are there. Each is written to a temporary file and renamed, so
whatever kills the process loses no more than the batches in flight.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from PIL import Image

from distill.core.arrays import save_png
from distill.core.errors import DistillError
from distill.core.process import processor
from distill.core.progress import bar, track
from distill.core.threads import adapting
from distill.data import photo_table
from distill.data.address import Address
from distill.data.decode import is_whole
from distill.data.dropped import content_line
from distill.data.manifest import Manifest, devices_at, writing
from distill.data.photo_table import LAYER_FOLDER, PAIR_FOLDERS, SKIPPED, PhotoRow
from distill.data.photos import BadPhoto, Photo, Side
from distill.data.worker_loader import ErrorForwardingLoader, Mapped
from distill.models.teachers.teacher import BadPicture

PairPictures = tuple[Image.Image, ...]  # a pair, and perhaps the layer of lines
Keep = Callable[[Sequence["PairJob"], Iterable[PairPictures]], None]


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
    sizes_of: Callable[[Photo, Side], Sequence[int]] | None = None,
) -> list[PairJob]:
    """Every pair the set shall hold: squares in the photos' order, of which only training has
    several views, then whole pictures, the small ones first."""
    squares = [
        PairJob(photo, side, n)
        for photo, side in sides
        for n in range(views_of(photo) if side == "train" else 1)
    ]
    if sizes_of is None:
        return squares
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
    def pairs(self, batch: Sequence[Any]) -> Iterable[PairPictures]:
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
    def check(self, store: PairStore, todo: Sequence[PairJob], done: Sequence[PairJob]) -> None:
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
        low_priority=maker.low_priority,
    )
    writing: Future[None] | None = None  # of the batch before: no more than one is ever behind
    shown = bar(len(jobs), "picture", doing or maker.doing, leave=doing is None)
    with shown as progress, ThreadPoolExecutor(1) as thread:
        left = iter(jobs)
        for batch in adapting(loader) if maker.adapts else loader:
            results = [(next(left), read) for read in batch]
            good = [(job, read) for job, read in results if not isinstance(read, str)]
            bad |= {job.photo.key: read for job, read in results if isinstance(read, str)}
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
    folders: tuple[str, str], root: Path, jobs: Sequence[PairJob], pairs: Iterable[PairPictures]
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


Names = dict[Side, set[str]]  # of whole pairs, by their side


class PairStore:
    """The pairs of the set at `root`, whose own files (dataset.json and others) lie in `folder`.

    They are PNGs there, in the two `folders` of a maker; a plug-in's subclass keeps them otherwise.
    """

    listed = SKIPPED  # where below the root photos that could not be used are listed
    skipped: Mapping[str, str] = {}  # more of these, `repr` of the key, with the reason

    def __init__(self, folder: Path, folders: tuple[str, str], root: Address | None = None) -> None:
        self.folder, self.folders, self.root = folder, folders, root or Address(folder)
        self._damaged = list[PairJob]()

    def __str__(self) -> str:
        return str(self.root)

    @cached_property
    def pairs(self) -> Names:
        """The names of those that are whole."""
        return photo_table.pairs_on_disk(self.folder)

    def has(self, job: PairJob) -> bool:
        return job.name in self.pairs[job.side]

    def is_begun(self) -> bool:
        """Whether any pair is there by now."""
        return any(photo_table.pairs_on_disk(self.folder).values())

    def photo(self, side: Side, pair: str) -> Path:
        """A file with the photo of a pair."""
        return self.folder / side / "photo" / f"{pair}.png"

    def picture(self, job: PairJob) -> Image.Image:
        """The photo of a pair as it is stored. Raises BadPhoto."""
        return Image.open(self.folder / job.side / self.folders[0] / job.name)

    def as_stored(self, photo: Image.Image) -> Image.Image:
        """What becomes of a photo that is stored."""
        return photo

    def obsolete(self, unwanted: set[str]) -> Sequence[Any]:
        """What holds pairs of these photos, by their pair names."""
        return photo_table.leftovers(self.folder, unwanted) if unwanted else []

    def forget_damaged(self, jobs: Sequence[PairJob]) -> int:
        """Have pairs that are no whole pictures made again; gives their number.

        By PNG's own checksums, 0.4 ms a file: pixels are not decoded.
        """
        there = [job for job in jobs if self.has(job)]
        for job in track(there, len(there), "pair", "checking"):
            if not all(map(is_whole, self._files(job))):
                self._damaged.append(job)
                self.pairs[job.side].discard(job.name)
        return len(self._damaged)

    def is_finished(self, manifest: Manifest) -> bool:
        """Whether all is there besides the set's own files."""
        return True

    def writing(self) -> AbstractContextManager[None]:
        """The set is this process's alone meanwhile. Raises DistillError where it cannot be."""
        return writing(self.folder)

    def publish(self, manifest: Manifest, counts: Mapping[str, int] | None) -> None:
        """Have the root say what the folder does; `counts` is None while the set is being made."""

    def contents(self, obsolete: Sequence[Any]) -> list[str]:
        """Lines for the contents of the photos in what is `obsolete`."""
        photos = {folders[0] for folders in PAIR_FOLDERS}
        gone = (path for path in obsolete if path.parent.name in photos and path.is_file())
        return [content_line(path) for path in gone]

    def remove(self, obsolete: Sequence[Any], manifest: Manifest) -> None:
        """Remove what is `obsolete`, and damaged pairs."""
        for path in obsolete:
            path.unlink(missing_ok=True)
            (path.parents[1] / LAYER_FOLDER / path.name).unlink(missing_ok=True)
        for job in self._damaged:
            # The last written first: what is left of a pair is then no pair.
            for path in reversed(self._files(job)):
                path.unlink(missing_ok=True)

    def make(
        self, jobs: Sequence[PairJob], maker: PairMaker, rows: Mapping[str, PhotoRow]
    ) -> dict[str, str]:
        """Make these pairs; gives photos that cannot be used, with the reason."""
        bad = make_pairs(jobs, maker, partial(write_pngs, self.folders, self.folder))
        del self.pairs  # there are more now
        return bad

    def devices(self, *more: str) -> Sequence[str] | None:
        """What made the pairs, as `devices_at` gives it, and what makes `more` of them now."""
        before = devices_at(self.folder) if any(self.pairs.values()) else ()
        return None if before is None else sorted({*before, *more})

    def _files(self, job: PairJob) -> list[Path]:
        return [self.folder / job.side / folder / job.name for folder in self.folders]
