"""python -m distill.hub: pushes students and sets of pairs to the Hugging Face Hub, or pulls.

Publish a student or a set of pairs on the Hugging Face Hub, or in a folder, and fetch such ones.

  python -m distill.hub push run=NAME repo=USER/NAME
  python -m distill.hub pull repo=USER/NAME model=FILE.safetensors
  python -m distill.hub push data.root=data/pairs/SET repo=USER/NAME private=false
  python -m distill.hub pull repo=USER/NAME data.root=DIR

A student goes as model.safetensors with a card, config.json and a sheet of samples; a set with
its pairs, its card (distill.prepare card=true writes it) and sha256sums.txt. What is
there already is not sent or fetched again, what differs is refused. Kill it any time: run it again
to resume.

Needs pip install 'distill[hub]' and, for the Hub, a token: hf auth login.

Everything, with its value: python -m distill.hub --cfg job
"""

from distill.config.command import command
from distill_hub.settings import HubSettings


@command("hub", HubSettings, files=True)
def main(settings: HubSettings) -> None:
    from distill_hub import pushing

    pushing.carry_out(settings)


if __name__ == "__main__":
    main()
