"""A pair as a piece of a tar file, in every codec."""

import io
import tarfile
from typing import get_args

import numpy as np
import pytest
from PIL import Image

from distill.data.decode import BadPhoto
from distill_scale.packed.pair_record import (
    END,
    CodecName,
    codec_named,
    decode_pair,
    encode_pair,
    key_of,
)

pytest.importorskip("qoi", reason="needs the extra shards")

LOSSLESS = [name for name in get_args(CodecName) if codec_named(name).lossless]


def picture(seed, channels=3):
    values = np.random.default_rng(seed).integers(0, 256, (24, 40, channels), np.uint8)
    return Image.fromarray(values)


@pytest.mark.parametrize("channels", [3, 4])
@pytest.mark.parametrize("name", LOSSLESS)
def test_a_lossless_codec_gives_every_pixel_back(name, channels):
    codec = codec_named(name)
    photo, target = picture(0), picture(1, channels)
    found = decode_pair(encode_pair("0", photo, target, codec), codec)
    for got, wanted in zip(found, (photo, target), strict=True):
        assert got.mode == wanted.mode
        assert np.array_equal(got, wanted)


def test_jpeg_stays_near_and_says_that_it_is_not_lossless():
    codec = codec_named("jpeg")
    soft = Image.radial_gradient("L").convert("RGB")
    back, _ = decode_pair(encode_pair("0", soft, soft, codec), codec)
    assert 0 < np.abs(np.asarray(back, int) - np.asarray(soft, int)).max() <= 8
    assert not codec.lossless


@pytest.mark.parametrize("name", get_args(CodecName))
def test_the_same_pair_is_the_same_bytes(name):
    first, again = (encode_pair("k", picture(0), picture(1), codec_named(name)) for _ in range(2))
    assert first == again


def test_a_shard_of_them_is_a_tar_file_with_both_members_side_by_side():
    codec = codec_named("raw")
    records = [encode_pair(key_of(i, "a.png"), picture(i), picture(9), codec) for i in range(3)]
    with tarfile.open(fileobj=io.BytesIO(b"".join([*records, END]))) as tar:
        names = tar.getnames()
        second = tar.extractfile(names[2]).read()
    assert names == [f"0000{i}-a.{kind}.npy" for i in range(3) for kind in ("photo", "stylized")]
    assert np.array_equal(np.load(io.BytesIO(second)), np.asarray(picture(1)))


@pytest.mark.parametrize("name", ["a.b.c.png", "ä ö.png", "x" * 300 + ".png", ".png", "a/b.png"])
def test_a_key_is_short_ascii_and_without_the_dot_at_which_webdataset_ends_it(name):
    key = key_of(7, name)
    assert key.startswith("00007-")
    assert key.isascii()
    assert not set(key) & {".", "/", " "}
    assert len(f"{key}.stylized.webp") <= 100


@pytest.mark.parametrize("name", get_args(CodecName))
@pytest.mark.parametrize("damage", [lambda r: r[:700], lambda r: b"", lambda r: bytes(len(r))])
def test_what_is_no_pair_is_a_bad_photo(name, damage):
    codec = codec_named(name)
    with pytest.raises(BadPhoto):
        decode_pair(damage(encode_pair("0", picture(0), picture(1), codec)), codec)
