"""Sets of shards with a card, pushed and pulled as a user types it, a folder on the other side."""

import json
from dataclasses import replace
from pathlib import Path

import fsspec
import pytest
import yaml
from PIL import Image

from distill.core.files import sha256
from distill.data.address import Address
from distill.prepare import __main__ as prepare
from distill_hub import __main__ as hub
from distill_scale.packed.shard_index import read_rows_of, read_shard_row, write_part
from distill_scale.shards import __main__ as shards
from support.commands import SMALL, run
from support.pairs_on_disk import contents, pixels

pytest.importorskip("pyarrow", reason="needs the extra shards")
ROOT = "data/shards/toon-photos-64-crop90"
CARD = ["card=true", "card.licence=CC BY 4.0", "card.source=https://example.org/photos"]
PUSH = ["push", f"data.root={ROOT}", "repo=./shared"]
PULL = ["pull", "repo=./shared", "data.root=got"]


def prepared(*more: str) -> int:
    words = ["photos=photos", *SMALL, "data=shards", "shard.pairs=3", "shard.codec=raw"]
    return run(prepare, *words, *more)


def visible(root: Path) -> dict[str, bytes]:
    return {name: found for name, found in contents(root).items() if not name.startswith(".")}


def last_line(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().err.strip().splitlines()[-1]


def card_of(text: str) -> tuple[dict, str]:
    _, head, body = text.split("---\n", 2)
    return yaml.safe_load(head), body


@pytest.fixture
def carded(here):
    """The photos of `here` as shards with a card, in the working folder."""
    assert prepared(*CARD) == 0
    return here


@pytest.fixture
def shared(carded):
    """The same, and pushed into the folder that is given."""
    assert run(hub, *PUSH) == 0
    return carded / "shared"


@pytest.mark.campaign
def test_the_card_says_how_the_shards_are_read(carded):
    head, body = card_of((carded / ROOT / "README.md").read_text())
    assert head["license"] == "cc-by-4.0"
    patterns = {each["split"]: each["path"] for each in head["configs"][0]["data_files"]}
    assert patterns == {
        "train": "shards/train-*.tar",
        "validation": "shards/val-*.tar",
        "test": "shards/test-*.tar",
    }
    tars = [path.relative_to(carded / ROOT) for path in (carded / ROOT / "shards").iterdir()]
    assert all(any(path.match(each) for each in patterns.values()) for path in tars)
    counts = json.loads((carded / ROOT / "dataset.json").read_text())["counts"]
    for side, count in counts.items():
        assert f"| {side} | {count} |" in body
    assert "`KEY.photo.npy` is the input, `KEY.stylized.npy` of the same key the target" in body
    assert "distill train style=toon style.resolution=64 data=shards data.root=DIR" in body
    assert "- photos: 8 train, 6 val, 2 test" in body
    assert "drawn" in body.partition("## How it was made and checked")[2]
    assert str(carded) not in str(head) + body
    with Image.open(carded / ROOT / "sheet.jpg") as sheet:
        assert sheet.format == "JPEG"
        assert sheet.width > 2 * 64
        assert sheet.height > 2 * 64  # of two pairs of the test side
    before = contents(carded / ROOT)
    assert prepared(*CARD) == 0
    assert contents(carded / ROOT) == before


@pytest.mark.slow
def test_the_card_goes_to_an_address(here):
    there = "memory://store/set"
    try:
        assert prepared(f"data.root={there}", *CARD) == 0
        card_of(Address(there).read("README.md").decode())
        assert Address(there).read("sheet.jpg").startswith(b"\xff\xd8")
    finally:
        fsspec.filesystem("memory").store.clear()
    assert not [path for path in here.iterdir() if path.name.startswith("memory")]


@pytest.mark.slow
def test_there_and_back(shared, capsys):
    own, there = visible(shared.parent / ROOT), visible(shared)
    assert own.keys() - there.keys() == {"set/skipped.tsv", "published.txt"}
    assert there.keys() - own.keys() == {"sha256sums.txt"}
    changed = {name for name in own.keys() & there.keys() if own[name] != there[name]}
    assert changed == {"dataset.json", "set/dataset.json"}
    assert json.loads((shared / "dataset.json").read_text())["recipe"]["photos"] == "photos"
    here = str(shared.parent).encode()
    assert not [name for name in there if here in (shared / name).read_bytes()]
    for part in (shared / "index").iterdir():  # compressed
        assert str(shared.parent) not in str(read_rows_of(Address(shared), part.stem))
    capsys.readouterr()
    assert run(hub, *PUSH) == 0
    assert f"{len(there)} files, 0 of them new" in capsys.readouterr().out

    assert run(hub, *PULL) == 0
    said = capsys.readouterr().out
    assert said.endswith("next: python -m distill.train data=shards data.root=got\n")
    assert visible(shared.parent / "got") == there
    assert run(hub, *PULL) == 0
    assert "0 of them new" in capsys.readouterr().out
    # What was pulled is the same set: pushed again, and unpacked.
    assert run(hub, "push", "data.root=got", "repo=./shared") == 0
    assert "0 of them new" in capsys.readouterr().out
    for root, output in ((ROOT, "own"), ("got", "back")):
        assert run(shards, f"data.root={root}", "to=pairs", f"output={output}") == 0
    assert pixels(Path("own")) == pixels(Path("back"))
    assert len(pixels(Path("back"))) == 2 * 16


@pytest.mark.slow
def test_names_of_photos_that_were_left_out_stay_at_home(carded):
    root, shard = Address(carded / ROOT), next((carded / ROOT / "index").iterdir()).stem
    row, rows = read_shard_row(root, shard), read_rows_of(root, shard)
    write_part(root, replace(row, skipped={"'Somebody_0001.png'": "cut short"}), rows)
    assert run(hub, *PUSH) == 0
    there = Address(carded / "shared")
    assert read_shard_row(there, shard) == row
    assert read_rows_of(there, shard) == rows
    assert read_shard_row(root, shard).skipped
    assert run(hub, *PUSH) == 0  # what is written again for that is the same


@pytest.mark.slow
def test_what_is_damaged_is_neither_pushed_nor_taken(shared, capsys):
    name = next((shared / "shards").iterdir()).name
    own, there = Path(ROOT, "shards", name), shared / "shards" / name
    there.write_bytes(there.read_bytes()[:-1] + b"x")
    assert run(hub, *PULL) == 1
    assert f"shards/{name}: not what sha256sums.txt says" in last_line(capsys)
    assert not Path("got/dataset.json").exists()
    own.write_bytes(own.read_bytes()[:-1] + b"x")
    assert run(hub, *PUSH, "replace=true") == 1
    assert f"{ROOT}/shards/{name}: damaged; run the command that made the set" in last_line(capsys)
    own.unlink()
    assert run(hub, *PUSH) == 1
    assert f"{ROOT}/shards/{name}: not there, or damaged" in last_line(capsys)
    assert prepared() == 0  # which mends it
    assert run(hub, *PUSH, "replace=true") == 0
    assert sha256(there) == sha256(own)
    assert run(hub, *PULL) == 0
    there.unlink()
    Path("got/shards", name).unlink()
    assert run(hub, *PULL) == 1
    assert f"shards/{name} is missing there; push the set again" in last_line(capsys)


@pytest.mark.slow
def test_another_version_replaces_all_of_the_old_one(shared, capsys):
    assert run(hub, *PULL) == 0
    photo = next(Path("photos").iterdir())
    Path("drop.txt").write_text(f"{photo.name}\n")
    assert prepared("drop=drop.txt", *CARD) == 0  # its shard is made again, under another name
    gone = {p.name for p in Path("got/shards").iterdir()} - {
        p.name for p in Path(ROOT, "shards").iterdir()
    }
    assert gone
    assert run(hub, *PUSH) == 1
    assert "there with other content; replace=true" in last_line(capsys)
    assert run(hub, *PUSH, "replace=true") == 0
    assert "others removed" in capsys.readouterr().out
    assert not gone & {
        p.name for p in Path("shared").rglob("*")
    }  # what was taken down is gone there
    assert run(hub, *PULL) == 1
    assert "here with other content; replace=true" in last_line(capsys)
    assert run(hub, *PULL, "replace=true") == 0
    for folder in ("shards", "index"):
        assert visible(Path("got", folder)) == visible(Path(ROOT, folder))
    assert not (gone & {p.name for p in Path("got/shards").iterdir()})


@pytest.mark.campaign
def test_packed_and_unpacked_a_set_keeps_its_card(here):
    assert run(prepare, "photos=photos", "data.root=set", *SMALL, *CARD) == 0
    text = Path("set/README.md").read_text()
    Path("set/README.md").write_text(text.replace("## Sources", "## Sources\n\nMy own words.\n"))
    packing = ["data.root=set", "output=packed", "codec=raw", "pairs=3", "workers=0"]
    assert run(shards, *packing) == 0
    head, body = card_of(Path("packed/README.md").read_text())
    assert head["configs"][0]["data_files"][0]["path"] == "shards/train-*.tar"
    assert "`KEY.photo.npy` is the input" in body
    assert "SIDE/photo/NAME.png" not in body
    assert "My own words." in body
    assert Path("packed/sheet.jpg").read_bytes() == Path("set/sheet.jpg").read_bytes()
    assert run(hub, "push", "data.root=packed", "repo=./shared") == 0
    assert run(shards, "data.root=packed", "to=pairs", "output=back") == 0
    assert contents(Path("back"))["README.md"] == contents(Path("set"))["README.md"]
    assert run(hub, "push", "data.root=back", "repo=./as-folder") == 0


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["push", "data.root=s3://b/set"], "data.root=s3://b/set: a set is pushed from a local"),
        (["pull", "data.root=gs://b/set"], "data.root=gs://b/set: a set is pushed from a local"),
    ],
)
def test_an_address_is_refused(words, line, here, capsys):
    assert run(hub, *words, "repo=./shared") == 1
    assert last_line(capsys).startswith(f"error: {line}")
