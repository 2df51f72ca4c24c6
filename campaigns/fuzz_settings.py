"""Readers of what is typed behind a command: settings, choices, flags, lists for -m, file names."""

from __future__ import annotations

import importlib
import os
import shutil
import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import hydra
from fuzz_engine import Reader
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from kept_yaml import keep_read_files
from mutations import ODD_TEXT
from omegaconf import OmegaConf

from distill.config import compose, groups, multirun, registry
from distill.config.arguments import TypedKeys, overrides_of, read_words
from distill.config.command import Command
from distill.config.settings import commands, training
from distill.core import plugins
from distill.core.next_step import typed
from distill.stylize import jobs
from distill_benchmark.settings import Benchmark
from distill_curate.settings import Curate
from distill_hub.settings import HubSettings
from distill_lens.settings import Lens
from distill_scale.settings import ShardSettings

SCHEMAS: dict[str, Any] = {
    "train": registry.schema_of, "prepare": training.Prepare, "export": commands.Export,
    "eval_fid": commands.EvalFid, "stylize": commands.Stylize, "check": commands.CheckSettings,
    "benchmark": Benchmark, "lens": Lens, "shards": ShardSettings,
    "curate": Curate, "hub": HubSettings,
}  # fmt: skip
WITH_FILES = {"stylize", "check", "benchmark", "hub"}
SIGNS = ("=", "=", "=", "=", "+", "~", "++", "@", ":", "==", "")
VALUES = (
    *("1", "0", "-1", "1.5", "1e400", "null", "true", "auto", "nan", "inf", "999999999999999999"),
    *("[]", "[1,2]", "[a", "{a:1}", "{", "'", '"', "''", "a,b", "1,2", "range(1,3)", "choice(1,2)"),
    *("interval(0,1)", "glob(*)", "sort(3,1)", "$HOME", "${seed}", "${nothing}", "${oc.env:HOME}"),
    *("${name_of:${data.root}}", "\\", "a=b", "../x", "~", "toon", "hayao", "l1", "student", "*"),
    *ODD_TEXT,
)


class Words(Reader):
    """One command's words, from the command line to checked settings; nothing is computed."""

    command: str

    def begin(self) -> None:
        Path("photo.jpg").write_bytes(b"")
        keep_read_files()

    def cases(self) -> SearchStrategy:
        keys = [*_dotted(self.command), *groups.groups_of(self.command)]
        key = st.one_of(st.sampled_from(keys), st.sampled_from(keys), st.text(max_size=10))
        value = st.one_of(st.sampled_from(VALUES), st.text(max_size=10), st.integers().map(str))
        choice = st.sampled_from([f"{g}={c}" for g, c in _choices(self.command)] or ["x=y"])
        setting = st.tuples(key, st.sampled_from(SIGNS), value).map("".join)
        other = st.sampled_from(
            ["-m", "--multirun", "-o", "--output=", "--", "photo.jpg", "*.png", "-x", "--cfg", "-"]
        )
        word = st.one_of(setting, setting, setting, choice, other, st.text(max_size=8))
        return st.lists(word, min_size=1, max_size=4)

    def put(self, case: list[str], folder: Path) -> None:
        (folder / "words.txt").write_bytes(repr(case).encode(errors="surrogatepass"))

    def read(self, case: list[str], folder: Path) -> None:
        """As the decorator of every command does, up to where its task begins."""
        schema = SCHEMAS[self.command]
        line = read_words(case, self.command in WITH_FILES)
        keys = TypedKeys(*compose.schemas_of(self.command, schema))
        overrides = overrides_of(line.settings, keys, line.multirun)
        inputs = {"inputs": line.inputs} if self.command in WITH_FILES else {}
        if line.multirun:
            job = partial(Command(self.command, schema, print).job, inputs=inputs)
            multirun.jobs(self.command, overrides, job)
            return
        settings: Any = compose.load(self.command, overrides, schema, inputs)
        if self.command == "stylize":
            found, _ = jobs.find(settings.inputs, settings.output)
            jobs.plan(found, settings.inputs, settings.output, "toon", False)


class Names(Reader):
    """Any text as a path, a name and a prompt: what is printed reads as it was."""

    name = "names"

    def cases(self) -> SearchStrategy:
        letters = st.characters(exclude_characters="\0", exclude_categories=["Cs"])
        return st.text(st.one_of(letters, st.sampled_from("\\$${}'\",[]:=~() ?null")), max_size=20)

    def put(self, case: str, folder: Path) -> None:
        (folder / "name.txt").write_text(case)

    def read(self, case: str, folder: Path) -> None:
        keys, names = TypedKeys(training.Prepare), ("photos", "card.licence", "teacher.prompt")
        with compose.over_conf("prepare") as parser:
            overrides = overrides_of([f"{k}={typed(case)}" for k in names], keys)
            read = [each.value() for each in parser.parse_overrides(overrides)]
        found = OmegaConf.to_container(OmegaConf.create(read), resolve=True)
        assert found == [case] * len(names), f"{found} of {case!r}"


