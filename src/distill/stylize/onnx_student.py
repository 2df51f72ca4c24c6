"""A student in ONNX Runtime, for pictures of any size, and which provider runs it."""

from functools import cached_property
from typing import Protocol

import numpy as np
import onnx
from onnx import TensorProto
from PIL import Image

from distill.core import process
from distill.core.arrays import MODES
from distill.core.errors import DistillError, reason_of
from distill.core.onnx_files import (
    ABOUT,
    COLOURS_AT,
    SUMMARY,
    free_size,
    model_inputs,
    noted,
    split_at_summary,
)
from distill.core.sessions import CPU, available_providers, open_session, picture_call, too_new
from distill.data.photos import BadPhoto

STRIDE = 32  # of the deepest features: what the sides must divide by
WANTED = "float32 (1, 3, height, width), RGB in [0, 1]"
PROBE = (64, 96)  # height and width that no file names: shows whether another size goes
BEYOND = 0.5  # how far outside of [0, 1] a network without a last sigmoid may go
PATCH = 384  # pixels: the most that `OnnxStudent.reach` measures
BILINEAR = Image.Resampling.BILINEAR
CHANGE = 1e-6  # less is float32's own rounding


class ImageModel(Protocol):
    """An image-to-image network: (N, 3, H, W) RGB in [0, 1] to (N, `channels`, H, W), float32.

    H and W divide by 32; `fixed` is (H, W) where only one size goes, else None. `colours_at` is the
    long side at which its colours are right; larger outputs take theirs from there. None: at any.
    `takes_summary`: a part of a picture is stylised by the `summary` (1, 64, 1, 1) of the whole
    one; without it the input is the whole.
    """

    fixed: tuple[int, int] | None
    channels: int
    colours_at: int | None
    takes_summary: bool

    @property
    def reach(self) -> int:
        """Pixels to each side that an output pixel depends on."""
        ...

    def summary(self, photo: np.ndarray) -> np.ndarray:
        """Of a whole picture, whose sides may be any, for one that is told."""
        ...

    def __call__(self, photo: np.ndarray, summary: np.ndarray | None = None) -> np.ndarray: ...


