"""A busy machine: training and its parts beside busy loops of other login sessions.

idle, 1, 4    nothing else; so many endless loops, each started by `setsid` as a program of another
              terminal is, which Linux gives a share of the cores whatever its niceness

train     `distill.train data=demo trainer=demo`, seconds a step after the first ones: as it is, and
          with `trainer.threads=N` for all cores and for one
waiting   a few convolution layers on all cores, with GNU OpenMP's own waiting, with ours
          (`distill.core.process`) and without any look, and on one core
ONNX      a student in ONNX Runtime on all cores, its threads looking for work for as long as we
          let them, as ONNX Runtime does, for --spins and not at all, and on one core

Ratios are taken round by round. A loop takes a core at most and sessions share alike, so n loops
leave 1 / (n + 1) of c cores, or (c - n) / c if that is more: training may take 1.5 × the inverse
of what is left. On an idle machine it is to take no longer than on all cores.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from common import Table, alternate, machine, parser, ratios, spread, write

from distill.models import zoo

LOADS = (0, 1, 4)  # busy loops
PARTS = ("train", "waiting", "onnx")
LOOP = "while True: pass"
SOURCE = Path(__file__).resolve().parent
WARM = 5  # steps before the first that counts

TRAIN = """
import sys
from distill.core.process import keep_freed_memory
sys.path.insert(0, {source!r})
from watched import Stamps, train_for
stamps = Stamps()
words = ["data=demo", "trainer=demo", "encoder.weights=none", "data.root={root}", *{more!r}]
train_for({steps} + {warm}, words, stamps)
print("seconds", stamps.of({warm}, {steps}) / {steps})
"""
LAYERS = """
import statistics
import distill
from distill.core.threads import _layers
timed = _layers({most})
print("seconds", statistics.median(timed({threads}) for _ in range({steps})))
"""
ONNX = """
import statistics, time
from pathlib import Path
import onnxruntime
from distill.core import sessions
instead = {instead}
if instead:
    class Options(onnxruntime.SessionOptions):
        def add_session_config_entry(self, key, value):
            for name, other in instead.items() if key.startswith("session.intra_op.") else ():
                super().add_session_config_entry("session.intra_op." + name, other)
    onnxruntime.SessionOptions = Options
run = sessions.sample_call(sessions.open_session(Path({model!r}), {threads}))
seconds = []
for _ in range({steps}):
    begun = time.perf_counter()
    run()
    seconds.append(time.perf_counter() - begun)
print("seconds", statistics.median(seconds))
"""


@contextmanager
def beside(loops: int) -> Iterator[None]:
    """So many busy loops, each in a session of its own; they end with the block."""
    command = [sys.executable, "-c", LOOP]
    running = [subprocess.Popen(command, start_new_session=True) for _ in range(loops)]
    try:
        yield
    finally:
        for each in running:
            each.kill()
            each.wait()


def seconds_of(script: str, loops: int, **variables: str) -> float:
    """What a script in a process of its own prints as its seconds."""
    waiting = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY", "OMP_NUM_THREADS")
    own = {name: value for name, value in os.environ.items() if name not in waiting}
    with beside(loops):
        time.sleep(1)  # the loops have their share by then
        done = subprocess.run(
            [sys.executable, "-c", script],
            env=own | variables,
            capture_output=True,
            text=True,
        )
    if done.returncode:
        raise SystemExit(done.stderr[-4000:])
    return float(done.stdout.rpartition("seconds ")[2].split()[0])


def forms(args: argparse.Namespace, part: str, root: Path) -> dict[str, tuple[str, dict[str, str]]]:
    """The forms of a part, the product's first: script and environment."""
    most = args.threads
    if part == "train":
        given = {"source": str(SOURCE), "root": root, "steps": args.steps, "warm": WARM}
        made = {"as it is": [], "all cores": [f"trainer.threads={most}"]}
        made["one core"] = ["trainer.threads=1"]
        return {name: (TRAIN.format(more=words, **given), {}) for name, words in made.items()}
    if part == "waiting":
        all_cores = LAYERS.format(most=most, threads=most, steps=args.runs)
        return {
            "ours": (all_cores, {}),
            "GNU OpenMP's own": (all_cores, {"GOMP_SPINCOUNT": "300000"}),
            "1,000 looks": (all_cores, {"GOMP_SPINCOUNT": "1000"}),
            "no look": (all_cores, {"OMP_WAIT_POLICY": "PASSIVE"}),
            "one core": (LAYERS.format(most=most, threads=1, steps=args.runs), {}),
        }
    waits: dict[str, dict[str, str]] = {
        "as it is": {},
        "ONNX Runtime's own": {"allow_spinning": "1"},
        "asleep": {"allow_spinning": "0"},
    }
    waits |= {f"{us} µs": {"spin_duration_us": str(us)} for us in args.spins}
    given = {"model": str(args.model), "steps": args.runs}
    made = {n: ONNX.format(instead=each, threads=most, **given) for n, each in waits.items()}
    made["one core"] = ONNX.format(instead={}, threads=1, **given)
    return {name: (script, {}) for name, script in made.items()}


