"""A table of docs/results.md made again: by the commands that stand above it.

    python benchmarks/results.py                        # the tables, and what each asks for
    python benchmarks/results.py curation DIR=photos
    make results TABLE=curation ARGS="DIR=photos"

Words in capitals are what one has oneself: SET, a folder of pairs that distill.prepare wrote (its
dataset.json has the hash of every photo and its side); DIR, a folder of photos; NAME, a run;
PAPER.ckpt and such, files.
"""

from __future__ import annotations

import argparse
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "results.md"
COMMAND = re.compile(r"^(?:python (?:-m distill\.|benchmarks/)|make )")
OWN = re.compile(r"(?<![\w.-])[A-Z]{3,}(?:\.\w+)?(?![\w.])")


def tables(page: str) -> dict[str, list[str]]:
    """The commands of every section that has a table, by its heading in small letters."""
    sections = re.split(r"(?m)^## (.+)\n", page)[1:]
    found = {}
    for title, text in zip(sections[::2], sections[1::2], strict=True):
        blocks = re.findall(r"(?m)(?:^ {4}.*\n)+", text)
        lines = "".join(blocks).replace("\\\n", " ").splitlines()
        parts = [part.strip() for line in lines for part in line.split("  #")[0].split(";")]
        if re.search(r"(?m)^\|", text):
            found[title.lower()] = [" ".join(p.split()) for p in parts if COMMAND.match(p)]
    return found


def own(command: str) -> list[str]:
    """What stands for something of one's own in a command, in order."""
    return list(dict.fromkeys(OWN.findall(command)))


def filled(command: str, values: dict[str, str]) -> list[str]:
    """The command's words, with `values` for what is one's own.

    SystemExit names what is missing.
    """
    missing = [name for name in own(command) if name not in values]
    if missing:
        sys.exit(f"{command}\n  say {' '.join(f'{name}=…' for name in missing)}")
    words = shlex.split(OWN.sub(lambda name: shlex.quote(values[name[0]]), command))
    return [sys.executable, *words[1:]] if words[0] == "python" else words


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("table", nargs="*", help="words of its heading, then NAME=VALUE")
    given = options.parse_args().table
    values = dict(word.split("=", 1) for word in given if "=" in word)
    title = " ".join(word for word in given if "=" not in word).lower()
    every = tables(PAGE.read_text())
    if not title:
        for name, commands in every.items():
            asks = dict.fromkeys(word for each in commands for word in own(each))
            print(f"{name}{': ' if asks else ''}{' '.join(asks)}")
        return
    if title not in every:
        sys.exit(f"TABLE={title}: want one of {', '.join(every)}")
    commands = [filled(command, values) for command in every[title]]
    for words in commands:
        print(shlex.join(words), flush=True)
        subprocess.run(words, cwd=ROOT, check=True)


if __name__ == "__main__":
    main()
