"""The teacher that `distill.stylize compare=true` puts beside its student, in PyTorch."""

import sys

import numpy as np
import torch

from distill.config import compose, groups
from distill.config.settings.training import PhotoSource, Prepare, source_of
from distill.core.errors import DistillError
from distill.data.kinds import registry
from distill.data.manifest import manifest_at
from distill.models import build
from distill.models.teachers.teacher import Teacher
from distill.runs import run_folder


class TeacherModel:
    """A teacher as an `ImageModel`."""

    reach = sys.maxsize  # most teachers normalise over the whole picture
    colours_at: int | None = None  # a teacher is the measure at every size
    takes_summary = False

    def __init__(self, teacher: Teacher) -> None:
        self._teacher, self.fixed = teacher.fast(), teacher.fixed
        self.channels = 4 if teacher.transparent else 3

    def summary(self, photo: np.ndarray) -> np.ndarray:
        """None is needed: it sees whole pictures only."""
        raise NotImplementedError

    @torch.inference_mode()
    def __call__(self, photo: np.ndarray, summary: np.ndarray | None = None) -> np.ndarray:
        return self._teacher(torch.from_numpy(photo)).numpy()


def find(run: str | None, runs: str, style: str) -> TeacherModel | None:
    """Of a run, or of the style, where it is available; a line says where it is not."""
    if run is not None:
        trained = run_folder.run_named(run, runs).settings()
        if not isinstance(trained, PhotoSource):
            print(f"compare=true: recipe={trained.recipe} has no teacher", file=sys.stderr)
            return None
        source = source_of(trained)
        if source.teacher is None:
            root = source.data.root
            print(
                f"compare=true: the run learnt from the pairs in {root}, it has no teacher",
                file=sys.stderr,
            )
            return None
    elif style in groups.choices("style"):
        source = compose.load("prepare", [f"style={style}"], Prepare)
    else:
        return None
    try:
        if teacher := build.available_teacher(source.style, source.teacher):
            there = manifest_at(registry.data_source(source).folder) or {}
            if labeller := there.get("teacher"):
                teacher.settle(labeller)
            return TeacherModel(teacher)
        why = (
            f"{source.style.file} is not available; put it into a folder that DISTILL_WEIGHTS names"
        )
    except DistillError as error:  # a run that is its teacher may have gone elsewhere
        why = str(error)
    print(f"compare=true: without the teacher, {why}", file=sys.stderr)
    return None
