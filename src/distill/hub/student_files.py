"""The files of a student on the Hub: weights, config.json, the card and a sheet of samples."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from distill.core.errors import DistillError
from distill.core.files import scratch_folder, write_json, write_whole
from distill.core.images import sheet, to_tensor
from distill.data.photos import centre_square, demo_photos, read_photo
from distill.hub import transfer
from distill.hub.published_student import PublishedStudent
from distill.hub.remotes import FolderRemote, Remote
from distill.hub.student_card import student_card
from distill.models.network_file import read_network_file

WEIGHTS, CONFIG, CARD, SHEET = "model.safetensors", "config.json", "README.md", "sheet.jpg"
SIDE, SHOWN = 256, 4  # of the sheet: pixels, photos


def write_weights(student: PublishedStudent, folder: Path) -> None:
    """The weights, and config.json, which says the same to the Hub."""
    student.save(folder / WEIGHTS)
    write_json(folder / CONFIG, {"description": student.description})


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
        names = ("photo", student.description["style"]["name"])
        sheet(rows, names).save(folder / SHEET, "JPEG")
        repo = "USER/NAME" if isinstance(place, FolderRemote) else place.name
        write_whole(folder / CARD, student_card(student, repo, SHEET))
        files = {path.name: path for path in sorted(folder.iterdir())}
        count = transfer.push(files, place, (WEIGHTS,), replace)
    print(f"{place.name}: {len(files)} files, {count} of them new")


def pull_student(place: Remote, target: Path, replace: bool) -> None:
    """Fetch a published student as one safetensors file.

    Raises DistillError for a damaged one, and where another is at `target`, unless replaced.
    """
    there = place.hashes([WEIGHTS])
    if WEIGHTS not in there:
        raise DistillError(f"repo={place.name}: no student is there ({WEIGHTS} is missing)")
    if target.exists() and there[WEIGHTS].fits(target):
        print(f"{target}: is there")
        return
    if target.exists() and not replace:
        raise DistillError(
            f"model={target}: exists with other content; replace=true replaces it, another "
            "name keeps it"
        )
    with scratch_folder(target.with_name(f"{target.name}.pulled")) as scratch:
        place.fetch([WEIGHTS], scratch)
        if not there[WEIGHTS].fits(scratch / WEIGHTS):
            raise DistillError(f"repo={place.name}: {WEIGHTS} was damaged in transfer; pull again")
        read_network_file(scratch / WEIGHTS)
        (scratch / WEIGHTS).replace(target)
    print(f"student: {target}")
