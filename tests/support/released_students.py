"""The paper author's released students (dhrits/Anime, MIT) in this project's names."""

from torch import Tensor

# Ours by theirs: the encoder, then a 1×1 at stride 32 and one convolution per ×2 step.
_NAMES = {
    "features": "encoder.blocks",
    "upscale0": "decoder.deep",
    "upscale1": "decoder.up16",
    "upscale2": "decoder.up8",
    "upscale3": "decoder.up4",
    "upscale4": "decoder.up2",
    "upscale5": "decoder.out",
}


def from_released(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """A released state dict with the names of Student(MobileNetV2Encoder(0.5), NNConv).

    The network is the same: RGB in [0, 1] in, and the release's output in [0, 255] is 255 times
    the student's. Raises KeyError for a name that is none of the release's.
    """
    renamed = {}
    for name, tensor in state.items():
        head, _, tail = name.partition(".")
        renamed[f"{_NAMES[head]}.{tail}"] = tensor
    return renamed
