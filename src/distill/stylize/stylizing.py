"""The steps of distill.stylize: which student is taken, every file in turn, and the count."""

import json
import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import onnx
from tqdm import tqdm

from distill.config import groups
from distill.config.settings.base import Direction
from distill.config.settings.commands import Stylize, TakesOnnxFiles
from distill.core import onnx_files
from distill.core.errors import DistillError, needed
from distill.core.files import home_path, real_path
from distill.core.licence_terms import NOTE, Terms, read_terms
from distill.core.progress import bar
from distill.data.photos import BadPhoto
from distill.models import zoo
from distill.runs import run_folder
from distill.stylize import pictures
from distill.stylize.conventions import adapt
from distill.stylize.jobs import BadFile, NotWhole, StylizeJob
from distill.stylize.onnx_student import ImageModel, OnnxStudent
from distill.stylize.pictures import InferenceSetup

DEFAULT_STYLE = "hayao"


def choose(settings: Stylize) -> tuple[OnnxStudent, str]:
    """The student that was asked for, and its name. Raises DistillError, for two of them too."""
    settings_of = {"style": settings.style.name, "model": settings.model, "run": settings.run}
    words = [f"{key}={value}" for key, value in settings_of.items() if value is not None]
    if len(words) > 1:
        raise DistillError(f"{' and '.join(words)}: name one student only")
    if settings.run is not None:
        path = run_folder.run_named(settings.run, settings.runs).checkpoint("best")
        name = Path(settings.run).name
    elif settings.model is not None:
        path = home_path(settings.model)
        name = path.stem
    else:
        name = settings.style.name or DEFAULT_STYLE
        if name not in zoo.shipped() and name in groups.choices("style"):
            raise DistillError(
                f"style={name}: no student of it in this package; train one first: python -m "
                f"distill.train style={name} photos=DIR run={name}, then run={name} here"
            )
        path = zoo.find(name)
    student = open_student(path, settings.threads, settings.direction, settings.device, settings)
    if settings.device != "auto" or student.ran_by != "device: cpu":  # as if there were no choice
        print(student.ran_by)
    return student, name if settings.direction == "AtoB" else f"{name}-{settings.direction}"


def listing() -> str:
    """The students of the package in a table, those for commercial use first.

    ms are of one picture of 256×256 on one thread of the machine that the card names.
    """
    rows = []
    for name in zoo.shipped():
        terms = read_terms(onnx_files.noted(onnx_files.read_graph(zoo.find(name)), NOTE) or "")
        card = zoo.FOLDER / f"{name}.md"
        cost = json.loads(card.with_suffix(".json").read_text())["cost"]
        figures = f"{cost['bytes'] / 1e6:.2f}", f"{cost['ms']['value']:.1f}"
        rows.append((terms.commercial, name, *figures, os.path.relpath(card)))
    rows.sort(key=lambda row: (["yes", "unknown", "no"].index(row[0]), row[1]))
    table = [("commercial use", "style=", "MB", "ms", "card"), *rows]
    return "\n".join(
        f"{use:14}  {name:{max(len(r[1]) for r in table)}}  {mb:>4}  {ms:>4}  {card}"
        for use, name, mb, ms, card in table
    )


def open_student(
    path: Path,
    threads: int | None = None,
    direction: Direction = "AtoB",
    device: str = "cpu",
    convention: TakesOnnxFiles | None = None,
) -> OnnxStudent:
    """A network in an ONNX file, a checkpoint or what distill.export wrote as safetensors.

    Raises DistillError for any other file. Weights are exported in memory, by PyTorch: ONNX Runtime
    is faster, and there is one way of inference. `direction` chooses one of a run's two
    networks, `device` what runs it, `convention` another ONNX file's convention.
    """
    if path.suffix.lower() in (".ckpt", ".safetensors"):
        with needed(f"{path}: a checkpoint is exported by PyTorch"):
            from distill.export.subject import inference_graph
        return OnnxStudent(inference_graph(path, direction), str(path), threads, device)
    if direction != "AtoB":
        raise DistillError(f"direction={direction}: {path} has one direction; leave it out")
    model, summary = onnx_files.load_model(path), None
    inputs = onnx_files.model_inputs(model)
    pictures = [v for v in inputs if len(v.type.tensor_type.shape.dim) == 4]
    if [value.name for value in inputs][1:] == [onnx_files.SUMMARY]:
        beside = path.with_name(onnx_files.summary_file(path.stem))
        if not beside.is_file():
            raise DistillError(
                f"{path}: its second input is computed by {beside.name}, which is not beside it; "
                "put it there"
            )
        summary = onnx_files.load_model(beside)
    if convention and pictures[:1] == inputs[:1] != [] and not _is_ours(model):
        model, line = adapt(model, convention, str(path))
        if line:
            print(line)
    return OnnxStudent(model, str(path), threads, device, summary)


