"""Small photos labelled into shards, by a teacher whose picture is known."""

from distill.core.engine import HERE
from distill.data.address import Address
from distill.data.manifest import SetMetadataStore
from distill.data.photos import find_photos
from distill.prepare.set_builder import build_set
from distill.prepare.teacher_pass import TeacherPass
from distill_scale.labelled_shards import ShardLabeller, ShardStore
from distill_scale.settings import ShardFormat
from support.labelling import MANIFEST
from support.teachers import Inverted


def make_shards(
    folder,
    root,
    manifest=MANIFEST,
    teacher=None,
    engine=HERE,
    form=("raw", 3),
    workers=0,
    drop=None,
    maker=None,
):
    """The shards of a folder's photos at `root`; the report. `maker` makes one, if another."""
    form, address = ShardFormat(codec=form[0], pairs=form[1]), Address(root)
    make = maker or (lambda: TeacherPass(teacher or Inverted(), manifest, 1, workers))
    labeller = ShardLabeller(make(), form.codec, address)
    store = ShardStore(SetMetadataStore(address), form, engine, labeller)
    return build_set(find_photos(folder), make(), manifest, store, drop=drop, engine=engine)
