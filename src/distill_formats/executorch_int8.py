"""ExecuTorch in 8 bits: PT2E of torchao by XNNPACK's quantizer, calibrated on photos."""

from copy import deepcopy
from dataclasses import replace
from importlib import import_module
from operator import attrgetter

import numpy as np
import torch
from onnx import numpy_helper
from torch import Tensor, fx, nn

from distill.core.process import silent
from distill.export.format import ConversionSource
from distill.export.graph.equalise import equalise
from distill.export.int8 import Int8, calibration_photos
from distill.export.onnx import batches
from distill_formats.executorch import ExecuTorch
from distill_formats.xnnpack_graph import constant

QUANTIZER = "executorch.backends.xnnpack.quantizer.xnnpack_quantizer"
ATEN = torch.ops.aten
LAYOUT = {ATEN.permute.default, ATEN.reshape.default, ATEN.view.default}  # no (N, C, H, W)


class ExecuTorchInt8(ExecuTorch):
    """STEM_int8.pte for XNNPACK: as in `onnx_int8` channels are equalised, the tail is in float."""

    name = "executorch_int8"
    endings = ("_int8.pte", "_int8.pte.json")
    least = Int8.least

    def graph(self, source: ConversionSource, example: Tensor) -> nn.Module:
        photos = calibration_photos(self.name, source)
        plain = super().graph(replace(source, folded=equalised(source, photos)), example)
        module = torch.export.export(plain, (example,)).module(check_guards=False)
        part_parameters(module)
        with silent():
            pt2e = import_module("torchao.quantization.pt2e")
            steps = import_module("torchao.quantization.pt2e.quantize_pt2e")
            xnnpack = import_module(QUANTIZER)
        config = xnnpack.get_symmetric_quantization_config(is_per_channel=True)
        # Its histograms take a minute a hundred photos.
        observer = pt2e.MinMaxObserver.with_args(eps=2**-12)
        values = replace(config.input_activation, observer_or_fake_quant_ctr=observer)
        config = replace(config, input_activation=values, output_activation=values)
        small = before_smaller(module, source.exporter.inside[1])
        quantizer = xnnpack.XNNPACKQuantizer().set_global(config)
        quantizer.set_filter_function(lambda node: node in small)
        prepared = steps.prepare_pt2e(module, quantizer)
        height, width = source.exporter.sides
        pictures = self.forms(source.exporter)[0].encode(photos[..., :height, :width])
        with torch.no_grad():
            for rows in batches(len(pictures), source.exporter.batch):
                prepared(torch.from_numpy(pictures[rows]))
        return steps.convert_pt2e(prepared)


def equalised(source: ConversionSource, photos: np.ndarray) -> nn.Module:
    """The folded network with weights as `equalise` leaves them in its graph; the same output."""
    exporter = replace(source.exporter, opset=None, dynamic=False, batch=1, profile="any")
    model = exporter.export(source.folded)
    equalise(model, photos)
    network = deepcopy(source.folded)
    weights = {e.name: torch.tensor(numpy_helper.to_array(e)) for e in model.graph.initializer}
    network.load_state_dict(weights, strict=False)
    return network


def part_parameters(module: fx.GraphModule) -> None:
    """Gives every node parameters of its own.

    Of several nodes that read one, as both passes of a student with a thumbnail do, the quantizer
    sees the first, and XNNPACK takes no bias for two scales.
    """
    for node in list(module.graph.nodes):
        for user in list(node.users)[1:] if node.op == "get_attr" else ():
            with module.graph.inserting_before(user):
                copy = constant(module, attrgetter(str(node.target))(module).detach().clone())
            copy.meta = {**node.meta}  # the quantizer writes into it
            user.replace_input_with(node, copy)
    module.recompile()


def before_smaller(module: fx.GraphModule, full: int) -> set[fx.Node]:
    """All but the tail: what is less than half of `full` wide, and what such a node still reads."""
    small: set[fx.Node] = set()
    for node in reversed(module.graph.nodes):
        shape: tuple[int, ...] = getattr(node.meta.get("val"), "shape", ())
        pixels = len(shape) == 4 and node.target not in LAYOUT
        if node in small or (pixels and 2 * shape[-1] < full):
            small |= {node, *node.all_input_nodes}
    return small
