"""A command of distill: the words behind it are read, composed to settings, checked and run."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from distill import __version__
from distill.config import compose
from distill.config.arguments import TypedKeys, overrides_of, read_words
from distill.config.compose import Implied, Schema
from distill.config.extension import extensions, sweeps
from distill.config.groups import typed_folders
from distill.config.help import Section, choices_of, comments_by_key, page, sections
from distill.config.multirun import ONE_BY_ONE, Job, Sweep
from distill.core.deferred_imports import defer_torchmetrics
from distill.core.errors import DistillError, OneLine
from distill.core.plugins import name_plugins, usage
from distill.core.process import keep_freed_memory

Task = Callable[..., None]  # of settings; a sweep hands callbacks too, to training


@dataclass(frozen=True)
class Command:
    """A task with `conf/NAME.yaml`: overrides go before it, and all is checked as a `schema`.

    A `schema` that is no class chooses one by the composed values. With -m the task runs once for
    every combination of the values typed. With `files` pictures may stand beside
    the settings. `implied` gives words that follow from those typed, where a default would be
    wrong. A DistillError ends the command with its one line on standard error and exit status 1.
    """

    name: str
    schema: Schema[Any]
    task: Task
    files: bool = False
    implied: Implied | None = None

    def __call__(self) -> None:
        keep_freed_memory()
        defer_torchmetrics()
        with OneLine():
            line = read_words(sys.argv[1:], self.files)
            name_plugins(line.plugins)
            typed_folders[:] = line.folders
            sweep = self.sweep_of_jobs()
            schemas = compose.schemas_of(self.name, self.schema, line.settings)
            keys = TypedKeys(*schemas, *sweep.schemas)
            words = overrides_of(line.settings, keys, line.multirun)
            job = partial(self.job, inputs={"inputs": line.inputs} if self.files else {})
            if line.version:
                print(f"distill {__version__}")
            elif line.help:
                print(self.help([word for word in words if "," not in word]))
            elif line.multirun and line.shown:
                beside = "beside -m only settings can stand (KEY=VALUE,VALUE)"
                raise DistillError(f"{line.shown[0]}: {beside}")
            elif line.multirun:
                sweep.run(self.name, self.carry_out, words, job)
            elif line.shown:
                compose.show(self.name, job({}, words).overrides, line.shown)  # a typo is one line
            else:
                settings = job({}, words).settings
                sweep.alone(settings, words)
                self.carry_out(settings)

    def sweep_of_jobs(self) -> Sweep:
        """What runs the jobs of -m: a plug-in's sweep, or one after the other."""
        return next(iter(sweeps(self.name)), ONE_BY_ONE)

    def carry_out(self, settings: Any, **more: Any) -> None:
        """Do what an extension has for such settings, or else the command's own task."""
        for extension in extensions(self.name):
            if extension.takes(settings):
                extension.carry_out(settings)
                return
        self.task(settings, **more)

    def job(
        self,
        swept: Mapping[str, str],
        words: Sequence[str],
        inputs: Mapping[str, Any] | None = None,
    ) -> Job:
        """The words as one job of the command, with its checked settings."""
        words = compose.completed(self.name, words, self.implied)
        inputs = dict(inputs or {})
        if hasattr(self.schema, "swept"):
            inputs["swept"] = [f"{key}={value}" for key, value in swept.items()]
        return Job(swept, words, compose.load(self.name, words, self.schema, inputs))

    def help(self, words: Sequence[str] = ()) -> str:
        """The text of --help, with the settings that `words` lead to."""
        about = (sys.modules[self.task.__module__].__doc__ or "").rstrip()
        return page(f"{about}\n\n{usage(self.name)}", choices_of(self.name), self.sections(words))

    def sections(self, words: Sequence[str] = ()) -> list[Section]:
        """The settings of the command, of train by recipe, with their defaults beside `words`."""
        lines = comments_by_key()
        shared = self.sweep_of_jobs().sections(self.name, lines)
        return [*sections(self.name, self.schema, words, lines), *shared]


def command(
    name: str, schema: Schema[Any], files: bool = False, implied: Implied | None = None
) -> Callable[[Task], Command]:
    """Make a task a `Command`."""

    return lambda task: Command(name, schema, task, files, implied)
