"""Heads: how a student's last channels become a picture, for teachers that decide.

A teacher that thresholds or quantises is not learnt by regressing its picture: the student gives
the mean over the decision, a blur. A head gives the decision itself: which ink of a palette a pixel
has, or whether a line covers it. Logits are multiplied by `sharpness`, which is chosen after
training: the larger, the narrower the borders.
"""

import re
from collections.abc import Mapping, Sequence

import kornia
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from distill.core.errors import DistillError
from distill.core.images import REC_601, black_hat, luma
from distill.models.kmeans import means
from distill.models.students.photo_palette import PhotoPalette

MOST = 32  # inks
NEAREST = 30.0  # logits per squared distance between a colour and an ink
BARE = 3.0  # logit of paint where no lines are known yet: lines have a share of .05
FAR = 40 / 255  # from the nearest ink, in a channel
GREYS = 0.03, 0.97  # of the darkest and lightest tone: logits of black and white are infinite
CERTAIN = 6.0  # by how much the logit between two tones changes from one to the other
SEEN = 0.05  # of the paint under a line, what tells its lightness
BLACK = 0.3  # without the teacher's ink, how much darker than its surroundings a line is at α = 1


class Head(nn.Module):
    """Logits (N, `channels`, H, W) of a decoder to a picture (N, 3, H, W) in [0, 1].

    A head that knows the whole picture has `numbers` > 0: those which it describes the picture by,
    as the last ones of the student's summary.
    `reads_lines`: it learns from the teacher's layer of lines too, where the pairs have it.
    `decision` passes the logits (N, K, H, W) of the classes that a pixel may be of, before their
    sharpness: losses read them there. A subclass in a package of one's own is a head too.
    """

    channels: int
    reads_lines: bool = False
    numbers: int = 0
    sharpness: Tensor

    def __init__(self, sharpness: float = 1.0) -> None:
        super().__init__()
        if sharpness <= 0:
            raise DistillError(f"head.sharpness={sharpness:g}: above 0")
        self.register_buffer("sharpness", torch.tensor(float(sharpness)))
        self.decision = nn.Identity()

    def forward(self, logits: Tensor, description: Tensor | None = None) -> Tensor:
        raise NotImplementedError

    def describe(self, thumbnail: Tensor) -> Tensor:
        """What `forward` is given of a picture, (N, `numbers`, 1, 1), by (N, 3, 256, 256)."""
        raise NotImplementedError

    def target_classes(
        self, picture: Tensor, lines: Tensor | None = None, palette: Tensor | None = None
    ) -> Tensor:
        """The share (N, K, H, W) of each class in the pixels of a target (N, 3, H, W) in [0, 1].

        `lines` (N, 1, H, W) in [0, 1] is the teacher's layer of lines where the pairs have it,
        `palette` are the inks (N, K, 3) that a head predicts for each picture.
        """
        raise NotImplementedError

    def from_colours(self) -> tuple[Tensor, Tensor]:
        """(channels, 3) and (channels,): logits as a linear function of a colour's logits, with
        which a student begins from the photo, or from one that was trained without this head."""
        raise NotImplementedError

    def check_target(self, picture: Tensor) -> None:
        """Raises DistillError for a target (3, H, W) in [0, 1] that this head cannot give."""

    def begin_at(self, targets: Tensor) -> None:
        """Initialize from some targets (N, 3, H, W) in [0, 1], before the first step."""


