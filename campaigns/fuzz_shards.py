"""Reader of a set of shards: its manifest, catalogue, index and tar files, by what unpacks it."""

from __future__ import annotations

import io
import json
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from fuzz_engine import Reader
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from mutations import damage, damaged, edited, edits
from PIL import Image

from distill.data.address import Address
from distill_scale.packed.unpacking import unpack
from distill_scale.shards.packing import pack

FILES = (
    "dataset.json",
    "shards.parquet",
    "index/train-000000.parquet",
    "shards/train-000000.tar",
    "shards/val-000000.tar",
)


class ShardSets(Reader):
    """One file of a valid set is changed: its bytes, or the values that it holds."""

    name = "shards"

    def begin(self) -> None:
        rng = np.random.default_rng(0)
        for side in "AB":
            Path("pairs", side).mkdir(parents=True)
            for number in range(9):
                noise = rng.integers(0, 255, (5, 5, 3), np.uint8)
                Image.fromarray(noise).resize((64, 64)).save(f"pairs/{side}/{number}.png")
        pack(Path("pairs"), Address("kept"), "qoi", 3, (0.3, 0, 0.1))
        assert all(Path("kept", each).is_file() for each in FILES)

    def cases(self) -> SearchStrategy:
        return st.tuples(st.sampled_from(FILES), st.one_of(damage(), edits()))

    def put(self, case: tuple[str, list], folder: Path) -> None:
        name, changes = case
        content = Path("kept", name).read_bytes()
        if len(changes[0]) == 4 or name.endswith("tar"):
            changed = damaged(content, [step for step in changes if len(step) == 4])
        elif name.endswith("json"):
            changed = json.dumps(edited(json.loads(content), changes)).encode(errors="replace")
        else:
            changed = _edited_table(content, changes)
        (folder / Path(name).name).write_bytes(changed)

    def read(self, case: tuple[str, list], folder: Path) -> None:
        for each in ("set", "unpacked"):
            shutil.rmtree(each, ignore_errors=True)
        shutil.copytree("kept", "set")
        shutil.copyfile(folder / Path(case[0]).name, Path("set", case[0]))
        unpack(Address("set"), Path("unpacked"))


def _edited_table(content: bytes, changes: list) -> bytes:
    """A Parquet file of edited rows, with the columns that such rows have."""
    table, out = pq.read_table(io.BytesIO(content)), io.BytesIO()
    rows: Any = edited(table.to_pylist(), changes)
    for schema in (table.schema, None):  # as it was, or else what the new values are
        with suppress(Exception):
            pq.write_table(pa.Table.from_pylist(rows, schema), out)
            return out.getvalue()
    return content


READERS = (ShardSets,)
