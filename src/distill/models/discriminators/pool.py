"""Fakes of earlier steps for a discriminator (Shrivastava et al. 2017)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn


class ImagePool(nn.Module):
    """Keeps up to `size` fakes; gives each of a batch back or, half of the time, an older one.

    It gives the same shape as it gets. A fake that is exchanged takes the older one's place. Its
    pictures are in the state dict, so that a resumed run has them; chance is PyTorch's generator.
    """

    pictures: Tensor

    def __init__(self, size: int = 50) -> None:
        super().__init__()
        self.size = size
        self.register_buffer("pictures", torch.empty(0))

    @torch.no_grad()
    def forward(self, fakes: Tensor) -> Tensor:
        if self.size == 0:
            return fakes.detach()
        return torch.stack([self._one(fake) for fake in fakes.detach()])

    def _one(self, fake: Tensor) -> Tensor:
        held = len(self.pictures)
        if held < self.size:
            rows = [self.pictures.to(fake)] if held else []
            self.pictures = torch.cat([*rows, fake[None]])
            return fake
        if torch.rand(()) < 0.5:
            return fake
        index = int(torch.randint(held, ()))
        older = self.pictures[index].clone()
        self.pictures[index] = fake
        return older

    def _load_from_state_dict(  # type: ignore[override]
        self, state: Any, prefix: str, *args: Any, **kwargs: Any
    ) -> None:
        """As many pictures as the state has: an empty pool takes any number."""
        saved = state.get(f"{prefix}pictures")
        if saved is not None:
            self.pictures = torch.empty_like(saved, device=self.pictures.device)
        super()._load_from_state_dict(state, prefix, *args, **kwargs)
