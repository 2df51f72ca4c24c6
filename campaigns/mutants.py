"""Change the code a little, thousands of times, and see whether a test notices.

    python campaigns/mutants.py                                    every part, 300 mutants each
    python campaigns/mutants.py --parts losses split --mutants 600 --seed 7

mutmut makes the mutants (an operator swapped, a number one more, an argument left out, a condition
turned round) and runs, for each, the tests that reach its function, the quickest first. A part's
mutants are a sample drawn without replacement from all of them, the same for the same --seed. What
is left out: functions with a decorator, since mutmut cannot mutate them, and the tests marked slow
or campaign.

Each part is worked on in a copy of the tracked files below --keep. The mutants that no test
noticed are written there as differences, survivors.diff; they are to be read. The same command goes
on where it was stopped, as long as no tracked file has changed.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NOTICED = ("killed", "timeout", "segfault")  # a crash ends the test, too
LEFT = "not checked"
BEGUN = "begun.txt"  # in a part's folder: of what it is


@dataclass(frozen=True)
class Part:
    """Files that are mutated, as patterns, and the tests that are to notice."""

    files: tuple[str, ...]
    tests: tuple[str, ...]


def _in(folder: str, *names: str) -> tuple[str, ...]:
    return tuple(f"{folder}/{name}.py" for name in names)


PARTS = {
    "losses": Part(("src/distill/losses/*.py",), ("tests/losses",)),
    "metrics": Part(("src/distill/metrics/*.py",), ("tests/metrics",)),
    "exporters": Part(
        ("src/distill/export/*.py", "src/distill/export/graph/*.py"),
        ("tests/export",),
    ),
    "split": Part(
        (
            *_in("src/distill/data", "split", "duplicates", "shifts", "thumbnails"),
            "src/distill/prepare/placement.py",
        ),
        # Without those that start processes: half of the time, for nothing that others miss.
        (
            *_in(
                "tests/data",
                "test_split",
                "test_duplicates",
                "test_registration",
                "test_shifts",
                "test_thumbnails",
            ),
            *_in("tests/prepare", "test_placement", "test_set_builder", "test_side_placer"),
        ),
    ),
    "resume": Part(
        (
            *_in("src/distill/runs", "run_folder"),
            *_in("src/distill/train", "callbacks/*checkpoints", "ending"),
            "src/distill/data/sampler.py",
            "src/distill/core/files.py",
        ),
        (
            "tests/runs/test_run_folder.py",
            *_in("tests/train", "test_resume", "test_ending"),
            "tests/core/test_files.py",
            "tests/data/test_sampler.py",
        ),
    ),
}

SETTINGS = """
[tool.mutmut]
source_paths = ["src"]
only_mutate = {files}
also_copy = ["conf", "campaigns", "README.md"]
pytest_add_cli_args = ["-m", "not slow and not campaign", "-p", "no:cacheprovider"]
pytest_add_cli_args_test_selection = {tests}
timeout_multiplier = 4.0
timeout_constant = 10.0
"""


@dataclass(frozen=True)
class Outcome:
    """What became of a part's sample: how many mutants there are, and each one's end by name."""

    part: str
    there_are: int
    ends: dict[str, str]

    @property
    def survivors(self) -> list[str]:
        return [name for name, end in self.ends.items() if end not in NOTICED]

    @property
    def share(self) -> float:
        return 1 - len(self.survivors) / len(self.ends)


def copy(folder: Path, part: Part, sample: str) -> list[Path]:
    """The tracked files and mutmut's settings; gives the files that are mutated.

    What is there of the same files and the same `sample` stays, with the mutants tried so far.
    """
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    names = [*filter(None, listed.stdout.split("\0"))]
    of = f"{sample}, {_hash(names)}\n"
    if not (folder / BEGUN).is_file() or (folder / BEGUN).read_text(encoding="utf-8") != of:
        shutil.rmtree(folder, ignore_errors=True)
        for name in names:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
        settings = SETTINGS.format(files=[*part.files], tests=[*part.tests])
        with open(folder / "pyproject.toml", "a", encoding="utf-8") as file:
            file.write(settings)
        (folder / BEGUN).write_text(of, encoding="utf-8")
    return sorted(path for pattern in part.files for path in folder.glob(pattern))


def _hash(names: Sequence[str]) -> str:
    """Of tracked files."""
    found = hashlib.sha256()
    for name in names:
        found.update(f"{name}\0".encode() + (ROOT / name).read_bytes())
    return found.hexdigest()


def names_of(folder: Path, files: Sequence[Path]) -> list[str]:
    """The name of every mutant, as mutmut takes it: module, function, number."""
    from mutmut.mutation.file_mutation import mutate_file_contents

    os.chdir(folder)  # where mutmut looks for its settings
    names = []
    for path in files:
        module = ".".join(path.relative_to(folder / "src").with_suffix("").parts)
        made = mutate_file_contents(str(path), path.read_text(encoding="utf-8"))
        names += [f"{module}.{name}" for name in made.mutant_names]
    return names


def run(name: str, folder: Path, mutants: int, seed: int, processes: int) -> Outcome:
    """Try a sample of a part's mutants; exits where the tests fail without any."""
    part = PARTS[name]
    names = names_of(folder, copy(folder, part, f"{mutants} mutants, seed {seed}"))
    drawn = sorted(random.Random(seed).sample(names, min(mutants, len(names))))
    mutmut = [sys.executable, "-m", "mutmut"]
    (folder / "mutants/src").mkdir(
        parents=True, exist_ok=True
    )  # Python forgets a path that is not there yet
    own = {
        # Children are forked from a process in which tests ran: threads do not survive that.
        "OMP_NUM_THREADS": "1",
        # Commands that tests start find the mutant too.
        "PYTHONPATH": str(folder / "mutants/src"),
        "PYTEST_ADDOPTS": "",  # of a suite that this is a part of
    }
    before = _ends(folder)
    if left := [each for each in drawn if before.get(each, LEFT) == LEFT]:
        command = [*mutmut, "run", "--max-children", str(processes), *left]
        with open(folder / "log.txt", "a", encoding="utf-8") as log:
            done = subprocess.run(command, env=os.environ | own, stdout=log, stderr=log, cwd=folder)
        if done.returncode:
            sys.exit(f"{name}: mutmut ended with {done.returncode}, see {folder / 'log.txt'}")
    ends = _ends(folder)
    outcome = Outcome(name, len(names), {each: ends[each] for each in drawn})
    with open(folder / "survivors.diff", "w", encoding="utf-8") as file:
        for each in outcome.survivors:
            shown = subprocess.run([*mutmut, "show", each], cwd=folder, stdout=subprocess.PIPE)
            file.write(shown.stdout.decode() + "\n")
    return outcome


