"""What a rule says of a file, and those of every profile: one whole, valid file of fixed size."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import wraps
from math import prod
from operator import itemgetter
from pathlib import Path
from typing import Concatenate, Literal, ParamSpec

import onnx
from onnx import checker, defs

from distill.check.onnx_graph import Graph, Node, Shape, read
from distill.config.groups import choices, node_of
from distill.core.errors import DistillError, reason_of
from distill.core.nodes import part
from distill.core.onnx_files import count_subnormals

Level = Literal["finding", "note"]


@dataclass(frozen=True)
class Cause:
    """A rule's words, the same at every node: why it matters, who says so, what to do."""

    why: str
    source: str
    advice: str
    level: Level = "finding"

    def at(self, node: Node | None, what: str, place: str = "") -> Finding:
        """A finding at a node, or where there is none at `place`: an input, an output, the file."""
        name, operator = (node.name, node.operator) if node else (place, "")
        return Finding(name, operator, what, self.why, self.source, self.advice, self.level)


@dataclass(frozen=True)
class Finding:
    """A `finding` keeps the file off the device; a `note` costs speed there, or is to be known."""

    node: str
    operator: str
    what: str
    why: str
    source: str
    advice: str
    level: Level = "finding"


Rule = Callable[[Graph], Iterator[Finding]]
Table = ParamSpec("Table")


def by_table(
    check: Callable[Concatenate[Graph, Table], Iterator[Finding]],
) -> Callable[Table, Rule]:
    """Of a check that takes a device's table too, or its limits, the maker of its rules."""

    @wraps(check)
    def rule(*table: Table.args, **limits: Table.kwargs) -> Rule:
        return lambda graph: check(graph, *table, **limits)

    return rule


@dataclass(frozen=True)
class Profile:
    """A device's rules; `title` says what runs the file there.

    `form` is the ending of the files that they are for, which `reader` reads; others may follow, in
    `also`.
    """

    name: str
    title: str
    rules: tuple[Rule, ...]
    form: str = ".onnx"
    reader: Callable[[Path], Graph] = read
    also: Profile | None = None

    def of(self, path: Path) -> Profile:
        """The one for a file. Raises DistillError for a form that no rule is for."""
        profiles = {each.form: each for each in (self, self.also) if each}
        if profile := profiles.get(path.suffix.lower()):
            return profile
        others = {form: name for name in choices("profile") for form in _forms(name)}
        other = others.get(path.suffix.lower(), "snapml")
        if other == "snapml" and ".onnx" in profiles:  # what has another ending may be one
            return profiles[".onnx"]
        endings = " and ".join(profiles)
        raise DistillError(f"{path}: profile={self.name} reads {endings}; take profile={other}")

    def read(self, path: Path) -> Graph:
        """Raises DistillError for a file that cannot be read."""
        return self.reader(path)

    def check(self, graph: Graph) -> list[Finding]:
        """Everything the rules find, what keeps the file off the device first."""
        findings = [finding for rule in self.rules for finding in rule(graph)]
        return sorted(findings, key=lambda each: each.level)


def _forms(name: str) -> list[str]:
    """The endings but .onnx that the profile of this name reads."""
    profile = part("profile", node_of("profile", name), Profile)
    return [each.form for each in (profile, profile.also) if each and each.form != ".onnx"]


ONNX_SPEC = "ONNX, Open Neural Network Exchange Intermediate Representation (IR) Specification"
ORT_FIXED = 'ONNX Runtime, "Making dynamic input shapes fixed" (read 2026-11)'

