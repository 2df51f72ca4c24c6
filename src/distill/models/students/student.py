"""The student: an encoder's features through a decoder."""

from __future__ import annotations

from torch import Tensor, nn


class Student(nn.Module):
    """(N, 3, H, W) RGB in [0, 1] to (N, 3 or 4, H, W) in [0, 1]; sides divide by 32."""

    def __init__(self, encoder: nn.Module, decoder: nn.Module) -> None:
        super().__init__()
        self.encoder, self.decoder = encoder, decoder

    def forward(self, photo: Tensor) -> Tensor:
        return self.decoder(self.encoder(photo))
