"""engine=ray: what a cluster draws is what one process does, whichever nodes go away meanwhile."""

import asyncio
import re
import signal
import socket
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from hashlib import sha256
from pathlib import Path

import fsspec
import pytest

from distill import __version__
from distill.core.errors import DistillError
from distill.data.photos import find_photos
from distill.data.thumbnails import thumbnails
from distill.prepare import __main__ as prepare
from distill_scale.ray_engine import LeaseWorker, RayEngine, _reach
from distill_scale.shards import __main__ as shards
from support.commands import SMALL, run
from support.labelling import add
from support.leases import Absent, Halves, Visible, out_of_reach, twice
from support.object_store import BUCKET, object_store
from support.pairs_on_disk import contents
from support.ray_cluster import own_ray, ray_cluster
from support.shards_by_teacher import make_shards
from support.stored_photos import upload
from support.teachers import Inverted

pytest.importorskip("pyarrow", reason="needs the extra shards")
PAIRS = 2


class Slow(Inverted):
    """The negative, each picture after a while; the same teacher as the negative to a set."""

    def forward(self, photos):
        time.sleep(0.3)
        return super().forward(photos)


@pytest.fixture
def folder(tmp_path):
    """Three photos that make no whole set, and one that is none; the shards of them `whole`."""
    add(tmp_path / "photos", *range(24))
    (tmp_path / "photos" / "none.jpg").write_bytes(b"no picture")
    make_shards(tmp_path / "photos", tmp_path / "whole", form=("raw", PAIRS))
    return tmp_path / "photos"


class Interrupted(RayEngine):
    """Something happens to the cluster after so many shards."""

    def __init__(self, cluster, after, act, wait):
        super().__init__(cluster.address, wait=wait)
        self.after, self.act = after, act

    def run(self, *args):
        for number, each in enumerate(super().run(*args), start=1):
            if number == self.after:
                self.act()
            yield each


def draw(folder, root, cluster, after=0, act=None, wait=90.0):
    """The shards of the photos, by a slow teacher on the cluster; the report."""
    with Interrupted(cluster, after, act, wait) as engine:
        return make_shards(folder, root, teacher=Slow(), engine=engine, form=("raw", PAIRS))


def stamps(root):
    return {path: path.stat().st_mtime_ns for path in root.rglob("*")}


@pytest.mark.campaign
@pytest.mark.parametrize("killed", ["one for good", "one, replaced", "all, replaced"])
def test_nodes_that_die_lose_what_they_had_in_hand_alone(folder, tmp_path, capfd, killed):
    root = tmp_path / "shards"
    with ray_cluster(nodes=2) as cluster:

        def dies():
            nodes = list(cluster.cluster.worker_nodes)
            for node in nodes[: 2 if killed.startswith("all") else 1]:
                cluster.kill(node)
            if killed.endswith("replaced"):
                cluster.add()

        report = draw(folder, root, cluster, after=3, act=dies)
        assert report.made == 24
        assert "a worker was lost; its shard is made again" in capfd.readouterr().out
        assert contents(root) == contents(tmp_path / "whole")
        before = stamps(root)
        assert draw(folder, root, cluster).made == 0
        assert stamps(root) == before


@pytest.mark.campaign
def test_without_a_node_it_says_so_and_ends_and_goes_on_later(folder, tmp_path, capfd):
    root = tmp_path / "shards"
    with ray_cluster(nodes=1) as cluster:

        def dies():
            for node in list(cluster.cluster.worker_nodes):
                cluster.kill(node)

        with pytest.raises(DistillError) as error:
            draw(folder, root, cluster, after=3, act=dies, wait=3)
        assert "no node has room for a worker for" in str(error.value)
        # One more may have been on its way when the node died.
        told = r"done: [34] of 13 shards; add nodes with ray start --address=HOST:PORT, run it"
        assert re.search(told, str(error.value))
        said = "engine=ray: no node has room for a worker; waits 3 seconds for nodes"
        assert said in capfd.readouterr().out
        assert len(list(root.glob("index/*"))) < 13
        cluster.add()
        draw(folder, root, cluster)
        assert contents(root) == contents(tmp_path / "whole")


