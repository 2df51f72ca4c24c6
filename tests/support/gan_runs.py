"""Small runs of recipe=pix2pix and cyclegan, written as a training writes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import yaml
from torch import nn

from distill.core import nodes

SIDE = 64
UNET = {"_target_": "distill.models.generators.unet.UNet", "encoder": 0.1, "decoder": 0.1}
RESNET = {"_target_": "distill.models.generators.resnet.ResNetGenerator", "blocks": 2, "width": 4}
STUDENT = {
    "_target_": "distill.models.students.student.StudentGenerator",
    "encoder": {
        "_target_": "distill.models.students.encoder.MobileNetV2Encoder",
        "width": 0.35, "weights": "none",
    },
    "decoder": {"_target_": "distill.models.students.decoders.residual.Residual"},
}  # fmt: skip
DATA = {
    "root": None, "val_fraction": 0.5, "split_seed": 0, "size": SIDE, "crop_size": SIDE,
    "pad": None, "colour": 0.0, "flip": True, "batch_size": 1, "val_limit": None, "workers": 0,
}  # fmt: skip


def built(node: dict[str, Any], side: int = SIDE, channels: int = 3, seed: int = 0) -> nn.Module:
    """The network of a node, its statistics moved off their start."""
    torch.manual_seed(seed)
    network = nodes.build(node, size=side, in_channels=3, out_channels=channels)
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.running_mean, -0.5, 0.5)
            nn.init.uniform_(module.running_var, 0.5, 2.0)
    return network.eval()


def settings(
    recipe: str, node: dict[str, Any], channels: int = 3, side: int = SIDE, **data: Any
) -> dict[str, Any]:
    """What a checkpoint says of such a run."""
    own = {"kind": "pairs", "direction": "AtoB"} if recipe == "pix2pix" else {"kind": "unpaired"}
    domains = {} if recipe == "pix2pix" else {"a": None, "b": None}
    name = node["_target_"].rpartition(".")[2].lower()
    return {
        "recipe": recipe,
        "run": f"{recipe}-x",
        "channels": channels,
        "generator": {"name": name, "profile": "unet", "build": node},
        "budget": {"macs": None, "parameters": None, "bytes": None},
        "data": DATA | {"size": side, "crop_size": side} | own | domains | data,
    }


def write(folder: Path, said: dict[str, Any], **networks: nn.Module) -> Path:
    """A run's folder with a checkpoint of these networks, by their names in the recipe."""
    state = {
        f"{n}.{key}": value
        for n, net in networks.items()
        for key, value in net.state_dict().items()
    }
    state["pool_a.pictures"] = torch.zeros(0, 3, 8, 8)
    (folder / "checkpoints").mkdir(parents=True)
    saved = {"distill": said, "state_dict": state, "global_step": 5, "callbacks": {}}
    torch.save(saved, folder / "checkpoints" / "last.ckpt")
    (folder / "config.yaml").write_text(yaml.safe_dump(said))
    return folder
