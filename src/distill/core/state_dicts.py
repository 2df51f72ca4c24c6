"""Weights files read as state dicts, and put into modules."""

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from onnx import numpy_helper
from safetensors.torch import load_file
from torch import Tensor

from distill.core.errors import DistillError, counted
from distill.core.files import home_path
from distill.core.onnx_files import load_model

COMPILED = "_orig_mod."  # in names of weights: torch.compile's
WRAPPED, AVERAGED = "module.", "n_averaged"  # in those of torch's parallel and averaged models


def load_tensors(path: str | Path) -> dict[str, Tensor]:
    """A state dict on the CPU, from safetensors or a PyTorch file that holds tensors only.

    Raises DistillError for a file that is missing or damaged, holds no state dict or values that
    are not finite, or would run code.
    """
    path = home_path(path)
    if not path.is_file():
        raise DistillError(f"{path}: no such file of weights")
    try:
        if path.suffix == ".safetensors":
            state: Any = load_file(path)
        else:
            state = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        reason = "it holds more than tensors, or is damaged; refused, since it could run code"
        raise DistillError(f"{path}: {reason}") from error
    except Exception as error:  # loaders raise whatever a damaged file makes them raise
        raise DistillError(f"{path}: not a readable weights file (damaged or cut short)") from error
    if isinstance(state, dict) and isinstance(state.get("state_dict"), dict):
        state = state["state_dict"]
    if not isinstance(state, dict) or not all(isinstance(v, Tensor) for v in state.values()):
        raise DistillError(f"{path}: no state dict (names and tensors) in this file")
    return usable(state, path)


def usable(state: Mapping[str, Tensor], path: str | Path) -> dict[str, Tensor]:
    """A state dict by its names without what torch puts into those of compiled, parallel and
    averaged models.

    Raises DistillError where a value is not finite.
    """
    tensors = {name.replace(COMPILED, ""): value for name, value in state.items()}
    tensors.pop(AVERAGED, None)
    if all(name.startswith(WRAPPED) for name in tensors):
        tensors = {name.removeprefix(WRAPPED): value for name, value in tensors.items()}
    if wrong := sorted(name for name, value in tensors.items() if not value.isfinite().all()):
        raise DistillError(
            f"{path}: values that are not finite (NaN or infinite) in "
            f"{counted(len(wrong), 'tensor')}, first {wrong[0]}; take an earlier checkpoint"
        )
    return tensors


def tensors_in_graph(path: Path) -> dict[str, Tensor]:
    """The weights of an ONNX file that distill.export wrote, by their names in PyTorch.

    BatchNorm is folded into them. Raises DistillError for a file that is no ONNX.
    """
    # What the exporter computes of fixed tensors, as a palette, it names onnx::OPERATOR_NUMBER, and
    # constants by their place in the network, /head/Div_output_0.
    graph = load_model(path).graph
    arrays = {each.name: numpy_helper.to_array(each) for each in graph.initializer}
    names = {name: name for name in arrays if not name.startswith(("onnx::", "/"))}
    # A linear layer is a product with its weight, transposed and without its name, plus its bias.
    products = {node.output[0]: node.input[1] for node in graph.node if node.op_type == "MatMul"}
    for node in graph.node:
        if node.op_type == "Add" and (product := {*node.input} & {*products}):
            (bias,) = {*node.input} - product or {""}
            if (weight := products[product.pop()]) in arrays and bias in names:
                names[f"{bias.removesuffix('bias')}weight"] = weight
                arrays[weight] = arrays[weight].T
    return usable({n: torch.from_numpy(arrays[of].copy()) for n, of in names.items()}, path)


def load_into(module: torch.nn.Module, path: str | Path) -> None:
    """Load a weights file into a module, strictly; one line says what does not fit."""
    load_state(module, load_tensors(path), Path(path))


def load_state(module: torch.nn.Module, state: Mapping[str, Tensor], path: Path) -> None:
    """The same with a state dict that came out of `path`."""
    expected, state = module.state_dict(), usable(state, path)
    shapes = {k for k in expected.keys() & state.keys() if expected[k].shape != state[k].shape}
    wrong = sorted((expected.keys() ^ state.keys()) | shapes)
    if wrong:
        raise DistillError(
            f"{path}: does not fit {type(module).__name__}: missing, unknown or of "
            f"another shape: {counted(len(wrong), 'tensor')}, first {wrong[0]}"
        )
    module.load_state_dict(state)
