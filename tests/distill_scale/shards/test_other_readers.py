"""What others make of our files: webdataset and tarfile of the shards."""

import io
import tarfile

import numpy as np
import pytest
from PIL import Image

from distill.data.address import Address
from distill_scale.shards.packing import pack
from support.pairs_on_disk import write_set

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
