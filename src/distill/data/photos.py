"""Photos: find them, read any of them as upright RGB, and say why one cannot be used."""

import hashlib
import io
import os
import re
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO, Literal, TypeVar

import numpy as np
from PIL import Image, UnidentifiedImageError

from distill.core.errors import DistillError, reason_of
from distill.core.files import near_name, real_path
from distill.data import decode
from distill.data.address import Address, is_address
from distill.data.decode import EMPTY, BadPhoto, check_file, check_whole, to_rgb
from distill.data.listing import Listing, StoredPhoto, list_photos

Side = Literal["train", "val", "test"]  # to learn from, to choose by, to report on
PhotoFile = Path | StoredPhoto
Item = TypeVar("Item")

SUFFIXES = {".jpg", ".jpeg", ".png", ".webp"}  # that pictures are also written with
MIN_SIDE = 64  # pixels; a smaller picture holds nothing to learn a style from
MAX_PIXELS = 89_478_485  # Pillow's own bound, 256 MiB as RGB; above it a file is taken for a bomb

# What cameras and exporters put before a running number: no name of a person or a scene, so the
# rest of the name is no group. Without this, IMG_0001 … IMG_9999 would all be one group.
_CAMERA = re.compile(
    r"(?i)^(img|_?mg|dsc[fn]?|_dsc|p|pxl|gopr|image|photo|picture|pic|frame|screenshot)?$"
)
_NO_NAME = re.compile(r"[^\w.-]+")  # what a pair's name has none of
_NUMBER = re.compile(r"(_\d{4}|-\d+)$")

_ORIENTATION = 274  # EXIF 2.3; the turns that set each of its values upright
_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


@dataclass(frozen=True, slots=True)
class Photo:
    """A photo file, its stable name within its source and, where it is fixed, its side.

    Of several folders each has a name, which `key` then starts with.
    """

    path: PhotoFile
    key: str
    side: Side | None = None
    folder: str = ""
    _pair_name: str = field(default="", init=False, repr=False, compare=False)

    @property
    def local(self) -> Path:
        """Its file, of a photo that lies in a folder of this machine."""
        assert isinstance(self.path, Path)
        return self.path

    @property
    def pair_name(self) -> str:
        """File name of its pair: the readable stem and 8 digits that make it unique."""
        if not self._pair_name:  # a set is planned by it: every photo is asked many times
            stem = _NO_NAME.sub("_", stem_of(self.key))
            stem = stem.encode()[:80].decode(errors="ignore")  # file systems count bytes, up to 255
            digest = hashlib.sha256(self.key.encode(errors="surrogateescape")).hexdigest()
            object.__setattr__(self, "_pair_name", f"{stem}-{digest[:8]}")
        return self._pair_name


def find_photos(
    folder: Path | Address, key: str = "photos=", listing: Listing = "auto"
) -> list[Photo]:
    """Every picture file below a folder or an address, sorted by name; links to folders are not
    followed.

    `listing` says whether that of an address may be one that is kept, see `list_photos`. Raises
    DistillError for a folder that is missing or holds no picture.
    """
    if isinstance(folder, Address):
        stored = list_photos(folder, decode.PICTURES, listing)
        if not stored:
            raise _none_in(folder, folder.is_there(), key)
        return [Photo(each, each.key) for each in stored]
    there = folder.is_dir()
    files = [*walk(folder)] if there else []
    pictures = sorted(filter(_is_picture, files))
    others = decode.left_out(path.name for path in files)
    if not pictures:
        raise _none_in(folder, there, key, others)
    if others:
        print(f"{folder}: {others}")
    return [Photo(path, path.relative_to(folder).as_posix()) for path in pictures]


def _is_picture(path: Path) -> bool:
    return path.suffix.lower() in decode.PICTURES


def _none_in(folder: Path | Address, there: bool, key: str, others: str = "") -> DistillError:
    wrong = decode.NONE + (f" ({others})" if others else "")
    if not there:
        unseen = " or bucket, or it may not be seen"
        wrong = f"no such folder{near_name(folder) if isinstance(folder, Path) else unseen}"
    other = ", or name another folder"
    if key == "photos=":
        other = ", name another folder with photos=DIR, or try data=demo"
    return DistillError(f"{key}{folder}: {wrong}; put photos there{other}")


