"""Drawings that are there already as a teacher: an artist's, or another tool's."""

import os
from pathlib import Path

from torch import Tensor

from distill.core.errors import DistillError
from distill.core.files import home_path
from distill.models.teachers.teacher import Teacher


class FolderTeacher(Teacher):
    """The drawings in `folder`, each of the photo whose name it has, whatever either's suffix.

    It computes nothing: the labelling pass looks for each photo's drawing by name. All folders have
    one fingerprint, so that drawings may be added and moved; a set remembers what each of its own
    was made of. Raises DistillError for a folder that is not there.
    """

    gives_activations = False
    traceable = False
    by_name = True

    def __init__(self, folder: str | None = None) -> None:
        super().__init__()
        if not folder:
            raise DistillError(
                "teacher.folder: missing; name the folder of the drawings: teacher.folder=DIR"
            )
        self.folder = Path(os.path.abspath(home_path(folder)))  # workers have other current folders
        if not self.folder.is_dir():
            raise DistillError(f"teacher.folder={folder}: no such folder on this machine")

    def forward(self, photo: Tensor) -> Tensor:
        raise DistillError(
            f"teacher.folder={self.folder}: holds drawings of its own photos, and stylizes no "
            "others"
        )
