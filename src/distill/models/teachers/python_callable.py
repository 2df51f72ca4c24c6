"""Any Python callable as a teacher: teacher.call=package.module:function."""

import ast
import hashlib
import importlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from distill.core.errors import DistillError, did_you_mean, of_the_user
from distill.core.files import sha256
from distill.core.images import channels_in, form, wrong_pictures
from distill.models.teachers.teacher import Teacher, check_typed


class CallTeacher(Teacher):
    """What `call` names, MODULE:NAME: it is given (N, 3, H, W) RGB in [0, 1], and gives the same,
    or grey (N, 1, H, W).

    Both are float32 tensors, of any size; the given one lies on the device that labels, and is the
    callable's own. NAME may have dots. An nn.Module goes to that device, frozen and in evaluation
    mode, and its weights are part of the fingerprint; so are the source files of MODULE and of the
    callable, those of one's own that they import, and `version`, a word of one's own for what they
    do not show, as a file that the callable reads. Modules are looked for as Python does, and in
    the current folder. `typed`: the user has named it, not a run's file.

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
        self.call, self.version, self.origin = call, version, f"teacher.call={call}"
        self.folder = os.getcwd()
        function, self._code = _resolve(call, self.folder)
        self.unseen = (
            f"teacher.call={call}: labels are made again where its code changes, also that of your "
            "own that it imports; for files that it reads, and installed packages, change "
            "teacher.version=WORD yourself"
        )
        self._function: Callable[[Tensor], Any] | None = function
        self.net = function if isinstance(function, nn.Module) else None
        self.gives_activations = self.net is not None
        self.freeze()

    def __getstate__(self) -> dict[str, Any]:
        """For another process, which imports the callable itself; of a network with its weights."""
        return {**self.__dict__, "_function": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._function, code = self.net, self._code
        if self.net is None:
            self._function, code = _resolve(self.call, self.folder)
        if code != self._code:
            raise DistillError(
                f"teacher.call={self.call}: is other code on this node; install the same everywhere"
            )

    def settings(self) -> str:
        return f"{self.call} {self._code} {self.version}"

    def forward(self, photo: Tensor) -> Tensor:
        assert self._function is not None
        copy = photo.detach().float().clone()  # it may write into it
        # It is asked for float32, whatever runs around it.
        with (
            of_the_user(f"teacher.call={self.call}: a call with {form(photo)}"),
            torch.autocast(photo.device.type, enabled=False),
        ):
            output = self._function(copy)
        picture = isinstance(output, Tensor) and output.dtype == torch.float32
        shape = (len(photo), channels_in(output), *photo.shape[2:])
        if not picture or output.shape != shape:
            raise DistillError(f"teacher.call={self.call}: {wrong_pictures(output, shape)}")
        return output.to(photo.device)


def _resolve(call: str, folder: str) -> tuple[Callable[[Tensor], Any], str]:
    """What is called, and a hash of its code. Raises DistillError."""
    key = f"teacher.call={call}"
    module_name, colon, name = call.partition(":")
    parts = [*module_name.split("."), *name.split(".")]
    if not colon or not all(part.isidentifier() for part in parts):
        raise DistillError(f"{key}: want package.module:name, with one colon")
    module = _import(key, module_name, folder)
    target: Any = module
    for part in name.split("."):
        if not hasattr(target, part):
            where = getattr(target, "__name__", part)
            guess = did_you_mean(part, dir(target))
            raise DistillError(f"{key}: there is no {part} in {where}; {guess}".rstrip("; "))
        target = getattr(target, part)
    if not callable(target):
        raise DistillError(f"{key}: is a {type(target).__name__}, which cannot be called")
    return target, _code_of(key, module, target)


def _import(key: str, name: str, folder: str) -> ModuleType:
    try:
        if folder not in sys.path:  # last, and for good: a function may import when it is called
            sys.path.append(folder)
        importlib.invalidate_caches()
        with of_the_user(f"{key}: importing {name}", ModuleNotFoundError):
            return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and f"{name}.".startswith(f"{error.name}."):
            raise DistillError(
                f"{key}: there is no module {error.name}, here or where Python looks (PYTHONPATH)"
            ) from error
        raise DistillError(f"{key}: importing {name} needs {error.name}; install it") from error


def _code_of(key: str, module: ModuleType, target: Any) -> str:
    """A hash of the files in which the callable is named and written, in that order."""
    definition = target if hasattr(target, "__code__") or inspect.isclass(target) else type(target)
    home = sys.modules.get(getattr(inspect.unwrap(definition), "__module__", None) or "", module)
    files = [getattr(each, "__file__", None) for each in dict.fromkeys([module, home])]
    sources = [Path(file) for file in files if file and Path(file).is_file()]
    if not sources:
        raise DistillError(
            f"{key}: is built into Python, so nothing tells its code from another's; write a "
            "function of your own that calls it"
        )
    imports = _imported_files(dict.fromkeys([module.__name__, home.__name__])) - {*sources}
    digests = [*map(sha256, sources), *sorted(map(sha256, imports))]  # of any order, in any folder
    return hashlib.sha256("".join(digests).encode()).hexdigest()[:16]


def _imported_files(modules: Iterable[str]) -> set[Path]:
    """The files of one's own that modules import, inside functions too and at any depth: neither
    Python's, nor an installed package's, nor ours. They are found in the source, and not run."""
    files, visited, queue = set[Path](), set[str](), [*modules]
    while queue:
        name = queue.pop()
        if name in visited or not _is_users(name.split(".")[0]):
            continue
        visited.add(name)
        with suppress(Exception):  # no module of that name, or one without source
            spec = importlib.util.find_spec(name)
            if spec is None or not spec.origin:  # or a folder without __init__.py
                continue
            tree = ast.parse(Path(spec.origin).read_bytes())
            files.add(Path(spec.origin))
            for node in ast.walk(tree):
                names = list[str]()
                if isinstance(node, ast.Import):
                    names = [alias.name for alias in node.names]
                elif isinstance(node, ast.ImportFrom):
                    dotted = "." * node.level + (node.module or "")
                    base = importlib.util.resolve_name(dotted, spec.parent)
                    names = [f"{base}.{alias.name}" for alias in node.names]
                for parts in (each.split(".") for each in names):
                    queue += [".".join(parts[: end + 1]) for end in range(len(parts))]
    return files


def _is_users(package: str) -> bool:
    """Whether a module or package is no part of Python, of this package, or of an installed one."""
    if package == "distill" or package in sys.stdlib_module_names:
        return False
    with suppress(Exception):  # a module that was made without a spec
        if spec := importlib.util.find_spec(package):
            places = [*(spec.submodule_search_locations or ()), spec.origin or ""]
            installed = {"site-packages", "dist-packages"}
            return not any(installed & {*Path(each).parts} for each in places)
    return False
