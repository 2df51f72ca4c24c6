"""What the commands do, as functions and classes: `import distill` offers them.

Functions take the settings of their command as keywords: lr=1e-3, decoder="nnconv" for a choice of
a group, a mapping for settings below a key, as in trainer={"max_steps": 600}, and any key with its
dots by **{"trainer.max_steps": 600}. Settings are checked as on the command line, the same is
printed and the same files are written. Errors are a DistillError; Ctrl-C and SIGTERM save a
training, which ends with KeyboardInterrupt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from distill.config import compose
from distill.config.groups import choices
from distill.config.registry import schema_of
from distill.config.settings.commands import EvalFid, Export, Stylize
from distill.config.settings.training import Prepare, Train
from distill.core.errors import DistillError
from distill.core.files import home_path
from distill.core.plugins import name_plugins, values
from distill.models import zoo
from distill.runs.run_folder import Run

if TYPE_CHECKING:
    from torch import Tensor, nn

    from distill.data.datamodule import DistillData, LoaderData
    from distill.losses.term import LossTerm
    from distill.metrics.metric import Metric
    from distill.models.students.student import Student
    from distill.models.teachers.teacher import Teacher
    from distill.runs.published_student import PublishedStudent
    from distill.stylize.stylizer import Stylizer
    from distill.train.distillation import DistillModule

__all__ = [
    "DistillData", "DistillError", "DistillModule", "LoaderData", "LossTerm", "Metric",
    "PublishedStudent", "Run", "Student", "Stylizer", "Teacher", "evaluate_student",
    "export_student", "label_photos", "lightning_parts", "load", "student_network", "students",
    "styles", "train_student",
]  # fmt: skip

_MODULES = {  # of the classes that need PyTorch, or much else
    "DistillData": "data.datamodule",
    "DistillModule": "train.distillation",
    "LoaderData": "data.datamodule",
    "LossTerm": "losses.term",
    "Metric": "metrics.metric",
    "PublishedStudent": "runs.published_student",
    "Student": "models.students.student",
    "Stylizer": "stylize.stylizer",
    "Teacher": "models.teachers.teacher",
}
_OF_LOADER = {"style": "own", "data.kind": "loader"}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'distill' has no attribute {name!r}")
    return getattr(import_module(f"distill.{_MODULES[name]}"), name)


def students() -> list[str]:
    """The students that come with the package, by name.

    >>> "hayao" in distill.students()
    True
    """
    return list(zoo.shipped())


def styles() -> list[str]:
    """The styles that style= takes, each of which has a teacher.

    >>> "toon" in distill.styles()
    True
    """
    return choices("style")


def load(student: str | Path | Run = "hayao", **settings: Any) -> Stylizer:
    """A student to call on pictures: PIL's, NumPy's, or several of them; see Stylizer.

    `student` is one of `students()`, a file (.onnx, .ckpt, .safetensors), a run or its folder, or
    hub:USER/NAME of the Hugging Face Hub (hub:./DIR, a folder), which is kept in the cache.
    `settings` are those of distill.stylize: size, device, upscale, threads, direction, strength,
    parts, face (but crop), wear, overlay, faces, detector; of an ONNX file also input_range,
    output_range, channels, layout. It needs no PyTorch. Raises DistillError.

    >>> stylize = distill.load("toon", size=64, device="cpu")
    >>> stylize(PIL.Image.new("RGB", (96, 64))).size
    (96, 64)
    """
    from distill.stylize import stylizing
    from distill.stylize.stylizer import Stylizer

    if not isinstance(student, str | Path | Run):
        raise DistillError(f"{student!r}: want the name of a student, a file or a run")
    chosen = compose.from_keywords("stylize", Stylize, {}, settings)
    path = _file_of(student)
    network = stylizing.open_student(path, chosen.threads, chosen.direction, chosen.device, chosen)
    return Stylizer(network, chosen, str(student))


def label_photos(
    photos: str | Path | Sequence[str | Path],
    teacher: str | Teacher | Callable[[Tensor], Tensor] = "toon",
    out: str | Path | None = None,
    **settings: Any,
) -> Path:
    """Label photos with a teacher, once: gives the folder of pairs.

    `photos` is a folder or several, `teacher` one of `styles()`, a Teacher, or a function of a
    module, from (N, 3, H, W) float32 in [0, 1] to the same. `out` is the folder, None:
    data/pairs/STYLE-PHOTOS-SIZE. What is there is not labelled again. `settings` are those of
    distill.prepare. Raises DistillError.

    >>> distill.label_photos("photos", "toon", out="pairs", style={"resolution": 64})
    PosixPath('pairs')
    """
    from distill.models.build import trial
    from distill.models.teachers.python_callable import CallTeacher
    from distill.models.teachers.teacher import Teacher
    from distill.prepare import labelling

    named: dict[str, Any] = {"photos": photos, "data.root": out, "style": teacher}
    custom = None
    if isinstance(teacher, Teacher):
        custom = trial(teacher, f"teacher {type(teacher).__name__}")
    elif not isinstance(teacher, str) and not callable(teacher):
        reason = f"teacher: a {type(teacher).__name__}"
        raise DistillError(f"{reason}; want a style, a Teacher or a function of a module")
    if not isinstance(teacher, str):
        name = str(getattr(teacher, "__qualname__", type(teacher).__name__))
        named |= {"style": "own", "style.name": name.lower()}
        custom = custom or CallTeacher(f"{teacher.__module__}:{name}")
    return Path(
        str(labelling.carry_out(compose.from_keywords("prepare", Prepare, named, settings), custom))
    )


def train_student(
    pairs: str | Path | Iterable[Any] | None = None,
    val: Iterable[Any] | None = None,
    **settings: Any,
) -> Run:
    """Train a student, or resume: gives its run, which the other functions take.

    `pairs` is a folder of pairs, or a DataLoader of yours: batches (photo, target) or {photo,
    target}, see LoaderData; `val` has such batches to choose the best checkpoint by. A loader of
    photos alone goes with a style, whose teacher labels them. None: photos, data and style are in
    `settings`, which are those of distill.train. Raises DistillError.

    >>> photo = torch.rand(2, 3, 64, 64)
    >>> few = {"trainer": {"max_steps": 2}, "encoder": {"weights": "none"}, "loss": "l1"}
    >>> distill.train_student([(photo, 1 - photo)], [(photo, 1 - photo)], run="few", **few)
    Run(folder=PosixPath('runs/few'))
    """
    from distill.train.recipes import train

    if pairs is None or isinstance(pairs, str | Path):
        return train(_training(pairs, settings, schema_of))
    from distill.data.datamodule import LoaderData

    if val is None:
        raise DistillError("val: missing; batches to choose by, which your loader does not have")
    data = LoaderData(pairs, val)
    return train(compose.from_keywords("train", Train, _OF_LOADER, settings), data)


def lightning_parts(
    pairs: str | Path | None = None, **settings: Any
) -> tuple[DistillModule, DistillData]:
    """LightningModule and DataModule of a training, for a pl.Trainer of your own.

    Arguments are those of `train_student`, but for a loader: of those a LoaderData is the
    DataModule. This one's pictures have no end: pl.Trainer(max_steps=N). `load` and
    `export_student` take the trainer's checkpoints, and `module.student` is the network. Raises
    DistillError.

    >>> module, data = distill.lightning_parts("pairs", encoder={"weights": "none"})
    >>> data.batch_size, type(module.student)
    (16, <class 'distill.models.students.student.Student'>)
    """
    from distill.train.student_training import parts

    return parts(_training(pairs, settings, Train))


def student_network(student: str | Path | Run | None = None, **settings: Any) -> PublishedStudent:
    """A student as an nn.Module of (N, 3, H, W) in [0, 1], to train in a loop of your own.

    `student` is as `load` takes it; of the package's BatchNorm is folded. A size, such as small, or
    None: a new one, with the settings of distill.train that say which: encoder, decoder, channels,
    init and others.
    save("FILE.safetensors") writes a file for `load` and `export_student`. Raises DistillError.

    >>> student = distill.student_network(decoder="nnconv", encoder={"weights": "none"})
    >>> loss = (student(torch.ones(2, 3, 64, 64)) - 0.5).abs().mean()
    >>> loss.backward()
    """
    from distill.data.licence_terms import terms_of_run
    from distill.models.network_file import description
    from distill.runs.published_student import PublishedStudent
    from distill.train.first_weights import new_student

    if student in choices("student"):
        student, settings = None, {"student": student, **settings}
    if student is None:
        chosen = compose.from_keywords("train", Train, _OF_LOADER, settings)
        about = replace(description(chosen), terms=terms_of_run(chosen).plain())
        return PublishedStudent(about, new_student(chosen)).train()
    name_plugins(settings.pop("plugins", ()))
    if settings:
        raise DistillError(f"{min(settings)}: is for a new student, and {student} is as it is")
    if student in zoo.shipped():
        return PublishedStudent.shipped(str(student))
    return PublishedStudent.of(_file_of(student))


def export_student(
    student: str | Path | Run | nn.Module,
    formats: str | Sequence[str] | None = None,
    budget: Mapping[str, int] | None = None,
    out: str | Path | None = None,
    **settings: Any,
) -> dict[str, Path]:
    """Write a student as a checked ONNX file, and in other formats: gives the files by format.

    `student` is a run or its folder, a .ckpt or .safetensors file, or a module: that of
    `lightning_parts` or `student_network`, or any from (N, 3, H, W) in [0, 1] to (N, 3 or 4, H, W)
    in [0, 1]. `budget` limits macs, parameters and bytes; None: as the run has it, no limit where
    there is no run. `out` is the folder, which only a run has of itself. `settings` are those of
    distill.export. Raises DistillError, over a limit too; then no file is left.

    >>> student = distill.student_network("toon")
    >>> distill.export_student(student, budget={"bytes": 2_000_000}, out="exported")
    {'onnx': PosixPath('exported/student.onnx')}
    """
    from distill.export import conversion

    named = {"budget": budget or {}, "output": out} | ({"formats": formats} if formats else {})
    if isinstance(student, str | Path | Run):
        named |= _of_run(student)
        return conversion.carry_out(compose.from_keywords("export", Export, named, settings))[1]
    if out is None:
        raise DistillError("out: missing; a network without a run needs a folder for its files")
    chosen = compose.from_keywords("export", Export, named, settings)
    return conversion.export_formats(_subject(student, chosen), chosen, home_path(out))


def evaluate_student(
    student: str | Path | Run, against: str | Path | None = None, **settings: Any
) -> dict[str, Any]:
    """Score a run's student on held-out pictures, or a folder of pictures against another.

    Gives what results.json has: similarity, drawing, distances and others. Where weights or
    pictures for FID are missing, there is none, and `fid_missing` says why. `settings` are those of
    distill.eval_fid. Raises DistillError.

    >>> scores = distill.evaluate_student("runs/mine", features="none", flicker=0)
    >>> scores["similarity"].get("PSNR (dB), student to teacher")["value"] > 5
    True
    """
    from distill.eval_fid import run_scores

    named = _of_run(student) if against is None else {"a": _path(student), "b": against}
    return run_scores.carry_out(compose.from_keywords("eval_fid", EvalFid, named, settings))[1]


def _training(pairs: str | Path | None, settings: Mapping[str, Any], schema: Any) -> Any:
    """The settings of distill.train, with what follows from a folder of pairs."""
    from distill.train.__main__ import implied

    named = {} if pairs is None else {"data.root": pairs}
    return compose.from_keywords("train", schema, named, settings, implied)


def _path(student: str | Path | Run) -> Path:
    return student.folder if isinstance(student, Run) else home_path(student)


def _of_run(student: str | Path | Run) -> dict[str, Any]:
    """The settings that name a run by its folder, or a file, to a command."""
    path = _path(student)
    return {"checkpoint": path} if path.is_file() else {"run": path.name, "runs": path.parent}


def _file_of(student: str | Path | Run) -> Path:
    """The file of a student that `load` takes; one of the Hub is fetched where it is not there."""
    path = _path(student)
    if student in zoo.shipped():
        return zoo.find(str(student))
    scheme, colon, name = str(student).partition(":")
    for fetch in values("students", scheme) if colon else ():
        from distill.core.nodes import class_of

        return class_of(f"students.{scheme}", {"_target_": fetch})(name)
    if path.is_dir():
        return Run(path).checkpoint("best")
    if not path.is_file():
        raise DistillError(
            f"{student}: no such file or run, and no student of this package (there are: "
            f"{', '.join(zoo.shipped())}); one on the Hub is hub:USER/NAME"
        )
    return path


def _subject(student: nn.Module, settings: Export) -> Any:
    """What is exported of a network in memory, whose mode and device stay as they are."""
    from torch import nn

    from distill.data.licence_terms import terms_of_run
    from distill.export import subject
    from distill.models.build import untrained
    from distill.models.plain_weights import plain_copy
    from distill.runs.published_student import PublishedStudent
    from distill.train.distillation import DistillModule

    if not isinstance(student, nn.Module):
        kind = student.__name__ if isinstance(student, type) else type(student).__name__
        raise DistillError(f"student: {kind}, want an nn.Module, a run or a file")
    if isinstance(student, nn.DataParallel | nn.parallel.DistributedDataParallel):
        student = student.module
    student = getattr(student, "_orig_mod", student)  # inside what torch.compile gives
    if isinstance(student, PublishedStudent):
        network = deepcopy(student.student).cpu().eval()
        return subject.of_described(network, student.description, settings)
    if isinstance(student, DistillModule) and student.settings is not None:
        trained = student.settings
        whole = untrained(trained)  # a copy would have hooks, and their tensors
        whole.load_state_dict(student.student.state_dict())
        return subject.subject_of(whole.eval(), trained, settings, terms_of_run(trained))
    return subject.of_module(plain_copy(student).cpu(), settings)
