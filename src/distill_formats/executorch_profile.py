"""Android, iPhone and React Native, by ExecuTorch: what XNNPACK runs, and what it leaves.

The table is that of executorch 1.5.1, backends/xnnpack/partition/config, by ONNX's names.
"""

from collections.abc import Iterator
from importlib.metadata import version

from distill.check import operators, shared
from distill.check.onnx_graph import Graph
from distill.check.shared import Cause, Finding, Profile
from distill_formats.app_graphs import read_pte

TABLE = "executorch 1.5.1, backends/xnnpack/partition/config"
OPERATORS = operators.names(
    """
    Abs Add AveragePool BatchNormalization Ceil Clip Concat Constant Conv ConvTranspose Cos Div Exp
    Flatten Floor Gelu Gemm GlobalAveragePool HardSwish Identity LeakyRelu Log MatMul Max MaxPool
    Min Mul Neg PRelu Pow Relu Reshape Resize Sigmoid Sin Slice Softmax Sqrt Squeeze Sub Tanh
    Transpose Unsqueeze Upsample
    """
)
OUTSIDE = Cause(
    "XNNPACK leaves it to ExecuTorch's own kernels, which are slow, and the network falls into "
    "parts around it",
    TABLE,
    "export without it; distill.export formats=[executorch] says what is left of a student",
    "note",
)
ABSENT = Cause(
    "an app cannot load the file, unless it registers this kernel",
    "ExecuTorch's registry of kernels, on this machine",
    "export without it",
)
FORWARD = 'ExecuTorch, "Runtime Compatibility Policy" (runtime/COMPATIBILITY.md, read 2026-11)'
NEWER = Cause(
    "a runtime reads files of its own release and of the one before, not of newer ones",
    FORWARD,
    "pip install -U executorch, and an app with that runtime",
)
WRITTEN = Cause(NEWER.why, FORWARD, "an app's runtime may not be older", "note")
ELSEWHERE = Cause(
    "only an app whose runtime has this backend runs it",
    "the file names it",
    "distill.export formats=[executorch] executorch.backend=xnnpack runs everywhere",
    "note",
)


def enlarging(graph: Graph) -> Iterator[Finding]:
    """Nearest neighbour by whole numbers and thumbnails, which an export writes otherwise."""
    for node in graph.of("Resize"):
        if node.get("antialias", 0) or node.get("mode", "nearest") not in ("nearest", "linear"):
            yield OUTSIDE.at(node, "Resize, antialiased or cubic")


def parts(graph: Graph) -> Iterator[Finding]:
    """What a .pte file calls: backends, and kernels of ExecuTorch."""
    from executorch.runtime import Runtime

    kernels = Runtime.get().operator_registry.operator_names
    for node in graph.nodes:
        if node.domain == "delegate":
            if node.operator != "XnnpackBackend":
                yield ELSEWHERE.at(node, f"a part for {node.operator}")
        elif node.operator not in kernels:
            yield ABSENT.at(node, f"{node.operator} has no kernel")
        else:
            yield OUTSIDE.at(node, f"{node.operator} is in no backend's part")


def written(graph: Graph) -> Iterator[Finding]:
    from packaging.version import Version  # executorch needs it

    version_of_file, here = graph.about.get("executorch"), version("executorch").partition("+")[0]
    if version_of_file is None:
        yield WRITTEN.at(None, "it does not say of which ExecuTorch it is", "file")
    elif Version(version_of_file) > Version(here):
        yield NEWER.at(None, f"of ExecuTorch {version_of_file}; here is {here}", "file")
    else:
        yield WRITTEN.at(None, f"of ExecuTorch {version_of_file}", "file")


PROGRAM = Profile(
    "executorch",
    "ExecuTorch (Android, iPhone, React Native)",
    (parts, written, shared.in_memory),
    form=".pte",
    reader=read_pte,
)
PROFILE = Profile(
    "executorch",
    "ExecuTorch with XNNPACK (Android, iPhone, React Native)",
    (
        *shared.EVERYWHERE,
        shared.fixed(TABLE, "a .pte file of distill.export holds one size"),
        operators.known(OPERATORS, OUTSIDE),
        enlarging,
        shared.subnormal,
    ),
    also=PROGRAM,
)