INVALID = Cause(
    "a runtime reads it differently from what it says, or not at all",
    f"{ONNX_SPEC}, by onnx.checker",
    "export it again",
)
EXTERNAL = Cause(
    "lens tools, app stores and the page take one file; without the other one there is no network",
    f'{ONNX_SPEC}, "External Tensor Data"',
    "save it as one: onnx.save(onnx.load(FILE), FILE, save_as_external_data=False)",
)
FIXED_SIZE = (
    "fix it: python -m onnxruntime.tools.make_dynamic_shape_fixed --input_name {name} "
    "--input_shape 1,3,256,256 IN OUT"
)
TENSOR = 2**30  # bytes of one tensor, in float32
TOO_LARGE = Cause(
    "several such tensors are held at once; a page has 4 GiB in all, an app on a phone less",
    "WebAssembly Core Specification 2.0: a memory has at most 65,536 pages of 64 KiB",
    "export it for a smaller picture: exporter.size=256",
)
SUBNORMAL = Cause(
    "many processors take several times as long for them (the paper's released files 13 to 28 ms "
    "instead of 6 on one machine, nothing on another, an AMD EPYC); zeros give the same output",
    "measured for this project, 2026-11; distill benchmark FILE.onnx tells for yours",
    "export with distill.export, which sets them to zero, or have the runtime do it "
    "(ONNX Runtime: session.set_denormal_as_zero)",
    "note",
)


def valid(graph: Graph) -> Iterator[Finding]:
    """What onnx.checker says; external data are left to the rule below."""
    if not graph.external:
        yield from invalid(graph)


def invalid(graph: Graph) -> list[Finding]:
    """The checker's finding, none where it has nothing to say."""
    try:
        checker.check_model(str(graph.path))
    except Exception as error:  # its own class, and protobuf's
        return [INVALID.at(None, f"no valid ONNX: {reason_of(error, 200)}", "file")]
    if graph.opset > (newest := defs.onnx_opset_version()):  # which the checker does not mind
        what = f"opset {graph.opset}: ONNX {onnx.__version__} ends at {newest}"
        return [INVALID.at(None, what, "file")]
    return []


def one_file(graph: Graph) -> Iterator[Finding]:
    """Weights that lie in other files."""
    for name in graph.external:
        there = "" if (graph.path.parent / name).is_file() else ", which is not there"
        yield EXTERNAL.at(None, f"weights lie in a second file, {name}{there}", "file")


@by_table
def fixed(graph: Graph, source: str, why: str) -> Iterator[Finding]:
    """Every dimension is a number; the outputs follow from the inputs where these are not."""
    loose = [t for t in graph.inputs if not t.fixed]
    kind = "input" if loose else "output"
    for tensor in loose or [t for t in graph.outputs if not t.fixed]:
        advice = FIXED_SIZE.format(name=tensor.name) + "; our exports: exporter.dynamic=false"
        if kind == "output":
            advice = "find the operator whose output depends on values, and export without it"
        what = f"{kind} of no fixed size: {tensor.dims}"
        yield Cause(why, source, advice).at(None, what, tensor.name)


def in_memory(graph: Graph) -> Iterator[Finding]:
    """The largest tensor that is computed or taken in, where its shape is known."""
    computed = ((node, name) for node in graph.nodes for name in node.outputs)
    output_shapes = {tensor.name: tensor.shape for tensor in graph.outputs}
    sizes = [
        (_bytes(graph.shapes.get(name) or output_shapes.get(name)), node, name)
        for node, name in (*((None, tensor.name) for tensor in graph.inputs), *computed)
    ]
    largest, node, name = max(sizes, key=itemgetter(0), default=(0, None, ""))
    if largest > TENSOR:
        what = f"a tensor of {largest / 2**30:,.1f} GiB, {TENSOR / 2**30:.0f} allowed"
        yield TOO_LARGE.at(node, what, name)


def _bytes(shape: Shape | None) -> int:
    """Of float32 values; 0 where a dimension is not known."""
    return 4 * prod(side or 0 for side in shape or (0,))


EVERYWHERE = valid, one_file, in_memory  # rules of every profile of ONNX files


def subnormal(graph: Graph) -> Iterator[Finding]:
    """Float32 weights so small that arithmetic with them is slow."""
    arrays = (graph.value(name) for name in graph.constants)
    if count := count_subnormals(array for array in arrays if array is not None):
        yield SUBNORMAL.at(None, f"{count:,} subnormal weights", "file")


def always(cause: Cause, what: str) -> Rule:
    """What is to be known of every file."""
    return lambda _: iter([cause.at(None, what, "file")])