class PaletteHead(Head):
    """A softmax over the K inks of a print, times the inks.

    `inks` are colours `#rrggbb`, 2 to 32, fixed or, with `learnt`, trained further; or their number
    alone: they are learnt, from the centres of k-means of the targets on. The first ink's logit is
    0, so that K − 1 channels decide between K inks. Raises DistillError for another number of inks.
    """

    inks: Tensor
    rows: Tensor

    def __init__(
        self, inks: Sequence[str] | int, learnt: bool = False, sharpness: float = 1.0
    ) -> None:
        super().__init__(sharpness)
        self.unknown = isinstance(inks, int)
        if isinstance(inks, int):
            _check_count(inks)
            learnt, colours = True, torch.linspace(0, 1, inks)[:, None].repeat(1, 3)
        else:
            _check_count(len(inks))
            colours = torch.stack([_colour(each) for each in inks])
        self.channels = len(colours) - 1
        if learnt:
            self.inks = nn.Parameter(colours)
        else:  # settings say them: files need not
            self.register_buffer("inks", colours, persistent=False)
        self.register_buffer("rows", torch.eye(len(colours))[:, 1:, None, None], persistent=False)
        self.mixture = Mixture(len(colours))

    def forward(self, logits: Tensor, description: Tensor | None = None) -> Tensor:
        # By 1×1 convolutions, the first of which puts a logit of 0 before the others.
        classes = self.decision(F.conv2d(logits, self.rows))
        if len(self.inks) == 2:  # no phone lacks a sigmoid
            share = torch.sigmoid(self.sharpness * logits)
            return F.conv2d(share, (self.inks[1:] - self.inks[:1]).T[..., None, None], self.inks[0])
        return self.mixture(self.sharpness * classes, self.inks)

    def target_classes(
        self, picture: Tensor, lines: Tensor | None = None, palette: Tensor | None = None
    ) -> Tensor:
        inks = self.inks.detach()
        if len(inks) == 2:  # the share of the second, which borders have a part of
            span = inks[1] - inks[0]
            share = ((picture - inks[0].view(1, 3, 1, 1)) * span.view(1, 3, 1, 1)).sum(1)
            share = (share / span.square().sum()).clamp(0, 1)[:, None]
            return torch.cat([1 - share, share], 1)
        return _one_hot(picture, inks[None])

    def from_colours(self) -> tuple[Tensor, Tensor]:
        # −‖p − ink‖² of the picture p = σ(z), about ½ + z/4, less what all inks have in common.
        inks = self.inks.detach()
        offset = NEAREST * (inks.sum(1) - inks.square().sum(1))
        rows = NEAREST * inks / 2
        return rows[1:] - rows[:1], offset[1:] - offset[0]

    @torch.no_grad()
    def begin_at(self, targets: Tensor) -> None:
        if not self.unknown:
            return
        pixels = targets.movedim(1, 0).flatten(1)
        sample = pixels[:, torch.linspace(0, pixels.shape[1] - 1, 96**2).long()].view(3, 96, 96)
        centres = means(kornia.color.rgb_to_lab(sample), len(self.inks))
        centres = centres[centres[:, 0].argsort()].T[None, :, :, None]
        self.inks.copy_(kornia.color.lab_to_rgb(centres, clip=True)[0, :, :, 0].T)

    def check_target(self, picture: Tensor) -> None:
        away = (picture[None] - self.inks.detach()[..., None, None]).abs().amax(1).amin(0)
        share = float((away > FAR).float().mean())
        if share > 0.5:
            raise DistillError(
                f"head.inks: {share:.0%} of a target's pixels are far from every ink of the "
                "palette; give the inks that the targets have, or set head=picture"
            )


class PredictedPaletteHead(Head):
    """A palette of `count` inks that each picture has of its own, by PhotoPalette.

    The decoder gives what is compared with the palette's centres: a softmax of the distances
    decides between the inks.
    """

    channels = 3

    def __init__(self, count: int = 8, sharpness: float = 1.0) -> None:
        super().__init__(sharpness)
        _check_count(count)
        self.palette = PhotoPalette(count)
        self.numbers = self.palette.numbers
        self.inks = nn.Identity()

    def describe(self, thumbnail: Tensor) -> Tensor:
        return self.palette(thumbnail)

    def forward(self, logits: Tensor, description: Tensor | None = None) -> Tensor:
        if description is None:
            raise DistillError(
                "head=predicted_palette: the inks follow from the whole picture; add "
                "global_statistics=thumbnail"
            )
        spread, palette = description[:, :1, 0], description[:, 1:].view(len(logits), 2, -1, 3)
        centres, inks = palette[:, 0], self.inks(palette[:, 1])
        # From the middle of the centres on: of narrow palettes little would be left by rounding.
        middle = centres.sum(1, keepdim=True) / self.palette.count
        centres, points = centres - middle, logits.flatten(2) - middle.transpose(1, 2)
        near = 2 * torch.matmul(centres, points) - (centres * centres).sum(2, True)
        classes = (near / spread).view(len(logits), -1, *logits.shape[2:])
        shares = torch.softmax(self.sharpness * self.decision(classes), 1)
        return torch.matmul(inks.transpose(1, 2), shares.flatten(2)).reshape(logits.shape)

    def target_classes(
        self, picture: Tensor, lines: Tensor | None = None, palette: Tensor | None = None
    ) -> Tensor:
        assert palette is not None
        return _one_hot(picture, palette)

    def from_colours(self) -> tuple[Tensor, Tensor]:
        return torch.eye(3) / 4, torch.full((3,), 0.5)  # σ(z) is about ½ + z/4


