"""`poster`: a few flat inks with smooth borders, as a screen print has them.

The photo is abstracted by the anisotropic Kuwahara filter (Kyprianidis, Kang, Döllner 2009). Its
own colours are the centres of k-means in CIE Lab (Lloyd 1982); a given palette, from dark to light,
is printed by tone.
"""

from collections.abc import Sequence
from typing import Annotated

import kornia
import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from distill.models.kmeans import means, nearest
from distill_drawings import abstraction as ab


class PosterPrint(ab.Classical):
    """Photo to poster.

    `colours` of the photo's own, or a `palette`; `border` is how wide their borders are smoothed,
    `local` how much the tones of a part count beside those of the whole.
    """

    colours: Annotated[int, Field(ge=2, le=32)] = 8
    palette: Sequence[ab.Colour] = ()
    border: ab.Positive = 1.1
    local: ab.Amount = 0.7
    saturation: ab.Amount = 1.6

    def draw(self, photo: Tensor, unit: float) -> dict[str, Tensor]:
        tangent, anisotropy = ab.flow(ab.structure(ab.blur(photo, unit), 3 * unit))
        lab = kornia.color.rgb_to_lab(ab.kuwahara(photo, tangent, anisotropy, 5 * unit))
        tone = ab.exposed(lab[:, :1] / 100, 0.5)
        tone = tone + self.local * (tone - ab.blur(tone, 25 * unit))
        if self.palette:
            inks = torch.cat([ab.colour(each, photo)[..., 0] for each in self.palette], 2)
            inks = inks.expand(len(photo), -1, -1)
            label = (tone * inks.shape[2]).long().clamp(0, inks.shape[2] - 1)[:, 0]
        else:
            lab = torch.cat([100 * tone, lab[:, 1:]], 1)
            centres = torch.stack([means(each, self.colours) for each in lab])
            label = torch.stack([nearest(one, of) for one, of in zip(lab, centres, strict=True)])
            inks = torch.cat([7 + 0.9 * centres[..., :1], self.saturation * centres[..., 1:]], 2)
            inks = kornia.color.lab_to_rgb(inks.movedim(1, 2)[..., None], clip=True)[..., 0]
        area = F.one_hot(label, inks.shape[2]).movedim(-1, 1).float()
        area = torch.softmax(16 * ab.blur(area, self.border * max(unit, 1.0)), 1)
        return {"picture": ab.blur(torch.einsum("nkhw,nck->nchw", area, inks), 0.5)}
