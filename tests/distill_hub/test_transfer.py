"""Files to a place and back: nothing twice, nothing written over, everything checked."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from distill.core.errors import DistillError
from distill_hub import transfer
from distill_hub.transfer import FolderRemote, HubRemote, Remote, remote_of
from support.hub_stand_in import LARGE, HubStandIn, as_typed

LAST = ("last.json", transfer.SUMS)
NAMES = ("last.json", "a/x.png", "a/y [1]*.png", "b/large.bin", "c.txt")


@pytest.fixture
def files(tmp_path):
    """Files below home/, one of them large, with their sums."""
    found = {}
    for number, name in enumerate(NAMES):
        path = tmp_path / "home" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes([number]) * (LARGE if "large" in name else 10))
        found[name] = path
    sums = tmp_path / "home" / transfer.SUMS
    sums.write_text(transfer.sums_of(found))
    return found | {transfer.SUMS: sums}


@pytest.fixture(params=["folder", "hub"])
def place(request, tmp_path):
    """An empty place of either kind, whose files lie below there/."""
    if request.param == "folder":
        return FolderRemote(str(tmp_path / "there"))
    return on_hub(HubStandIn(tmp_path / "there"))


def on_hub(api: HubStandIn) -> Remote:
    pytest.importorskip("huggingface_hub")
    place = HubRemote("me/set", "dataset", None, private=True)
    place.api = as_typed(api)
    return place


def expected(files: dict[str, Path]) -> dict[str, str]:
    return transfer.read_sums(files[transfer.SUMS].read_text(), "here")


def content(root: Path) -> dict[str, bytes]:
    found = (p for p in root.rglob("*") if p.is_file())
    return {p.relative_to(root).as_posix(): p.read_bytes() for p in found}


def test_a_file_is_removed_alone(place, files, tmp_path):
    transfer.push(files, place, LAST, replace=False)
    gone = next(iter(files))
    place.remove([gone])
    assert {*content(tmp_path / "there")} == {*files} - {gone}


def test_there_and_back(place, files, tmp_path):
    assert transfer.push(files, place, LAST, replace=False) == 6
    assert content(tmp_path / "there") == {name: p.read_bytes() for name, p in files.items()}
    assert transfer.push(files, place, LAST, replace=False) == 0
    wanted = expected(files)
    assert transfer.pull(wanted, place, tmp_path / "back", LAST, replace=False) == 5
    back = content(tmp_path / "back")
    assert back == {name: files[name].read_bytes() for name in NAMES}
    assert transfer.pull(wanted, place, tmp_path / "back", LAST, replace=False) == 0
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(".")]


def test_what_differs_is_refused_on_both_sides(place, files, tmp_path):
    transfer.push(files, place, LAST, replace=False)
    wanted = expected(files)
    transfer.pull(wanted, place, tmp_path / "back", LAST, replace=False)
    (tmp_path / "back/c.txt").write_text("mine")
    with pytest.raises(DistillError, match=r"c\.txt is here with other content; replace=true"):
        transfer.pull(wanted, place, tmp_path / "back", LAST, replace=False)
    assert (tmp_path / "back/c.txt").read_text() == "mine"
    assert transfer.pull(wanted, place, tmp_path / "back", LAST, replace=True) == 1
    files["a/x.png"].write_bytes(b"other")
    files["b/large.bin"].write_bytes(b"other")
    with pytest.raises(DistillError, match=r"a/x\.png and 1 more are there with other content"):
        transfer.push(files, place, LAST, replace=False)
    assert (tmp_path / "there/a/x.png").read_bytes() == bytes([1]) * 10
    assert transfer.push(files, place, LAST, replace=True) == 2
    assert (tmp_path / "there/a/x.png").read_bytes() == b"other"


def test_a_damaged_copy_is_not_taken(place, files, tmp_path):
    transfer.push(files, place, LAST, replace=False)
    (tmp_path / "there/b/large.bin").write_bytes(b"x" * LARGE)
    with pytest.raises(DistillError, match=r"b/large\.bin: not what sha256sums\.txt says"):
        transfer.pull(expected(files), place, tmp_path / "back", LAST, replace=False)
    assert not (tmp_path / "back/b/large.bin").exists()
    assert not (tmp_path / "back/last.json").exists()  # the set is none yet


def test_a_push_that_was_cut_goes_on_and_ends_with_the_last(files, tmp_path, monkeypatch):
    monkeypatch.setattr(transfer, "BATCH", 2)
    api = HubStandIn(tmp_path / "there", broken=1)
    with pytest.raises(
        DistillError, match=r"repo=me/set: ConnectionError: the line is cut; log in"
    ):
        transfer.push(files, on_hub(api), LAST, replace=False)
    assert api.commits == [["a/x.png", "a/y [1]*.png"]]
    api.broken = None
    assert transfer.push(files, on_hub(api), LAST, replace=False) == 4
    assert api.commits[1:] == [["b/large.bin", "c.txt"], ["last.json", "sha256sums.txt"]]
    assert api.made == {"me/set": ("dataset", True)}


def test_a_pull_that_was_cut_fetches_the_rest(files, tmp_path, monkeypatch):
    monkeypatch.setattr(transfer, "BATCH", 2)
    api = HubStandIn(tmp_path / "there")
    place = on_hub(api)
    transfer.push(files, place, LAST, replace=False)
    monkeypatch.setattr(transfer, "fetch", cut_after(1, transfer.fetch))
    with pytest.raises(KeyboardInterrupt):
        transfer.pull(expected(files), place, tmp_path / "back", LAST, replace=False)
    assert sorted(content(tmp_path / "back")) == ["a/x.png", "a/y [1]*.png"]
    api.fetched.clear()
    monkeypatch.undo()
    assert transfer.pull(expected(files), place, tmp_path / "back", LAST, replace=False) == 3
    assert sorted(api.fetched) == ["b/large.bin", "c.txt", "last.json"]


def test_a_pull_that_replaces_and_is_cut_leaves_no_set(place, files, tmp_path, monkeypatch):
    transfer.push(files, place, LAST, replace=False)
    back = tmp_path / "back"
    transfer.pull(expected(files), place, back, LAST, replace=False)
    for name in ("a/x.png", "last.json"):
        files[name].write_bytes(b"newer")
    files[transfer.SUMS].write_text(
        transfer.sums_of({name: path for name, path in files.items() if name in NAMES})
    )
    transfer.push(files, place, LAST, replace=True)
    with monkeypatch.context() as patch:
        patch.setattr(transfer, "fetch", cut_after(1, transfer.fetch))
        with pytest.raises(KeyboardInterrupt):
            transfer.pull(expected(files), place, back, LAST, replace=True)
    assert (back / "a/x.png").read_bytes() == b"newer"
    assert not (back / "last.json").exists()  # old pairs may be left: what says it is whole is not
    assert transfer.pull(expected(files), place, back, LAST, replace=True) == 1
    assert (back / "last.json").read_bytes() == b"newer"


@pytest.mark.parametrize(
    ("sizes", "batches"),
    [
        ({"a": 1, "b": 1, "c": 1, "d": 1}, ["abc", "d"]),  # three files at most
        ({"a": 6, "b": 4, "c": 1}, ["ab", "c"]),  # of ten bytes at most
        ({"a": 1, "b": 99, "c": 1}, ["a", "b", "c"]),  # a larger one by itself
        ({"z": 1, "a": 1, "y": 1}, ["a", "yz"]),  # those at the end in their order
        ({}, []),
    ],
)
def test_batches_end_by_files_and_by_bytes(sizes, batches, monkeypatch):
    monkeypatch.setattr(transfer, "BATCH", 3)
    monkeypatch.setattr(transfer, "BATCH_BYTES", 10)
    assert ["".join(names) for names in transfer._batches(sizes, ["y", "z"])] == batches


def cut_after(count: int, fetch: Any) -> Any:
    left = [count]

    def once(*arguments: Any) -> None:
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        fetch(*arguments)

    return once


def test_the_sums_are_those_of_sha256sum(files, tmp_path):
    done = subprocess.run(
        ["sha256sum", "-c", "--strict", transfer.SUMS],
        cwd=tmp_path / "home",
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(": OK") == len(NAMES)


@pytest.mark.parametrize(
    "name", ["../up", "/etc/passwd", "a/../../b", "a//b", ".git/config", "a/.hidden", "a\\b", ""]
)
def test_a_path_that_leads_elsewhere_is_refused(name):
    fine = f"{'0' * 64}  fine.png\n"
    with pytest.raises(DistillError, match=r"repo=x: sha256sums\.txt: damaged in line 2"):
        transfer.read_sums(f"{fine}{'0' * 64}  {name}\n", "repo=x")
    with pytest.raises(DistillError, match="damaged in line 1"):
        transfer.read_sums(f"{'0' * 63}g  {name}\n", "repo=x")


@pytest.mark.parametrize("repo", ["name", "a/b/c", "a b/c", "s3://bucket/x", "", "a/"])
def test_what_names_no_place(repo):
    with pytest.raises(DistillError, match="USER/NAME on the Hub, or a folder"):
        remote_of(repo, "model")


@pytest.mark.parametrize("repo", ["./x", "../x", "/x", "~/x", ".", ".."])
def test_what_names_a_folder(repo):
    assert isinstance(remote_of(repo, "model"), FolderRemote)


def test_without_the_library_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "huggingface_hub", None)
    with pytest.raises(DistillError, match=r"pip install 'distill\[hub\]'"):
        remote_of("me/mine", "model")
