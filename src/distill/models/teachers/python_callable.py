"""Any Python callable as a teacher: teacher.call=package.module:function."""

from __future__ import annotations

import difflib
import hashlib
import importlib
import inspect
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from distill.core.errors import DistillError, reason_of
from distill.core.files import sha256
from distill.models.teachers.teacher import Teacher, check_typed

SLACK = 1e-3  # arithmetic may leave [0, 1] by so much, and is then clamped


class CallTeacher(Teacher):
    """What `call` names, MODULE:NAME: it is given (N, 3, H, W) RGB in [0, 1], and gives the same.

    Both are float32 tensors, of any size; the given one lies on the device that labels, and is the
    callable's own. NAME may have dots. An nn.Module goes to that device, frozen and in evaluation
    mode, and its weights are part of the fingerprint; so are the source files of MODULE and of the
    callable, and `version`, a word of one's own for what they do not show, as a file that the
    callable reads. Modules are looked for as Python does, and in the current folder. `typed`: the
    user has named it, not a run's file.

    Raises DistillError for what cannot be imported, called or used.
    """

    traceable = False  # it may compute with anything, of which a graph would keep one result

    def __init__(self, call: str | None = None, version: str = "", typed: bool = True) -> None:
        super().__init__()
        if not call:
            raise DistillError(
                "teacher.call: missing; name a callable of yours: teacher.call=package.module:name"
            )
        check_typed(f"teacher.call={call}", typed)
        self.call, self.version = call, version
        self.folder = os.getcwd()
        found, self._code = _found(call, self.folder)
        self._function: Callable[[Tensor], Any] | None = found
        self.net = found if isinstance(found, nn.Module) else None
        self.gives_activations = self.net is not None
        self.freeze()

    def __getstate__(self) -> dict[str, Any]:
        """For another process, which imports the callable itself; of a network with its weights."""
        return {**self.__dict__, "_function": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._function, code = self.net, self._code
        if self.net is None:
            self._function, code = _found(self.call, self.folder)
        if code != self._code:
            raise DistillError(
                f"teacher.call={self.call}: is other code on this node; install the same everywhere"
            )

    def settings(self) -> str:
        return f"{self.call} {self._code} {self.version}"

    def forward(self, photo: Tensor) -> Tensor:
        assert self._function is not None
        given = photo.detach().float().clone()  # it may write into it
        try:
            # It is asked for float32, whatever runs around it.
            with torch.autocast(photo.device.type, enabled=False):
                output = self._function(given)
        except (Exception, SystemExit) as error:  # code of the user's raises whatever it likes
            raise DistillError(
                f"teacher.call={self.call}: raised {type(error).__name__} for {_form(photo)} "
                f"({reason_of(error, 200)}{_place(error)})"
            ) from error
        self._check(output, photo)
        return output.to(photo.device).clamp(0, 1)

    def _check(self, output: Any, photo: Tensor) -> None:
        """Raises DistillError for what is no picture for each photo."""
        said = f"teacher.call={self.call}: gave"
        if not isinstance(output, Tensor):
            name = f"{type(output).__module__}.{type(output).__qualname__}"
            raise DistillError(f"{said} a {name.removeprefix('builtins.')}, want a torch.Tensor")
        if output.shape != photo.shape or output.dtype != torch.float32:
            raise DistillError(f"{said} {_form(output)}, want {_form(photo)}")
        if not output.isfinite().all():
            raise DistillError(f"{said} values that are not finite (NaN or infinite)")
        low, high = output.aminmax()
        if low < -SLACK or high > 1 + SLACK:
            raise DistillError(
                f"{said} values from {low.item():.4g} to {high.item():.4g}, want [0, 1]"
            )


def _form(tensor: Tensor) -> str:
    return f"{tuple(tensor.shape)} {str(tensor.dtype).removeprefix('torch.')}"


def _found(call: str, folder: str) -> tuple[Callable[[Tensor], Any], str]:
    """What is called, and a hash of its code. Raises DistillError."""
    said = f"teacher.call={call}"
    module_name, colon, name = call.partition(":")
    parts = [*module_name.split("."), *name.split(".")]
    if not colon or not all(part.isidentifier() for part in parts):
        raise DistillError(f"{said}: want package.module:name, with one colon")
    module = _imported(said, module_name, folder)
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            where = getattr(found, "__name__", part)
            close = difflib.get_close_matches(part, dir(found), n=1, cutoff=0.6)
            guess = f"; did you mean {close[0]}?" if close else ""
            raise DistillError(f"{said}: there is no {part} in {where}{guess}")
        found = getattr(found, part)
    if not callable(found):
        raise DistillError(f"{said}: is a {type(found).__name__}, which cannot be called")
    return found, _code_of(said, module, found)


def _imported(said: str, name: str, folder: str) -> ModuleType:
    try:
        if folder not in sys.path:  # last, and for good: a function may import when it is called
            sys.path.append(folder)
        importlib.invalidate_caches()
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and f"{name}.".startswith(f"{error.name}."):
            raise DistillError(
                f"{said}: there is no module {error.name}, here or where Python looks (PYTHONPATH)"
            ) from error
        raise DistillError(f"{said}: importing {name} needs {error.name}; install it") from error
    except (Exception, SystemExit) as error:  # a module of the user's raises whatever it likes
        raise DistillError(
            f"{said}: importing {name} raised {type(error).__name__} "
            f"({reason_of(error, 200)}{_place(error)})"
        ) from error


def _code_of(said: str, module: ModuleType, found: Any) -> str:
    """A hash of the files in which the callable is named and written, in that order."""
    own = found if hasattr(found, "__code__") or inspect.isclass(found) else type(found)
    written = sys.modules.get(getattr(inspect.unwrap(own), "__module__", None) or "", module)
    files = [getattr(each, "__file__", None) for each in dict.fromkeys([module, written])]
    known = [Path(file) for file in files if file and Path(file).is_file()]
    if not known:
        raise DistillError(
            f"{said}: is built into Python, so nothing tells its code from another's; write a "
            "function of your own that calls it"
        )
    return hashlib.sha256("".join(map(sha256, known)).encode()).hexdigest()[:16]


def _place(error: BaseException) -> str:
    """Where in the user's code an error was raised, not in a library that this calls."""
    place, trace = "", error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if file != __file__ and "site-packages" not in file and os.path.isfile(file):
            place = f", {file}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place
