"""Atomic writes, hashes of files, and the folder of the cache."""

import errno
import hashlib
import os
import shutil
import signal
import stat
import subprocess
from pathlib import Path

import pytest

from distill.core.errors import DistillError
from distill.core.files import (
    atomic_write,
    cache_folder,
    git_blob_id,
    home_path,
    room_in,
    scratch_folder,
    sha256,
    write_whole,
)


def put(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def test_what_is_being_written_is_hidden_and_named_after_what_it_will_be(tmp_path):
    with atomic_write(tmp_path / "a.png") as one, atomic_write(tmp_path / "a.png") as other:
        with (
            scratch_folder(tmp_path / "page") as first,
            scratch_folder(tmp_path / "page") as second,
        ):
            names = [each.name for each in (one, other, first, second)]
        one.write_bytes(b"outer, closed last")
        other.write_bytes(b"inner")
    assert [name.startswith(".a.png.") for name in names] == [True, True, False, False]
    assert [name.startswith(".page.") for name in names] == [False, False, True, True]
    assert all(name.endswith(".part") for name in names)
    assert len(set(names)) == 4
    assert (tmp_path / "a.png").read_bytes() == b"outer, closed last"


def test_an_atomic_write_replaces_only_at_the_end(tmp_path):
    target = put(tmp_path / "x", b"old")
    before = target.stat().st_ino
    with atomic_write(target) as temporary:
        temporary.write_bytes(b"new")
        assert target.read_bytes() == b"old"
        assert temporary.parent == tmp_path  # a rename is atomic within one file system
    assert target.read_bytes() == b"new"
    assert target.stat().st_ino != before  # renamed: who reads the old file reads it to its end
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


@pytest.mark.parametrize("old", [None, b"old"])
@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt])
def test_an_atomic_write_leaves_nothing_on_an_exception(tmp_path, old, kind):
    target = tmp_path / "new folder" / "x"
    if old:
        put(target, old)

    def fails():
        with atomic_write(target) as temporary:
            temporary.write_bytes(b"half")
            raise kind

    with pytest.raises(kind):
        fails()
    assert [path.read_bytes() for path in target.parent.iterdir()] == ([old] if old else [])


def killed_inside(context):
    """A process that is killed in the middle of a write."""
    child = os.fork()
    if not child:
        with context as temporary:
            (temporary / "half" if temporary.is_dir() else temporary).write_bytes(b"half")
            os.kill(os.getpid(), signal.SIGKILL)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_write_clears_away_what_a_killed_one_left(tmp_path):
    target = put(tmp_path / "x", b"old")
    for _ in range(2):
        killed_inside(atomic_write(target))
    assert target.read_bytes() == b"old"
    with atomic_write(target) as temporary:
        assert temporary.read_bytes() == b""
        temporary.write_bytes(b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
    assert target.read_bytes() == b"new"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_scratch_folder_too(tmp_path):
    for _ in range(2):
        killed_inside(scratch_folder(tmp_path / "x"))
    with scratch_folder(tmp_path / "x") as one, scratch_folder(tmp_path / "x") as other:
        assert one.parent == other.parent == tmp_path
        assert one != other
        assert not list(one.iterdir())
        (one / "deeper").mkdir()
        (other / "file").touch()
        assert [path.name for path in one.iterdir()] == ["deeper"]
    assert not list(tmp_path.iterdir())


def test_a_link_or_a_folder_in_the_way_is_left_alone(tmp_path):
    put(tmp_path / "elsewhere", b"mine")
    (tmp_path / ".x.part").symlink_to("elsewhere")
    (tmp_path / ".y.part").mkdir()
    for name in ("x", "y"):
        with atomic_write(tmp_path / name) as temporary:
            assert temporary.match(f".{name}.*.part")  # hidden, and known as a leftover
            temporary.write_bytes(b"new")
        assert (tmp_path / name).read_bytes() == b"new"
    with scratch_folder(tmp_path / "x") as folder:
        assert folder.match(".x.?*.part")
    assert (tmp_path / "elsewhere").read_bytes() == b"mine"
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        ".x.part",
        ".y.part",
        "elsewhere",
        "x",
        "y",
    ]


@pytest.mark.parametrize(
    ("content", "expected"),
    [  # from git's own documentation and every repository with an empty file
        (b"", "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"),
        (b"test content\n", "d670460b4b4aece5915caf5c68d12f560a9fe3e4"),
    ],
)
def test_known_git_blob_ids(tmp_path, content, expected):
    assert git_blob_id(put(tmp_path / "x", content)) == expected


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_the_git_blob_id_is_what_git_says_of_a_large_file(tmp_path):
    path = put(tmp_path / "x", os.urandom((1 << 20) + 17))
    said = subprocess.run(
        ["git", "hash-object", "--no-filters", path], capture_output=True, text=True, check=True
    )
    assert git_blob_id(path) == said.stdout.strip()


def test_sha256_of_a_large_file(tmp_path):
    content = os.urandom((2 << 20) + 5)
    assert sha256(put(tmp_path / "x", content)) == hashlib.sha256(content).hexdigest()


def test_a_tilde_is_a_home_only_where_there_is_one(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert home_path("~/a") == tmp_path / "a"
    assert home_path("~no such user/a") == Path("~no such user/a")
    monkeypatch.chdir(tmp_path)
    assert home_path("~root/a") != Path("~root/a")
    (tmp_path / "~root").mkdir()
    assert home_path("~root/a") == Path("~root/a")


def test_the_cache_is_in_the_users_cache_folder_unless_named(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("DISTILL_CACHE", "~/here")
    assert cache_folder() == tmp_path / "here"
    monkeypatch.delenv("DISTILL_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "distill"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == tmp_path / ".cache" / "distill"


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")
def test_a_private_file_is_its_owners_alone(tmp_path):
    write_whole(tmp_path / "key", b"secret", private=True)
    write_whole(tmp_path / "page", b"public")
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "page").stat().st_mode) == 0o666 & ~mask


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_told_by_folder_and_remedy(tmp_path, code):
    with (
        pytest.raises(DistillError, match=f"^{tmp_path}: {os.strerror(code).lower()}; go away$"),
        room_in(tmp_path, "go away"),
    ):
        raise shutil.Error([("a", "b", f"[Errno {code}] {os.strerror(code)}: 'b'")])


def test_another_error_is_left_as_it_is(tmp_path):
    with pytest.raises(PermissionError), room_in(tmp_path, "go away"):
        raise PermissionError(errno.EACCES, "no")
