"""What is published of a student: weights, config.json, a sheet of samples and the card, which says
how it is used and under whose terms."""

from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from distill.core.errors import DistillError, counted
from distill.core.files import cache_folder, scratch_folder, write_json, write_whole
from distill.core.images import sheet, to_tensor
from distill.core.report import one_line
from distill.data.cards.licence_table import front_matter, licence_entries, terms_section
from distill.data.licence_terms import described_terms
from distill.data.photos import centre_square, demo_photos, read_photo
from distill.metrics import complexity
from distill.models.network_file import read_network_file
from distill.runs.published_student import PublishedStudent
from distill_hub import transfer
from distill_hub.transfer import FolderRemote, Remote

WEIGHTS, CONFIG, CARD, SHEET = "model.safetensors", "config.json", "README.md", "sheet.jpg"
SIDE, SHOWN = 256, 4  # pixels of the sheet's photos, and that MACs are counted at; photos
TAGS = ["image-to-image", "knowledge-distillation", "stylization"]
LIBRARY, TASK = "distill", "image-to-image"

INHERITED = (
    "It inherits the terms of all that it was made from. The pictures that it learnt from are not "
    "in it and not shipped. What is unknown whoever publishes it answers for."
)
USE = """\
```python
from distill_hub.hub_student import HubStudent  # pip install 'distill[hub]'

student = HubStudent.from_pretrained("{repo}")  # or the folder these files lie in
stylised = student(photo)  # (N, 3, H, W) RGB in [0, 1], any size
```

`model.safetensors` by itself: `distill stylize photo.jpg model=model.safetensors`, and
`distill train photos=DIR init=model.safetensors` goes on from it."""


def write_weights(student: PublishedStudent, folder: Path) -> None:
    """The weights, and config.json, which says the same to the Hub."""
    student.save(folder / WEIGHTS)
    write_json(folder / CONFIG, {"description": asdict(student.description)})


def push_student(student: PublishedStudent, place: Remote, replace: bool) -> None:
    """Publish a student. Raises DistillError where another one is there, unless replaced."""
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_weights(student, folder)
        rows = []  # photographs that scikit-image carries beside what the student makes of them
        for photo in demo_photos()[:SHOWN]:
            picture = to_tensor(centre_square(read_photo(photo.path), SIDE))
            with torch.inference_mode():
                rows.append([picture, student(picture[None])[0]])
        names = ("photo", student.description.style.name)
        sheet(rows, names).save(folder / SHEET, "JPEG")
        repo = "USER/NAME" if isinstance(place, FolderRemote) else place.name
        write_whole(folder / CARD, student_card(student, repo, SHEET))
        files = {path.name: path for path in sorted(folder.iterdir())}
        count = transfer.push(files, place, (WEIGHTS,), replace)
    print(f"{place.name}: {counted(len(files), 'file')}, {count} of them new")


def pull_student(place: Remote, target: Path, replace: bool) -> None:
    """Fetch a published student as one safetensors file.

    Raises DistillError for a damaged one, and where another is at `target`, unless replaced.
    """
    if (there := place.files([WEIGHTS]).get(WEIGHTS)) is None:
        raise DistillError(f"repo={place.name}: no student is there ({WEIGHTS} is missing)")
    if target.exists() and there.fits(target):
        print(f"{target}: is there")
        return
    if target.exists() and not replace:
        raise DistillError(
            f"model={target}: exists with other content; replace=true replaces it, another "
            "name keeps it"
        )
    with scratch_folder(target.with_name(f"{target.name}.pulled")) as scratch:
        file = transfer.fetch_one(WEIGHTS, there, place, scratch)
        read_network_file(file)
        file.replace(target)
    print(f"student: {target}")


def fetch(repo: str) -> Path:
    """The file of a student on the Hub, in the cache; it is fetched where it is not there."""
    path = cache_folder() / "hub" / f"{repo.replace('/', '--')}.safetensors"
    pull_student(transfer.remote_of(repo, "model"), path, replace=True)
    return path


def student_card(student: PublishedStudent, repo: str = "USER/NAME", sheet: str = "") -> str:
    """The card as Markdown; `sheet` is a picture beside it, "" where there is none."""
    about = student.description
    style, terms = about.style, described_terms(about)
    name = one_line(style.name)
    head = licence_entries(terms) | {"library_name": LIBRARY, "pipeline_tag": TASK, "tags": TAGS}
    model = f"its heavy teacher `{name}` does" if about.teacher else "pairs of pictures showed it"
    parts = [
        front_matter(head) + f"\n# {name}",
        *([f"![photo and stylised picture, side by side]({sheet})"] if sheet else []),
        f"A small network that stylises photos as {model}, made with distill "
        f"{one_line(about.version)}.",
        USE.format(repo=repo),
        "## What it is",
        "\n".join(f"- {key}: {value}" for key, value in _facts(student).items()),
        "## Terms",
        INHERITED,
        terms_section(terms, "this student"),
    ]
    return "\n\n".join(parts) + "\n"


def _facts(student: PublishedStudent) -> dict[str, str]:
    about = student.description
    style, decoder = about.style, one_line(about.decoder.name)
    teacher = str((about.teacher or {}).get("_target_", ""))
    file = f"{one_line(style.file)}, " if style.file else ""
    sha256 = f", sha256 {one_line(style.sha256)}" if style.sha256 else ""
    macs = complexity.module_macs(student.student, SIDE) or 0
    return {
        "student": f"MobileNetV2-{student.student.encoder.width}, decoder {decoder}",
        "parameters": f"{complexity.parameters(student.student):,}",
        f"MACs at {SIDE}²": f"{macs:,}",
        "input": f"RGB in [0, 1]; it learnt at {about.size}×{about.size}",
        "output": {1: "grey", 3: "RGB", 4: "RGBA"}[about.channels],
        "teacher": f"{teacher.rpartition('.')[2] or 'none'}: {file}"
        f"{one_line(style.source)}{sha256}",
    }