@pytest.mark.campaign
@pytest.mark.parametrize("sizes", [[], ["data.sizes=[64,96]"]])
def test_as_typed_it_draws_what_this_process_does(here, capsys, sizes):
    words = ["photos=photos", "data=shards", "shard.pairs=3", *SMALL, *sizes]
    assert run(prepare, "data.root=here", *words) == 0
    with own_ray():
        assert run(prepare, "data.root=there", *words, "engine=ray", "label.workers=1") == 0
    said = capsys.readouterr().out
    # Every photo's centre square; whole, one that is trained on at 96 alone, another at both sizes.
    photos, trained = 16, Path("here/set/photos.tsv").read_text().count("\ttrain\t")
    assert 0 < trained < photos
    made = photos + (trained + 2 * (photos - trained) if sizes else 0)
    assert said.count(f" pairs, {made} new") == 2
    assert "engine=ray" not in said.splitlines()[-1]  # what is typed next is no label command
    assert contents(Path("here")) == contents(Path("there"))
    assert run(prepare, "data.root=set", "photos=photos", *SMALL, *sizes) == 0
    assert run(shards, "data.root=there", "to=pairs", "output=back") == 0
    pairs = {name: each for name, each in contents(Path("set")).items() if "/ink/" not in name}
    assert pairs == contents(Path("back"))  # shards carry no layers of lines


@pytest.mark.campaign
@pytest.mark.parametrize("photos", ["photos", f"s3://{BUCKET}/photos"])
def test_workers_publish_into_a_bucket(here, photos):
    words = ["data=shards", "shard.pairs=3", *SMALL]
    assert run(prepare, "photos=photos", "data.root=here", *words) == 0
    there, drawn = f"s3://{BUCKET}/drawn", contents(Path("here"))
    with object_store(), own_ray():
        upload(here / "photos", f"s3://{BUCKET}/photos")
        words += [f"photos={photos}", "label.workers=1"]
        assert run(prepare, f"data.root={there}", *words, "engine=ray") == 0
        store = fsspec.filesystem("s3")
        found = {path.removeprefix(f"{BUCKET}/drawn/"): path for path in store.find(there)}
        made = {name: sha256(store.cat_file(path)).hexdigest() for name, path in found.items()}
    differ = {name for name in made.keys() | drawn.keys() if made.get(name) != drawn.get(name)}
    # They say where the photos are from.
    assert differ == ({"dataset.json", "set/dataset.json"} if photos != "photos" else set())


@pytest.mark.campaign
def test_where_nodes_have_gpus_each_worker_has_one_of_its_own():
    with ray_cluster(nodes=0) as cluster:
        cluster.add(num_cpus=3, num_gpus=2)
        with RayEngine(cluster.address) as engine:
            assert engine.device("auto") == "cuda"
            assert engine.device("cpu") == "cpu"
            seen = [gpu for _, gpu in engine.run(Visible(), range(6), "cuda")]
    assert len(seen) == 6
    assert set(seen) == {"0", "1"}


@pytest.mark.slow
def test_leases_are_carried_out_and_errors_are_those_of_the_worker():
    """And once the cluster was left, a signal ends the process as before."""
    pytest.importorskip("ray", reason="needs the extra ray")
    own = lambda *_: None  # noqa: E731, which workers do not inherit
    before = signal.signal(signal.SIGTERM, own)
    try:
        with own_ray(), RayEngine() as engine:
            found = dict(engine.run(Halves(), ["a", "four", "sixsix"], "cpu"))
            assert found == {"a": 0.5, "four": 2, "sixsix": 3}
            with pytest.raises(PermissionError) as refused:
                list(engine.run(Halves(), ["closed"], "cpu"))
            assert refused.value.filename == "/there"
            with pytest.raises(DistillError) as failed:
                list(engine.map(out_of_reach, [1, 2]))
            assert str(failed.value) == "s3://photos/1.png: cannot be read; run it again to resume"
        assert signal.getsignal(signal.SIGTERM) is own
        with pytest.raises(DistillError):
            RayEngine("127.0.0.1:1").__enter__()
        assert signal.getsignal(signal.SIGTERM) is own
    finally:
        signal.signal(signal.SIGTERM, before)
    error = LeaseWorker(__version__, Halves()).carry_out("full")  # as a process of its own does
    assert (type(error), str(error)) == (DistillError, "no room; make some")


