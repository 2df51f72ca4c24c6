"""Settings of distill.train -m search=optuna, which belong to the jobs together."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, NonNegativeInt, PositiveFloat
from pydantic_core import PydanticCustomError

from distill.config.settings.base import PathText, Positive, Seed, Settings, setting

ObjectiveName = Literal[
    "psnr", "ssim", "loss", "frechet", "ink_recall", "ink_precision", "ms", "macs", "parameters"
]
COSTS = ("ms", "macs", "parameters")  # of the network, not of its training


def _one_is_validated(names: list[str]) -> list[str]:
    if names and names[0] in COSTS:
        raise PydanticCustomError("first", "name a validation figure first, such as psnr")
    if len(set(names)) < len(names):
        raise PydanticCustomError("twice", "name each objective once")
    return names


@dataclass(frozen=True, kw_only=True)
class Costs(Settings):
    """Limits on what a network costs: one beyond them is not trained. None: no limit."""

    macs: PositiveFloat | None = setting("limit on the MACs at the run's resolution")
    parameters: PositiveFloat | None = setting("limit on the parameters")


@dataclass(frozen=True, kw_only=True)
class Search(Settings):
    """How combinations are sampled, how many, and what is best."""

    name: Literal["optuna"]
    trials: Positive = setting("of the whole study; run it again with more to resume")
    seed: Seed = setting("of what is sampled")
    sampler: Literal["auto", "tpe", "nsga2", "random"] = setting(
        "auto: tpe for one objective, nsga2 for several"
    )
    objectives: Annotated[list[ObjectiveName], AfterValidator(_one_is_validated)] = setting(
        "figures of validation, then also costs of the network: ms (of the ONNX file, one "
        "thread), macs, parameters; []: psnr, of cyclegan frechet, of recipe=picture loss"
    )
    pruner: Literal["none", "median", "hyperband"] = setting(
        "end trials whose validations fall behind"
    )
    most: Costs = setting("a network that costs more is not trained")
    least: Costs = setting("nor one that costs less")
    timeout: PositiveFloat | None = setting("seconds after which no further trial starts")
    storage: PathText | None = setting(
        "a file, or the URL of a database for several machines; null: study.journal beside the runs"
    )

    def limits(self) -> list[tuple[str, str, float]]:
        """Each limit that is set: most or least, what it is of, and how much."""
        return [
            (word, name, limit)
            for word, costs in (("most", self.most), ("least", self.least))
            for name, limit in vars(costs).items()
            if limit is not None
        ]


@dataclass(frozen=True, kw_only=True)
class Launcher(Settings):
    """How many jobs run at once, and whether this process reports on all of them."""

    name: Literal["local", "submitit"]
    jobs: Positive = setting("runs at once, each a process with its share of the threads")
    report: bool = setting("summary, front and plot at the end; false: another process writes them")
    only: NonNegativeInt | None = setting("number of the one job that this process is for")

    @property
    def sequential(self) -> bool:
        """Whether jobs run one after the other in this very process."""
        return self.name == "local" and self.jobs == 1


@dataclass(frozen=True, kw_only=True)
class SubmititLauncher(Launcher):
    """What a job of SLURM is given."""

    cluster: Literal["slurm", "local", "debug"] | None = setting(
        "null: slurm where there is one; local and debug are submitit's own"
    )
    partition: str | None = setting("of SLURM")
    account: str | None = setting("of SLURM")
    minutes: Positive = setting(
        "time limit of a job; shortly before it saves, and resumes in another one"
    )
    cpus: Positive = setting("of a job")
    gpus: NonNegativeInt = setting("of a job")
    memory: PositiveFloat | None = setting("GB of a job; null: as the partition has it")
    more: dict[str, Any] | None = setting(
        "other parameters of submitit, such as {slurm_constraint: a100}"
    )


@dataclass(frozen=True, kw_only=True)
class Searching(Settings):
    """The groups that say how jobs are chosen and where they run; no part of a run's settings.

    `search` is None where every combination is a job.
    """

    search: Search | None
    launcher: Launcher


@dataclass(frozen=True, kw_only=True)
class SearchingOnCluster(Searching):
    """The same where jobs run elsewhere."""

    launcher: SubmititLauncher
