"""`unchanged`: the photo itself, of students that learn by what a photo shows."""

from torch import Tensor

from distill.models.teachers.teacher import Teacher


class Unchanged(Teacher):
    """Photo to photo."""

    gives_activations = False

    def forward(self, photo: Tensor) -> Tensor:
        return photo
