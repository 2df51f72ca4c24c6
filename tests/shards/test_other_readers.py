"""What others make of our files: litdata of an export, webdataset and tarfile of the shards."""

from __future__ import annotations

import io
import json
import struct
import tarfile

import numpy as np
import pytest
from PIL import Image

from distill.core.errors import DistillError
from distill.data.shards.address import Address
from distill.shards import __main__ as shards
from distill.shards import litdata_export
from distill.shards.litdata_export import export_litdata
from distill.shards.packing import pack
from support.commands import run
from support.pairs_on_disk import contents, write_set

pytest.importorskip("pyarrow", reason="needs the extra shards")


@pytest.fixture
def root(tmp_path):
    """Shards of four pairs, and the set that they are made of."""
    write_set(tmp_path / "set", {"train": {"a": 10}, "val": {"a": 2}})
    pack(tmp_path / "set", Address(tmp_path / "packed"), "png", 4, (0.1, 0, 0.1))
    return Address(tmp_path / "packed")


def pixels_of(root, side):
    """Name of each pair of the set → its two pictures."""
    folder = root.local.parent / "set" / side
    return {
        path.name: tuple(np.asarray(Image.open(folder / k / path.name)) for k in KINDS)
        for path in (folder / "photo").iterdir()
    }


KINDS = ("photo", "stylized")


def assert_same(found, wanted):
    assert found.keys() == wanted.keys()
    for name, pictures in wanted.items():
        assert all(map(np.array_equal, found[name], pictures))


def test_webdataset_reads_the_shards(root):
    webdataset = pytest.importorskip("webdataset", reason="needs the extra stores")
    tars = sorted(map(str, (root.local / "shards").glob("train-*.tar")))
    found = webdataset.WebDataset(tars, shardshuffle=False).decode("rgb8")
    samples = [(each["photo.png"], each["stylized.png"]) for each in found]
    wanted = sorted(pixels_of(root, "train").values(), key=lambda each: each[0].tobytes())
    samples.sort(key=lambda each: each[0].tobytes())
    assert len(samples) == len(wanted) == 10
    for pair, pictures in zip(samples, wanted, strict=True):
        assert all(map(np.array_equal, pair, pictures))


def test_tarfile_reads_the_shards(root):
    found = []
    for path in sorted((root.local / "shards").glob("train-*.tar")):
        with tarfile.open(path) as tar:
            members = [(m.name.split(".", 1), tar.extractfile(m).read()) for m in tar]
        for (photo, first), (stylized, second) in zip(members[::2], members[1::2], strict=True):
            assert (photo[0], photo[1], stylized[1]) == (
                stylized[0], "photo.png", "stylized.png",
            )  # fmt: skip
            found.append(tuple(np.asarray(Image.open(io.BytesIO(c))) for c in (first, second)))
    assert len(found) == 10
    wanted = {photo.tobytes(): drawn for photo, drawn in pixels_of(root, "train").values()}
    assert all(np.array_equal(drawn, wanted[photo.tobytes()]) for photo, drawn in found)


# litdata


def test_litdata_reads_an_export(root, tmp_path, monkeypatch):
    litdata = pytest.importorskip("litdata", reason="needs the extra stores")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))  # where it caches
    out = tmp_path / "out"
    export_litdata(root, out)
    for side in ("train", "val"):
        data = litdata.StreamingDataset(str(out / side))
        samples = [data[i] for i in range(len(data))]
        assert_same(
            {s["name"]: tuple(np.asarray(s[kind]) for kind in KINDS) for s in samples},
            pixels_of(root, side),
        )


def test_an_export_is_laid_out_as_litdata_writes_it(root, tmp_path):
    """By the format's description, read without the library."""
    report = export_litdata(root, tmp_path / "out")
    assert report.counts == {"train": 10, "val": 2}
    index = json.loads((tmp_path / "out/train/index.json").read_text())
    assert [chunk["chunk_size"] for chunk in index["chunks"]] == [4, 4, 2]
    assert index["config"]["data_format"] == ["str", "pil", "pil"]
    found = {}
    for chunk in index["chunks"]:
        content = (tmp_path / "out/train" / chunk["filename"]).read_bytes()
        assert len(content) == chunk["chunk_bytes"]
        count, *offsets = struct.unpack_from(f"<{chunk['chunk_size'] + 2}I", content)
        assert (count, offsets[-1]) == (chunk["chunk_size"], len(content))
        for begin, end in zip(offsets, offsets[1:], strict=False):
            item = content[begin:end]
            sizes = struct.unpack_from("<3I", item)
            ends = 12 + np.cumsum(sizes)
            name, *pictures = (item[e - s : e] for s, e in zip(sizes, ends, strict=True))
            found[name.decode()] = tuple(map(from_pil_leaf, pictures))
    assert_same(found, pixels_of(root, "train"))


def from_pil_leaf(leaf):
    width, height, mode = struct.unpack_from("<3I", leaf)
    assert leaf[12 : 12 + mode] == b"RGB"
    return np.frombuffer(leaf[12 + mode :], np.uint8).reshape(height, width, 3)


def test_a_damaged_pair_is_left_out_and_counted(root, tmp_path, capsys):
    path = root.local / "shards" / "train-000002.tar"
    content = bytearray(path.read_bytes())
    content[2000:2010] = b"0123456789"
    path.write_bytes(content)
    report = export_litdata(root, tmp_path / "out")
    assert (report.counts["train"], report.skipped) == (9, 1)
    assert "1 pairs cannot be read" in str(report)


def test_an_export_is_whole_once_its_index_is_there(root, tmp_path, monkeypatch):
    """Killed in mid-export and typed again it is as if it had never been killed."""
    export_litdata(root, tmp_path / "whole")
    real, made = litdata_export._write_chunk, []

    def killed(folder, number, samples):
        made.append(number)
        if len(made) == 3:
            raise KeyboardInterrupt
        return real(folder, number, samples)

    monkeypatch.setattr(litdata_export, "_write_chunk", killed)
    with pytest.raises(KeyboardInterrupt):
        export_litdata(root, tmp_path / "out")
    assert not list((tmp_path / "out").rglob("index.json"))
    monkeypatch.setattr(litdata_export, "_write_chunk", real)
    export_litdata(root, tmp_path / "out")
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def test_typed_it_says_what_reads_it_and_spares_another_s_folder(root, tmp_path, capsys):
    words = [f"data.root={root}", "to=litdata"]
    assert run(shards, *words) == 0
    said = capsys.readouterr().out
    assert f"{root}-litdata: 12 pairs (10 train, 2 val) for litdata" in said
    assert f"litdata.StreamingDataset('{root}-litdata/train')" in said
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").touch()
    assert run(shards, *words, f"output={tmp_path}/full") == 1
    assert "not empty, and no export of this set" in capsys.readouterr().err
    with pytest.raises(DistillError, match="no shards there"):
        export_litdata(Address(tmp_path / "full"), tmp_path / "out")
