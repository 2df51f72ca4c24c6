"""python -m distill.shards: a set of pairs to shards that training reads, and back."""

from __future__ import annotations

from distill.config.compose import entry
from distill.config.settings.commands import ShardSettings


@entry("shards", ShardSettings)
def main(settings: ShardSettings) -> None:
    from distill.data.cards.set_card import carry_card
    from distill.shards import conversion_of_sets

    conversion_of_sets.convert(settings, carry_card)


if __name__ == "__main__":
    main()
