"""Files of the diffusers library: where they lie, what identifies them, which pipeline they are."""

import hashlib
import inspect
import json
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from distill.core.errors import DistillError, library_errors, needed
from distill.core.files import home_path, sha256

INSTALL = "pip install 'distill[diffusion]'"
LIBRARIES = {"diffusers", "transformers"}  # of which a pipeline's parts may be
INDEX = "model_index.json"


@dataclass(frozen=True)
class PipelineFiles:
    """Files in a folder, or one file; `identity` changes when what is in them does."""

    place: Path
    identity: str


@contextmanager
def library(what: str) -> Iterator[None]:
    """Around what imports diffusers: one line says how it is had."""
    with needed(f"{what}: needs the diffusers library and what it loads models with", INSTALL):
        try:
            yield
        except RuntimeError as error:  # it imports its parts when they are asked for
            if not isinstance(error.__cause__, ImportError):
                raise
            raise error.__cause__ from None


@contextmanager
def quiet(bars: bool = False) -> Iterator[None]:
    """No remarks about settings of files; and no bars beside that of the labelling, but `bars`."""
    import diffusers
    import transformers

    for each in (diffusers.logging, transformers.logging):
        each.set_verbosity_error()
        (each.enable_progress_bar if bars else each.disable_progress_bar)()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def located(
    setting: str,
    name: str,
    revision: str | None = None,
    variant: str | None = None,
    fetch: bool = True,
) -> PipelineFiles:
    """The files that `name` means: a folder or file here, else a repository of the hub.

    That one is fetched where it is not in the hub's cache, unless `fetch` is false; its identity is
    its name and the commit. Raises DistillError where it cannot be had.
    """
    path = home_path(name)
    if path.exists():
        if revision:
            raise DistillError(
                f"teacher.revision={revision}: {name} is a folder here; leave it out"
            )
        return PipelineFiles(Path(os.path.abspath(path)), f"content {content_hash(path)}")
    if path.is_absolute() or name.startswith((".", "~")) or name.count("/") != 1:
        raise DistillError(
            f"{setting}={name}: no such folder, and a name on the hub is OWNER/NAME; name either"
        )
    folder = _of_the_hub(setting, name, revision, variant, fetch)
    commit = folder.name if folder.parent.name == "snapshots" else content_hash(folder)
    return PipelineFiles(folder, f"{name} {commit}")


def _of_the_hub(
    setting: str, name: str, revision: str | None, variant: str | None, fetch: bool
) -> Path:
    with library(f"{setting}={name}"):
        from diffusers import DiffusionPipeline
        from huggingface_hub import snapshot_download
    kinds = ["*.json", "*.safetensors"]
    why = "the hub gives nothing of that name" if fetch else "it is not in the hub's cache"
    what = f"{setting}={name}: no such folder here, and {why}"
    remedy = "; name a folder, or fetch it where there is a connection"
    with library_errors(what, remedy=remedy), quiet(bars=True):
        if setting == "teacher.pipeline":
            how = {"revision": revision, "variant": variant, "local_files_only": not fetch}
            return Path(DiffusionPipeline.download(name, **how))
        return Path(snapshot_download(name, allow_patterns=kinds, local_files_only=not fetch))


def content_hash(path: Path) -> str:
    """Of a file's bytes, or of all files of a folder and their names, but for hidden ones."""
    if path.is_file():
        return sha256(path)[:16]
    digest = hashlib.sha256()
    for each in sorted(path.rglob("*")):
        inside = each.relative_to(path)
        if each.is_file() and not any(part.startswith(".") for part in inside.parts):
            digest.update(f"{inside.as_posix()} {sha256(each)}\n".encode(errors="surrogateescape"))
    return digest.hexdigest()[:16]


def pipeline_class(name: str, folder: Path, controlled: bool) -> Any:
    """The image-to-image class for a pipeline's files; `controlled`: with a ControlNet.

    What is stored as text to image has one for image to image. Raises DistillError for
    other files, and for parts that code of their own would have to make.
    """
    try:
        index = json.loads((folder / INDEX).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DistillError(
            f"teacher.pipeline={name}: no pipeline of diffusers, its {INDEX} cannot be read; name "
            "a folder that save_pretrained wrote"
        ) from error
    if not isinstance(index, dict) or "_class_name" not in index:
        raise DistillError(f"teacher.pipeline={name}: its {INDEX} names no pipeline")
    stored = index["_class_name"]
    with library(f"teacher.pipeline={name}"):
        import diffusers
        from diffusers.pipelines import auto_pipeline
    if not isinstance(stored, str) or not hasattr(diffusers, stored):
        raise DistillError(
            f"teacher.pipeline={name}: is a {stored}, which diffusers {diffusers.__version__} does "
            f"not have; another version may: {INSTALL} --upgrade"
        )
    for part, by in index.items():
        maker = by[0] if isinstance(by, list) else None
        if maker and maker not in LIBRARIES | set(dir(diffusers.pipelines)):
            raise DistillError(
                f"teacher.pipeline={name}: its {part} is made by code of its own ({maker}), which "
                "is not run; name a pipeline of diffusers' own parts"
            )
    class_name = stored
    if controlled and "ControlNet" not in stored:
        kind = "Img2ImgPipeline" if "Img2Img" in stored else "Pipeline"
        class_name = stored.replace(kind, f"ControlNet{kind}")
    pipeline = _image_to_image_kind(auto_pipeline, class_name)
    if pipeline is None and not controlled:
        parameters = inspect.signature(getattr(diffusers, stored).__call__).parameters
        if "image" in parameters and "mask_image" not in parameters:
            pipeline = getattr(diffusers, stored)
    if pipeline is None:
        beside = " together with a ControlNet" if controlled else ""
        raise DistillError(
            f"teacher.pipeline={name}: is a {stored}, which is no image to image{beside}; "
            "name one that does image to image"
        )
    return pipeline


def _image_to_image_kind(auto: Any, stored: str) -> Any:
    """Diffusers' own image-to-image pipeline of the same models; None where it knows of none."""
    image = auto.AUTO_IMAGE2IMAGE_PIPELINES_MAPPING
    others = auto.AUTO_TEXT2IMAGE_PIPELINES_MAPPING, auto.AUTO_INPAINT_PIPELINES_MAPPING
    for kind, pipeline in (pair for each in (image, *others) for pair in each.items()):
        if pipeline.__name__ == stored and kind in image:
            return image[kind]
    return None


def lora_file(name: str, files: PipelineFiles) -> Path:
    """The one file of LoRA weights. Raises DistillError for none or several."""
    if files.place.is_file():
        return files.place
    adapters = sorted(files.place.glob("*.safetensors"))
    if len(adapters) != 1:
        names = ", ".join(each.name for each in adapters) or "none"
        raise DistillError(
            f"teacher.lora={name}: want one .safetensors file, there are: {names}; name the file"
        )
    return adapters[0]
