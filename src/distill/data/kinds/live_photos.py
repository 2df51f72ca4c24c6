"""data=photos: labelled on the fly, in every training step."""

from typing import Any, ClassVar

from distill.core.errors import DistillError
from distill.data import photo_folders
from distill.data.datasets import PhotoSet
from distill.data.kinds.source import Source, Split, TrainingSets
from distill.data.sampler import shares_of


class LivePhotos(Source):
    """Photos alone, of which each step cuts squares that the teacher draws."""

    live: ClassVar = True

    @property
    def needs_labels(self) -> bool:
        return self.settings.teacher is not None

    def check_sizes(self) -> None:
        if self.data.sizes is not None:
            raise DistillError(
                f"data.sizes={self.data.sizes}: whole pictures are labelled once, and data=photos "
                "labels new squares at every step; leave data=photos out"
            )

    def training_sets(self, split: Split | None) -> TrainingSets:
        d, settings = self.data, self.settings
        self.check_no_align("a teacher's output is aligned already; leave it out")
        for name in ("zoom", "photo_colour", "camera"):
            if value := getattr(d, name):
                raise DistillError(
                    f"data.{name}={value}: of pairs; the random squares of data=photos, and their "
                    "colours (data.colour), are the teacher's too"
                )
        assert split is not None
        sides, size = split(), settings.style.resolution
        for side in ("train", "val"):
            if not sides[side]:
                raise DistillError(f"no {side} photo is left; add photos, or change drop=FILE")
        folders = photo_folders.training_folders(settings)
        shares = shares_of(d.weights, folders, [photo.folder for photo in sides["train"]])
        common: dict[str, Any] = {"crop": settings.crop, "colour": d.colour, "seed": settings.seed}
        train = PhotoSet(sides["train"], d.crop_size or size, train=True, shares=shares, **common)
        return TrainingSets(train, PhotoSet(sides["val"], size, train=False, crop=settings.crop))
