"""Kill every command at random moments; the same command again must end as if nothing had been.

    python campaigns/kill_points.py                            all commands, 20 moments each
    python campaigns/kill_points.py --commands sweep lens --kills 50 --seed 7
    python campaigns/kill_points.py --commands lens --at 0.734 one moment, as a failure names it

A moment is a share of the seconds that the command takes here, drawn uniformly. The command runs in
a process group of its own, forked from one that has imported everything, so that moments fall into
its work; SIGKILL goes to its main process alone, as from the system when memory runs out. Then
the same command runs to its end, and these must hold:

- it ends with status 0, within ten times its seconds and a minute
- files that two undisturbed runs write alike are the same now, byte by byte; of a checkpoint the
  tensors and the step count. Others (times, addresses) are there, and whole
- there is no file, folder or process beside those of an undisturbed run
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import importlib
import json
import os
import pkgutil
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
import yaml
from killed_commands import COMMANDS, STAGES, Command, make_pictures
from tqdm import tqdm

import distill

PATIENCE = 60.0  # seconds beyond ten times a command's own until it is said to hang
GRACE = 10.0  # seconds in which the workers of a killed command must be gone
LOG = "log.txt"
PLAIN = ("json", "csv", "yaml")  # what can be told to be whole without a second run
# There or not, by when the kill came: the checkpoint before the last one, and locks, which are let
# go by the system; an empty file of a known name stays.
FREE = ("checkpoints/previous.ckpt",)


@dataclass(frozen=True)
class Ended:
    """How a forked command ended: its exit status, negative for a signal, and after how long."""

    status: int
    seconds: float


class Workshop:
    """Folders in which commands run: always at the same place, since files may name it."""

    def __init__(self, top: Path) -> None:
        self.top, self.work, self.kept = top, top / "work", top / "stages"
        self.log, self.temporary = top / LOG, top / "tmp"
        self.kept.mkdir(parents=True)
        make_pictures(self.kept / "pictures")
        (self.kept / "pictures" / "cache").mkdir()
        self.left_running = False

    def restore(self, stage: str) -> None:
        """The working folder as it is before the command; a stage is made when it is wanted."""
        if not (self.kept / stage).is_dir():
            before, command = STAGES[stage]
            self.restore(before)
            self.must(command)
            shutil.copytree(self.work, self.kept / stage, symlinks=True)
        for folder in (self.work, self.temporary):
            shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.kept / stage, self.work, symlinks=True)
        self.temporary.mkdir()

    def must(self, command: Command) -> float:
        """Run to the end; gives the seconds. A command that fails undisturbed ends the campaign."""
        ended = self.run(command)
        if ended.status:
            sys.exit(f"{command}: status {ended.status} undisturbed\n{self.tail()}")
        return ended.seconds

    def run(self, command: Command, kill_after: float | None = None, most: float = 600.0) -> Ended:
        """Run in a forked process, killed after so many seconds, or when it takes `most`."""
        start = time.monotonic()
        child = os.fork()
        if not child:
            self._be(command)
        end = start + (most if kill_after is None else kill_after)
        pause = 0.0005 if kill_after is not None else 0.01
        while not (found := os.waitpid(child, os.WNOHANG))[0]:
            if time.monotonic() >= end:
                os.kill(child, signal.SIGKILL)
                found = os.waitpid(child, 0)
                break
            time.sleep(pause)
        seconds = time.monotonic() - start
        self.left_running = _outlived(child)
        return Ended(os.waitstatus_to_exitcode(found[1]), seconds)

    def tail(self) -> str:
        return self.log.read_text(errors="replace")[-2000:]

    def _be(self, command: Command) -> None:
        """The child: the command, as if it had been typed in the working folder."""
        status = 1
        try:
            os.setsid()
            handle = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            for standard in (1, 2):
                os.dup2(handle, standard)
            os.chdir(self.work)
            os.environ |= {"DISTILL_CACHE": "cache", "TMPDIR": str(self.temporary)}
            tempfile.tempdir = None
            tqdm.set_lock(threading.RLock())  # its own is shared by forks, and dies locked
            torch.set_num_threads(1)
            status = _as_typed(command)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)


def _as_typed(command: Command) -> int:
    from distill.train.callbacks import checkpoints

    checkpoints.EVERY = 0.0  # else runs of seconds never go on from a checkpoint
    module = importlib.import_module(f"distill.{command.module}.__main__")
    sys.argv = [module.__name__, *command.words]
    try:
        module.main()
    except SystemExit as stop:
        return int(stop.code or 0)
    except BaseException:
        import traceback

        traceback.print_exc()
        return 70
    return 0


def _outlived(group: int) -> bool:
    """Whether a process of the group is still there after a while; it is then ended."""
    end = time.monotonic() + GRACE
    while time.monotonic() < end:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return False
        time.sleep(0.01)
    os.killpg(group, signal.SIGKILL)
    return True


def prints(folder: Path) -> dict[str, str]:
    """What lies below a folder: a name for each file or empty folder, and what tells it apart.

    TensorBoard's files, whose names hold the time, count as one; locks hold a number of a process.
    """
    found = {}
    for top, folders, names in os.walk(folder):
        for name in sorted(names):
            path = Path(top) / name
            key = path.relative_to(folder).as_posix()
            if name.startswith("events.out."):
                found[f"{Path(key).parent}/events"] = "events"
            elif name.endswith(".lock"):
                found[key] = "a lock"
            else:
                found[key] = _tell(path)
        if not folders and not names:
            found[f"{Path(top).relative_to(folder).as_posix()}/"] = "an empty folder"
    return found


def _tell(path: Path) -> str:
    if path.suffix != ".ckpt":
        return hashlib.sha256(path.read_bytes()).hexdigest()
    try:
        saved = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        return f"no checkpoint ({type(error).__name__})"
    digest = hashlib.sha256(str(saved["global_step"]).encode())
    averaged = saved["callbacks"].get("StudentEMA", {}).get("average", {})
    for name, value in sorted({**saved["state_dict"], **averaged}.items()):
        digest.update(name.encode() + value.contiguous().numpy().tobytes())
    return digest.hexdigest()


def is_whole(path: Path) -> bool:
    """Whether a text file of a known kind can be read to its end; True for other kinds."""
    kind = path.suffix.removeprefix(".")
    if kind not in PLAIN:
        return path.stat().st_size > 0
    try:
        text = path.read_text()
        if kind == "csv":
            return len({len(row) for row in csv.reader(text.splitlines())}) == 1
        return bool(json.loads(text) if kind == "json" else yaml.safe_load(text))
    except (ValueError, yaml.YAMLError):
        return False


def compare(work: Path, wanted: dict[str, str], alike: Iterable[str]) -> list[str]:
    """What is wrong with a folder, beside an undisturbed run's; `alike` are its sure files."""
    found, sure = prints(work), set(alike)
    free = [key for key in found.keys() ^ wanted.keys() if key.endswith(FREE)]
    wrong = [f"missing: {key}" for key in sorted(wanted.keys() - found.keys() - {*free})]
    wrong += [f"left over: {key}" for key in sorted(found.keys() - wanted.keys() - {*free})]
    for key in sorted(found.keys() & wanted.keys()):
        if key in sure and found[key] != wanted[key] and not key.endswith(FREE):
            wrong.append(f"differs: {key}")
        elif key not in sure and not key.endswith("/events") and not is_whole(work / key):
            wrong.append(f"not whole: {key}")
    return wrong