class OnnxStudent:
    """An `ImageModel` of an ONNX graph; `name` stands in messages.

    An exported file names one size, which its operators do not depend on: the size is struck out.
    `fixed` is (H, W) where that fails, because a size is written into the graph itself, else None.
    `model` is the graph as given, `input` its one input; `ran_by` says on what it runs, chosen
    by `choose_provider`. `colours_at` is what its metadata says. `told_by` computes the second
    input of a model that has one; one that has the value `summary` inside is taken apart there.
    Raises DistillError for a network that makes no picture of a picture.
    """

    def __init__(
        self,
        model: onnx.ModelProto,
        name: str,
        threads: int | None = None,
        device: str = "cpu",
        summary: onnx.ModelProto | None = None,
    ) -> None:
        self._name, self._threads = name, threads or process.compute_threads()
        inputs, parts = model_inputs(model), split_at_summary(model)
        if summary is not None:
            parts, inputs = (summary, model), [i for i in inputs if i.name != SUMMARY]
        self.takes_summary, network = parts is not None, parts[1] if parts else model
        if len(inputs) != 1:
            raise DistillError(f"{name}: inputs: {len(inputs)}, want one: the picture")
        self.model, self.input = model, inputs[0]
        _check_input(self.input, name)
        side = noted(model, COLOURS_AT) or ""  # a file from anywhere may name whatever it likes
        plausible = side.isdecimal() and len(side) <= 5 and int(side) >= STRIDE
        self.colours_at = int(side) if plausible else None
        self.fixed: tuple[int, int] | None = None
        if parts:
            self._summariser = open_session(parts[0], self._threads)
            dims = [dim.dim_value for dim in model_inputs(parts[0])[0].type.tensor_type.shape.dim]
            self._thumbnail = dims[:1:-1] if all(dims[2:]) else None  # width and height
        channels, runnable = self._open(free_size(network), *PROBE), free_size(network)
        count, *_ = axes = self.input.type.tensor_type.shape.dim or [None]
        # Of others' files a name of that axis says little: a 1 may be written into the graph.
        self.takes_batches = bool(count and count.dim_param) and noted(model, ABOUT) is not None
        sides = [dim.dim_value for dim in axes[2:4]]
        if channels is None and len(sides) == 2 and all(sides):
            self.fixed = sides[0], sides[1]
            channels, runnable = self._open(network, *self.fixed), network
        if channels is None:
            raise DistillError(
                f"{name}: no network from one RGB picture (1, 3, height, width) in [0, 1] to one "
                "as large of 1, 3 or 4 channels, or one that ONNX Runtime cannot run"
            )
        self.channels = channels
        provider, self.ran_by = choose_provider(runnable, device, self._threads)
        if provider != CPU:
            self._session = open_session(runnable, self._threads, provider)

    def summary(self, photo: np.ndarray) -> np.ndarray:
        """Summaries (N, 64 or more, 1, 1) of whole pictures (N, 3, H, W) of any size."""
        if self._thumbnail:  # bilinear and antialiased, as the student's own
            channels = (Image.fromarray(channel) for each in photo for channel in each)
            small = [np.asarray(c.resize(self._thumbnail, BILINEAR)) for c in channels]
            photo = np.stack(small).reshape(*photo.shape[:2], *small[0].shape)
        return picture_call(self._summariser)(photo)

    def __call__(self, photo: np.ndarray, summary: np.ndarray | None = None) -> np.ndarray:
        """Raises BadPhoto where the memory does not suffice, and for values that are not finite."""
        try:
            output = self._run(photo, summary)
        except Exception as error:  # ONNX Runtime raises classes of its own, without a common base
            size = f"{photo.shape[-1]}×{photo.shape[-2]}"
            reason = f"cannot be stylised at {size}; try a smaller size=N ({reason_of(error)})"
            raise BadPhoto(reason) from error
        if not np.isfinite(output).all():
            raise BadPhoto(f"{self._name} gives values for it that are not finite")
        return output

    @cached_property
    def reach(self) -> int:
        """Pixels across which a change of the input is seen to change the output at all.

        Measured with patches of random colours, even and dark ones, in the place of others; at most
        384, or half of the one size that the network takes, where it is as much or more.
        """
        height, width = self.fixed or (STRIDE, 2 * PATCH)
        half, rng = width // 2, np.random.default_rng(0)
        cells = (1, 3, -(-height // 8), -(-width // 8))  # noise of single pixels is mostly ignored
        colours = rng.random((3, *cells), np.float32).repeat(8, -1).repeat(8, -2)
        first, *others = colours[..., :height, :width]
        summary = self.summary(first) if self.takes_summary else None
        output, furthest = self._run(first, summary), 0
        for other, power in zip(others, (1, 4), strict=True):
            other = np.concatenate([other[..., :half] ** power, first[..., half:]], -1)
            difference = np.abs(self._run(other, summary) - output).max((0, 1, 2))[half:] > CHANGE
            furthest = max(furthest, int(difference.nonzero()[0].max(initial=-1)) + 1)
        return furthest

    def _run(self, photo: np.ndarray, summary: np.ndarray | None = None) -> np.ndarray:
        feed = {self.input.name: photo}
        if self.takes_summary:
            feed[SUMMARY] = self.summary(photo) if summary is None else summary
        return np.asarray(self._session.run(None, feed)[0])

    def _open(self, model: onnx.ModelProto, height: int, width: int) -> int | None:
        """Start a session; gives the channels of its output at this size, None if that fails."""
        try:
            self._session = open_session(model, self._threads)
            wedge = np.linspace(0, 1, width, dtype=np.float32)  # black to white, left to right
            output = self._run(np.broadcast_to(wedge, (1, 3, height, width)).copy())
        except Exception as error:  # see __call__
            if newer := too_new(error):
                raise DistillError(f"{self._name}: {newer}") from error
            return None
        fits = output.shape in [(1, channels, height, width) for channels in MODES]
        if not fits or output.dtype != np.float32:
            return None
        low, high = float(output.min()), float(output.max())
        if not (low >= -BEYOND and high <= 1 + BEYOND):  # true for NaN too
            raise DistillError(
                f"{self._name}: gives values from {low:.3g} to {high:.3g}, want RGB in [0, 1]; "
                "say input_range=[BLACK,WHITE] and output_range=[BLACK,WHITE] where it has others"
            )
        return output.shape[1]


def _check_input(value: onnx.ValueInfoProto, name: str) -> None:
    """Raises DistillError for an input that no picture fits, which says what it is and is to be.

    Sizes that a file leaves open are taken as right.
    """
    tensor = value.type.tensor_type
    sides = [dim.dim_value for dim in tensor.shape.dim]  # 0 where left open
    last = len(sides) == 4 and sides[3] in (1, 3, 4) and sides[1] not in (1, 3, 4)
    fits = not sides or (len(sides) == 4 and sides[0] in (0, 1) and sides[1] in (0, 3) and not last)
    if tensor.elem_type == TensorProto.FLOAT and fits:
        return
    kind = TensorProto.DataType.Name(tensor.elem_type).lower()
    kind = {"float": "float32", "double": "float64"}.get(kind, kind)
    shape = ", ".join(str(dim.dim_value or dim.dim_param or "?") for dim in tensor.shape.dim)
    hint = "; channels last: export it with channels first" if last else ""
    raise DistillError(f"{name}: its input is {kind} ({shape}), want {WANTED}{hint}")


# The best first: `auto` takes the first that is there and agrees with the CPU. TensorRT is left to
# who asks for it: it compiles for minutes.
PROVIDERS = {
    "cuda": "CUDAExecutionProvider",
    "rocm": "ROCMExecutionProvider",
    "migraphx": "MIGraphXExecutionProvider",
    "coreml": "CoreMLExecutionProvider",
    "directml": "DmlExecutionProvider",
    "openvino": "OpenVINOExecutionProvider",
    "tensorrt": "TensorrtExecutionProvider",
    "cpu": CPU,
}
BY_ITSELF = ("cuda", "rocm", "migraphx", "coreml", "directml", "openvino")
SIDE = 256  # pixels of the made-up picture
# Of [0, 1], at any pixel: two levels of an 8-bit picture. Other kernels sum in another order, and
# TF32 and float16 round.
TOLERANCE = 2 / 255


def choose_provider(model: onnx.ModelProto, device: str, threads: int) -> tuple[str, str]:
    """A provider for a network of one picture (1, 3, H, W), and a line that says which, and why.

    `device` is one of PROVIDERS, or `auto`: the best that is there, runs the whole network and
    gives the CPU's output of a made-up picture within TOLERANCE; else the CPU. The picture has the
    network's own size, else 256 pixels a side. A device that is named must pass the same. Raises
    DistillError where it does not.
    """
    if device == "cpu":
        return CPU, "device: cpu"
    runtime = available_providers()
    names = [name for name, provider in PROVIDERS.items() if provider in runtime]  # the best first
    if device != "auto":
        if device not in names:
            raise DistillError(
                f"device={device}: not in this ONNX Runtime; there are: {', '.join(names)}"
            )
        if reason := _refusal(model, PROVIDERS[device], threads):
            raise DistillError(f"device={device}: {reason}; take device=auto or device=cpu")
        return PROVIDERS[device], f"device: {device}"
    reasons = []
    for each in (name for name in names if name in BY_ITSELF):
        reason = _refusal(model, PROVIDERS[each], threads)
        if not reason:
            return PROVIDERS[each], f"device: {each} (device=cpu for the CPU)"
        reasons.append(f"{each}: {reason}")
    return CPU, "; ".join(["device: cpu", *reasons])


def _refusal(model: onnx.ModelProto, provider: str, threads: int) -> str:
    """Why a provider cannot run the network as the CPU does; empty where it can."""
    try:
        cpu, other = (open_session(model, threads, each) for each in (CPU, provider))
        sides = [d if isinstance(d, int) else SIDE for d in cpu.get_inputs()[0].shape[2:]]
        picture = np.random.default_rng(0).random((1, 3, *sides), np.float32)
        expected, output = picture_call(cpu)(picture), picture_call(other)(picture)
    except Exception as error:  # ONNX Runtime raises classes of its own, without a common base
        return reason_of(error, 200).removeprefix(f"providers=[{provider}]: ")
    if expected.shape != output.shape:
        return f"its output is {output.shape}, the CPU's {expected.shape}"
    furthest = float(np.abs(expected - output).max())
    if not furthest <= TOLERANCE:  # true for NaN too
        return f"its output is {furthest:.3g} from the CPU's, more than {TOLERANCE:.3g}"
    return ""
