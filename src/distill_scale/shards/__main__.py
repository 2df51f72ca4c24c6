"""python -m distill.shards: packs a set of pairs into shards for training, or unpacks them.

Pack a set of pairs into shards: plain tar files that training reads faster than a folder of
PNGs, from this machine or from an object store. And unpack them again.

  python -m distill.shards data.root=data/pairs/SET
  python -m distill.shards data.root=data/pairs/SET output=s3://BUCKET/SET codec=jpeg
  python -m distill.shards data.root=data/shards/SET to=pairs output=DIR
  python -m distill.train style=STYLE data=shards data.root=data/shards/SET

Writes ROOT/shards/SIDE-NNNNNN.tar (KEY.photo.EXT and KEY.stylized.EXT, as webdataset reads
them), an index in Parquet and, last, dataset.json. Kill it any time: run it again to resume.
Any folder of pairs will do that data.root=DIR of distill.train takes, sets of sketches for
recipe=pix2pix too.

Needs pip install 'distill[shards]'.

Everything, with its value: python -m distill.shards --cfg job
"""

from distill.config.command import command
from distill_scale.settings import ShardSettings


@command("shards", ShardSettings)
def main(settings: ShardSettings) -> None:
    from distill_scale.shards import packing

    packing.convert(settings)


if __name__ == "__main__":
    main()
