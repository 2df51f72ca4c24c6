"""How good a student gets from 20, 50 and 200 pairs, from scratch and from another style's.

    python benchmarks/few_pairs.py hayao=SET whitebox=SET toon=SET

Each SET is of distill.prepare, all of the same photos and with a test side. Half of the test side's
persons give the pairs, so that no shipped student has seen those photos either, the other half the
score: the mean PSNR to the teacher's drawing. Of each style one student learns from all pairs of
the training side, from scratch, as the mark to reach. All the rest is what a user has: a folder of
pairs, of which a share is held out for validation, which ends the run and chooses its checkpoint.

Runs are kept below --out and go on when the same command is typed again.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from ast import literal_eval
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from common import Table, machine, write

from distill.data.augment import rng_for
from distill.data.pairs import Pair, find_pairs
from distill.data.photo_table import pair_of, read_rows
from distill.data.photos import Side, group_of

COUNTS = (20, 50, 200)
FROM = {"hayao": "whitebox", "whitebox": "hayao", "toon": "hayao"}  # whose student is started from
ALONE = ["trainer=few", "batchnorm=learnt", "lr=1e-2", "trainer.max_steps=800"]
MARK = ["lr=1e-2", "data.batch_size=8", "data.crop_size=192", "ema=0.99", "data.flip=false"]
PSNR = "PSNR (dB), student to target"  # of results.json


@dataclass(frozen=True)
class Drawn:
    """A pair of a set: the photo's key, folder and group, and both files."""

    key: str
    folder: str
    pair: Pair

    @property
    def group(self) -> str:
        return group_of(self.key)


def side_of(root: Path, side: Side) -> list[Drawn]:
    rows = read_rows(root)
    pairs = find_pairs(root, None, 0.1, 0, 0.1)[side]
    of_pairs = ((rows[pair_of(pair.name)], pair) for pair in pairs)
    return [Drawn(literal_eval(row.key), row.folder, pair) for row, pair in of_pairs]


def halves(drawn: Iterable[Drawn], seed: int) -> tuple[list[Drawn], list[Drawn]]:
    """Pairs to learn from and pairs to score by; no person is in both.

    The former are in an order whose first n are as many of each folder.
    """
    learnt: dict[str, list[Drawn]] = {}
    scored = []
    for each in drawn:
        if rng_for(seed, each.group).random() < 0.5:
            learnt.setdefault(each.folder, []).append(each)
        else:
            scored.append(each)
    for found in learnt.values():
        found.sort(key=lambda each: rng_for(seed, "order", each.key).random())
    return [each for row in zip_longest(*learnt.values()) for each in row if each], scored


def lay_out(drawn: Iterable[Drawn], folder: Path) -> Path:
    """A folder of pairs as a person has it: A/ and B/ with the same names, those of the photos."""
    for side in ("A", "B"):
        (folder / side).mkdir(parents=True, exist_ok=True)
    for each in drawn:
        assert each.pair.target is not None
        for side, file in (("A", each.pair.photo), ("B", each.pair.target)):
            place = folder / side / f"{Path(each.key).stem}.png"
            if not place.is_symlink():
                place.symlink_to(file.resolve())
    return folder


def command(*words: str) -> None:
    print("$ distill", " ".join(words), flush=True)
    subprocess.run([sys.executable, "-m", f"distill.{words[0]}", *words[1:]], check=True)


def score(run: str, runs: Path, pairs: Path, words: Sequence[str]) -> float:
    """dB to the teacher, of a run that is trained first, or goes on."""
    results = runs / run / "scores/results.json"
    if not results.exists():
        command("train", f"run={run}", f"runs={runs}", *words)
        command(
            *("eval_fid", f"run={run}", f"runs={runs}", f"photos={pairs}", "features=none"),
            *("flicker=0", f"output={results.parent}"),
        )
    found = json.loads(results.read_text())["similarity"]
    return found[PSNR]["value"]


def scores(style: str, root: Path, given: argparse.Namespace) -> list[list[str]]:
    """The rows of one style: pairs, what the student started from, dB."""
    learnt, scored = halves(side_of(root, "test"), given.seed)
    out = (given.out / style).absolute()
    to_score = lay_out(scored, out / "scored")
    rows = []
    for count in given.counts:
        of = [
            f"data.root={lay_out(learnt[:count], out / f'{count}-pairs')}",
            "data.test_fraction=0",
        ]
        start = [f"init=zoo:{FROM[style]}", "trainer=few"]
        for name, words in ((f"{FROM[style]}'s student", start), ("scratch", ALONE)):
            run = f"{count}-{name.split(chr(39))[0]}"
            rows.append(
                [style, str(count), name, f"{score(run, out, to_score, [*of, *words]):.2f}"]
            )
    everything = {side: side_of(root, side) for side in ("train", "val")}
    for side, drawn in everything.items():
        lay_out(drawn, out / "everything" / side)
    words = [f"data.root={out / 'everything'}", *MARK, f"trainer.max_steps={given.steps}"]
    mark = score("everything", out, to_score, words)
    return [*rows, [style, f"{len(everything['train']):,}", "scratch", f"{mark:.2f}"]]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sets", nargs="+", metavar="STYLE=SET")
    parser.add_argument("--counts", type=int, nargs="+", default=COUNTS)
    parser.add_argument("--steps", type=int, default=1600, help="of the mark (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the halves (%(default)s)")
    parser.add_argument("--out", type=Path, default=Path("runs/few"), help="(%(default)s)")
    given = parser.parse_args()
    facts, rows = machine(), []
    for named in given.sets:
        style, _, root = named.partition("=")
        rows += scores(style, Path(root), given)
    table = Table("Few pairs", ["style", "pairs", "from", "PSNR, dB"], rows)
    write("few_pairs", given.out, facts, rows, table)


if __name__ == "__main__":
    main()