def main() -> None:
    made = parser(__doc__, photos=False)
    made.add_argument("--parts", nargs="+", default=PARTS, choices=PARTS)
    made.add_argument("--loads", nargs="+", type=int, default=LOADS, help="busy loops")
    made.add_argument("--forms", nargs="+", help="beside the first of a part (all)")
    made.add_argument("--steps", type=int, default=40, help="training steps a run (%(default)s)")
    made.add_argument("--runs", type=int, default=30, help="of layers or student (%(default)s)")
    made.add_argument("--threads", type=int, default=os.cpu_count(), help="all cores (%(default)s)")
    made.add_argument("--spins", nargs="*", type=int, default=[], help="µs that ONNX threads look")
    made.add_argument("--model", type=Path, default=zoo.FOLDER / "hayao.onnx", help="of ONNX")
    args = made.parse_args()
    facts, tables, figures = machine(), [], {}
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "pairs"
        if "train" in args.parts:
            label = [sys.executable, "-m", "distill.prepare", "data=demo", f"data.root={root}"]
            subprocess.run(label, check=True, stdout=subprocess.DEVNULL)
        for part in args.parts:
            scripts = forms(args, part, root)
            if args.forms is not None:
                scripts = {
                    n: s for i, (n, s) in enumerate(scripts.items()) if not i or n in args.forms
                }
            runs = {
                f"{loops} loops, {name}": partial(seconds_of, script, loops, **variables)
                for loops in args.loads
                for name, (script, variables) in scripts.items()
            }
            seconds = alternate(runs, args.rounds, part)
            figures[part] = seconds
            tables.append(table(part, seconds, args, [*scripts]))
    write("busy", args.out, facts, figures, *tables)


def bar_of(loops: int, cores: int) -> float:
    """How many times as long as without loops training may take beside them."""
    left = max(cores - loops, cores / (loops + 1)) / cores
    return 1.5 / left if loops else 1.0


def table(
    part: str, seconds: dict[str, list[float]], args: argparse.Namespace, names: list[str]
) -> Table:
    """Milliseconds, and their ratios to the product's form, the first, and to it without a loop."""
    rows = []
    for loops in args.loads:
        for name in names:
            own = seconds[f"{loops} loops, {name}"]
            to = [seconds.get(f"{n} loops, {names[0]}") for n in (loops, 0)]
            shown = [spread(ratios(own, each), 2) if each else "" for each in to]
            rows.append([str(loops), name, spread([1000 * v for v in own], 1), *shown])
        rows[-len(names)].append(f"≤ {bar_of(loops, args.threads):.1f}" if part == "train" else "")
    head = ["loops", "form", "ms", "of the first form", "of it without loops", "wanted of that"]
    return Table(part, head, [row + [""] * (len(head) - len(row)) for row in rows])


if __name__ == "__main__":
    main()
