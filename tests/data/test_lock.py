import errno
import os
import signal
import time
from pathlib import Path

import pytest

from distill.core.errors import DistillError
from distill.data.manifest import check_writable, writing
from distill.prepare import set_builder
from support.labelling import add, hashes, make, stamps
from support.teachers import Inverted

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")


@pytest.fixture
def folder(tmp_path):
    add(tmp_path / "photos", *range(12))
    return tmp_path / "photos"


@pytest.fixture
def root(tmp_path):
    return tmp_path / "set"


def in_child(task):
    """Runs `task` in a forked process; gives what it says and its exit status."""
    reading, writing_end = os.pipe()
    child = os.fork()
    if not child:
        status = 70
        try:
            os.close(reading)
            task(lambda text: os.write(writing_end, text.encode()))
            status = 0
        finally:
            os._exit(status)
    os.close(writing_end)
    with open(reading, "rb") as said:
        text = said.read().decode()
    return text, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


# Two commands on one set


class Waits(Inverted):
    """Says that it is at work and waits until it may go on."""

    def __init__(self, say, go):
        super().__init__()
        self.say, self.go = say, go

    def forward(self, photos):
        self.say()
        while not self.go.exists():
            time.sleep(0.005)
        return super().forward(photos)


@forks
@pytest.mark.parametrize("workers", [0, 1])
def test_a_second_command_on_a_set_ends_with_one_line_and_touches_nothing(
    folder, root, tmp_path, workers
):
    working, go = tmp_path / "working", tmp_path / "go"
    child = os.fork()
    if not child:
        try:
            make(folder, root, teacher=Waits(working.touch, go), workers=workers)
        finally:
            os._exit(0)
    while not working.exists():
        time.sleep(0.005)
    before, teacher = stamps(root), Inverted()
    with pytest.raises(DistillError) as error:
        make(folder, root, teacher=teacher)
    assert str(error.value) == (
        f"{root}: another command is writing into this folder (process {child}); wait for it, or "
        "name another folder with data.root=DIR"
    )
    assert teacher.seen == 0
    assert stamps(root) == before
    go.touch()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert make(folder, root).made == 0


@forks
@pytest.mark.parametrize("workers", [0, 1])
def test_a_killed_command_leaves_no_lock(folder, root, tmp_path, workers):
    working = tmp_path / "working"
    child = os.fork()
    if not child:
        try:
            make(folder, root, teacher=Waits(working.touch, tmp_path / "never"), workers=workers)
        finally:
            os._exit(0)
    while not working.exists():
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert make(folder, root).made == 12


def test_a_set_that_changed_while_it_was_looked_at_is_left_alone(folder, root, monkeypatch):
    place_photos, others = set_builder.place_photos, []

    def slow(*args, **named):
        monkeypatch.setattr(set_builder, "place_photos", place_photos)
        found = place_photos(*args, **named)
        others.append(make(folder, root))  # another command, from start to end
        return found

    monkeypatch.setattr(set_builder, "place_photos", slow)
    with pytest.raises(DistillError, match="another command changed this set meanwhile"):
        make(folder, root)
    assert others[0].made == 12


# A disk that fails


def fail_after(monkeypatch, count, code=errno.ENOSPC):
    """Every write of a file writes half of it and fails, once `count` files are written."""
    write, left = Path.write_bytes, [count]

    def full(path, content):
        left[0] -= 1
        if left[0] < 0:
            write(path, bytes(content)[: len(content) // 2])
            raise OSError(code, os.strerror(code))
        return write(path, content)

    monkeypatch.setattr(Path, "write_bytes", full)


@pytest.mark.parametrize(
    ("count", "code"), [*((count, errno.ENOSPC) for count in range(2, 8)), (5, errno.EDQUOT)]
)
@pytest.mark.slow
def test_a_full_disk_ends_in_one_line_and_leaves_no_half_pair(
    folder, root, tmp_path, monkeypatch, count, code
):
    with monkeypatch.context() as patch:
        fail_after(patch, count, code)  # dataset.json, photos.tsv and teacher.json come first
        with pytest.raises(DistillError) as error:
            make(folder, root)
    done = max(0, (count - 3) // 2)
    pairs = "1 pair" if done == 1 else f"{done} pairs"
    assert str(error.value) == (
        f"{root}: the disk is full, {pairs} done; free some space and run it again to resume"
    )
    assert not list(root.rglob(".*.part"))
    photos, stylised = (
        sorted(p.name for p in root.glob(f"*/{k}/*")) for k in ("photo", "stylized")
    )
    assert photos == stylised
    assert len(stylised) == done
    make(folder, root)
    make(folder, tmp_path / "at once")
    assert hashes(root) == hashes(tmp_path / "at once")


def test_a_full_disk_at_the_very_first_file(folder, root, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", lambda *_: (_ for _ in ()).throw(OSError(28, "full")))
        with pytest.raises(DistillError, match="the disk is full, 0 pairs done"):
            make(folder, root)
    assert make(folder, root).made == 12


@forks
@pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="only root can become another")
def test_an_unwritable_folder_is_refused_before_anything_is_made(folder, root, tmp_path):
    root.mkdir(mode=0o755)
    for path in (tmp_path, *tmp_path.parents[:3]):  # pytest's own folders are closed to others
        path.chmod(path.stat().st_mode | 0o055)

    def task(say):
        os.setuid(65534)
        for attempt in (lambda: check_writable(root), lambda: make(folder, root, teacher=None)):
            try:
                attempt()
            except DistillError as error:
                say(f"{error}\n")

    said, _ = in_child(task)
    first, second = said.splitlines()
    assert first.startswith(f"{root}: not a folder to write pairs into; name another one")
    assert second.startswith(f"{root}: cannot be written to (permission denied); name another one")
    assert not list(root.iterdir())


def test_a_place_below_a_file_is_no_folder_to_write_into(folder, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(DistillError, match="file: not a folder to write pairs into"):
        check_writable(tmp_path / "file" / "set")
    teacher = Inverted()
    with pytest.raises(DistillError, match=r"cannot be written to .*data\.root=DIR"):
        make(folder, tmp_path / "file" / "set", teacher=teacher)
    assert not teacher.seen


def test_a_place_that_is_not_there_yet_can_be_written_to(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check_writable(Path("data/pairs/set"))
    with writing(Path("data/pairs/set")):
        assert (tmp_path / "data/pairs/set/.lock").read_text() == str(os.getpid())


# Photos that go away


def test_a_photo_deleted_meanwhile_is_skipped_and_listed(folder, root):
    class Deletes(Inverted):
        def forward(self, photos):
            (folder / "9.png").unlink(missing_ok=True)
            return super().forward(photos)

    report = make(folder, root, teacher=Deletes())
    assert report.skipped == {"9.png": "no longer there"}
    assert "'9.png'\tno longer there" in (root / "skipped.tsv").read_text()
    assert report.made == 11
    assert make(folder, root).skipped == {}


def test_a_photo_that_never_was_more_than_a_link_is_no_deleted_one(folder, root):
    (folder / "link.png").symlink_to(folder / "nowhere.png")
    (reason,) = make(folder, root).skipped.values()
    assert reason != "no longer there"
