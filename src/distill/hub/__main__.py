"""python -m distill.hub: students and sets of pairs, pushed to the Hugging Face Hub and pulled."""

from __future__ import annotations

from distill.config.compose import entry
from distill.config.settings.commands import HubSettings
from distill.models.recipes import RECIPES


@entry("hub", HubSettings, inputs=True, recipes=RECIPES)
def main(settings: HubSettings) -> None:
    from distill.hub import pushing

    pushing.carry_out(settings)


if __name__ == "__main__":
    main()
