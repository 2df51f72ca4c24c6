"""Shards behind an address of fsspec, and their copies on this machine."""

import os
import threading
import time

import fsspec
import numpy as np
import pytest
from filelock import FileLock

from distill.core.errors import DistillError
from distill.data.address import Address
from distill_scale.packed.node_cache import SLOTS, NodeCache
from distill_scale.packed.shard_index import Catalogue, shard_path
from distill_scale.packed.shard_manifest import finished_shards
from distill_scale.packed.sharded_pairs import ShardedPairs
from distill_scale.packed.unpacking import unpack
from distill_scale.shards.packing import pack
from support.pairs_on_disk import contents, pixels, write_set

pytest.importorskip("pyarrow", reason="needs the extra shards")
COUNTS = {"train": {"a": 12}, "val": {"a": 2}}


@pytest.fixture
def remote(tmp_path):
    """Shards of a set at memory://, and the set."""
    folder = write_set(tmp_path / "set", COUNTS)
    root = Address(f"memory://{tmp_path.name}/bucket")
    pack(folder, root, "raw", 4, (0.1, 0, 0.1))
    yield root, folder
    fsspec.filesystem("memory").store.clear()


def pairs_of(root, cache=None):
    return ShardedPairs(root, Catalogue(root), "train", "raw", cache)


def test_a_remote_set_is_that_of_a_local_one(remote, tmp_path):
    root, folder = remote
    pack(folder, Address(tmp_path / "local"), "raw", 4, (0.1, 0, 0.1))
    there = fsspec.filesystem("memory")
    for name, _ in contents(tmp_path / "local").items():
        assert there.cat_file(f"{root}/{name}") == (tmp_path / "local" / name).read_bytes()
    assert pack(folder, root, "raw", 4, (0.1, 0, 0.1)).made == 0
    unpack(root, tmp_path / "back")
    assert pixels(tmp_path / "back") == pixels(folder)


def test_a_pair_is_one_request_for_its_bytes(remote, monkeypatch):
    root, _ = remote
    pairs = pairs_of(root)
    pairs[0].read()
    asked, real = [], Address.read_range

    def counted(self, path, start, size):
        asked.append((path, size))
        return real(self, path, start, size)

    monkeypatch.setattr(Address, "read_range", counted)
    pairs[2].read()
    assert asked == [(shard_path("train-000000"), int(pairs.part(0).sizes[2]))]


def test_what_cannot_be_reached_is_one_line():
    with pytest.raises(DistillError, match=r"^nosuch://a/b: cannot be reached"):
        Address("nosuch://a/b")
    nothing = Address("memory://nothing/here")
    with pytest.raises(DistillError, match="no shards there"):
        finished_shards(nothing)


# The cache


def shard(root, number):
    catalogue = Catalogue(root)
    return catalogue.name(number), catalogue.sha256(number)


def test_copies_never_take_more_than_the_limit_and_the_least_recently_used_go(remote, tmp_path):
    root, _ = remote
    size = root.size(shard_path("train-000000"))
    cache = NodeCache(root, 2 * size + 10, tmp_path / "cache")
    for number in (0, 1):
        assert cache.fetch(*shard(root, number))
        time.sleep(0.01)
    assert not cache.fetch(*shard(root, 0))  # it is there
    assert cache.copy(shard(root, 0)[1])  # and counts as used
    assert cache.fetch(*shard(root, 2))
    there = {path.stem for path in (tmp_path / "cache").glob("*.tar")}
    assert there == {shard(root, 0)[1], shard(root, 2)[1]}
    assert sum(p.stat().st_size for p in (tmp_path / "cache").glob("*.tar")) <= cache.limit


def test_a_shard_larger_than_the_limit_is_not_copied(remote, tmp_path):
    root, _ = remote
    cache = NodeCache(root, 100, tmp_path / "cache")
    assert not cache.fetch(*shard(root, 0))
    assert cache.copy(shard(root, 0)[1]) is None


def test_pairs_are_read_from_the_copy_and_without_waiting_for_it(remote, tmp_path, monkeypatch):
    root, _ = remote
    cache = NodeCache(root, 10**9, tmp_path / "cache")
    pairs, plain = pairs_of(root, cache), pairs_of(root)
    first = pairs[0].read()  # not there yet: read where it is
    deadline = time.monotonic() + 20
    while cache.copy(shard(root, 0)[1]) is None and time.monotonic() < deadline:
        time.sleep(0.01)
    monkeypatch.setattr(Address, "read_range", None)  # nothing is asked of the store any more
    for index in range(4):
        assert np.array_equal(pairs[index].read()[0], pairs_of(root, cache)[index].read()[0])
    monkeypatch.undo()
    assert np.array_equal(first[1], plain[0].read()[1])


def test_a_copy_that_is_removed_while_it_is_read_stays_readable(remote, tmp_path):
    root, _ = remote
    cache = NodeCache(root, 10**9, tmp_path / "cache")
    cache.fetch(*shard(root, 0))
    pairs = pairs_of(root, cache)
    before = pairs[0].read()
    for path in (tmp_path / "cache").glob("*.tar"):
        path.unlink()
    assert np.array_equal(pairs[1].read()[0], pairs_of(root)[1].read()[0])
    assert np.array_equal(pairs[0].read()[0], before[0])


def test_a_shard_that_is_not_the_catalogue_s_is_not_kept(remote, tmp_path, capsys):
    root, _ = remote
    name, content = shard(root, 0)
    there = fsspec.filesystem("memory")
    there.pipe_file(f"{root}/{shard_path(name)}", b"x" * 100)
    cache = NodeCache(root, 10**9, tmp_path / "cache")
    with pytest.raises(DistillError, match="not the shard of the catalogue"):
        cache.fetch(name, content)
    assert not list((tmp_path / "cache").glob("*.tar"))
    cache.want(name, content)
    deadline = time.monotonic() + 20
    while not cache._off and time.monotonic() < deadline:
        time.sleep(0.01)
    assert "cache of shards: off, pairs are read one by one" in capsys.readouterr().out


def test_one_process_at_a_time_fetches_a_shard(remote, tmp_path):
    root, _ = remote
    cache, (name, content) = NodeCache(root, 10**9, tmp_path / "cache"), shard(root, 0)
    (tmp_path / "cache").mkdir()
    slot = tmp_path / "cache" / f".fetch-{int(content[:8], 16) % SLOTS}.lock"
    with FileLock(slot):
        assert not cache.fetch(name, content)
    assert cache.fetch(name, content)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_forked_process_fetches_for_itself(remote, tmp_path):
    root, _ = remote
    cache = NodeCache(root, 10**9, tmp_path / "cache")
    cache.want(*shard(root, 0))
    child = os.fork()
    if not child:
        try:
            cache.want(*shard(root, 1))
            for _ in range(1000):
                if cache.copy(shard(root, 1)[1]):
                    os._exit(7)
                time.sleep(0.01)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert threading.active_count() >= 1
