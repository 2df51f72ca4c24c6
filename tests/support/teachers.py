"""Teachers whose picture is known at every pixel."""

from torch import Tensor

from distill.models.teachers.teacher import Teacher


class Inverted(Teacher):
    """The negative; counts the pictures it was shown."""

    def __init__(self):
        super().__init__()
        self.seen = 0

    def forward(self, photos: Tensor) -> Tensor:
        self.seen += len(photos)
        return 1 - photos


class Dies(Inverted):
    """The same, and ends the command after so many pictures."""

    def __init__(self, after):
        super().__init__()
        self.after = after

    def forward(self, photos):
        if self.seen == self.after:
            raise KeyboardInterrupt
        return super().forward(photos)
