"""Give every reader thousands of damaged files, odd settings and requests, and see what it does.

    python campaigns/fuzz.py                                10,000 cases for every reader
    python campaigns/fuzz.py --readers pictures onnx --cases 500 --seed 7

Every case must end in success, in one clear line (DistillError), or in the reason for which a file
is skipped: no traceback, no crash, nothing over 10 seconds or 2 GB (fuzz_engine.py). The first case
of each kind of finding is kept below --keep.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from fuzz_engine import Outcome, Reader, run
from fuzz_files import READERS as OF_FILES
from fuzz_folders import READERS as OF_FOLDERS
from fuzz_requests import READERS as OF_REQUESTS
from fuzz_settings import READERS as OF_SETTINGS
from fuzz_shards import READERS as OF_SHARDS

READERS: dict[str, type[Reader]] = {
    each.name: each for each in (*OF_FILES, *OF_FOLDERS, *OF_SHARDS, *OF_SETTINGS, *OF_REQUESTS)
}


def table(outcomes: Sequence[Outcome]) -> str:
    """The outcomes as a Markdown table."""
    head = "| reader | cases | refused | slowest, s | in all, s | findings |"
    rows = [
        f"| {o.name} | {o.cases:,} | {o.refused:,} | {o.slowest:.2f} | {o.seconds:.0f} "
        f"| {len(o.findings)} |"
        for o in outcomes
    ]
    return "\n".join([head, "| --- | ---: | ---: | ---: | ---: | ---: |", *rows])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--readers", nargs="+", choices=READERS, default=[*READERS])
    parser.add_argument("--cases", type=int, default=10_000, help="a reader (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="(%(default)s)")
    parser.add_argument("--keep", type=Path, default=Path("runs/fuzz"), help="(%(default)s)")
    given = parser.parse_args()
    outcomes = []
    for name in given.readers:
        outcome = run(READERS[name](), given.cases, given.seed, (given.keep / name).absolute())
        outcomes.append(outcome)
        print(f"{name}: {outcome.cases:,} cases, {outcome.seconds:.0f} s", flush=True)
        for what, found in outcome.findings.items():
            print(f"  {found.times} × {what}\n    first: case {found.number}, seed {given.seed}")
            print("    " + found.text.replace("\n", "\n    ")[-1500:], flush=True)
    print("\n" + table(outcomes))
    short = any(o.cases < given.cases for o in outcomes)
    sys.exit(short or any(o.findings for o in outcomes))


if __name__ == "__main__":
    main()
