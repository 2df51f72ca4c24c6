"""Count the files and functions of the package that a command enters, by package.

    python tools/entered.py                      train on a folder of photos, export, eval_fid
    python tools/entered.py --list               and their names

Each command runs once on small pictures, in a process of its own under `sys.setprofile`. A function
counts once, however often it is called; lambdas and comprehensions do not count, nor what only
importing a module runs.
"""

from __future__ import annotations

import argparse
import atexit
import json
import os
import runpy
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import FrameType

from goldens import SHORT, pictures

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "distill"
COMMANDS = {
    "train": ["photos=photos", "run=mine", "style.resolution=128", "label.workers=0",
              "encoder.weights=none", "data.val_fraction=0.4", "data.batch_size=4", *SHORT],
    "export": ["run=mine"],
    "eval_fid": ["run=mine", "features=none"],
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="print the names too")
    parser.add_argument("--within", nargs="*", help=argparse.SUPPRESS)  # FILE COMMAND WORD…
    arguments, words = parser.parse_known_args()
    if arguments.within:
        file, command = arguments.within
        profile(Path(file), command, words)
        return
    with tempfile.TemporaryDirectory() as work:
        pictures(Path(work))
        for command, settings in COMMANDS.items():
            functions = entered(Path(work), command, settings)
            by_package = Counter(name.partition("/")[0] for name, *_ in functions)
            files = {name for name, *_ in functions}
            print(f"{command}: {len(files)} files, {len(functions)} functions")
            for package, count in by_package.most_common():
                inside = sum(file.partition("/")[0] == package for file in files)
                print(f"  {package:14} {inside:3} files {count:4} functions")
            if arguments.list:
                print(*(f"{file}:{line} {name}" for file, line, name in functions), sep="\n")


def entered(work: Path, command: str, settings: list[str]) -> list[tuple[str, int, str]]:
    """File, line and qualified name of every function that a command enters, sorted."""
    file = work / "entered.json"
    words = [sys.executable, __file__, "--within", str(file), command, "--", *settings]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "DISTILL_CACHE": str(work / "cache")}
    done = subprocess.run(words, cwd=work, env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"distill.{command}: exit {done.returncode}\n{done.stderr}")
    return [tuple(each) for each in json.loads(file.read_text())]


def profile(file: Path, command: str, settings: list[str]) -> None:
    """Run a command in this process, and write what it enters to `file`."""
    prefix, functions = f"{PACKAGE}{os.sep}", set()

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_flags & CO_OPTIMIZED and code.co_filename.startswith(prefix):
            name = code.co_qualname
            if not name.rpartition(".")[2].startswith("<"):
                place = Path(code.co_filename).relative_to(PACKAGE).as_posix()
                functions.add((place, code.co_firstlineno, name))

    def write() -> None:
        sys.setprofile(None)
        file.write_text(json.dumps(sorted(functions)))

    atexit.register(write)
    sys.argv = [command, *(word for word in settings if word != "--")]
    threading.setprofile(note)
    sys.setprofile(note)
    runpy.run_module(f"distill.{command}", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
