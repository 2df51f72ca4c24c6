"""What every teacher is: a frozen image-to-image network with a fingerprint."""

import hashlib
import math
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from distill.core.arrays import MODES
from distill.core.errors import DistillError, counted
from distill.core.files import cache_folder, write_whole
from distill.core.images import SLACK, wrong_pictures

ALIKE = 2 / 255  # no more than the 8 bits of a label can tell apart
USUAL = ((0.0, 1.0), (-1.0, 1.0), (0.0, 255.0))  # values of black and white of other networks


class BadPicture(DistillError):
    """What a teacher gave is no picture; `index` says of which photo of the batch."""

    def __init__(self, reason: str, index: int = 0) -> None:
        super().__init__(reason)
        self.index = index


class Teacher(nn.Module):
    """A frozen network from (N, 3, H, W) RGB in [0, 1] to the same shape and range, or to grey
    (N, 1, H, W), as a matte.

    `multiple` is what the sides must divide by, 1 when any size goes; `fixed` the one (H, W) that
    it takes, if so. `gives_activations` says whether inner layers can be read (for GKA) or only
    the picture comes out. `transparent`: its output is RGBA, (N, 4, H, W). `takes_bfloat16`: under
    autocast it stays closer to its float32 output than 8-bit files do to the student. `normalises`:
    it does so over the whole picture, on which the colours of every part then depend.
    `traceable`: following its tensors through one picture shows all that it does to any. `by_name`:
    it only has drawings of certain photos, by their names, and stylizes no others. `timed`: it
    stylizes in seconds at most, on any device. `batch_size`: pictures at once on a GPU, unless one
    says. `unseen`: what besides decides the output, and no fingerprint shows.

    Whatever `forward` gives is checked when the teacher is called, and then clamped to [0, 1]:
    a BadPicture says what is wrong. `origin` is what it calls the teacher, `black_white` the
    network's own values of both, of which `outside` may be that share beyond them.

    >>> class Negative(distill.Teacher):
    ...     def forward(self, photo):
    ...         return 1 - photo
    >>> Negative().freeze()(torch.zeros(1, 3, 64, 64)).mean()
    tensor(1.)
    """

    origin: str = "the teacher"
    black_white: tuple[float, float] = (0.0, 1.0)
    outside: float = 0.0

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
    unseen: str = ""

    def __call__(self, photo: Tensor, *more: Any, **options: Any) -> Any:
        output = super().__call__(photo, *more, **options)
        if torch.jit.is_tracing() or torch.compiler.is_compiling():  # values are not known there
            return output
        self.check(output, photo)
        return output.clamp(0, 1)

    def check(self, output: object, photo: Tensor) -> None:
        """Raises BadPicture for no tensor, another size or range, or values that are not finite."""
        want = (len(photo), 3, *photo.shape[2:])
        if not isinstance(output, Tensor):  # of the user's
            raise BadPicture(f"{self.origin}: {wrong_pictures(output, want)}")
        if output.shape not in [(len(photo), count, *photo.shape[2:]) for count in MODES]:
            raise BadPicture(f"{self.origin}: gave {tuple(output.shape)}, want {want}")
        for index, each in enumerate(output.detach()):
            low, high = (v.item() for v in each.float().aminmax())
            if not math.isfinite(low) or not math.isfinite(high):
                reason = "gave values that are not finite (NaN or infinite)"
                raise BadPicture(f"{self.origin}: {reason}; drop=FILE leaves photos out", index)
            if low >= -SLACK and high <= 1 + SLACK:
                continue
            share = ((each < -SLACK) | (each > 1 + SLACK)).float().mean().item()
            if share > self.outside:
                raise BadPicture(f"{self.origin}: gave {self._values(low, high)}", index)

    def check_together(self, output: Tensor, photos: Tensor) -> None:
        """Raises BadPicture where outputs for several photos (N, C, H, W) are one and the same, or
        each is of one colour, although the photos are not."""
        if len(photos) < 2:  # a single one may well be all white, as a drawing of the sky
            return
        flat = bool((output.amax((2, 3)) - output.amin((2, 3))).max() <= ALIKE)
        flat &= bool(photos.std((2, 3)).amax(1).median() > 0.05)
        same = bool((output - output[:1]).abs().max() <= ALIKE)
        same &= bool((photos - photos[:1]).abs().mean((1, 2, 3)).max() > 0.05)
        if not flat and not same:
            return
        what = "one colour all over" if flat else "the same picture"
        low, high = (v.item() for v in output.aminmax())
        those = counted(len(photos), "photo")
        raise BadPicture(f"{self.origin}: gave {what} for {those}: {self._values(low, high)}")

    def _values(self, low: float, high: float) -> str:
        """From [0, 1], as the network gave them, and which range may have been meant."""
        black, white = self.black_white
        low, high = (black + (white - black) * v for v in (low, high))
        values = f"values from {low:.4g} to {high:.4g}, want [{black:g}, {white:g}]"
        for span in USUAL if hasattr(self, "output_range") else ():
            tenth, other = (span[1] - span[0]) / 10, span != (black, white)
            if other and span[0] - tenth < low < high - tenth and high < span[1] + tenth:
                return f"{values}; try teacher.output_range=[{span[0]:g},{span[1]:g}]"
        return values

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

    def layers(self, photo: Tensor) -> dict[str, Tensor]:
        """The output for (N, 3, H, W), `picture`, and what it is composed of, by name.

        `ink` (N, 1, H, W) in [0, 1] is the share of each pixel that lines cover. Of most teachers
        only the picture is known.
        """
        return {"picture": self(photo)}

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


def at_any_size(
    network: nn.Module, photo: Tensor, multiple: int = 32, sides: tuple[int, int] | None = None
) -> Tensor:
    """A network's output for (N, 3, H, W), whose sides `multiple` need not divide.

    The photo is filled up at its right and lower edge, and the output is cut again. `sides` are the
    photo's where a tracer sees no shapes.
    """
    height, width = sides or photo.shape[-2:]
    edges = (0, -width % multiple, 0, -height % multiple)
    padded = F.pad(photo, edges, mode="replicate") if any(edges) else photo
    return network(padded)[..., :height, :width]


def check_typed(setting: str, typed: bool) -> None:
    """Remember KEY=VALUE where the user has `typed` it; else it must have been, some time before.

    A run's settings name its teacher, and the run may be somebody else's. What such a name would
    import or fetch is done only for those who have typed that name themselves, on this machine.
    Raises DistillError where it was not.
    """
    path, settings = cache_folder() / "typed.txt", list[str]()
    with suppress(OSError, ValueError):
        settings = path.read_text(encoding="utf-8").splitlines()
    if setting in settings:
        return
    if not typed:
        raise DistillError(
            f"{setting}: a run names it, and it was never typed on this machine; if you trust it, "
            f"add this setting as a line to {path}, or label photos by it"
        )
    with suppress(OSError):  # a cache that cannot be written to: then it is asked for again
        write_whole(path, "".join(f"{each}\n" for each in [*settings, setting]))
