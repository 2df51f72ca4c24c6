"""One photo in the drawings of shipped students, side by side at real size: README's first picture.

    python tools/gallery.py
    python tools/gallery.py --photo FILE --students swirl dawn glass woodcut --out docs/pictures.jpg

The photo, the cat of scikit-image where none is named, is cut to a square in the middle. Each
student is run as distill.stylize runs it.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from PIL import Image

from distill.core.errors import OneLine
from distill.data.photos import centre_square, demo_photos, read_photo
from distill.models import zoo
from distill.stylize.render import stylise_rgb
from distill.stylize.stylizing import open_student

STUDENTS = ("hayao", "comic", "ink", "screenprint", "toon", "neon", "pencil", "poster")
COLUMNS, GAP = 4, 6


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--photo", type=Path, help="chelsea.png of scikit-image")
    parser.add_argument("--students", nargs="+", default=STUDENTS, metavar="NAME")
    parser.add_argument("--side", type=int, default=320, help="pixels of each (%(default)s)")
    parser.add_argument("--out", type=Path, default=Path("docs/gallery.jpg"))
    args = parser.parse_args()
    with OneLine():
        photo = args.photo or demo_photos()[0].path
        square = centre_square(read_photo(photo), args.side)
        drawings = [stylise_rgb(square, open_student(zoo.find(each))) for each in args.students]
        rows, step = -(-len(drawings) // COLUMNS), args.side + GAP
        page = Image.new("RGB", (COLUMNS * step - GAP, rows * step - GAP), "white")
        for number, drawing in enumerate(drawings):
            page.paste(drawing, (number % COLUMNS * step, number // COLUMNS * step))
        page.save(args.out, quality=86)
        print(f"written: {args.out}")


if __name__ == "__main__":
    main()
