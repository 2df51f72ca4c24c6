"""Photos to a sketch → photo set on disk.

ROOT/train/A/NAME.png   the outline, RGB        ROOT/train/B/NAME.png   the picture, RGB(A)
ROOT/val/…, ROOT/test/…                         the same
ROOT/preview.png        every step of some      the other files: see set_builder
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Self

import torch
from PIL import Image, ImageDraw
from torch import Tensor

from distill.core import weights
from distill.core.arrays import over_white, save_png
from distill.core.engine import Here
from distill.core.errors import DistillError
from distill.core.files import home_path, sha256
from distill.core.images import sheet, to_image, to_pixels, to_tensor
from distill.core.nodes import class_of, flat
from distill.core.onnx_files import content_hash
from distill.data import faces, photo_folders
from distill.data.kinds.registry import source_named
from distill.data.manifest import PREVIEW, Manifest, manifest_at
from distill.data.photo_table import SKETCH_FOLDERS
from distill.data.photos import Photo
from distill.prepare.labelling import build
from distill.prepare.pair_maker import PairJob, PairMaker, PairPictures, PairStore
from distill_sets.settings import PrepareWithSets, Sketch
from distill_sets.sketches import lines
from distill_sets.sketches.framing import cut, in_the_middle
from distill_sets.sketches.masks import MaskFolder, SaliencyNetwork
from distill_sets.sketches.sketcher import Masks, Sketcher, Steps

SHOWN = 8
# Fields that dataset.json of a sketch set leaves out: those of teachers, and `sketch`, whose
# settings stand there one by one.
_LEFT_OUT = {"style", "teacher", "colour", "sketch"}


@dataclass(frozen=True)
class SketchManifest(Manifest):
    """What decides every pixel of a sketch → photo set.

    `sketch` are the settings by their names; files among them are told by their content's hash.
    """

    sketch: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, sketch: Sketch, hashes: dict[str, str], **shared: Any) -> Self:
        """The manifest of these settings, without those that change nothing.

        `hashes` are those of the files that the settings name, `shared` the rest of a Manifest.
        """
        unused = {"canny", "hed"} - {sketch.outline}
        unused |= set() if sketch.points else {"face", "marks"}
        unused |= set() if sketch.mask else {"mask_least", "rgba"}
        unused |= set() if "mask" in hashes else {"saliency"}
        plain = flat({k: v for k, v in asdict(sketch).items() if k not in unused}, "sketch.")
        plain.pop("sketch.size")
        # Paths may change, contents not: a mask's network by its hash, a folder by being one.
        plain.pop("sketch.hed.weights", None)
        if sketch.mask not in (None, "alpha"):
            plain["sketch.mask"] = hashes.get("mask", "folder")
        if "hed" in hashes:
            plain["sketch.hed"] = hashes["hed"]
        return cls(style="", teacher="", size=sketch.size, sketch=plain, **shared)

    def plain(self) -> dict[str, Any]:
        fields = {k: v for k, v in super().plain().items() if k not in _LEFT_OUT}
        return {"recipe": "pix2pix"} | fields | self.sketch

    def check(self, root: Path) -> None:
        manifest = manifest_at(root)
        if manifest is not None and manifest.get("recipe") != "pix2pix":
            raise DistillError(
                f"{root}: holds the pairs of a teacher; name another folder with data.root=DIR"
            )
        super().check(root)


class SketchPass(PairMaker):
    """SIDE/B, the picture, and SIDE/A, its outline; the workers do all of it."""

    folders = SKETCH_FOLDERS
    doing = "sketching"
    extras = (PREVIEW,)

    def __init__(self, sketcher: Sketcher, workers: int) -> None:
        self.sketcher, self.workers = sketcher, workers
        self.read = partial(read_sketch, sketcher)

    def pairs(self, batch: Sequence[tuple[Tensor, Tensor]]) -> list[PairPictures]:
        return [
            (Image.fromarray(target.numpy()), Image.fromarray(outline.numpy()))
            for target, outline in batch
        ]

    def still_bad(self, photo: Photo, reason: str, since: float) -> bool:
        """Until its file, its points or its mask change. An archive that is unpacked keeps the time
        of writing, but not that of change, so both count."""
        files = self.sketcher.sources(photo.local)
        states = [path.stat() for path in files if path.exists()]
        return all(max(state.st_mtime, state.st_ctime) <= since for state in states)

    def nothing_usable(self, listed: Path, others: int) -> str:
        # Photos are placed before it is known which of them can be used.
        hint = "; add photos, or name others with val_photos=DIR data.root=DIR" if others else ""
        return f"could be used; see {listed}{hint}"

    def check(self, store: PairStore, todo: Sequence[PairJob], done: Sequence[PairJob]) -> None:
        if todo:
            self.sketcher.check()

    def finish(self, root: Path, done: Sequence[PairJob]) -> None:
        """The contact sheet of photos that lie evenly over all that are in the set."""
        count = min(SHOWN, len(done))
        jobs = [done[i * len(done) // count] for i in range(count)]
        rows = [(job.name, self.sketcher(job.photo)) for job in jobs]
        if rows:
            save_png(preview(rows), root / PREVIEW)
        else:
            (root / PREVIEW).unlink(missing_ok=True)


def read_sketch(sketcher: Sketcher, job: PairJob) -> tuple[Tensor, Tensor]:
    """Picture and outline of a photo, uint8 (S, S, C). Raises BadPhoto."""
    steps = sketcher(job.photo)
    return to_pixels(to_image(steps.target)), to_pixels(to_image(steps.outline))


def carry_out(settings: PrepareWithSets) -> Path:
    """Make what is missing of the settings' set of sketches; gives its folder."""
    check(settings)
    sketch, photos, root = settings.sketch, photo_folders.photos(settings), sketches_root(settings)
    masks: Masks = None
    hashes, files = dict[str, str](), dict[str, Path]()
    if sketch.mask not in (None, "alpha"):
        path = home_path(sketch.mask)
        if path.is_dir():
            masks = MaskFolder(path)
            masks.check([photo.local for photo in photos])
        elif path.is_file():
            masks = SaliencyNetwork(path, sketch.saliency.size, sketch.saliency.norm)
            try:
                hashes["mask"] = content_hash(path)
            except DistillError as error:
                raise DistillError(f"sketch.mask={error}") from error
        else:
            raise DistillError(f"sketch.mask={sketch.mask}: no such file or folder, and not alpha")
    if sketch.points == "faces":
        files |= {"detector": there} if (there := weights.find_or_none(faces.YUNET)) else {}
    if sketch.outline == "hed":
        weights_file, key = sketch.hed.weights, "sketch.hed.weights"
        there = None if weights_file else weights.find_or_none(lines.HED_FILE, lines.HED_PORT)
        files["hed"] = there or weights.find(lines.HED_FILE, weights_file, key)
        hashes["hed"] = sha256(files["hed"])
    maker = SketchPass(Sketcher(sketch, settings.crop, masks, **files), settings.label.workers)
    crop = 1.0 if sketch.points else settings.crop
    shared = photo_folders.photos_in_manifest(settings, root)
    manifest = SketchManifest.of(sketch, hashes, crop=crop, **shared)
    build(settings, photos, maker, manifest, PairStore(root, maker.folders))
    return root


