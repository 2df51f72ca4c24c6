"""recipe=picture: what is known of such a run, and what its commands do."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from distill.config.registry import DistilRecipe
from distill.config.settings.training import Train
from distill_picture.settings import PictureTrain


class PictureRecipe(DistilRecipe):
    """A style is one picture, or a few: perceptual losses, no teacher (Johnson et al. 2016)."""

    name = "picture"
    settings = PictureTrain
    objective = "loss"

    def folder_parts(self, settings: Train, swept: Mapping[str, str]) -> dict[str, str]:
        return {key: getattr(settings, key).name for key in ("style", "decoder")}

    def train(self, settings: PictureTrain, run: Any, first: bool) -> None:
        from distill_picture.picture_training import train

        train(settings, run, first)

    def scores(
        self, network: Any, trained: Any, checkpoint: Path, settings: Any, features: Any
    ) -> Any:
        from distill.eval_fid.heldout import held_out_photos
        from distill_picture.picture_scores import score_style

        pictures, networks = held_out_photos(network, trained, settings), {"student": network}
        return score_style(pictures, checkpoint, trained, networks, settings)