@dataclass
class Result:
    """What came of one command's kills."""

    name: str
    seconds: float
    kills: int = 0
    too_late: int = 0
    unlike: int = 0  # files that two undisturbed runs write differently
    temporary: int = 0  # kills that left something in the system's folder for temporary files
    failures: Sequence[str] = ()


def campaign(shop: Workshop, name: str, moments: Sequence[float], seed: str) -> Result:
    """Kill the command at each moment, a share of its own seconds, and try it again."""
    command = COMMANDS[name]
    runs, seconds = [], []
    for _ in range(2):
        shop.restore(command.stage)
        seconds.append(shop.must(command))
        runs.append(prints(shop.work))
    wanted = runs[0]
    alike = [key for key in wanted if runs[1].get(key) == wanted[key]]
    result = Result(name, min(seconds), unlike=len(wanted) - len(alike))
    failures: list[str] = []
    for moment in moments:
        wrong = _once(shop, command, moment, result, wanted, alike)
        if wrong:
            again = f"--commands {name} --at {moment:.6f}"
            failures.append(f"{name}, {seed}, {again}: {'; '.join(wrong[:6])}")
            print(f"  FAILED {failures[-1]}", flush=True)
    result.failures = failures
    return result


def _once(
    shop: Workshop,
    command: Command,
    moment: float,
    result: Result,
    wanted: dict[str, str],
    alike: Sequence[str],
) -> list[str]:
    shop.restore(command.stage)
    ended = shop.run(command, kill_after=moment * result.seconds)
    result.kills += ended.status == -signal.SIGKILL
    result.too_late += ended.status == 0
    wrong = ["a process outlived the killed command"] if shop.left_running else []
    if ended.status not in (0, -signal.SIGKILL):
        wrong.append(f"ended with {ended.status} before it was killed: {shop.tail()[-300:]!r}")
    result.temporary += any(shop.temporary.iterdir())
    most = 10 * result.seconds + PATIENCE
    again = shop.run(command, most=most)
    if again.status:
        why = "hangs" if again.status == -signal.SIGKILL else f"status {again.status}"
        return [*wrong, f"the same command again: {why}: {shop.tail()[-300:]!r}"]
    if shop.left_running:
        wrong.append("a process outlived the command")
    return wrong + compare(shop.work, wanted, alike)


def import_everything() -> None:
    """All modules of the package, so that a forked command starts at its work."""
    for found in pkgutil.walk_packages(distill.__path__, "distill."):
        if not found.name.endswith("__main__"):
            importlib.import_module(found.name)


def table(results: Sequence[Result]) -> str:
    """The results as a Markdown table."""
    head = (
        "| command | seconds | killed | ended before | files that may differ | temporary | failed |"
    )
    rows = [
        f"| {r.name} | {r.seconds:.1f} | {r.kills} | {r.too_late} | {r.unlike} | {r.temporary} "
        f"| {len(r.failures)} |"
        for r in results
    ]
    return "\n".join([head, "| --- | ---: | ---: | ---: | ---: | ---: | ---: |", *rows])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--commands", nargs="+", choices=COMMANDS, default=[*COMMANDS])
    parser.add_argument("--kills", type=int, default=20, help="moments a command (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the moments (%(default)s)")
    parser.add_argument("--at", type=float, nargs="+", help="these moments, 0 to 1, instead")
    given = parser.parse_args()
    import_everything()
    results = []
    with tempfile.TemporaryDirectory(prefix="kill_points.") as top:
        shop = Workshop(Path(os.path.realpath(top)) / "shop")
        for name in given.commands:
            chance = random.Random(f"{given.seed} {name}")
            moments = given.at or [chance.random() for _ in range(given.kills)]
            results.append(campaign(shop, name, moments, f"seed {given.seed}"))
            r = results[-1]
            print(f"{name}: {r.kills} kills, {len(r.failures)} failures", flush=True)
    print("\n" + table(results))
    sys.exit(any(r.failures for r in results))


if __name__ == "__main__":
    main()
