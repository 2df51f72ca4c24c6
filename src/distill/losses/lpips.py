"""LPIPS as a loss: a perceptual distance that was fitted to people's judgements."""

from torch import Tensor

from distill.core import weights
from distill.core.arrays import over_white
from distill.core.errors import DistillError
from distill.core.lpips import ALEXNET, LPIPS
from distill.core.state_dicts import load_tensors
from distill.losses.term import LossTerm
from distill.losses.vgg import same_square


class LPIPSTerm(LossTerm):
    """Mean LPIPS of crops of `side` pixels, as `FeatureDistance` reads them; null: whole pictures.

    Raises DistillError where AlexNet's weights are not to be had.
    """

    def __init__(self, side: int | None = 128) -> None:
        super().__init__()
        try:
            self.distance = LPIPS(load_tensors(weights.find(ALEXNET)))
        except DistillError as error:
            hint = "or train without it: loss.weights.lpips=0"
            raise DistillError(f"loss.weights.lpips: {error}; {hint}") from error
        self.side = side

    def forward(self, student: Tensor, target: Tensor) -> Tensor:
        pictures = [over_white(each) for each in (student, target)]
        return self.distance(*same_square(pictures, self.side, self.training)).mean()
