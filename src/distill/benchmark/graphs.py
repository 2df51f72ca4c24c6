"""ONNX graphs as they are timed: a network's own, and any file's at another size."""

from __future__ import annotations

import io
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy

import numpy as np
import onnx
import torch

from distill.core import onnx_files, sessions
from distill.models.teachers.teacher import Teacher

TEACHER_OPSET = 17
SAME = 1e-3  # largest difference of a teacher's graph from PyTorch, of values in [0, 1]
PICTURE = (1, 3, 4)  # channels by which a picture is known among an input's dimensions


def traced_graph(network: Teacher, size: int) -> onnx.ModelProto | None:
    """The teacher's own graph, if it can be traced and its output is that of PyTorch; else None."""
    buffer = io.BytesIO()
    photo = torch.rand(1, 3, size, size, generator=torch.Generator().manual_seed(0))
    try:
        with warnings.catch_warnings(), torch.inference_mode(), _silent():
            warnings.simplefilter("ignore")
            torch.onnx.export(
                network, (photo,), buffer,  # type: ignore[arg-type]  # see OnnxExporter
                input_names=["photo"], output_names=["stylized"], opset_version=TEACHER_OPSET,
                dynamo=False,
            )  # fmt: skip
            expected = network(photo).numpy()
        model = onnx.load_from_string(buffer.getvalue())
        session = sessions.open_session(model, torch.get_num_threads())
        output = np.asarray(session.run(None, {"photo": photo.numpy()})[0])
    except Exception:  # whatever a tracer raises at what it cannot trace
        return None
    return model if np.abs(output - expected).max() <= SAME else None


@contextmanager
def _silent() -> Iterator[None]:
    """Nothing on the terminal: the tracer prints the whole graph where it fails, from C++."""
    sys.stdout.flush()
    kept = [os.dup(standard) for standard in (1, 2)]
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        for standard in (1, 2):
            os.dup2(nowhere, standard)
        yield
    finally:
        for standard, own in zip((1, 2), kept, strict=True):
            os.dup2(own, standard)
        for each in (nowhere, *kept):
            os.close(each)


def at_size(model: onnx.ModelProto, size: int) -> onnx.ModelProto:
    """A copy for one picture of size×size: batch 1, its height and width set or changed.

    Inputs that are no pictures keep their dimensions; what is not fixed there becomes 1.
    """
    fixed = deepcopy(model)
    changed = False
    for value in onnx_files.model_inputs(fixed):
        dims = value.type.tensor_type.shape.dim
        before = [dim.dim_value for dim in dims]
        sides: tuple[int, ...] = ()
        if len(dims) == 4:
            sides = (2, 3) if before[1] in PICTURE else (1, 2) if before[3] in PICTURE else ()
        for index, dim in enumerate(dims):
            dim.dim_value = size if index in sides else max(before[index], 1)
        changed |= before != [dim.dim_value for dim in dims]
    if changed:  # what was inferred from the old size
        del fixed.graph.value_info[:]
        for output in fixed.graph.output:
            output.type.tensor_type.ClearField("shape")
    return fixed
