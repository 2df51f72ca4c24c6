"""Any image-to-image pipeline of the diffusers library as a teacher."""

import hashlib
import inspect
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from typing import Any, Literal

import kornia
import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor

from distill.core.errors import DistillError, reason_of
from distill.core.images import to_image
from distill.models.teachers.teacher import Teacher, check_typed
from distill_diffusion import pipeline_files
from distill_diffusion.pipeline_files import INSTALL, PipelineFiles

# The pipelines' names of our settings.
ARGUMENTS = {
    "prompt": "prompt",
    "negative_prompt": "negative_prompt",
    "strength": "strength",
    "guidance": "guidance_scale",
    "image_guidance": "image_guidance_scale",
    "steps": "num_inference_steps",
    "controlnet_scale": "controlnet_conditioning_scale",
}
TYPED = {argument: f"teacher.{ours}" for ours, argument in ARGUMENTS.items()}
RESERVED = {"image", "control_image", "generator", "output_type", "height", "width", "max_area"}
DTYPES = {name: getattr(torch, name) for name in ("float32", "float16", "bfloat16")}


@dataclass(eq=False, repr=False)
class DiffusionTeacher(Teacher):
    """A pipeline: (N, 3, H, W) RGB in [0, 1] to the same; needs the extra `diffusion`.

    `pipeline` is a folder or a name on the hub, at `revision`, its files of a `variant` (fp16).
    What is None of prompt to steps is the pipeline's own default, and what it does not take must be
    None. `more` are further arguments of its call. `side`: pictures are generated with their long
    side at so many pixels, and brought back. `controlnet` sees the photo, or its edges (`control`);
    `lora` is a file, folder or name on the hub.

    The noise of a picture is sampled on the CPU from `seed` and its pixels: the same whatever else
    is in the batch, and on any device. `dtype` is that of the arithmetic. `offload`: the pipeline's
    parts lie in the GPU's memory only while they are used (model), or its layers (sequential).
    `typed`: the user has named the files, not a run's file.

    Files are found at once and read when the first picture is generated. Raises DistillError for
    what is missing or is not taken.
    """

    gives_activations = False
    traceable = False
    timed = False
    batch_size = 4

    pipeline: str | None = None
    prompt: str | None = None
    negative_prompt: str | None = None
    strength: float | None = None
    guidance: float | None = None
    image_guidance: float | None = None
    steps: int | None = None
    seed: int = 0
    side: int | None = None
    controlnet: str | None = None
    controlnet_scale: float | None = None
    control: Literal["photo", "edges"] = "photo"
    lora: str | None = None
    lora_scale: float = 1.0
    more: dict[str, Any] | None = None
    revision: str | None = None
    variant: str | None = None
    dtype: Literal["float32", "float16", "bfloat16"] = "float32"
    offload: Literal["none", "model", "sequential"] = "none"
    safety_checker: bool = True
    typed: bool = True

    def __post_init__(self) -> None:
        super().__init__()
        strength, steps = self.strength, self.steps
        if not self.pipeline:
            raise DistillError(
                "teacher.pipeline: missing; name a folder that diffusers saved, or OWNER/NAME on "
                "the hub: teacher.pipeline=stabilityai/sdxl-turbo"
            )
        for package in ("diffusers", "transformers"):
            if find_spec(package) is None:
                raise DistillError(f"teacher=diffusion: needs the {package} library; {INSTALL}")
        if strength is not None and not 0 < strength <= 1:
            raise DistillError(f"teacher.strength={strength}: want more than 0, at most 1")
        if steps is not None and steps < 1:
            raise DistillError(f"teacher.steps={steps}: want at least 1")
        if self.side is not None and self.side < 8:
            raise DistillError(f"teacher.side={self.side}: want at least 8 pixels")
        if strength is not None and steps is not None and int(steps * strength) < 1:
            raise DistillError(
                f"teacher.steps={steps}: of these, strength={strength} leaves no denoising step; "
                "want steps × strength of at least 1"
            )
        self.origin = f"teacher.pipeline={self.pipeline} (teacher.dtype={self.dtype})"
        values = {argument: getattr(self, ours) for ours, argument in ARGUMENTS.items()}
        self.arguments = {argument: v for argument, v in values.items() if v is not None}
        for key in self.more or {}:
            if key in TYPED or key in RESERVED:
                instead = f"say {TYPED[key]}" if key in TYPED else "it is set for each picture"
                raise DistillError(f"teacher.more.{key}: {instead}; leave it out")
        self.arguments |= self.more or {}
        self.files: dict[str, PipelineFiles] = {}
        for key in ("pipeline", "controlnet", "lora"):
            if (name := getattr(self, key)) is not None:
                check_typed(f"teacher.{key}={name}", self.typed)
                how = (self.revision, self.variant) if key == "pipeline" else (None, None)
                self.files[key] = pipeline_files.located(f"teacher.{key}", name, *how, self.typed)
        self._check()
        self._pipe: Any = None
        self._on: torch.device | None = None
        self.freeze()

    @cached_property
    def kind(self) -> Any:
        """The pipeline's class."""
        folder = self.files["pipeline"].place
        return pipeline_files.pipeline_class(
            str(self.pipeline), folder, self.controlnet is not None
        )

    def __getstate__(self) -> dict[str, Any]:
        """For another process, which reads the same files itself: they may be many gigabytes."""
        state = {**self.__dict__, "_pipe": None, "_on": None}
        return {key: value for key, value in state.items() if key not in ("kind", "_call_takes")}

    def settings(self) -> str:
        identities = {key: each.identity for key, each in self.files.items()}
        options = {
            "class": self.kind.__name__, "seed": self.seed, "side": self.side, "dtype": self.dtype,
            "control": self.control if self.controlnet else None, "variant": self.variant,
            "lora_scale": self.lora_scale if self.lora else None,
        }  # fmt: skip
        return json.dumps([identities, self.arguments, options], sort_keys=True)

    def forward(self, photo: Tensor) -> Tensor:
        height, width = photo.shape[-2:]
        at = self._size(height, width)
        pipe = self._placed(photo.device)
        pictures, seeds = [], []
        for each in photo:
            picture = to_image(each.float().cpu())
            if picture.size != at:
                picture = picture.resize(at, Image.Resampling.LANCZOS)
            pictures.append(picture)
            # Of its 8-bit pixels, as any device has them.
            pixels = (each.detach().float() * 255).round().to(torch.uint8).cpu().numpy()
            digest = hashlib.sha256(f"{self.seed} {pixels.shape} ".encode() + pixels.tobytes())
            # 63 bits, as manual_seed takes
            seeds.append(int.from_bytes(digest.digest()[:8], "big") >> 1)
        several = {"strength", "image_guidance_scale"} & self._call_takes.keys()
        step = len(pictures) if several else 1  # of others a list is one picture's references
        parts = [
            self._drawn(pipe, pictures[i : i + step], seeds[i : i + step], at)
            for i in range(0, len(pictures), step)
        ]
        output = torch.cat(parts)
        if output.shape[-2:] != (height, width):
            output = F.interpolate(output, (height, width), mode="bicubic", antialias=True)
        return output.clamp(0, 1).to(photo.device, photo.dtype)

    def _drawn(
        self, pipe: Any, photos: Sequence[Image.Image], seeds: Sequence[int], at: tuple[int, int]
    ) -> Tensor:
        """The pipeline's pictures (n, 3, H, W) of these, on the CPU."""
        parameters, n = self._call_takes, len(photos)
        lists: dict[str, Any] = {"image": list(photos)}
        if self.controlnet:
            edges = self.control == "edges"
            lists["control_image"] = [_edges(each) if edges else each for each in photos]
        lists["generator"] = [torch.Generator("cpu").manual_seed(each) for each in seeds]
        inputs = lists if n > 1 else {key: each for key, (each,) in lists.items()}
        if self.side:  # else such a pipeline takes the size that it was trained at
            area = at[0] * at[1]
            sizes = {"width": at[0], "height": at[1], "max_area": area, "_auto_resize": False}
            inputs |= {key: value for key, value in sizes.items() if key in parameters}
        arguments: dict[str, Any] = dict(self.arguments)
        for key in ("prompt", "negative_prompt"):
            if isinstance(arguments.get(key), str) and n > 1:
                arguments[key] = [arguments[key]] * n
        try:
            # Its own dtype, whatever runs around it.
            with (
                torch.autocast(self._on.type if self._on else "cpu", enabled=False),
                torch.no_grad(),
                pipeline_files.quiet(),
            ):
                result = pipe(**arguments, **inputs, output_type="np")
        except Exception as error:  # diffusers, and what it calls, raise whatever they like
            full = isinstance(error, torch.OutOfMemoryError) or "out of memory" in str(error)
            small = "; try label.batch_size=1 or teacher.offload=model" if full else ""
            raise DistillError(
                f"teacher.pipeline={self.pipeline}: {self.kind.__name__} cannot draw "
                f"{at[0]}×{at[1]} pixels with these settings ({reason_of(error, 300)}){small}"
            ) from error
        if any(getattr(result, "nsfw_content_detected", None) or []):
            raise DistillError(
                f"teacher.pipeline={self.pipeline}: its safety checker has blackened a picture; "
                "teacher.safety_checker=false leaves the checker out"
            )
        pictures = np.asarray(result.images, np.float32)
        if pictures.ndim != 4 or pictures.shape[::3] != (n, 3):
            raise DistillError(f"{self.origin}: gave {pictures.shape}, no picture for each photo")
        return torch.from_numpy(pictures).permute(0, 3, 1, 2)

    @cached_property
    def _call_takes(self) -> Mapping[str, inspect.Parameter]:
        return inspect.signature(self.kind.__call__).parameters

    def _size(self, height: int, width: int) -> tuple[int, int]:
        """Width and height at which a picture is generated: multiples of 8, for the autoencoder."""
        scale = self.side / max(height, width) if self.side else 1.0
        wide, high = (max(8, round(side * scale / 8) * 8) for side in (width, height))
        return wide, high

    def _placed(self, device: torch.device) -> Any:
        """The pipeline, read, on a device."""
        if self._pipe is None:
            self._pipe = self._read()
        if self._on != device:
            if self.offload == "none":
                self._pipe.to(device)
            elif device.type == "cpu":
                raise DistillError(
                    f"teacher.offload={self.offload}: is for a GPU, and photos are stylized on "
                    "the CPU; leave it out"
                )
            elif self.offload == "model":
                self._pipe.enable_model_cpu_offload(device=device)
            else:
                self._pipe.enable_sequential_cpu_offload(device=device)
            self._on = device
        return self._pipe

    def _read(self) -> Any:
        setting = f"teacher.pipeline={self.pipeline}"
        try:
            with pipeline_files.library(setting), pipeline_files.quiet():
                how: dict[str, Any] = {"torch_dtype": DTYPES[self.dtype]}
                if self.controlnet:
                    setting = f"teacher.controlnet={self.controlnet}"
                    place = self.files["controlnet"].place
                    how["controlnet"] = _control_class(self.kind).from_pretrained(place, **how)
                    setting = f"teacher.pipeline={self.pipeline}"
                if self.variant:
                    how["variant"] = self.variant
                parts = inspect.signature(self.kind.__init__).parameters
                if not self.safety_checker and "safety_checker" in parts:
                    how |= {"safety_checker": None, "requires_safety_checker": False}
                pipe = self.kind.from_pretrained(self.files["pipeline"].place, **how)
                pipe.set_progress_bar_config(disable=True)
                if self.lora:
                    setting = f"teacher.lora={self.lora}"
                    file = pipeline_files.lora_file(self.lora, self.files["lora"])
                    pipe.load_lora_weights(str(file.parent), weight_name=file.name,
                                           adapter_name="style")  # fmt: skip
                    if "style" not in str(pipe.get_list_adapters()):
                        raise DistillError(
                            f"{setting}: changes no part of this pipeline; name another"
                        )
                    pipe.set_adapters(["style"], [self.lora_scale])
        except DistillError:
            raise
        except Exception as error:  # diffusers, and what it calls, raise whatever they like
            raise DistillError(f"{setting}: cannot be loaded ({reason_of(error, 300)})") from error
        return pipe

    def _check(self) -> None:
        """Raises DistillError for settings that this pipeline does not take, or needs."""
        if self.controlnet is None and "controlnet_conditioning_scale" in self.arguments:
            raise DistillError("teacher.controlnet_scale: without teacher.controlnet; leave it out")
        if unknown := [each for each in self.arguments if each not in self._call_takes]:
            setting = TYPED.get(unknown[0], f"teacher.more.{unknown[0]}")
            takes = [TYPED[each] for each in self._call_takes if each in TYPED]
            raise DistillError(
                f"{setting}: {self.kind.__name__} does not take it; leave it out (it takes "
                f"{', '.join(takes)}, and as teacher.more={{NAME: VALUE}} what diffusers says)"
            )
        if "prompt" in self._call_takes and "prompt" not in self.arguments:
            raise DistillError(
                f"teacher.prompt: missing; {self.kind.__name__} needs a text prompt: "
                "teacher.prompt='ink drawing'"
            )
        if self.lora and not hasattr(self.kind, "load_lora_weights"):
            raise DistillError(f"teacher.lora={self.lora}: {self.kind.__name__} takes none")
        if self.lora and find_spec("peft") is None:
            raise DistillError(f"teacher.lora={self.lora}: needs peft; {INSTALL}")
        if self.offload != "none" and find_spec("accelerate") is None:
            raise DistillError(f"teacher.offload={self.offload}: needs accelerate; {INSTALL}")


def _control_class(kind: Any) -> Any:
    """The class of ControlNet that a pipeline takes, by its family."""
    import diffusers

    for family in ("Flux", "StableDiffusion3"):
        if kind.__name__.startswith(family):
            prefix = {"StableDiffusion3": "SD3"}.get(family, family)
            return getattr(diffusers, f"{prefix}ControlNetModel")
    return diffusers.ControlNetModel


def _edges(picture: Image.Image) -> Image.Image:
    """White edges on black (Canny 1986), as ControlNets of that name are trained with."""
    values = torch.from_numpy(np.asarray(picture, np.float32) / 255).permute(2, 0, 1)[None]
    _, edges = kornia.filters.canny(values)
    return to_image(edges[0].expand(3, -1, -1))
