"""One photo to an outline and a picture, step by step."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from distill.core.images import to_tensor
from distill.core.state_dicts import load_into
from distill.data.decode import BadPhoto
from distill.data.faces import BlazeFace, FindFaces, YuNet
from distill.data.photos import Photo, read_photo
from distill_sets.settings import Sketch
from distill_sets.sketches import framing, lines
from distill_sets.sketches.masks import MaskFolder, SaliencyNetwork, of_alpha

Masks = SaliencyNetwork | MaskFolder | None


@dataclass(frozen=True)
class Steps:
    """What became of a photo on its way; pictures (C, S, S) in [0, 1] but for the first.

    `whole` is the photo (3, H, W) and `spots` the points in the square's pixels. `square` is what
    was cut out, `target` that without its background (RGBA, or RGB over white), `edges` all of it,
    `outline` those that are kept, as a pen draws them (3, S, S), black on white.
    """

    whole: Tensor
    spots: list[framing.Spot]
    square: Tensor
    mask: Tensor
    target: Tensor
    edges: lines.Lines
    outline: Tensor


@dataclass
class Sketcher:
    """A photo to its steps, by `settings`; `crop` is that of a square without points.

    `detector` and `hed` are weights files, the latter needed where the settings name it; without
    `detector` BlazeFace finds faces. Networks are opened at the first photo, in the process that
    sketches it.
    """

    settings: Sketch
    crop: float = 1.0
    masks: Masks = None
    detector: Path | None = None
    hed: Path | None = None

    def __call__(self, photo: Photo) -> Steps:
        """Raises BadPhoto with the reason why the photo cannot be used."""
        sketch = self.settings
        image = read_photo(photo.path, alpha=sketch.mask == "alpha")
        whole = to_tensor(image)
        points = self._points(photo.local, image)
        if points is None:
            frame = framing.in_the_middle(*image.size, self.crop)
        else:
            frame = framing.around_face(points, sketch.face.side, sketch.face.eyes)
        inside = self._cut(torch.ones_like(whole[:1]), frame, 0.0)
        square, mask, over_white = self._cut_out(photo.local, image, whole, frame, inside)
        spots = [frame.place(spot, sketch.size) for spot in (points.spots if points else [])]
        edges = self._edges(over_white, mask, inside)
        pen, marks = sketch.stroke, spots[:3] if sketch.marks else None
        lines_drawn = lines.long_ones(lines.cleared(edges, *marks) if marks else edges, pen.least)
        lines_drawn = lines.marked(lines_drawn, *marks) if marks else lines_drawn
        outline = torch.from_numpy(lines.inked(lines_drawn, pen.width)).expand(3, -1, -1)
        target = over_white
        if sketch.rgba:  # colours that over white give those; white where all is transparent
            weighed = (over_white - 1 + mask) / mask.clamp(min=1e-6)
            target = torch.cat([torch.where(mask > 0, weighed, 1.0).clamp(0, 1), mask])
        return Steps(whole[:3], spots, square, mask, target, edges, outline)

    def check(self) -> None:
        """Raises DistillError for a mask's network or HED's weights that cannot be used."""
        trial = deepcopy(self)  # what has opened a network cannot be handed to another process
        if isinstance(trial.masks, SaliencyNetwork):
            trial.masks(torch.zeros(3, self.settings.size, self.settings.size))
        if self.hed:
            _ = trial._network

    def sources(self, photo: Path) -> list[Path]:
        """The files that decide what becomes of a photo."""
        files = [photo]
        if self.settings.points == "cat":
            files.append(framing.cat_file(photo))
        if isinstance(self.masks, MaskFolder) and (mask := self.masks.file(photo)):
            files.append(mask)
        return files

    def _points(self, path: Path, image: Image.Image) -> framing.Points | None:
        if self.settings.points is None:
            return None
        if self.settings.points == "cat":
            points = framing.read_cat(framing.cat_file(path), image.size)
        else:
            faces = self._find(np.asarray(image.convert("RGB")))
            if not faces:
                raise BadPhoto("no face in it")
            points = framing.of_face(faces[0], image.size)
        if points.eyes < self.settings.face.least:
            raise BadPhoto(f"the face is too small: {points.eyes:.0f} pixels between the eyes")
        return points

    def _cut(self, picture: Tensor, frame: framing.SquareFrame, beyond: float) -> Tensor:
        """The square; where sketch.outside=edge, the picture goes on instead of `beyond`."""
        edge = self.settings.outside == "edge"
        return framing.cut(picture, frame, self.settings.size, None if edge else beyond)

    def _cut_out(
        self,
        path: Path,
        image: Image.Image,
        whole: Tensor,
        frame: framing.SquareFrame,
        inside: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The square, its mask, and the square over white; colours under a mask are weighed first,
        so that none of the background's seeps into the rim."""
        square = self._cut(whole[:3], frame, 1.0)
        if self.settings.mask is None:
            return square, inside, square
        if isinstance(self.masks, SaliencyNetwork):
            mask = self.masks(square) * inside
            weighed = square * mask
        else:
            full = self.masks(path, image.size) if self.masks else of_alpha(image)
            mask = self._cut(full, frame, 0.0)
            weighed = self._cut(whole[:3] * full, frame, 0.0)
        share, least = float(mask.mean()), self.settings.mask_least
        if share < least:
            raise BadPhoto(f"the mask keeps {share:.1%} of the square, less than {least:.1%}")
        return square, mask, (weighed + 1 - mask).clamp(0, 1)

    def _edges(self, picture: Tensor, mask: Tensor, inside: Tensor) -> lines.Lines:
        """Those of the picture and of the mask: a pale head on white has an outline too."""
        if self.settings.outline == "hed":
            return lines.network_lines(picture, self._network, self.settings.hed.threshold, inside)
        canny = self.settings.canny
        edges = lines.canny_lines(picture, canny.sigma, canny.low, canny.high, inside)
        if self.settings.mask:
            edges |= lines.canny_lines(mask, canny.sigma, canny.low, canny.high, inside)
        return edges

    @cached_property
    def _find(self) -> FindFaces:
        return YuNet(self.detector) if self.detector else BlazeFace()

    @cached_property
    def _network(self) -> Callable[[Tensor], Tensor]:
        assert self.hed is not None
        network = lines.HED()
        load_into(network, self.hed)
        return network.eval()
