"""The steps of distill.hub: which way, a student or a set, and where it lies on either side."""

from dataclasses import replace
from pathlib import Path

from distill.core.errors import DistillError
from distill.core.files import home_path
from distill.core.next_step import next_step
from distill.data.address import is_address
from distill.data.licence_terms import state_terms
from distill.data.takedown import note_published
from distill.runs.published_student import PublishedStudent
from distill.runs.run_folder import Run, run_named
from distill_hub.published_set import pull_set, push_set
from distill_hub.published_student import pull_student, push_student
from distill_hub.settings import HubSettings
from distill_hub.transfer import Kind, Remote, remote_of


def carry_out(settings: HubSettings) -> None:
    """Push or pull what the settings name. Raises DistillError for another word, or too little."""
    if settings.inputs not in (("push",), ("pull",)):
        typed = " ".join(settings.inputs) or "nothing"
        raise DistillError(f"want push or pull, got {typed}: python -m distill.hub push …")
    push, root = settings.inputs == ("push",), settings.data.root
    choices = {"run": settings.run, "model": settings.model, "data.root": root}
    words = [f"{key}={value}" for key, value in choices.items() if value is not None]
    if len(words) > 1:
        raise DistillError(f"{' and '.join(words)}: name one student, or one set of pairs")
    permitted = settings.licence.i_have_permission
    if (permitted or settings.licence.pictures) and (root is not None or not push):
        key = "i_have_permission" if permitted else "pictures"
        raise DistillError(f"licence.{key}: of a student that is pushed; leave it out")
    if settings.repo is None:
        raise DistillError("repo: missing; repo=USER/NAME on the Hub, or a folder: repo=./DIR")
    if root is not None and is_address(root):
        raise DistillError(
            f"data.root={root}: a set is pushed from a local folder and pulled into one; copy it "
            "with the store's own tool"
        )
    kind: Kind = "model" if root is None else "dataset"
    place = remote_of(settings.repo, kind, settings.revision, settings.private)
    if root is None and push:
        _push_student(settings, place)
    elif root is None:
        _pull_student(settings, place)
    elif push:
        push_set(home_path(root), place, settings.replace, settings.takedown.accept)
    else:
        pull_set(place, home_path(root), settings.replace)


def _push_student(settings: HubSettings, place: Remote) -> None:
    """Push the file of model=FILE, or that of run=NAME or the latest one, with its terms."""
    if settings.model is not None:
        run, what = Run(home_path(settings.model)), f"model={settings.model}"
    else:
        run = run_named(settings.run, settings.runs)
        what = f"run={run.folder.name}"
    file = run.checkpoint(settings.checkpoint) if run.folder.is_dir() else run.folder
    if file.suffix.lower() == ".onnx":
        raise DistillError(f"model={file}: a student is pushed from .safetensors or .ckpt")
    student, licence = PublishedStudent.of(file), settings.licence
    accept = settings.takedown.accept
    terms = state_terms(file, licence).published(what, accept)
    terms = terms.permitted("hub", licence.i_have_permission)
    if licence.i_have_permission or licence.pictures or accept:  # else the file goes as it is
        student.description = replace(student.description, terms=terms.plain())
    print(f"terms: {terms.line}")
    push_student(student, place, settings.replace)
    note_published(file, place.name, Path(settings.runs))


def _pull_student(settings: HubSettings, place: Remote) -> None:
    if settings.model is None:
        raise DistillError(
            "pull: no destination; data.root=DIR for a set of pairs, model=FILE.safetensors for a "
            "student"
        )
    target = home_path(settings.model)
    if target.suffix.lower() != ".safetensors":
        raise DistillError(
            f"model={settings.model}: a student is pulled as .safetensors; give the file that "
            "suffix"
        )
    pull_student(place, target, settings.replace)
    print(next_step("stylize", "PHOTO", model=settings.model))
