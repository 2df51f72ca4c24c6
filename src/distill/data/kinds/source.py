"""What every source of pictures says of itself, and what sources have in common."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from torch.utils.data import Dataset

from distill.core.errors import DistillError
from distill.core.next_step import assigned
from distill.data import photo_folders
from distill.data.address import Address
from distill.data.cards.set_formats import FolderFormat, SetFormat
from distill.data.datasets import HeldOutPairs, MixedPairs, PairSet
from distill.data.manifest import manifest_at
from distill.data.pairs import Pairs, ReadablePair
from distill.data.photos import Photo, Side
from distill.data.shifts import Shifts
from distill.models.teachers.teacher import Teacher

Split = Callable[[], Mapping[Side, Sequence[Photo]]]
FOLDER_ONLY = "of a folder of pairs only; train on that, or leave it out"


@dataclass(frozen=True)
class TrainingSets:
    """What a run is trained and validated on; `pairs` by side where they are files of a folder."""

    train: Dataset
    val: Dataset
    pairs: Mapping[Side, Pairs] | None = None


@dataclass(frozen=True)
class PairsBySide:
    """Pairs to learn from and to validate on: `how` are arguments of the training `PairSet`,
    `shifts` those of both sides."""

    train: Sequence[ReadablePair]
    val: Sequence[ReadablePair]
    how: Mapping[str, Any]
    shifts: tuple[Shifts | None, Shifts | None] = (None, None)
    pairs: Mapping[Side, Pairs] | None = None


class Source(ABC):
    """The source that `data.kind` names, with the settings of a command.

    They are those of distill.prepare or distill.train.
    """

    place: ClassVar = Path("data/pairs")  # where sets lie that have no data.root
    live: ClassVar = False  # the teacher draws what a training step needs
    on_disk: ClassVar = True  # others find the pictures again
    own_pairs: ClassVar = False  # data.root may hold pairs of the user's own
    superfluous: ClassVar[tuple[str, ...]] = ()  # settings that say nothing beside these
    regions: ClassVar = False  # loss.region knows where faces are
    form: ClassVar[type[SetFormat]] = FolderFormat  # how its sets lie
    labels_itself: ClassVar = False  # distill.prepare calls `label`, for a set that is no folder

    def __init__(self, settings: Any) -> None:
        self.settings, self.data = settings, settings.data

    @property
    def root(self) -> Path | Address:
        """Where the set lies: data.root, or `place`/STYLE-PHOTOS-SIZE. Raises DistillError."""
        return Path(self.data.root or self.place / photo_folders.usual_name(self.settings))

    @property
    def folder(self) -> Path:
        """The same as a folder, which evaluation and exports read; of a set that is none what its
        held-out pairs are unpacked into, once."""
        return self.folder_at(str(self.root))

    @classmethod
    def folder_at(cls, root: str) -> Path:
        """The folder of the set at `root`. Raises DistillError where it has to be made first, and
        cannot be."""
        return Path(root)

    @classmethod
    def made_of(cls, root: str) -> Mapping[str, Any] | None:
        """The manifest of the set at data.root, empty of pairs of the user's own; None where no
        set is there, or an unfinished one. Raises DistillError."""
        return None

    @classmethod
    def out_of_reach(cls, root: str) -> str:
        """Why no training picture of the set at data.root is in its `folder`; empty where they
        are."""
        return ""

    def label(self, teacher: Teacher | None) -> Path | Address:
        """Label what is missing, for distill.prepare, and give the set's place; None: by the
        settings' teacher. Raises DistillError, for settings before weights are fetched."""
        raise NotImplementedError

    @property
    @abstractmethod
    def needs_labels(self) -> bool:
        """Whether training waits for a teacher's labels."""

    def check(self) -> None:  # noqa: B027 - most sources make theirs
        """Raises DistillError where a set that nothing here makes is not there."""

    def check_sizes(self) -> None:
        """Raises DistillError for data.sizes that cannot be labelled, and crops larger than what
        they are cut from.

        Centre squares stand for the sizes that are no larger: training cuts out of larger pictures.
        """
        d, side = self.data, self.settings.style.resolution
        asked, crop = f"data.sizes={d.sizes}", d.crop_size or side
        if d.sizes is None:
            if crop > side and not d.zoom:  # which enlarges pictures
                raise DistillError(
                    f"data.crop_size={crop}: above style.resolution={side}; lower it"
                )
            return
        if d.align:
            raise DistillError(f"data.align=true: of squares only; leave it or {asked} out")
        larger = [size for size in d.sizes if size > side]
        if not larger:
            raise DistillError(
                f"{asked}: none is larger than style.resolution={side}, the centre squares that "
                "training has anyway; add a larger one"
            )
        if crop > larger[0]:
            raise DistillError(
                f"data.crop_size={crop}: larger than pictures of {asked}, of which {larger[0]} is "
                "the smallest that is trained on; take a smaller crop, or leave that size out"
            )

    def sizes(self) -> list[int] | None:
        """The long sides of the whole pictures that the set has; None where it is not complete."""
        if self.needs_labels:
            return None
        return (manifest_at(self.folder) or {}).get("sizes", [])

    def check_labelled_sizes(self) -> None:
        """Raises DistillError as `check_sizes`, and for a set that is there, and complete, without
        whole pictures of the data.sizes to learn from."""
        self.check_sizes()
        asked = self.data.sizes
        if asked is None or (there := self.sizes()) is None:
            return
        if lacking := [size for size in asked if size not in there]:
            has = f"whole pictures of {there}" if there else "squares alone, of one size"
            more = f"set data.sizes={there}" if there else "leave data.sizes out"
            sizes, root = sorted({*asked, *there}), assigned("data.root", str(self.root))
            raise DistillError(
                f"data.sizes={asked}: {self.root} has {has}; {more}, or label {lacking} too: "
                f"python -m distill.prepare photos=DIR {root} 'data.sizes={sizes}'"
            )

    @abstractmethod
    def training_sets(self, split: Split | None) -> TrainingSets:
        """Those of recipe=distill, of a set that is there. `split` gives photos by their sides.

        Raises DistillError for settings that this source does not have.
        """

    def pairs_by_side(self) -> PairsBySide:
        """Those of a recipe that learns from pairs of pictures, not from a teacher."""
        recipe = getattr(self.settings, "recipe", "distill")
        raise DistillError(f"data={self.data.kind}: not for recipe={recipe}; leave it out")

    def check_no_align(self, why: str) -> None:
        """Raises DistillError for data.align=true, which only a folder of pairs has."""
        if self.data.align:
            raise DistillError(f"data.align=true: {why}")

    def mirrors(self, manifest: Mapping[str, Any]) -> bool:
        """Whether pairs are mirrored at random: as asked for, else where no teacher made the
        targets of the set with this manifest, as of a set of sketches.

        T(mirrored photo) is not the mirrored T(photo): of hayao they are 29 dB apart, and half of
        the targets would contradict the other half.
        """
        asked: bool | None = self.data.flip
        return asked if asked is not None else "teacher" not in manifest

    @property
    def common(self) -> dict[str, Any]:
        """Arguments of every `PairSet` of a student's run."""
        return {"size": self.settings.style.resolution, "channels": self.settings.channels}

    @property
    def varied(self) -> dict[str, Any]:
        """How pairs are shown to a student, but for mirroring, which goes by who made them."""
        d = self.data
        of_pairs = {"crop_size": d.crop_size, "zoom": d.zoom, "photo_colour": d.photo_colour}
        return of_pairs | {"camera": d.camera, "seed": self.settings.seed}

    def sets_of_sizes(
        self,
        squares: Mapping[Side, Sequence[ReadablePair]],
        whole: Mapping[Side, Sequence[ReadablePair]],
        of_squares: dict[str, Any],
        of_whole: dict[str, Any],
    ) -> tuple[Dataset, Dataset]:
        """Training and validation of a set of several sizes: squares and whole pictures by side,
        and how each kind is varied. It may have no squares."""
        d, common, seed = self.data, self.common | {"thumbnail": True}, self.settings.seed
        if not whole["train"]:
            raise DistillError(
                f"{self.root}: has no whole picture of data.sizes={d.sizes} to train on; add "
                "larger photos"
            )
        side, as_they_are = common["size"], common | {"size": None}
        crop = d.crop_size or side
        stream = {"crop_size": crop, "seed": f"{seed}:whole"}
        crops = PairSet(whole["train"], train=True, **(of_whole | as_they_are | stream))
        train: Dataset = crops
        if len(squares["train"]) and d.share_of_sizes < 1:
            cut = {"crop_size": min(crop, side)}
            square_pairs = PairSet(squares["train"], train=True, **(of_squares | common | cut))
            together = d.batch_size if crop > side else 1
            train = MixedPairs(square_pairs, crops, d.share_of_sizes, seed, together)
        held_out = ((squares, common), (whole, as_they_are))
        return train, HeldOutPairs(
            [PairSet(pairs["val"], train=False, **how) for pairs, how in held_out if pairs["val"]]
        )


def check_some(root: Path | str | Address | None, train: Sequence[object]) -> None:
    """Raises DistillError where nothing is left to learn from."""
    if not train:
        raise DistillError(f"{root}: has val/ but no train/, nothing to learn from; add it")
