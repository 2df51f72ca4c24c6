"""What the classical styles share: the flow of a picture, lines along it, brushes, tones, grain.

Each is a step of image abstraction as Kyprianidis, Collomosse, Wang, Isenberg 2013 review it.
"""

import math
from dataclasses import dataclass, fields
from typing import Annotated, dataclass_transform

import kornia
import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from distill.models.teachers.teacher import Teacher

Positive = Annotated[float, Field(gt=0)]
Amount = Annotated[float, Field(ge=0)]
Colour = Annotated[str, Field(pattern="^#[0-9a-fA-F]{6}$")]
SECTORS = 8
CELLS = 2_000_000  # samples of a brush at once: 24 MB


@dataclass_transform(eq_default=False)
@dataclass(eq=False, repr=False)
class Classical(Teacher):
    """A style that is computed, without weights; it draws photos of any size.

    Subclasses become dataclasses, whose fields are the settings. Widths are pixels where the short
    side has 512, and grow with its root: larger paper takes a larger pen, and shows more all the
    same.
    """

    gives_activations = False
    traceable = False  # it looks at values, and repeats by them

    def __init_subclass__(cls) -> None:
        dataclass(eq=False, repr=False)(cls)

    def __post_init__(self) -> None:
        super().__init__()
        self.freeze()

    def settings(self) -> str:
        return "v1 " + " ".join(f"{f.name}={getattr(self, f.name)}" for f in fields(self))

    def forward(self, photo: Tensor) -> Tensor:
        return self.layers(photo)["picture"]

    def layers(self, photo: Tensor) -> dict[str, Tensor]:
        with torch.autocast(photo.device.type, enabled=False):  # squares of slopes need float32
            layers = self.draw(photo.float(), math.sqrt(min(photo.shape[2:]) / 512))
        self.check(layers["picture"], photo)
        return {name: layer.clamp(0, 1) for name, layer in layers.items()}

    def draw(self, photo: Tensor, unit: float) -> dict[str, Tensor]:
        """The `picture` for (N, 3, H, W) and, of one drawn with lines, their `ink`; a width of 1 in
        the settings is `unit` pixels."""
        raise NotImplementedError


def colour(text: str, like: Tensor) -> Tensor:
    """`#rrggbb` as (1, 3, 1, 1) in [0, 1]."""
    return torch.tensor([*bytes.fromhex(text[1:])], device=like.device).view(1, 3, 1, 1) / 255


def blur(picture: Tensor, sigma: float) -> Tensor:
    """Gaussian; a wide one on a smaller picture."""
    if sigma > 8:
        size = [max(round(side * 4 / sigma), 1) for side in picture.shape[2:]]
        small = blur(F.interpolate(picture, size=size, mode="area"), 4.0)
        return F.interpolate(small, size=picture.shape[2:], mode="bilinear")
    side = 2 * math.ceil(2.5 * sigma) + 1
    return kornia.filters.gaussian_blur2d(picture, (side, side), (sigma, sigma), "replicate")


def flattened(photo: Tensor, radius: float, epsilon: float) -> Tensor:
    """The guided filter by the photo itself (He, Sun, Tang 2010): what varies by less than
    √epsilon becomes even, edges stay."""
    side = 2 * max(round(radius), 1) + 1
    return kornia.filters.guided_blur(photo, photo, side, epsilon, "replicate").clamp(0, 1)


def lightness(photo: Tensor) -> Tensor:
    """CIE L* as (N, 1, H, W) in [0, 1]."""
    return kornia.color.rgb_to_lab(photo)[:, :1] / 100


def quantile(values: Tensor, share: float) -> Tensor:
    """Of each picture and channel (N, C, H, W), as (N, C, 1, 1); of a thumbnail of a large one."""
    height, width = (min(side, 256) for side in values.shape[2:])
    small = F.adaptive_avg_pool2d(values, (height, width))
    return small.flatten(2).quantile(share, dim=2)[..., None, None]


def exposed(light: Tensor, middle: float, high: float = 0.99) -> Tensor:
    """Tones (N, 1, H, W) in [0, 1], stretched from the first percentile to the quantile `high`,
    their median at `middle`. The power lies in [0.5, 2], and what is even is hardly stretched: a
    night stays a night."""
    black, white = quantile(light, 0.01), quantile(light, high)
    span = (white - black).clamp_min(0.4)
    more = (span - (white - black)) / (1 - (white - black)).clamp_min(1e-6)
    light = ((light - black * (1 - more)) / span).clamp(1e-4, 1)
    power = math.log(middle) / quantile(light, 0.5).clamp(0.05, 0.95).log()
    return light ** power.clamp(0.5, 2)


