"""A student by itself, with what its file says of it."""

# As text: a library that subclasses are of would build what the constructor's annotations name.
from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Self

from torch import Tensor, nn

from distill.config import compose
from distill.config.registry import schema_of
from distill.config.settings.networks import Description, StudentDescription
from distill.config.settings.training import Train
from distill.core.errors import DistillError
from distill.core.files import home_path
from distill.core.state_dicts import load_state, tensors_in_graph
from distill.data.licence_terms import described_terms, terms_of
from distill.models import zoo
from distill.models.checkpoint import load_student
from distill.models.network_file import (
    description,
    is_network_file,
    read_network_file,
    untrained_network,
    write_network,
)
from distill.models.students.student import Student
from distill.models.teachers.teacher import at_any_size
from distill.runs.run_folder import Run


class PublishedStudent(nn.Module):
    """(N, 3, H, W) RGB in [0, 1] to (N, 3 or 4, H, W) in [0, 1], of any size.

    `description` says what builds the student and where it comes from, as models.network_file has
    it; `student` is the network itself, None: an untrained one, `file` what `of` read. Sides that
    32 does not divide are filled up at the right and lower edge, and cut again.

    >>> photo = torch.rand(1, 3, 100, 90)
    >>> distill.student_network("hayao")(photo).shape
    torch.Size([1, 3, 100, 90])
    """

    def __init__(self, description: Description, student: nn.Module | None = None) -> None:
        super().__init__()
        network = student or untrained_network(description)
        if not isinstance(network, Student) or not isinstance(description, StudentDescription):
            raise DistillError(
                f"a network of recipe={description.recipe}, expected a student, of recipe=distill"
            )
        self.description = description
        self.student = network
        self.file: Path | None = None
        self.eval()

    def forward(self, photo: Tensor) -> Tensor:
        return at_any_size(self.student, photo)

    @classmethod
    def of(cls, path: str | Path, checkpoint: str = "best") -> Self:
        """That of a run's folder, of a .ckpt, or of a .safetensors of distill.export.

        Of a folder `checkpoint` is best (last where there is none) or last. Raises DistillError.
        """
        where = home_path(path)
        if where.is_dir():
            where = Run(where).checkpoint(checkpoint)
        if is_network_file(where):
            network, about = read_network_file(where)
            if (terms := terms_of(where)) != described_terms(about):
                about = replace(about, terms=terms.plain())
        else:
            network, trained = load_student(where)
            about = replace(description(trained), terms=terms_of(where).plain())
        try:
            student = cls(about, network)
        except DistillError as error:
            raise DistillError(f"{where}: {error}") from error
        student.file = where
        return student

    @classmethod
    def shipped(cls, name: str) -> Self:
        """That of the package with this name, as its ONNX file has it: BatchNorm is folded."""
        path = zoo.find(name)
        words = json.loads(path.with_suffix(".json").read_text())["settings"]
        settings = compose.load("train", ["encoder.weights=none", *words], schema_of)
        assert isinstance(settings, Train)
        about = replace(description(settings), folded=True, terms=terms_of(path).plain())
        network = untrained_network(about)
        load_state(network, tensors_in_graph(path), path)
        return cls(about, network)

    def save(self, target: str | Path) -> None:
        """Write the file that `of` reads, and `init=FILE` of distill.train."""
        write_network(self.student, self.description, home_path(target))
