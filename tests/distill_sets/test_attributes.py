"""One set of photos becomes two domains: who is where is known, as the lists are made here."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from distill.prepare import __main__ as prepare
from distill_gan.domains import find_unpaired
from support.commands import run

NAMES = ["Male", "Young"]
COUNT = 48


def person(number: int) -> int:
    return number // 3


def is_male(number: int) -> bool:
    return person(number) % 2 == 0


def is_young(number: int) -> bool:
    return number % 4 != 0 if is_male(number) else number % 4 == 0


@pytest.fixture
def faces(tmp_path, monkeypatch):
    """48 photos of 16 persons, three each, and CelebA's two lists of them."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "photos").mkdir()
    for number in range(COUNT):
        pixels = np.full((64, 64, 3), number, np.uint8)
        Image.fromarray(pixels).save(tmp_path / f"photos/{number:06d}.png")
    rows = [[f"{n:06d}.jpg", *("1" if v else "-1" for v in values(n))] for n in range(COUNT)]
    lines = [str(COUNT), " ".join(NAMES), *(f"{r[0]}  {r[1]:>2} {r[2]:>2}" for r in rows)]
    Path("list.txt").write_text("\n".join(lines) + "\n")
    Path("who.txt").write_text("".join(f"{r[0]} {person(n)}\n" for n, r in enumerate(rows)))
    return tmp_path


def values(number: int) -> tuple[bool, bool]:
    return is_male(number), is_young(number)


def domains(root: str = "data/domains/photos-Male") -> dict[str, set[int]]:
    folders = [each for each in Path(root).iterdir() if each.is_dir()]
    return {f.name: {int(p.stem) for p in f.iterdir()} for f in folders if f.name[-1] in "AB"}


def go(*words: str) -> int:
    return run(prepare, "recipe=cyclegan", "photos=photos", "split=Male", *words)


def test_celebas_lists_part_the_photos_and_nobody_is_on_two_sides(faces, capsys):
    words = ["attributes=list.txt", "identities=who.txt", "data.val_fraction=0.3"]
    assert go(*words) == 0
    found = domains()
    assert found.keys() == {"trainA", "trainB", "testA", "testB"}
    assert found["trainA"] | found["testA"] == {n for n in range(COUNT) if is_male(n)}
    assert found["trainB"] | found["testB"] == {n for n in range(COUNT) if not is_male(n)}
    train, test = (found[f"{side}A"] | found[f"{side}B"] for side in ("train", "test"))
    assert test
    assert not {person(n) for n in train} & {person(n) for n in test}
    photo = Path("data/domains/photos-Male/trainA") / f"{min(found['trainA']):06d}.png"
    assert photo.read_bytes() == (faces / "photos" / photo.name).read_bytes()
    said = capsys.readouterr().out
    assert f"trainA: {len(found['trainA'])} photos" in said
    assert said.endswith(
        "next: python -m distill.train recipe=cyclegan data.root=data/domains/photos-Male\n"
    )
    assert go(*words) == 1  # what a training may be reading is not replaced
    assert "is there; remove it" in capsys.readouterr().err


def test_domains_are_balanced_by_other_attributes(faces):
    assert go("attributes=list.txt", "balance=[Young]") == 0
    found = domains()
    a, b = (found[f"train{d}"] | found[f"test{d}"] for d in "AB")
    counts = [
        [sum(is_young(n) == young for n in part) for young in (True, False)] for part in (a, b)
    ]
    males = [n for n in range(COUNT) if is_male(n)]
    others = [n for n in range(COUNT) if not is_male(n)]
    least = [
        min(sum(is_young(n) == young for n in part) for part in (males, others))
        for young in (True, False)
    ]
    assert counts == [least, least]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_tables_of_other_kinds(faces, kind):
    assert go("attributes=list.txt", "data.root=text") == 0
    header = ["image_id", *NAMES]
    rows = [[f"{n:06d}.jpg", *(int(v) for v in values(n))] for n in range(COUNT)]
    if kind == "csv":
        with Path("list.csv").open("w", newline="") as file:
            csv.writer(file).writerows([header, *rows])
    else:
        pyarrow = pytest.importorskip("pyarrow")
        from pyarrow import parquet

        table = pyarrow.table(dict(zip(header, map(list, zip(*rows, strict=True)), strict=True)))
        parquet.write_table(table, "list.parquet")
    assert go(f"attributes=list.{kind}", "data.root=other") == 0
    assert domains("other") == domains("text")


def test_photos_that_are_not_in_the_list_are_counted(faces, capsys):
    Path("photos/000000.png").rename("photos/other.png")
    assert go("attributes=list.txt") == 0
    assert "1 photo not in list.txt, left out" in capsys.readouterr().out
    manifest = json.loads(Path("data/domains/photos-Male/attributes.json").read_text())
    assert manifest["not in the list"] == 1
    assert sum(manifest["counts"].values()) == COUNT - 1


def test_a_small_split_fills_every_folder_or_is_refused_before_it_is_made(faces, capsys):
    for number in range(12, COUNT):
        Path(f"photos/{number:06d}.png").unlink()  # left are two men and two women, thrice each
    words = ["attributes=list.txt", "identities=who.txt", "data.val_fraction=0.5"]
    assert go(*words) == 0
    sides = find_unpaired(Path("data/domains/photos-Male"), None, None, 0.1, 0)  # as training does
    assert all(photos for domains in sides.values() for photos in domains)
    capsys.readouterr()
    for number in range(3, 6):
        Path(f"photos/{number:06d}.png").unlink()  # one woman: she cannot be on both sides
    assert go(*words, "data.root=less") == 1
    said = capsys.readouterr().err
    assert said.startswith("error: split=Male: trainA: ")
    assert said.endswith("training needs one in each, add photos or set data.val_fraction\n")
    assert not Path("less").exists()


@pytest.mark.parametrize(
    ("change", "words", "said"),
    [
        (("48\n", "50\n"), [], "it says 50 rows and has 48"),
        (("000003.jpg  -1", "000003.jpg  maybe"), [], "Male is 'maybe'; want 1 or -1"),
        (("000003.jpg  -1", "000003.jpg"), [], "2 values for 3 columns"),
        ((" 1", "-1"), [], "split=Male: 0 photos with it and 48 without are left of 48 photos"),
        (("", ""), ["split=Mal"], "did you mean Male?"),
        (("", ""), ["balance=[Old]"], "list.txt: Old: "),
        (("", ""), ["attributes=none.txt"], "none.txt: not a list of attributes"),
        (("", ""), ["drop=list.txt"], "drop=list.txt: of recipe=cyclegan take it out of photos"),
        (("", ""), ["photos=s3://bucket/faces"], "copy them here"),
        (("", ""), ["attributes=null"], "attributes=FILE split=NAME makes A and B"),
        (("", ""), ["identities=short.txt"], "short.txt: says not who is on 000001.png"),
    ],
)
def test_what_does_not_fit_is_one_line(faces, capsys, change, words, said):
    text = Path("list.txt").read_text()
    Path("list.txt").write_text(text.replace(*change) if change[0] else text)
    Path("short.txt").write_text("000000.jpg 1\n")
    assert go("attributes=list.txt", *words) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
    assert said in line
    assert not Path("data/domains").exists() or not [*Path("data/domains").iterdir()]