def stepped(light: Tensor, levels: float, sharpness: float) -> Tensor:
    """Tones in [0, 1] gathered at the multiples of 1 / levels, continuous between them: the soft
    quantisation of Winnemöller, Olsen, Gooch 2006, equation 4."""
    nearest = (torch.floor(light * levels) + 0.5) / levels
    rise = torch.tanh(sharpness * (light - nearest) * levels) / math.tanh(sharpness / 2)
    return nearest + rise / (2 * levels)


def structure(photo: Tensor, sigma: float) -> Tensor:
    """The structure tensor (E, F, G) as (N, 3, H, W), over all channels, smoothed by `sigma`."""
    dx, dy = kornia.filters.spatial_gradient(photo).unbind(2)
    products = torch.stack([(dx * dx).sum(1), (dx * dy).sum(1), (dy * dy).sum(1)], 1)
    return blur(products, sigma)


def flow(tensor: Tensor) -> tuple[Tensor, Tensor]:
    """Unit tangents (N, 2, H, W), as (x, y), and anisotropy (N, 1, H, W) in [0, 1].

    The edge tangent flow of Kang, Lee, Chui 2007 as Kyprianidis and Döllner 2008 compute it: the
    minor eigenvector of the smoothed structure tensor, and (λ₁ − λ₂) / (λ₁ + λ₂).
    """
    e, f, g = tensor.split(1, 1)
    angle = 0.5 * torch.atan2(2 * f, e - g)  # of the slope
    spread = ((e - g).square() + 4 * f.square()).sqrt()
    return torch.cat([-angle.sin(), angle.cos()], 1), spread / (e + g + 1e-7)


def pixels(picture: Tensor) -> Tensor:
    """Coordinates (1, 2, H, W) of every pixel, as (x, y)."""
    rows, columns = (torch.arange(side, device=picture.device) for side in picture.shape[2:])
    return torch.stack(torch.meshgrid(columns, rows, indexing="xy"))[None].float()


def sample(picture: Tensor, where: Tensor, mode: str = "bilinear") -> Tensor:
    """The picture at coordinates (N, 2, H, W); its edge goes on outside."""
    sides = torch.tensor(picture.shape[:1:-1], device=picture.device).view(1, 2, 1, 1)
    grid = ((2 * where + 1) / sides - 1).movedim(1, -1)
    return F.grid_sample(picture, grid, mode, "border", align_corners=False)


def along(picture: Tensor, tangent: Tensor, sigma: float) -> Tensor:
    """The line integral: a Gaussian mean over the streamline through each pixel, in Euler steps."""
    total, weight = picture, 1.0
    for sign in (1, -1):
        step, here = sign * tangent, pixels(picture)
        for k in range(1, math.ceil(2 * sigma) + 1):
            here = here + step
            share = math.exp(-k * k / (2 * sigma * sigma))
            total, weight = total + share * sample(picture, here), weight + share
            new = sample(tangent, here, "nearest")  # its sign means nothing: go on, never back
            step = torch.where((new * step).sum(1, keepdim=True) < 0, -new, new)
    return total / weight


def flow_dog(light: Tensor, tangent: Tensor, sigma: float, p: float) -> Tensor:
    """(1 + p) G_σ − p G_1.6σ across the flow, then a Gaussian of 3 σ along it.

    The flow-based DoG of Kang, Lee, Chui 2007 in the form of XDoG (Winnemöller, Kyprianidis, Olsen
    2012, equation 7): even tones stay as they are, the dark side of an edge gets darker.
    """
    normal = torch.stack([tangent[:, 1], -tangent[:, 0]], 1)
    here, reach = pixels(light), math.ceil(2.5 * 1.6 * sigma)
    off = torch.arange(-reach, reach + 1)
    fine, coarse = (torch.exp(-off.square() / (2 * s * s)) for s in (sigma, 1.6 * sigma))
    weights = (1 + p) * fine / fine.sum() - p * coarse / coarse.sum()
    response = torch.zeros_like(light)
    for k, weight in zip(off.tolist(), weights.tolist(), strict=True):
        response = response + weight * sample(light, here + k * normal)
    return along(response, tangent, 3 * sigma)


def pen(light: Tensor, tangent: Tensor, sigma: float, p: float, level: float) -> Tensor:
    """Ink (0) on white (1): lines `sigma` wide, and areas that are darker than `level`.

    Tones (N, 1, H, W) in [0, 1]. Of the response u, 1 above the level, else 1 + tanh(φ (u − ε))
    (XDoG, equation 5), after and before a little smoothing along the flow.
    """
    response = flow_dog(along(light, tangent, 1.5 * sigma), tangent, sigma, p)
    ink = (1 + torch.tanh(40 * (response - level))).clamp(0, 1)
    return blur(along(ink, tangent, 1.0), 0.5)


