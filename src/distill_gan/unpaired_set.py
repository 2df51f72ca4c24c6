"""A dataset of two domains; for training, a position in an endless stream."""

from collections.abc import Sequence

from PIL import Image
from torch import Tensor
from torch.utils.data import Dataset

from distill.config.settings.training import Pad
from distill.core.images import to_pixels
from distill.data.augment import as_square, random_cut, recolour, rng_for
from distill.data.datasets import Sample, StreamedSet
from distill.data.photos import Photo, PhotoFile, read_photo


class UnpairedSet(Dataset):
    """Pictures of two domains as {a (H, W, 3), b (H, W, 3), name, name_b}, 8-bit, unpaired.

    With `train`, position p gives picture p of each domain's own endless shuffled stream, its
    colours varied by `colour`, cropped to `crop_size` and mirrored, independently. Without, index p
    gives picture p of each, the shorter domain from its start again, at `crop_size` as they are. A
    pass is the longer domain. What cannot be read is replaced by the next one and named once.
    """

    def __init__(
        self,
        a: Sequence[Photo],
        b: Sequence[Photo],
        size: int,
        train: bool,
        crop_size: int,
        flip: bool = True,
        seed: int = 0,
        pad: Pad | None = None,
        colour: float = 0.0,
    ) -> None:
        self.train, self.crop_size, self.flip, self.seed = train, crop_size, flip, seed
        self.size, self.pad, self.colour = size if train else crop_size, pad, colour
        self.domains = {"a": _Domain(a, "a", seed, train), "b": _Domain(b, "b", seed, train)}

    def __len__(self) -> int:
        return max(map(len, self.domains.values()))

    def __getitem__(self, position: int) -> Sample:
        a, name = self._picture("a", position)
        b, name_b = self._picture("b", position)
        return {"a": a, "b": b, "name": name, "name_b": name_b}

    def _picture(self, domain: str, position: int) -> tuple[Tensor, str]:
        # A large JPEG is decoded at a half or less: still twice what is wanted, so as sharp.
        photo, image = self.domains[domain].at(position, enough=2 * self.size)
        square = as_square(image, self.size, self.pad)
        if not self.train:
            return to_pixels(square), photo.key
        rng = rng_for(self.seed, "augment", domain, position)
        if self.colour:
            square = recolour(square, self.colour, rng)
        pixels = to_pixels(square)
        return random_cut(pixels.shape, self.crop_size, self.flip, rng).of(pixels), photo.key


class _Domain(StreamedSet):
    """The photos of one domain of two."""

    def __init__(self, photos: Sequence[Photo], name: str, seed: int, shuffle: bool) -> None:
        super().__init__(len(photos), f"{seed}:{name}", shuffle)  # not the other domain's order
        self.photos, self.what = list(photos), f"picture of {name.upper()}"

    def at(self, position: int, enough: int) -> tuple[Photo, Image.Image]:
        index, image = self.first_readable(
            position, lambda i: read_photo(self.path(i), enough=enough)
        )
        return self.photos[index], image

    def path(self, index: int) -> PhotoFile:
        return self.photos[index].path
