"""distill NAME …, also `python -m distill NAME …`: the commands by their names.

`distill train style=hayao` is `python -m distill.train style=hayao`, to the module that runs as
`__main__`, distill.train.__main__: what starts this process again, as training on several devices
does, starts that.
"""

from __future__ import annotations

import runpy
import sys

from distill import __version__
from distill.core.errors import DistillError, OneLine
from distill.core.nodes import unknown_name

COMMANDS = {
    "prepare": "photos to pairs on disk, once: by a teacher, or sketches",
    "curate": "which pairs of a set do not fit, on a page to look through",
    "shards": "pairs to shards for large sets and object stores, and back",
    "train": "pictures to a trained network; run again, it resumes",
    "export": "a run to a checked ONNX file, and other formats",
    "eval_fid": "how close a run is to its teacher, or one folder to another",
    "benchmark": "speed of networks beside each other on this machine",
    "check": "what keeps an ONNX file off a phone, a lens or a page",
    "stylize": "pictures and videos through a student",
    "hub": "students and sets of pairs to the Hugging Face Hub, and back",
    "lens": "students live on the camera, on a web page",
}


def usage() -> str:
    lines = [f"  {name:10} {what}" for name, what in COMMANDS.items()]
    return "\n".join(
        [
            f"distill {__version__}: heavy image-to-image networks to students for phones.",
            "",
            *lines,
            "",
            "distill NAME --help says more, e.g. distill train photos=DIR; distill --version",
        ]
    )


def main() -> None:
    with OneLine():
        name, *rest = sys.argv[1:] or ["--help"]
        if name in ("-h", "--help"):
            print(usage())
        elif name in ("-V", "--version"):
            print(f"distill {__version__}")
        elif name in COMMANDS:
            sys.argv = [sys.argv[0], *rest]
            runpy.run_module(f"distill.{name}", run_name="__main__", alter_sys=True)
        else:
            raise DistillError(unknown_name(name, [*COMMANDS], "command"))


if __name__ == "__main__":
    main()