@pytest.fixture(scope="module")
def engine():
    """A cluster of this machine's cores."""
    with own_ray(), RayEngine() as made:
        yield made


@pytest.mark.campaign
def test_parts_come_back_in_their_order(engine):
    assert list(engine.map(partial(twice, by=3), range(9))) == [3 * n for n in range(9)]
    assert list(engine.map(twice, [])) == []
    assert engine.device("auto") == "cpu"


@pytest.mark.campaign
def test_thumbnails_are_made_by_its_workers(engine, tmp_path, monkeypatch):
    add(tmp_path / "photos", *range(7))
    photos = find_photos(tmp_path / "photos")
    monkeypatch.setattr("distill.data.thumbnails.PART", 2)
    made = thumbnails(photos, "by workers", engine)
    assert (made == thumbnails(photos, "by this process")).all()
    assert made["small"].any((1, 2)).all()


@pytest.mark.campaign
def test_a_lease_that_ends_every_worker_ends_the_command(engine, monkeypatch):
    monkeypatch.setattr("distill_scale.ray_engine.LOSSES", 2)
    with pytest.raises(DistillError, match="2 workers were lost over one shard, the last: The"):
        list(engine.run(Halves(), ["dies"], "cpu"))


@pytest.mark.campaign
def test_a_worker_that_cannot_start_is_one_line(engine, monkeypatch):
    monkeypatch.setattr("distill_scale.ray_engine.LOSSES", 2)
    with pytest.raises(DistillError, match=r"a worker does not start \(.*No module named 'absent'"):
        list(engine.run(Absent(), ["a"], "cpu"))


def test_where_no_cluster_answers_it_is_one_line(here, capsys):
    pytest.importorskip("ray", reason="needs the extra ray")
    words = ["photos=photos", "data=shards", "engine=ray", "engine.address=127.0.0.1:1"]
    assert run(prepare, *words, *SMALL) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1, error
    assert "engine.address=127.0.0.1:1: no Ray cluster there (" in error


def test_a_cluster_is_reached_from_a_notebook_whose_event_loop_runs():
    async def cell() -> None:
        with socket.create_server(("127.0.0.1", 0)) as head:
            _reach(f"127.0.0.1:{head.getsockname()[1]}")
        with pytest.raises(ConnectionRefusedError):
            _reach("127.0.0.1:1")

    with ThreadPoolExecutor(1) as own_thread:  # this one may have a loop of Playwright's already
        own_thread.submit(asyncio.run, cell()).result()


WRONG = {
    "engine=ray": "engine: RayEngine labels into shards; add data=shards, and",
    "engine=ray data=shards": "engine=ray: needs ray; pip install 'distill[ray]'",
    "engine=here engine.address=a": "address",
    "engine=ray recipe=pix2pix": "recipe=pix2pix: sketches are written into a folder on this "
    "machine",
    "data=shards recipe=pix2pix": "recipe=pix2pix: sketches are written into a folder on this "
    "machine",
}


@pytest.mark.parametrize("typed", WRONG)
def test_what_cannot_be_is_one_line(here, capsys, monkeypatch, typed):
    monkeypatch.setitem(sys.modules, "ray", None)
    assert run(prepare, "photos=photos", *SMALL, *typed.split()) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1, error
    assert WRONG[typed] in error
