"""Labelling: the product against the bare teacher and against a plain script.

bare     the teacher's fastest form on one batch in memory, again and again; as it is and with freed
         memory kept, as the commands keep it
product  all that `distill.prepare` does after its start, into a fresh folder
plain    one picture at a time: open, torchvision transforms, the teacher with GroupNorm, contiguous
         and under no_grad, back to PIL, photo and output saved as PNG

Every run is a process of its own, in turn; starting up is not counted. Real weights come from
$DISTILL_WEIGHTS; without them the network is random, which takes as long.
"""

from __future__ import annotations

import os
import tempfile
import time
from itertools import count
from pathlib import Path
from typing import Any

import torch
from common import (
    Forms,
    Table,
    alternate,
    apart,
    form_table,
    kept,
    machine,
    parser,
    ratios,
    spread,
    take_photos,
    teacher_file,
    wanted,
    write,
)
from forms import teacher_forms
from PIL import Image
from torch import Tensor
from torchvision import transforms
from torchvision.transforms.functional import to_pil_image

from distill.config import compose
from distill.config.settings.training import Prepare
from distill.core.images import to_image, to_tensor
from distill.models import build
from distill.models.teachers.animegan2 import AnimeGANv2
from distill.prepare import labelling

SIZE = 256


def bare(file: Path, batch: int, pictures: int) -> float:
    """Seconds a picture of the forward pass alone."""
    teacher = AnimeGANv2(file).fast()
    resident = torch.rand(batch, 3, SIZE, SIZE)
    with torch.inference_mode():
        teacher(resident)
        begun = time.perf_counter()
        for _ in range(-(-pictures // batch)):
            teacher(resident)
        return (time.perf_counter() - begun) / (-(-pictures // batch) * batch)


def product(file: Path, photos: Path, root: Path) -> dict[str, Any]:
    """Seconds a picture of the command's own work, the batch it took, and the pairs it made."""
    os.environ["DISTILL_CACHE"] = f"{root}-cache"  # nothing is known of these photos yet
    asked = [f"style.weights='{file}'", f"photos='{photos}'", f"data.root='{root}'"]
    settings = compose.load("prepare", ["style=hayao", "label.device=cpu", *asked], Prepare)
    teacher = build.load_teacher(settings.style, settings.teacher)
    batches: list[int] = []
    teacher.register_forward_pre_hook(lambda _, given: batches.append(len(given[0])))
    begun = time.perf_counter()
    made = labelling.prepare(settings, teacher).made
    seconds = time.perf_counter() - begun
    return {"seconds": seconds / made, "batch": max(batches), "made": made}


def plain(file: Path, photos: Path, folder: Path) -> float:
    """Seconds a picture of the script that anyone would write first."""
    teacher = AnimeGANv2(file, norm="group")
    prepare = transforms.Compose(
        [transforms.Resize(SIZE), transforms.CenterCrop(SIZE), transforms.ToTensor()]
    )
    folder.mkdir()
    paths = sorted(photos.iterdir())
    begun = time.perf_counter()
    for path in paths:
        with torch.no_grad():
            photo = prepare(Image.open(path).convert("RGB"))
            output = teacher.generate(photo[None] * 2 - 1)[0]
        to_pil_image(photo).save(folder / f"{path.stem}-photo.png")
        to_pil_image((output * 0.5 + 0.5).clamp(0, 1)).save(folder / f"{path.stem}-stylized.png")
    return (time.perf_counter() - begun) / len(paths)


@torch.inference_mode()
def difference(file: Path, root: Path, pictures: int = 8) -> float:
    """Largest difference of the product's pairs to the plain teacher's output on their photos."""
    teacher = AnimeGANv2(file, norm="group")
    largest = 0.0
    for photo in sorted((root / "train" / "photo").glob("*.png"))[:pictures]:
        stylised = _read(root / "train" / "stylized" / photo.name)
        expected = to_tensor(to_image(teacher(_read(photo)[None])[0]))
        largest = max(largest, float((stylised - expected).abs().max()))
    return largest


def _read(path: Path) -> Tensor:
    with Image.open(path) as image:
        return to_tensor(image)


def measure(args: Any, file: Path, work: Path) -> dict[str, Any]:
    """Runs all three in turn; the product first, which says at what batch size it works."""
    photos, sets = take_photos(args.photos, args.pictures, work / "photos"), count()
    found, _ = apart(kept, product, file, photos, work / "set-first")
    results = alternate(
        {
            "bare": lambda: apart(bare, file, found["batch"], args.pictures)[0],
            "bare, memory kept": lambda: apart(kept, bare, file, found["batch"], args.pictures)[0],
            "product": lambda: apart(kept, product, file, photos, work / f"set-{next(sets)}"),
            "plain": lambda: apart(plain, file, photos, work / f"plain-{next(sets)}")[0],
        },
        args.rounds,
        "labelling",
    )
    runs = results["product"]
    return {
        "bare": results["bare"],
        "bare, memory kept": results["bare, memory kept"],
        "product": [run["seconds"] for run, _ in runs],
        "plain": results["plain"],
        "start-up": [wall - run["seconds"] * run["made"] for run, wall in runs],
        "batch": found["batch"],
        "made": found["made"],
        "difference": apart(difference, file, work / "set-first")[0],
    }


def tables(figures: dict[str, Any], forms: Forms, again: Forms) -> list[Table]:
    names = ("bare", "bare, memory kept", "plain")
    to_bare, to_kept, to_plain = (ratios(figures[name], figures["product"]) for name in names)
    levels = figures["difference"] * 255
    rows = [
        [f"bare teacher, batch {figures['batch']}", spread(figures["bare"])],
        ["the same, memory kept", spread(figures["bare, memory kept"])],
        [f"product, {figures['made']} photos", spread(figures["product"])],
        ["plain script", spread(figures["plain"])],
        ["product to bare, memory kept, in speed", wanted(to_kept, 0.90)],
        ["product to bare, in speed", wanted(to_bare, 0.90)],
        ["product to plain, in speed", wanted(to_plain, 1.3)],
        ["start-up, not counted above, s", spread(figures["start-up"], 1)],
        ["largest difference of a stylised picture, of 255", f"{levels:.0f}, wanted ≤ 1"],
    ]
    return [
        Table("Labelling, seconds a picture", ["", "median (range)"], rows),
        form_table("Forms of the teacher, seconds a picture", forms, again, 1),
    ]


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--pictures", type=int, default=48, help="photos to label (%(default)s)")
    options.add_argument(
        "--all-forms", action="store_true", help="also ONNX Runtime and torch.compile"
    )
    args = options.parse_args()
    facts = machine()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        file, facts["weights"] = teacher_file(work)
        figures = measure(args, file, work)
        asked = (teacher_forms, file, args.rounds, args.all_forms)
        forms, again = apart(*asked)[0], apart(kept, *asked)[0]
    figures |= {"forms": forms, "forms, memory kept": again}
    write("labelling", args.out, facts, figures, *tables(figures, forms, again))


if __name__ == "__main__":
    main()