class LayersHead(Head):
    """Paint, and lines over it: (1 − α) paint + α ink.

    The first three channels are the paint's logits, the fourth is that of 1 − α. `ink` is the
    colour of all lines, or None: three more channels are the logits of each line's own.
    `opacity` is the most that a line covers, in (0, 1]. The two classes are paint and line.

    `tones` are the lightnesses (L* / 100) of paint that has few, 2 to 32, upwards in [0, 1]. The
    last channel is gathered at the nearest of them, and the paint's logits are added to those of
    grey of that lightness: they are colour alone. The classes are the tones and line then.
    """

    reads_lines = True
    colour: Tensor
    lightness: Tensor
    slopes: Tensor
    middles: Tensor
    rises: Tensor
    darkest: Tensor

    def __init__(
        self,
        ink: str | None = "#000000",
        opacity: float = 1.0,
        sharpness: float = 1.0,
        tones: Sequence[float] = (),
    ) -> None:
        super().__init__(sharpness)
        if not 0 < opacity <= 1:
            raise DistillError(f"head.opacity={opacity:g}: above 0, at most 1")
        lined = 4 if ink else 7
        self.channels, self.opacity, self.black = lined + bool(tones), opacity, False
        if ink:
            self.register_buffer("colour", _colour(ink).view(1, 3, 1, 1), persistent=False)
            self.black = not self.colour.any()
        self.paint, self.bare, self.line, self.tone = (
            Channels(self.channels, *part)
            for part in ((0, 3), (3, 4), (4, lined), (lined, self.channels))
        )
        self.tones = len(tones)
        if tones:
            self._place(torch.tensor([float(each) for each in tones]))

    def _place(self, tones: Tensor) -> None:
        """Above the middle between two tones the tone is the upper one."""
        steps = tones.diff()
        _check_count(len(tones), "tones")
        if steps.min() <= 0 or tones[0] < 0 or tones[-1] > 1:
            listed = [round(each, 3) for each in tones.tolist()]
            raise DistillError(f"head.tones={listed}: from 0 to 1, each above the one before")
        slopes = CERTAIN * steps / steps.min().square()
        self.register_buffer("lightness", tones, persistent=False)
        self.register_buffer("slopes", slopes.view(-1, 1, 1, 1), persistent=False)
        self.register_buffer("middles", -slopes * (tones[1:] + tones[:-1]) / 2, persistent=False)
        lab = torch.stack([100 * tones, 0 * tones, 0 * tones])[None, ..., None]
        greys = kornia.color.lab_to_rgb(lab)[0, :1, :, 0].clamp(*GREYS).logit()
        rises = greys.diff().view(1, -1, 1, 1).repeat(3, 1, 1, 1)
        self.register_buffer("rises", rises, persistent=False)
        self.register_buffer("darkest", greys[0, :1].repeat(3), persistent=False)

    def forward(self, logits: Tensor, description: Tensor | None = None) -> Tensor:
        paint, bare = self.paint(logits), self.bare(logits)
        if self.tones:
            above = F.conv2d(self.tone(logits), self.slopes, self.middles)
            # Of the logits of neighbouring tones this is the difference.
            tones = F.pad(above, (0, 0, 0, 0, 1, 0)).cumsum(1).log_softmax(1)
            self.decision(torch.cat([F.logsigmoid(bare) + tones, F.logsigmoid(-bare)], 1))
            above = torch.sigmoid(self.sharpness * above)
            paint = paint + F.conv2d(above, self.rises, self.darkest)
        else:
            self.decision(torch.cat([bare, torch.zeros_like(bare)], 1))
        paint, bare = torch.sigmoid(paint), torch.sigmoid(self.sharpness * bare)
        if self.opacity < 1:
            bare = (1 - self.opacity) + self.opacity * bare
        if self.black:
            return paint * bare
        colour = self.colour if hasattr(self, "colour") else torch.sigmoid(self.line(logits))
        return colour + (paint + -1.0 * colour) * bare

    def target_classes(
        self, picture: Tensor, lines: Tensor | None = None, palette: Tensor | None = None
    ) -> Tensor:
        if lines is None:
            lines = black_hat(luma(picture)) / BLACK
        share = (lines / self.opacity).clamp(0, 1)
        if not self.tones:
            return torch.cat([1 - share, share], 1)
        seen = (1 - self.opacity * share).clamp_min(SEEN)
        ink = self.colour if hasattr(self, "colour") else 0.0
        paint = ((picture - (1 - seen) * ink) / seen).clamp(0, 1)
        away = kornia.color.rgb_to_lab(paint)[:, :1] / 100 - self.lightness.view(1, -1, 1, 1)
        nearest = F.one_hot(away.abs().argmin(1), self.tones).movedim(-1, 1)
        return torch.cat([(1 - share) * nearest, share], 1)

    def from_colours(self) -> tuple[Tensor, Tensor]:
        colours, lined = torch.eye(3), self.channels - bool(self.tones)
        rows = torch.cat([colours, torch.zeros(1, 3), *[colours] * (lined > 4)])
        offset = BARE * (torch.arange(lined) == 3)
        if not self.tones:
            return rows, offset
        grey = torch.tensor([REC_601])  # its logit; its lightness is about ½ + z/4
        rows[:3] -= grey
        return torch.cat([rows, grey / 4]), torch.cat([offset, torch.tensor([0.5])])


