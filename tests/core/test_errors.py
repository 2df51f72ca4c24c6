"""How a command ends: one line, the right status, what to do."""

import errno
import os
import shutil
import signal
import subprocess
import sys

import pytest
from torch.utils.data import DataLoader, Dataset

from distill.core.errors import DistillError, OneLine
from distill.core.files import atomic_write


def ended(error: BaseException, capsys: pytest.CaptureFixture[str]) -> tuple[object, str]:
    """Status and standard error of a command that ends with this."""
    with pytest.raises(SystemExit) as stop, OneLine():
        raise error
    return stop.value.code, capsys.readouterr().err


def system(code: int, place: str | None = None) -> OSError:
    return OSError(code, os.strerror(code), *([place] if place else []))


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (DistillError("lr=x: no number"), "lr=x: no number"),
        (DistillError("a\nb\x1b[2J\u2028: no picture: é 絵"),
         "a\\nb\\x1b[2J\\u2028: no picture: é 絵"),
        (system(errno.ENOSPC, "out/a.png"), "out/a.png: no space left on device; free some space "
         "and run the command again"),
        (OSError(errno.ENOSPC, "No space left on device", "/tmp/a.png", None, "out/a.png"),
         "out/a.png: no space left on device; free some space and run the command again"),
        (system(errno.ENOSPC), "no space left on device; free some space and run the command "
         "again"),
        (system(errno.EFBIG, "a"), "a: file too large; free some space and run the command "
         "again"),
        (system(errno.EACCES, "out"), "out: permission denied; choose another place"),
        (system(errno.ECONNRESET), "connection reset by peer (by the system)"),
        (shutil.Error([("from/a", "to/a", "[Errno 28] No space left on device: 'to/a'"),
                       ("from/b", "to/b", "[Errno 28] No space left on device")]),
         "to/a: no space left on device; free some space and run the command again"),
        (shutil.Error([("from/a", "to/a", "gone")]), "to/a: input/output error; choose another "
         "place"),
    ],
)  # fmt: skip
def test_one_line_and_status_1(error, said, capsys):
    assert ended(error, capsys) == (1, f"error: {said}\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_in_a_word(number, capsys):
    with pytest.raises(SystemExit) as stop, OneLine():
        signal.raise_signal(number)
    assert (stop.value.code, capsys.readouterr().err) == (
        130,
        "\nstopped; run it again to resume\n",
    )
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


@pytest.mark.parametrize("name", ["torch", "torch.utils.data"])
def test_a_package_that_is_not_installed_ends_in_one_line(name, capsys):
    """As where an installation is for drawing alone."""
    gone = ModuleNotFoundError(f"No module named {name!r}", name=name)
    said = "error: this command needs torch, which is not installed; pip install distill\n"
    assert ended(gone, capsys) == (1, said)


@pytest.mark.parametrize(
    "bug",
    [
        ModuleNotFoundError("gone", name="distill.gone"),
        ImportError("name", name="torch"),
        OSError("cannot identify image file"),  # of a library
        RuntimeError("shapes do not fit"),
    ],
)
def test_a_bug_keeps_its_traceback(bug):
    with pytest.raises(type(bug), match=f"^{bug}$"), OneLine():
        raise bug


def test_a_file_that_is_written_whole_is_named(tmp_path):
    target = tmp_path / "last.ckpt"
    target.write_text("before")
    with pytest.raises(OSError, match="No space") as error, atomic_write(target):
        raise system(errno.ENOSPC)
    assert error.value.filename == str(target)
    assert target.read_text() == "before"
    assert [path.name for path in tmp_path.iterdir()] == ["last.ckpt"]


def test_an_error_that_is_no_disk_s_is_left_as_it_is(tmp_path):
    with pytest.raises(OSError, match=r"^cut short: 3 of 5 bytes$"), atomic_write(tmp_path / "a"):
        raise OSError("cut short: 3 of 5 bytes")


class Dying(Dataset):
    """Ends the process that loads from it, as the system does one that takes too much memory."""

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> int:
        os.kill(os.getpid(), signal.SIGKILL)
        return index


def test_a_loading_process_that_is_killed_ends_in_one_line(capsys):
    with pytest.raises(SystemExit) as stop, OneLine():
        list(DataLoader(Dying(), num_workers=1))
    assert stop.value.code == 1
    said = capsys.readouterr().err
    assert said.startswith("error: a process that loads pictures was killed")
    assert said.count("\n") == 1


def test_a_reader_that_has_enough_ends_the_command_quietly():
    program = (
        "from distill.core.errors import OneLine\n"
        "with OneLine():\n"
        "    for number in range(1_000_000): print(number, flush=True)\n"
    )
    command = f'{sys.executable} -c "$PROGRAM" | head -1; echo "${{PIPESTATUS[0]}}"'
    done = subprocess.run(
        ["bash", "-c", command],
        env=os.environ | {"PROGRAM": program},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "0\n141\n"
    assert done.stderr == ""