def _ends(folder: Path) -> dict[str, str]:
    """What became of each mutant, as mutmut says it; empty where it has not begun."""
    listed = subprocess.run(
        [sys.executable, "-m", "mutmut", "results", "--all", "true"],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    return dict(re.findall(r"^\s*(\S+): (.+)$", listed.stdout, re.MULTILINE))


def table(outcomes: Sequence[Outcome]) -> str:
    """The outcomes as a Markdown table."""
    rows = ["| part | mutants | tried | noticed | of these by time | no test | share |"]
    rows.append("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for each in outcomes:
        count = Counter(each.ends.values())
        rows.append(
            f"| {each.part} | {each.there_are:,} | {len(each.ends)} "
            f"| {len(each.ends) - len(each.survivors)} | {count['timeout']} "
            f"| {count['no tests']} | {each.share:.1%} |"
        )
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=[*PARTS])
    parser.add_argument("--mutants", type=int, default=300, help="a part (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="(%(default)s)")
    parser.add_argument("--least", type=float, default=0.9, help="share noticed (%(default)s)")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="(%(default)s)")
    parser.add_argument("--keep", type=Path, default=Path("runs/mutants"), help="(%(default)s)")
    given = parser.parse_args()
    keep, outcomes = given.keep.absolute(), []
    for name in given.parts:
        outcome = run(name, keep / name, given.mutants, given.seed, given.processes)
        outcomes.append(outcome)
        print(f"{name}: {outcome.share:.1%} noticed; the others: {keep / name}/survivors.diff")
        print(*outcome.survivors, sep="\n", flush=True)
    print("\n" + table(outcomes))
    sys.exit(any(outcome.share < given.least for outcome in outcomes))


if __name__ == "__main__":
    main()