def paint(photo: Tensor, brush: float, detail: float, unit: float) -> Tensor:
    """By two brushes of these radii: the narrow one goes over what the wide one has lost."""
    tangent, anisotropy = flow(structure(blur(photo, unit), 4 * unit))
    wide, fine = (kuwahara(photo, tangent, anisotropy, each * unit) for each in (brush, detail))
    detail_map = blur((fine - wide).abs().mean(1, keepdim=True), 2 * unit)
    return torch.lerp(wide, fine, ((detail_map - 0.015) / 0.05).clamp(0, 1))


def kuwahara(photo: Tensor, tangent: Tensor, anisotropy: Tensor, radius: float) -> Tensor:
    """The anisotropic Kuwahara filter (Kyprianidis, Kang, Döllner 2009) of (N, 3, H, W).

    Around each pixel an ellipse along the tangent, with the axes radius (1 + A) and
    radius / (1 + A), has eight sectors, of which the most even ones give the colour:
    by 1 / (1 + (255 s²)⁴), s² a sector's variance.
    """
    count = 2 * min(max(round(radius * radius), 12), 36)
    disc = spiral(count).to(photo.device)
    weights = sectors(disc)
    photo = blur(photo, 0.7 * radius * math.sqrt(math.pi / count))  # what lies between samples
    length, (height, width) = radius * (1 + anisotropy), photo.shape[2:]
    normal = torch.stack([tangent[:, 1], -tangent[:, 0]], 1)
    axes, here = (tangent * length, normal * (radius * radius / length)), pixels(photo)
    rows, strips = max(CELLS // (count * width * len(photo)), 1), []
    for top in range(0, height, rows):
        part = slice(top, top + rows)
        off = [
            d.view(1, 1, -1, 1, 1) * a[:, :, None, part] for d, a in zip(disc.T, axes, strict=True)
        ]
        where = (here[:, :, None, part] + off[0] + off[1]).flatten(2, 3)
        samples = sample(photo, where).unflatten(2, (count, -1))
        mean = torch.einsum("sk,nckhw->nschw", weights, samples)
        square = torch.einsum("sk,nckhw->nschw", weights, samples.square())
        spread = (square - mean.square()).clamp_min(0).sum(2, keepdim=True)
        share = 1 / (1 + (255 * spread) ** 4)
        strips.append((share * mean).sum(1) / share.sum(1))
    return torch.cat(strips, 2)


def spiral(count: int) -> Tensor:
    """Points (count, 2), an even number, spread evenly over the unit disc (Vogel 1979): half of
    them, and their mirror images, so that a mirrored photo is painted alike."""
    number = torch.arange(count // 2) + 0.5
    radius, angle = (2 * number / count).sqrt(), number * math.pi * (3 - math.sqrt(5))
    x, y = radius * angle.cos(), radius * angle.sin()
    return torch.stack([torch.cat([x, x]), torch.cat([y, -y])], 1)


def sectors(points: Tensor, zeta: float = 0.1) -> Tensor:
    """Weights (8, K) of points (K, 2) in the unit disc in each sector, 1 in all.

    ((x + ζ) − η y²)₊² of the point turned to the sector, times a Gaussian (Kyprianidis 2011,
    equation 7); η lets a sector end at 3π/16 beside its middle.
    """
    edge = 1.5 * math.pi / SECTORS
    eta = (zeta + math.cos(edge)) / math.sin(edge) ** 2
    turn = torch.arange(SECTORS, device=points.device)[:, None] * 2 * math.pi / SECTORS
    x = turn.cos() * points[:, 0] + turn.sin() * points[:, 1]
    y = turn.cos() * points[:, 1] - turn.sin() * points[:, 0]
    weights = (x + zeta - eta * y * y).clamp_min(0).square()
    weights = weights * torch.exp(-2 * points.square().sum(1))
    return weights / weights.sum(1, keepdim=True)


def grain(photo: Tensor, sigma: float, seed: int) -> Tensor:
    """Noise (1, 1, H, W) of mean 0 and deviation 1, in spots of `sigma`: of the paper, so that all
    photos of a size lie on the same."""
    chance = torch.Generator().manual_seed(seed)
    noise = blur(torch.randn(1, 1, *photo.shape[2:], generator=chance), sigma)
    return ((noise - noise.mean()) / (noise.std(correction=0) + 1e-6)).to(photo.device)
