"""Small runs of recipe=pix2pix and cyclegan, written as a training writes them."""

from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Any

import torch
import yaml
from torch import nn

from distill.config import compose, registry
from distill.config.settings.networks import Generator
from distill.config.settings.training import Budget, Training
from distill.core import nodes
from distill_gan.settings import Adversarial

SIDE = 64
UNET = {"_target_": "distill_gan.generators.unet.UNet", "encoder": 0.1, "decoder": 0.1}
RESNET = {"_target_": "distill_gan.generators.resnet.ResNetGenerator", "blocks": 2, "width": 4}
STUDENT = {
    "_target_": "distill.models.students.student.StudentGenerator",
    "encoder": {
        "_target_": "distill.models.students.encoder.MobileNetV2Encoder",
        "width": 0.35, "weights": "none",
    },
    "decoder": {"_target_": "distill.models.students.decoders.residual.Residual"},
}  # fmt: skip
DATA = {
    "val_fraction": 0.5, "colour": 0.0, "flip": True, "batch_size": 1, "workers": 0,
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


@cache
def composed(recipe: str) -> Adversarial:
    return compose.load("train", [f"recipe={recipe}"], registry.schema_of)


def settings(
    recipe: str, node: dict[str, Any], channels: int = 3, side: int = SIDE, **data: Any
) -> Any:
    """Those of such a run."""
    run = composed(recipe)
    return replace(
        run,
        run=f"{recipe}-x",
        channels=channels,
        generator=Generator(
            name=node["_target_"].rpartition(".")[2].lower(), profile="unet", build=node
        ),
        budget=Budget(macs=None, parameters=None, bytes=None),
        data=replace(run.data, size=side, crop_size=side, **(DATA | data)),
    )


def write(folder: Path, settings: Training, **networks: nn.Module) -> Path:
    """A run's folder with a checkpoint of these networks, by their names in the recipe."""
    state = {
        f"{n}.{key}": value
        for n, net in networks.items()
        for key, value in net.state_dict().items()
    }
    state["pool_a.pictures"] = torch.zeros(0, 3, 8, 8)
    (folder / "checkpoints").mkdir(parents=True)
    said = asdict(settings)
    saved = {"distill": said, "state_dict": state, "global_step": 5, "callbacks": {}}
    torch.save(saved, folder / "checkpoints" / "last.ckpt")
    (folder / "config.yaml").write_text(yaml.safe_dump(said))
    return folder
