"""Vision transformers for features: DINOv2 (Oquab et al. 2023) and CLIP (Radford et al. 2021).

The same blocks, pre-norm attention and a perceptron; their sizes are those of the weights. Written
after the papers; with the same weights they equal the implementations of transformers.
"""

from collections import OrderedDict
from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional as F

HEAD = 64  # channels of a head, in all of their sizes
# Names of DINOv2's parameters, and CLIP's for the same.
RENAMED = {
    "blocks.": "transformer.resblocks.", "norm1.": "ln_1.", "norm2.": "ln_2.",
    "attn.qkv.": "attn.in_proj_", "attn.proj.": "attn.out_proj.", "mlp.fc1.": "mlp.c_fc.",
    "mlp.fc2.": "mlp.c_proj.", "ls1.gamma": "scale_1", "ls2.gamma": "scale_2",
    "patch_embed.proj.": "conv1.", "cls_token": "class_embedding",
    "pos_embed": "positional_embedding", "norm.": "ln_post.",
}  # fmt: skip


class QuickGELU(nn.Module):
    """x · σ(1.702 x), with which CLIP was trained."""

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.sigmoid(1.702 * x)


class Block(nn.Module):
    """x + s₁ · attention(norm(x)), then x + s₂ · perceptron(norm(x)); s are 1 in CLIP."""

    def __init__(self, width: int, activation: nn.Module, eps: float) -> None:
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(width, eps), nn.LayerNorm(width, eps)
        self.attn = nn.MultiheadAttention(width, width // HEAD, batch_first=True)
        wide = nn.Linear(width, 4 * width)
        narrow = nn.Linear(4 * width, width)
        layers = OrderedDict(c_fc=wide, activation=activation, c_proj=narrow)
        self.mlp = nn.Sequential(layers)
        self.scale_1, self.scale_2 = (nn.Parameter(torch.ones(width)) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        normed = self.ln_1(x)
        x = x + self.scale_1 * self.attn(normed, normed, normed, need_weights=False)[0]
        return x + self.scale_2 * self.mlp(self.ln_2(x))


class VisionTransformer(nn.Module):
    """(N, 3, S, S), normalised, to the class token's output (N, d), with CLIP's projection if any.

    `state` are CLIP's parameters without the prefix `visual.`, or DINOv2's by these names, whose
    position embeddings are interpolated where S is not the size that it was trained with.
    """

    def __init__(self, state: Mapping[str, Tensor]) -> None:
        super().__init__()
        width, _, self.patch, _ = state["conv1.weight"].shape
        clip = "ln_pre.weight" in state
        eps = 1e-5 if clip else 1e-6
        depth = len({key.split(".")[2] for key in state if key.startswith("transformer.")})
        activation = QuickGELU() if clip else nn.GELU()
        self.conv1 = nn.Conv2d(3, width, self.patch, self.patch, bias=not clip)
        self.class_embedding = nn.Parameter(torch.zeros(width))
        self.positional_embedding = nn.Parameter(torch.zeros(state["positional_embedding"].shape))
        self.ln_pre = nn.LayerNorm(width, eps) if clip else nn.Identity()
        blocks = nn.Sequential(*(Block(width, activation, eps) for _ in range(depth)))
        self.transformer = nn.ModuleDict({"resblocks": blocks})
        self.ln_post = nn.LayerNorm(width, eps)
        self.proj = nn.Parameter(torch.zeros(state["proj"].shape)) if "proj" in state else None
        ones = {k: v for k, v in self.state_dict().items() if ".scale_" in k}
        self.load_state_dict(ones | {k: v.float() for k, v in state.items()})
        self.requires_grad_(False).eval()

    def forward(self, pictures: Tensor) -> Tensor:
        patches = self.conv1(pictures)
        places = self._positions(patches.shape[-1])
        tokens = patches.flatten(2).transpose(1, 2)
        start = self.class_embedding.expand(len(tokens), 1, -1)
        x = self.ln_pre(torch.cat([start, tokens], 1) + places)
        for block in self.transformer["resblocks"].children():
            x = block(x)
        x = self.ln_post(x[:, 0])
        return x if self.proj is None else x @ self.proj

    def _positions(self, side: int) -> Tensor:
        known = round((len(self.positional_embedding) - 1) ** 0.5)
        if side == known:
            return self.positional_embedding
        first, grid = self.positional_embedding[:1], self.positional_embedding[1:]
        grid = grid.T.reshape(1, -1, known, known)
        # The tenth of a patch more is DINOv2's: with it rounding never loses a row.
        scale = (side + 0.1) / known
        grid = F.interpolate(grid, scale_factor=(scale, scale), mode="bicubic")
        return torch.cat([first, grid.flatten(2)[0].T])


def of_dinov2(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """A checkpoint of DINOv2 by CLIP's names; what only training needs is left out."""
    tensors = {}
    for key, value in state.items():
        for before, now in RENAMED.items():
            if key.startswith(before) or "blocks." in key:
                key = key.replace(before, now)
        tensors[key] = value
    tensors.pop("mask_token", None)
    for name in ("class_embedding", "positional_embedding"):
        tensors[name] = tensors[name].squeeze()
    return tensors