def spread(items: Sequence[Item], count: int) -> list[Item]:
    """At most `count` of a sequence, evenly from first to last."""
    chosen = np.linspace(0, len(items) - 1, min(count, len(items))).round().astype(int)
    return [items[int(i)] for i in chosen]


def walk(folder: Path) -> Iterable[Path]:
    """Files below a folder, but for what is hidden and for sets and runs that we wrote there."""

    def closed(error: OSError) -> None:
        print(f"left out the folder {error.filename!r}: {error.strerror}")

    for top, folders, names in os.walk(folder, onerror=closed):
        folders[:] = [
            name
            for name in folders
            if not name.startswith(".")
            and not os.path.exists(os.path.join(top, name, "dataset.json"))  # False if closed to us
            and not os.path.exists(os.path.join(top, name, "config.yaml"))
        ]
        yield from (Path(top) / name for name in names if not name.startswith("."))


def find_all(
    train: Sequence[Path | Address], val: Sequence[Path | Address], listing: Listing = "auto"
) -> list[Photo]:
    """The photos of all folders; those of several are told apart by their folder's name.

    Without `val` every photo may fall on either side; with it, each belongs where its folder says.
    Raises DistillError for a folder that is missing, empty or named twice.
    """
    if len(train) == 1 and not val:
        return find_photos(train[0], listing=listing)
    folders = [*train, *val]
    _check_different(folders)
    side_of_all: Side | None = "train" if val else None
    where = [(side_of_all, "photos=")] * len(train) + [("val", "val_photos=")] * len(val)
    return [
        replace(photo, key=f"{name}/{photo.key}", side=side, folder=name)
        for folder, name, (side, key) in zip(folders, folder_names(folders), where, strict=True)
        for photo in find_photos(folder, key, listing)
    ]


def check_folders(train: Sequence[Path | Address], val: Sequence[Path | Address]) -> None:
    """Raises DistillError as `find_all` does; of an address only what can be told at once: whether
    it is there."""
    _check_different([*train, *val])
    for folder, key in [*((f, "photos=") for f in train), *((f, "val_photos=") for f in val)]:
        if isinstance(folder, Address):
            if not folder.is_there():
                raise _none_in(folder, False, key)
        elif not folder.is_dir() or not any(map(_is_picture, walk(folder))):
            find_photos(folder, key)  # says what is wrong


def _check_different(folders: Sequence[Path | Address]) -> None:
    resolved = [str(f) if isinstance(f, Address) else str(real_path(f)) for f in folders]
    for i, folder in enumerate(resolved):
        if folder in resolved[:i]:
            raise DistillError(
                f"{folders[i]}: named twice; its photos would be in the set twice, or on both sides"
            )


def check_local(text: str | None, key: str = "") -> None:
    """Raises DistillError for an address, where a command takes photos of this machine only."""
    if text and is_address(text):
        raise DistillError(
            f"{key}{text}: pictures at an address are only read to be labelled, by distill.prepare "
            "and distill.train; copy these into a folder, and name that"
        )


def folder_names(folders: Sequence[Path | Address]) -> list[str]:
    """The folders' own names, with a number behind one that is there already."""
    names: list[str] = []
    for folder in folders:
        name = (folder if isinstance(folder, Address) else real_path(folder)).name or "root"
        candidates = (f"{name}-{n}" if n > 1 else name for n in range(1, len(folders) + 2))
        names.append(next(each for each in candidates if each not in names))
    return names


def demo_photos(held_out: int = 1) -> list[Photo]:
    """Of scikit-image's photographs five to train on and the first of those that are held out."""
    import skimage  # pictures of one's own need none of it

    folder = Path(skimage.__file__).parent / "data"
    train = ["chelsea.png", "coffee.png", "rocket.jpg", "motorcycle_left.png"]
    photos = [Photo(folder / name, name, "train") for name in (*train, "motorcycle_right.png")]
    val = ["astronaut.png", "camera.png", "coins.png", "hubble_deep_field.jpg"][:held_out]
    photos += [Photo(folder / name, name, "val") for name in val]
    return [photo for photo in photos if photo.local.is_file()]