def check(settings: PrepareWithSets) -> None:
    """Raises DistillError for settings that contradict each other, and as `check_photos`.

    Before a network's file is fetched or read.
    """
    sketch, kind = settings.sketch, settings.data.kind
    if source_named(kind).labels_itself or class_of("engine", settings.engine) is not Here:
        raise DistillError(
            "recipe=pix2pix: sketches are written into a folder on this machine; leave "
            f"data={kind} and engine= out"
        )
    if settings.data.sizes:
        raise DistillError(
            f"recipe=pix2pix: sketches are squares; leave data.sizes={settings.data.sizes} out"
        )
    if sketch.marks and sketch.points is None:
        raise DistillError("sketch.marks=true: needs sketch.points=cat or faces, to know where")
    if sketch.rgba and sketch.mask is None:
        raise DistillError("sketch.rgba=true: needs sketch.mask=FILE, DIR or alpha, to know what")
    if sketch.canny.low > sketch.canny.high:
        raise DistillError(
            f"sketch.canny.low={sketch.canny.low}: above sketch.canny.high={sketch.canny.high}"
        )
    for folder in photo_folders.at_addresses(settings):
        raise DistillError(
            f"photos={folder}: sketches are made from photos on this machine; copy these into a "
            "folder, and name that"
        )
    photo_folders.check_photos(settings, sketches_root(settings))


def sketches_root(settings: PrepareWithSets) -> Path:
    """Where the set lies: data.root, or data/sketches/PHOTOS-SIZE."""
    if settings.data.root:
        return Path(settings.data.root)
    return Path("data/sketches") / f"{photo_folders.set_name(settings)}-{settings.sketch.size}"


TITLES = ("photo", "square, points", "cut out", "all edges", "outline (A)", "A on B")
DOT = 3  # radius of a point in pixels
TILE = 16  # side of the squares behind what is transparent


def preview(rows: list[tuple[str, Steps]]) -> Image.Image:
    """A row of steps for each (name, steps), under titles; the name is on its first picture."""
    return sheet([_row(name, steps) for name, steps in rows], TITLES)


def _row(name: str, steps: Steps) -> list[Tensor]:
    height, width = steps.whole.shape[-2:]
    square = in_the_middle(width, height, max(width, height) / min(width, height))
    photo = to_image(cut(steps.whole, square, steps.square.shape[-1], 1))
    draw = ImageDraw.Draw(photo)
    draw.rectangle((0, photo.height - 13, photo.width, photo.height), "white")
    draw.text((2, photo.height - 13), name.encode("latin-1", "replace").decode("latin-1"), "black")
    dotted = to_image(steps.square)
    draw = ImageDraw.Draw(dotted)
    for number, (x, y) in enumerate(steps.spots):
        colour = "red" if number < 3 else "yellow"
        draw.ellipse((x - DOT, y - DOT, x + DOT, y + DOT), colour, "black")
    shown, mask = over_white(steps.target[None])[0], steps.mask
    at = torch.arange(shown.shape[-1]) // TILE
    tiles = 1 - 0.2 * ((at[:, None] + at) % 2)  # grey ones, where the mask leaves nothing
    return [
        to_tensor(photo),
        to_tensor(dotted),
        shown * mask.clamp(min=0) + shown * tiles * (1 - mask),
        1 - torch.from_numpy(steps.edges).float().expand(3, -1, -1),
        steps.outline,
        shown * steps.outline,
    ]
