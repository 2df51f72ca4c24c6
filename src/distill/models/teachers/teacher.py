"""What every teacher is: a frozen image-to-image network with a fingerprint."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from typing import Self

import torch.nn.functional as F
from torch import Tensor, nn

from distill.core.errors import DistillError
from distill.core.files import cache_folder, write_whole


class Teacher(nn.Module):
    """A frozen network from (N, 3, H, W) RGB in [0, 1] to the same shape and range.

    `multiple` is what the sides must divide by, 1 when any size goes; `fixed` the one (H, W) that
    it takes, if so. `gives_activations` says whether inner layers can be read (for GKA) or only
    the picture comes out. `transparent`: its output is RGBA, (N, 4, H, W). `takes_bfloat16`: under
    autocast it stays closer to its float32 output than 8-bit files do to the student. `normalises`:
    it does so over the whole picture, on which the colours of every part then depend.
    `traceable`: following its tensors through one picture shows all that it does to any. `by_name`:
    it only has drawings of certain photos, by their names, and stylizes no others. `timed`: it
    stylizes in seconds at most, on any device. `batch_size`: pictures at once on a GPU, unless one
    says.
    """

    multiple: int = 1
    fixed: tuple[int, int] | None = None
    gives_activations: bool = True
    transparent: bool = False
    takes_bfloat16: bool = False
    normalises: bool = False
    traceable: bool = True
    by_name: bool = False
    timed: bool = True
    batch_size: int = 16

    def open_choices(self) -> Mapping[str, Self]:
        """What this teacher could be, by name, where only its output for photos can tell which.

        They share the weights. Empty for all others.
        """
        return {}

    def choose(self, name: str) -> None:
        """Be that one of the open choices, for good. Raises KeyError for another name."""
        raise KeyError(name)

    def settle(self, fingerprint: str) -> bool:
        """Be the open choice with this fingerprint, if there is one; whether it is now ours."""
        for name, choice in self.open_choices().items():
            if choice.fingerprint() == fingerprint:
                self.choose(name)
        return self.fingerprint() == fingerprint

    def freeze(self) -> Self:
        """No gradients, evaluation mode; call at the end of a constructor."""
        self.requires_grad_(False)
        return self.eval()

    def train(self, mode: bool = True) -> Self:
        """A teacher never trains, whatever the module that holds it does."""
        return super().train(False)

    def fast(self) -> Self:
        """The quickest form of this teacher with the same output, in place; for labelling."""
        return self

    def settings(self) -> str:
        """What besides the weights decides the output, as a stable string."""
        return ""

    def fingerprint(self) -> str:
        """16 hexadecimal digits that change when the teacher's output would."""
        digest = hashlib.sha256(f"{type(self).__name__} {self.settings()}".encode())
        for name, tensor in sorted(self.state_dict().items()):
            digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
            digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
        return digest.hexdigest()[:16]


def at_any_size(network: nn.Module, photo: Tensor, multiple: int) -> Tensor:
    """A network's output in [0, 1] for (N, 3, H, W), whose sides `multiple` need not divide.

    The photo is filled up at its right and lower edge, and the output is cut again.
    """
    height, width = photo.shape[-2:]
    edges = (0, -width % multiple, 0, -height % multiple)
    padded = F.pad(photo, edges, mode="replicate") if any(edges) else photo
    return network(padded)[..., :height, :width].clamp(0, 1)


def check_typed(setting: str, typed: bool) -> None:
    """Remember KEY=VALUE where the user has `typed` it; else it must have been, some time before.

    A run's settings name its teacher, and the run may be somebody else's. What such a name would
    import or fetch is done only for those who have typed that name themselves, on this machine.
    Raises DistillError where it was not.
    """
    path, known = cache_folder() / "typed.txt", list[str]()
    with suppress(OSError, ValueError):
        known = path.read_text(encoding="utf-8").splitlines()
    if setting in known:
        return
    if not typed:
        raise DistillError(
            f"{setting}: a run names it, and it was never typed on this machine; if you trust it, "
            f"add this setting as a line to {path}, or label photos by it"
        )
    with suppress(OSError):  # a cache that cannot be written to: then it is asked for again
        write_whole(path, "".join(f"{each}\n" for each in [*known, setting]))
