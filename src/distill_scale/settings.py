"""Settings of shards: all of distill.shards, and the `shard.*` ones of distill.prepare."""

from dataclasses import dataclass
from typing import Literal

from pydantic import NonNegativeInt

from distill.config.extension import Extension
from distill.config.settings.base import PathText, Positive, Settings, setting
from distill.config.settings.commands import PairsFolder

CodecName = Literal["raw", "qoi", "webp", "png", "jpeg"]


@dataclass(frozen=True, kw_only=True)
class ShardFormat(Settings):
    """How labelled pairs are put into shards: the codec, and how many in each."""

    codec: CodecName = setting("of data=shards: raw, qoi, webp and png are lossless")
    pairs: Positive = setting("of data=shards: pairs in a shard")


@dataclass(frozen=True, kw_only=True)
class OfShards(Settings):
    """Settings that distill.prepare takes besides its own."""

    shard: ShardFormat


class LabelledShards(Extension):
    """distill.prepare data=shards: `Shards.label` does it."""

    settings = OfShards


@dataclass(frozen=True, kw_only=True)
class ShardSettings(Settings):
    """distill.shards"""

    data: PairsFolder
    output: PathText | None = setting(
        "where it goes, a path or an address that fsspec knows (s3://, gs://); null: "
        "data/shards/SET, with to=pairs SET-pairs"
    )
    to: Literal["shards", "pairs"] = setting("pairs: unpack into a folder of PNGs")
    codec: CodecName = setting(
        "raw loads fastest, qoi takes half the space, webp the least without loss; jpeg loses"
    )
    pairs: Positive = setting("pairs in a shard")
    workers: NonNegativeInt = setting("processes that pack")
