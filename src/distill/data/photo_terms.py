"""terms.csv beside photos: author, source and licence by folder and photo.

photo,author,source,licence
flickr/,Anna,https://flickr.com/anna,CC BY 4.0        a folder, everything below it
flickr/b.jpg,Bert,,CC BY-NC 4.0                       one photo; the longest name counts
*.png,,https://archive.org,CC0                        a pattern, for what has no other row

manifest.csv may have these columns beside others, or metadata.csv with `file_name`, as an image
folder of Hugging Face has.
"""

import csv
import io
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from distill.core.errors import DistillError, counted, reason_of
from distill.core.licence_terms import Licence, stated_on
from distill.data.address import Address

FILE = "terms.csv"
MANIFESTS = ("manifest.csv", "metadata.csv")  # which may have columns of terms
COLUMNS = {  # and what else they are called
    "photo": ("photo", "file", "file_name", "filename", "path", "picture", "name"),
    "author": ("author", "photographer", "creator"),
    "source": ("source", "url", "where"),
    "licence": ("licence", "license", "terms"),
}
MOST = 40  # links of a chain for the photos of one set; of more the photographers are counted


class PhotoTerms(NamedTuple):
    """The author, source and licence of a photo; empty where nothing is stated."""

    author: str = ""
    source: str = ""
    licence: str = ""


Rows = Mapping[str, PhotoTerms]  # by photo, folder or pattern


def read_photo_terms(folder: Path | Address) -> Rows:
    """The rows of FOLDER/terms.csv, or of a manifest there with a column of licences; none without.

    Raises DistillError where terms.csv is no such table.
    """
    place = folder if isinstance(folder, Address) else Address(folder)
    for name in (FILE, *MANIFESTS):
        try:
            return _rows(place.read(name))
        except OSError:
            continue
        except (ValueError, csv.Error) as error:
            if name == FILE:
                reason = reason_of(error, 100)
                raise DistillError(f"{place}/{name}: not a table of terms ({reason})") from error
    return {}


def _rows(content: bytes) -> Rows:
    """Raises ValueError or csv.Error for another table."""
    text = content.decode("utf-8-sig")
    delimiter = max(",;\t", key=text.partition("\n")[0].count)
    table = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    head = [name.strip().lower() for name in next(table, [])]
    at = [next((head.index(n) for n in names if n in head), None) for names in COLUMNS.values()]
    if None in (at[0], at[-1]):
        raise ValueError("its first line wants photo,author,source,licence")
    rows = dict[str, PhotoTerms]()
    for row in filter(None, table):
        if len(row) != len(head):
            raise ValueError(f"line {table.line_num}: {len(row)} values for {len(head)} columns")
        photo, *cells = ("" if i is None else " ".join(row[i].split()) for i in at)
        photo, terms = photo.replace("\\", "/").removeprefix("./"), PhotoTerms(*cells)
        if rows.setdefault(photo, terms) != terms:
            raise ValueError(f"line {table.line_num}: other terms of {photo!r} than a line before")
    return rows


def written_on(folders: Iterable[Path | Address]) -> str:
    """When the tables in these folders were last written, as a link notes it."""
    places = [each.local if isinstance(each, Address) else each for each in folders]
    files = [place / name for place in places if place for name in (FILE, *MANIFESTS)]
    return stated_on(max((f.stat().st_mtime for f in files if f.is_file()), default=time.time()))


def terms_by_row(keys: Iterable[str], rows: Rows) -> tuple[list[PhotoTerms], list[str]]:
    """What the row of each photo below the folder says: its own, that of its innermost folder, of
    its file's name, or the longest pattern; and the rows that no photo fits."""
    patterns = sorted((each for each in rows if "*" in each or "?" in each), key=len)[::-1]
    listed, idle = list[PhotoTerms](), {*rows}
    for key in keys:
        above = [key[:i] for i, letter in enumerate(key) if letter == "/"][::-1]
        forms = (form for folder in above for form in (f"{folder}/", folder))
        names = [each for each in (key, *forms, key.rpartition("/")[2]) if each in rows]
        names += [each for each in patterns if fnmatchcase(key, each)]
        listed.append(rows[names[0]] if names else PhotoTerms())
        idle -= {*names}
    return listed, sorted(idle)


def photo_links(of: str, photo_terms: Iterable[PhotoTerms], note: str = "") -> list[Licence]:
    """A link for all photos of one author, source and licence, with their number in its name; none
    for photos of which nothing is said."""
    counts = Counter(each for each in photo_terms if each.licence)
    if len(counts) > MOST:
        pairs = {(e.licence, e.author) for e in counts}
        authors = Counter(licence for licence, _ in pairs)
        merged = Counter[PhotoTerms]()
        for e, count in counts.items():
            many = counted(authors[e.licence], "photographer")
            merged[PhotoTerms(many, "", e.licence)] += count
        counts = merged
    return [
        Licence.from_text(
            f"{of}: {count:,}" + f" by {e.author}" * bool(e.author), e.licence, e.source, True, note
        )
        for e, count in sorted(counts.items())
    ]
