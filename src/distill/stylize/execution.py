"""Which of ONNX Runtime's providers runs a student: the one asked for, or the best that fits."""

from __future__ import annotations

import numpy as np
import onnx

from distill.core.errors import DistillError, reason_of
from distill.core.sessions import CPU, available_providers, open_session, picture_call

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


def choose(model: onnx.ModelProto, device: str, threads: int) -> tuple[str, str]:
    """A provider for a network of one picture (1, 3, H, W), and a line that says which, and why.

    `device` is one of PROVIDERS, or `auto`: the best that is there, runs the whole network and
    gives the CPU's output of a made-up picture within TOLERANCE; else the CPU. The picture has the
    network's own size, else 256 pixels a side. A device that is named must pass the same. Raises
    DistillError where it does not.
    """
    if device == "cpu":
        return CPU, "device: cpu"
    built = available_providers()
    there = [name for name, provider in PROVIDERS.items() if provider in built]  # the best first
    if device != "auto":
        if device not in there:
            raise DistillError(
                f"device={device}: not in this ONNX Runtime; there are: {', '.join(there)}"
            )
        if reason := _refusal(model, PROVIDERS[device], threads):
            raise DistillError(f"device={device}: {reason}; take device=auto or device=cpu")
        return PROVIDERS[device], f"device: {device}"
    refused = []
    for each in (name for name in there if name in BY_ITSELF):
        reason = _refusal(model, PROVIDERS[each], threads)
        if not reason:
            return PROVIDERS[each], f"device: {each} (device=cpu for the CPU)"
        refused.append(f"{each}: {reason}")
    return CPU, "; ".join(["device: cpu", *refused])


def _refusal(model: onnx.ModelProto, provider: str, threads: int) -> str:
    """Why a provider cannot run the network as the CPU does; empty where it can."""
    try:
        own, other = (open_session(model, threads, each) for each in (CPU, provider))
        sides = [d if isinstance(d, int) else SIDE for d in own.get_inputs()[0].shape[2:]]
        picture = np.random.default_rng(0).random((1, 3, *sides), np.float32)
        wanted, given = picture_call(own)(picture), picture_call(other)(picture)
    except Exception as error:  # ONNX Runtime raises classes of its own, without a common base
        return reason_of(error, 200).removeprefix(f"providers=[{provider}]: ")
    if wanted.shape != given.shape:
        return f"its output is {given.shape}, the CPU's {wanted.shape}"
    furthest = float(np.abs(wanted - given).max())
    if not furthest <= TOLERANCE:  # true for NaN too
        return f"its output is {furthest:.3g} from the CPU's, more than {TOLERANCE:.3g}"
    return ""
