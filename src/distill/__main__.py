"""distill NAME …, also `python -m distill NAME …`: the commands by their names.

`distill train style=hayao` is `python -m distill.train style=hayao`, to the module that runs as
`__main__`, distill.train.__main__: what starts this process again, as training on several devices
does, starts that.
"""

import runpy
import sys

from distill import __version__
from distill.core import plugins
from distill.core.errors import DistillError, OneLine
from distill.core.nodes import unknown_name
from distill.core.plugins import PluginCommand

COMMANDS = {
    "prepare": "turn photos into training pairs, by a teacher or as sketches",
    "train": "train a network from pictures; run it again to resume",
    "export": "write a run as a checked ONNX file, and in other formats",
    "eval_fid": "score a run against its teacher, or one folder against another",
    "check": "report what in an ONNX file a phone, lens or page cannot run",
    "stylize": "stylize pictures with a student",
}


def commands() -> dict[str, PluginCommand]:
    """The package and the line of every command, those of plug-ins behind distill's own."""
    ours = {name: PluginCommand(f"distill.{name}", about) for name, about in COMMANDS.items()}
    return ours | {k: v for k, v in plugins.commands().items() if k not in ours}


def usage() -> str:
    lines = [f"  {name:10} {each.about}" for name, each in commands().items()]
    return "\n".join(
        [
            f"distill {__version__}: distils heavy image-to-image networks into small students.",
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
        elif command := commands().get(name):
            sys.argv = [sys.argv[0], *rest]
            runpy.run_module(command.package, run_name="__main__", alter_sys=True)
        else:
            raise DistillError(unknown_name(name, [*commands()], "command"))


if __name__ == "__main__":
    main()