class Mixture(nn.Module):
    """Softmax over the channels of (N, K, H, W), times inks (K, 3), as (N, 3, H, W).

    The exponentials' sum is a fourth output of the convolution with the inks. In ONNX Runtime that
    takes a quarter of the time of Softmax, which is slow over another axis than the last.
    """

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count

    def forward(self, logits: Tensor, inks: Tensor) -> Tensor:
        weights = torch.cat([inks.T, torch.ones_like(inks[:, :1]).T])[..., None, None]
        sums = F.conv2d(torch.exp(logits - logits.amax(1, keepdim=True)), weights)
        return sums[:, :3] / sums[:, 3:]


class Channels(nn.Module):
    """Those from `start` to `stop` of `count` channels."""

    def __init__(self, count: int, start: int, stop: int) -> None:
        super().__init__()
        self.count, self.start, self.stop = count, start, stop

    def forward(self, x: Tensor) -> Tensor:
        return x[:, self.start : self.stop]


def initial_state(
    student: nn.Module, head: Head, state: Mapping[str, Tensor], plain: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """The state of a student of the same shape as that of `student`, which has this head.

    `plain` is the state of any student of this shape that gives four channels: what has another
    shape in it are the last layer and what scales and shifts it. Of a student that gave colours
    they become those of the head's logits; of one with a head they stay where they fit, and its
    paint becomes one of tones.
    """
    rows, offset = head.from_colours()
    new = student.state_dict()
    begun = {name: value for name, value in new.items() if name.startswith("head.")}
    decided = any(name.startswith("head.") for name in state)
    learnt = {f"head.{name}" for name, _ in head.named_parameters()}  # the rest are settings
    for name, value in state.items():
        if name.startswith("head."):
            if name in learnt and value.shape == new[name].shape:
                begun[name] = value
            continue
        fits = name not in new or value.shape == new[name].shape
        if fits and (decided or name not in new or plain[name].shape == value.shape):
            begun[name] = value
            continue
        axis = int(value.dim() == 4 and value.shape[2:] == (2, 2))  # a transposed convolution's
        if decided and not (getattr(head, "tones", 0) and value.shape[axis] == len(rows) - 1):
            begun[name] = new[name]
            continue
        colours = value.narrow(axis, 0, 3)
        if name.startswith("statistics.gains."):  # colours have a gain each: their mean
            begun[name] = colours.mean(0, keepdim=True).expand(new[name].shape).clone()
        elif value.dim() == 1:  # a bias of the last layer, or one by the whole picture
            begun[name] = rows @ colours + (0 if name.startswith("statistics.") else offset)
        else:
            begun[name] = torch.tensordot(rows, colours, ([1], [axis])).movedim(0, axis)
        if decided:  # its lines
            lines = value.narrow(axis, 3, value.shape[axis] - 3)
            begun[name].narrow(axis, 3, lines.shape[axis]).copy_(lines)
    return begun


def _check_count(count: int, what: str = "inks") -> None:
    if not 2 <= count <= MOST:
        raise DistillError(f"head.{what}: a palette of {count}, want 2 to {MOST} {what}")


def _colour(text: str) -> Tensor:
    """`#rrggbb` as (3,) in [0, 1]."""
    if not re.fullmatch("#[0-9a-fA-F]{6}", text):
        raise DistillError(f"head: {text!r} is no colour; want #rrggbb")
    return torch.tensor([*bytes.fromhex(text[1:])]) / 255


def _one_hot(picture: Tensor, inks: Tensor) -> Tensor:
    """Which of the inks (N or 1, K, 3) each pixel of (N, 3, H, W) is nearest to, (N, K, H, W)."""
    away = (picture[:, None] - inks[..., None, None]).square().sum(2)
    return F.one_hot(away.argmin(1), inks.shape[1]).movedim(-1, 1).to(picture)