def stem_of(key: str) -> str:
    """`Path.stem`, without making a path, which took a third of planning a set."""
    name = key.rpartition("/")[2]
    dot = name.rfind(".")
    return name[:dot] if 0 < dot < len(name) - 1 else name


def group_of(key: str) -> str:
    """What must stay on one side of the split: the name without a trailing _NNNN or -N number."""
    stem = stem_of(key)
    group = _NUMBER.sub("", stem)
    return stem if _CAMERA.match(group) else group


def read_photo(
    path: PhotoFile, least: int = MIN_SIDE, alpha: bool = False, enough: int | None = None
) -> Image.Image:
    """A picture file as upright 8-bit RGB with at least `least` pixels a side.

    EXIF rotation and the colour profile are applied, transparency is put over white (kept, as
    RGBA, with `alpha`), 16-bit greys are scaled to 8 bits. Where `enough` pixels a side are, a JPEG
    is decoded at a half, a quarter or an eighth if that leaves as many. Raises BadPhoto with the
    reason for whatever cannot be read, DistillError where the store of a photo at an address fails.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # remarks about a file's metadata
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with open_photo(path) as stream, Image.open(stream) as image:
                width, height = image.size
                if min(width, height) < least:
                    raise BadPhoto(f"{width}×{height} pixels: smaller than {least} a side")
                if width * height > MAX_PIXELS:
                    raise BadPhoto(f"larger than {MAX_PIXELS} pixels")
                check_whole(stream, image.format)
                if enough is not None:
                    image.draft(None, (enough, enough))
                return to_rgb(upright(image), alpha)
    except (DistillError, BadPhoto):
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise BadPhoto(f"larger than {MAX_PIXELS} pixels") from None
    except UnidentifiedImageError:
        name = path.key if isinstance(path, StoredPhoto) else path.name
        more = decode.advice([os.path.splitext(name)[1].lower()])
        raise BadPhoto(f"not a picture, or of an unknown kind{more}") from None
    except Exception as error:  # decoders raise whatever a damaged file makes them raise
        if why := isinstance(error, OSError) and error.strerror:
            raise BadPhoto(f"cannot be read ({why})") from None
        raise BadPhoto(f"unreadable or cut short ({reason_of(error, 120)})") from None


def open_photo(path: PhotoFile) -> BinaryIO:
    """The file to read; one at an address comes whole. Raises BadPhoto for what must not be opened,
    OSError or DistillError for what cannot."""
    if isinstance(path, StoredPhoto):
        content = path.read()
        if not content:
            raise BadPhoto(EMPTY)
        return io.BytesIO(content)
    check_file(path)
    return path.open("rb")


def upright(image: Image.Image) -> Image.Image:
    """Decoded and turned as its EXIF says; damaged EXIF, which raises what it likes, turns nothing.

    Raises BadPhoto for a transparent colour of 16 bits: Pillow keeps the upper 8 of each pixel.
    """
    packed = "".join(str(part[3]) for part in getattr(image, "tile", ()))  # until it is decoded
    if "transparency" in image.info:
        if packed == "RGB;16B":
            raise BadPhoto("a PNG of 16-bit colours, one transparent, is not supported")
        image.info["transparency"] *= {"L;2": 255 // 3, "L;4": 255 // 15}.get(packed, 1)
    image.load()
    try:
        turn = _TURNS.get(image.getexif().get(_ORIENTATION, 1))
    except Exception:
        return image
    return image if turn is None else image.transpose(turn)


def centre_square(image: Image.Image, size: int, crop: float = 1.0) -> Image.Image:
    """The centre square, `crop` times the short side wide, at size×size (Lanczos, antialiased)."""
    box = centre_box(image.size, crop)
    return image.resize((size, size), Image.Resampling.LANCZOS, box=box)


def centre_box(size: tuple[int, int], crop: float) -> tuple[float, float, float, float]:
    """Left, top, right and bottom of that square, of a picture of this width and height."""
    side = max(1, round(min(size) * crop))
    left, top = (size[0] - side) / 2, (size[1] - side) / 2
    return left, top, left + side, top + side