class PlugInRecipes(Reader):
    """A package with a recipe of any attributes and any plugin.yaml, up to checked settings."""

    name = "plugin-recipes"
    attributes = ("name", "settings", "networks", "monitor", "learns_from", "stem", "train")
    methods = ("folder_parts", "train", "__init__", "__init_subclass__", "settings")

    def begin(self) -> None:
        keep_read_files()
        self._number = 0

    def cases(self) -> SearchStrategy:
        values = st.sampled_from([
            "None", "1", "''", "'a/b'", "'photos'", "'domains'", "Train", "Pix2PixTrain", "Recipe",
            "{}", "{'AtoB': 'student'}", "{'AtoB': 5}", "{'BtoA': 'x', 'AtoB': 'y'}", "['AtoB']",
            "{1: 'x'}", "object()", "lambda *a: a", "'val/loss'", "property(lambda self: 1 / 0)",
            "'x' * 300", "Train(1)", "nowhere", "'\\n'", "type('T', (Train,), {})", "{[]: 1}",
        ])  # fmt: skip
        attribute = st.tuples(st.sampled_from(self.attributes), values).map(" = ".join)
        method = st.sampled_from(self.methods).map(lambda n: f"def {n}(self): raise KeyError(5)")
        base = st.sampled_from(["Recipe", "Pix2PixRecipe", "CycleGANRecipe", "object", "Nobody"])
        lines = st.lists(st.one_of(attribute, attribute, method), max_size=4)
        contract = st.sampled_from(
            ["contract: 1"] * 6 + ["contract: 2", "contract: x", "[", "", "1", "extends: 5", None]
        )
        word = st.sampled_from(["Own", "Own", "Own", "Gone", "", "Own.name", "__class__", "Train"])
        defaults = st.sampled_from(
            ["[distill]", "[distill]", "[pix2pix]", "[cyclegan]", "[x]", "[own]", "5"]
        )
        return st.tuples(base, lines, contract, word, defaults)

    def put(self, case: tuple[str, list[str], str | None, str, str], folder: Path) -> None:
        base, lines, contract, word, defaults = case
        self._number += 1  # a module of one name is imported once
        package = folder / f"lab{self._number}"
        (package / "conf/recipe").mkdir(parents=True)
        body = "".join(f"    {line}\n" for line in lines or ["pass"])
        (package / "__init__.py").write_text(
            "from distill.config.registry import *\nfrom distill.config.registry import Train\n"
            f"class Own({base}):\n{body}"
        )
        (package / "conf/recipe/own.yaml").write_text(
            f"# @package _global_\ndefaults: {defaults}\nrecipe: {package.name}.{word}\nrun: a\n"
        )
        if contract is not None:
            (package / "conf/plugin.yaml").write_text(contract)

    def read(self, case: tuple[str, list[str], str | None, str, str], folder: Path) -> None:
        package = f"lab{self._number}"
        shutil.copytree(folder / package, f"site/{package}")
        if (site := str(Path("site").absolute())) not in sys.path:
            sys.path.append(site)
        importlib.invalidate_caches()
        os.environ[plugins.NAMED] = ""
        plugins.name_plugins([package])
        compose.load("train", ["recipe=own"], registry.schema_of)


def _dotted(command: str) -> list[str]:
    """All keys of a command's settings, with dots."""
    with compose.over_conf(command):
        config: Any = OmegaConf.to_container(hydra.compose(command, []), resolve=False)
    return [*_keys(config, "")]


def _keys(tree: Any, prefix: str) -> Iterable[str]:
    for key, value in tree.items():
        yield f"{prefix}{key}"
        if isinstance(value, dict):
            yield from _keys(value, f"{prefix}{key}.")


def _choices(command: str) -> list[tuple[str, str]]:
    return [(g, c) for g in groups.groups_of(command) for c in groups.choices(g)]


def _reader(command: str) -> type[Reader]:
    named: Callable[..., type[Reader]] = type
    return named(
        f"{command.title()}Words", (Words,), {"name": f"words-{command}", "command": command}
    )


READERS = (Names, PlugInRecipes, *(_reader(command) for command in SCHEMAS))