def terms_of_student(network: OnnxStudent, path: Path) -> Terms:
    """Those that the file says, and pictures that were taken down since it learnt from them."""
    from distill.data.takedown import with_takedown  # pages alone ask

    note = onnx_files.noted(network.model, NOTE)
    return with_takedown(read_terms(note) if note is not None else Terms(()), path)


def _is_ours(model: onnx.ModelProto) -> bool:
    """Whether distill.export wrote it, from float32 in [0, 1] to the same: without other ends."""
    ours = {NOTE, onnx_files.COLOURS_AT, onnx_files.GLOBAL_STATISTICS}
    kind = onnx_files.model_inputs(model)[0].type.tensor_type.elem_type
    keys = {p.key for p in model.metadata_props}
    return kind == onnx.TensorProto.FLOAT and bool(keys & ours) and onnx_files.ABOUT not in keys


def stylise_all(
    jobs: Sequence[StylizeJob], student: OnnxStudent, settings: Stylize, omissions: str = ""
) -> None:
    """Stylise every file; one that cannot be is skipped with a line.

    `omissions` is what the last line also says.
    Raises DistillError (exit status 1) when any was skipped, and without weights that are needed.
    """
    kinds = {job.kind.noun if job.kind else "picture": job.kind for job in jobs}
    for kind in filter(None, kinds.values()):
        kind.check()
    what, several = "files" if len(kinds) > 1 else f"{next(iter(kinds))}s", len(jobs) > 1
    setup = InferenceSetup.of(settings, student)
    teacher = _teacher(settings) if settings.compare and "picture" in kinds else None
    protected = frozenset(real_path(path) for job in jobs for path in (job.source, job.target))
    setup = replace(setup, teacher=teacher, protected=protected)
    failed = partly = 0
    with bar(len(jobs), what[:-1], "stylising") if several else nullcontext() as progress:
        for job in jobs:
            stylise_file = job.kind.stylise_file if job.kind else pictures.stylise_file
            try:
                stylise_file(job, setup)
            except (BadPhoto, BadFile) as reason:
                if not several:
                    raise DistillError(f"{str(job.source)!r}: {reason}") from None
                tqdm.write(f"skipped {str(job.source)!r}: {reason}", file=sys.stderr)
                failed += 1
            except NotWhole as reason:
                job.say(f"stylised, but {reason}")
                partly += 1
            if progress is not None:
                progress.update()
    ending = f"; {omissions}" if omissions else ""
    if not several:
        print(f"written: {str(jobs[0].target)!r}{ending}")
    elif count := len(jobs) - failed:
        folder = os.path.commonpath([os.path.abspath(job.target.parent) for job in jobs])
        print(f"written: {count} {what}, in {os.path.relpath(folder)!r}{ending}")
    for count, problem in ((failed, "skipped"), (partly, "not whole")):
        if count:
            raise DistillError(f"{count} of {len(jobs)} {what} {problem}")


def _teacher(settings: Stylize) -> ImageModel | None:
    """The student's teacher; None of an ONNX file, and without PyTorch, which a line says."""
    if settings.model is not None:
        return None
    try:
        with needed("compare=true: without the teacher, it needs PyTorch"):
            from distill.stylize import teacher_model
    except DistillError as error:
        print(error, file=sys.stderr)
        return None
    return teacher_model.find(settings.run, settings.runs, settings.style.name or DEFAULT_STYLE)
