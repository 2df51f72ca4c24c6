"""Nodes: a class by `_target_` and its arguments, checked against its signature, then built."""

import inspect
import sys
from collections.abc import Iterable, Mapping
from contextlib import nullcontext, suppress
from importlib import import_module
from importlib.util import find_spec
from pkgutil import resolve_name
from typing import Any, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError

from distill.core import plugins
from distill.core.errors import (
    DistillError,
    did_you_mean,
    lacking,
    of_the_user,
    place_of,
    reason_of,
)
from distill.core.moved import current_name

Node = dict[str, Any]  # a class or function by `_target_`, and its arguments


def bind(key: str, value: Mapping[str, Any], from_code: Iterable[str] = ()) -> None:
    """Check that a Node's class exists and takes these arguments with these types."""
    target = class_of(key, value)
    signature = inspect.signature(target) if callable(target) else inspect.Signature()
    allowed = [n for n in signature.parameters if n not in from_code]
    hints: dict[str, Any] = {}
    with suppress(NameError, TypeError):  # names for type checkers alone; no function
        of = target.__init__ if inspect.isclass(target) else target
        hints = get_type_hints(of, include_extras=True)
    arguments = {k: v for k, v in value.items() if k != "_target_"}
    for name, argument in arguments.items():
        if name not in allowed:
            raise DistillError(unknown_name(f"{key}.{name}", [f"{key}.{n}" for n in allowed]))
        hint = hints.get(name, Any)
        try:
            adapter = TypeAdapter(hint, config=ConfigDict(arbitrary_types_allowed=True))
            adapter.validate_python(argument)
        except PydanticUserError:
            pass  # a hint pydantic cannot express says nothing about plain values
        except ValidationError as error:
            # It begins with a capital; values in it stay as they are.
            problem = error.errors()[0]["msg"]
            if isinstance(argument, list) and "valid integer" in problem:
                problem = "want one number; of what is no square the longer side"
            message = f"{key}.{name}={argument!r}: {problem[0].lower()}{problem[1:]}"
            raise DistillError(message) from None
    for name in allowed:
        parameter = signature.parameters[name]
        variadic = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        if name not in arguments and parameter.default is parameter.empty and not variadic:
            raise DistillError(f"{key}.{name}: missing; {value['_target_']} needs it")


def build(value: Mapping[str, Any], **more: Any) -> Any:
    """The object a Node describes, with further arguments from code."""
    arguments = {k: v for k, v in value.items() if k != "_target_"}
    return class_of("", value)(**arguments, **more)


def part(key: str, value: Mapping[str, Any], base: type, **more: Any) -> Any:
    """The `base` that a Node describes; one that is no class or function is taken as it is.

    Raises DistillError for anything else, and where code of the user's own raises what it likes.
    """
    target, setting = check_base(key, value, base), f"{key}._target_={value.get('_target_')}"
    if isinstance(target, base):
        return target
    with of_the_user(f"{setting}: its constructor") if is_plugin(value) else nullcontext():
        built = build(value, **more)
    if not isinstance(built, base):
        raise _no(key, value, base)
    return built


def check_base(key: str, value: Mapping[str, Any], base: type) -> Any:
    """What a Node names. Raises DistillError for a class that is no `base`."""
    target = class_of(key, value)
    if inspect.isclass(target) and not issubclass(target, base):
        raise _no(key, value, base)
    return target


def _no(key: str, value: Mapping[str, Any], base: type) -> DistillError:
    remedy = f"is no {base.__name__}; name a subclass of {base.__module__}.{base.__name__}"
    return DistillError(f"{key}._target_={value.get('_target_')}: {remedy}")


def is_plugin(value: Mapping[str, Any]) -> bool:
    """Whether a Node's class is the user's, not distill's or PyTorch's, which need no trial."""
    return str(value.get("_target_")).partition(".")[0] not in (*plugins.shipped(), "torch")


def takes(value: Mapping[str, Any], argument: str) -> bool:
    """Whether a Node's class has a parameter of that name."""
    return argument in inspect.signature(class_of("", value)).parameters


def class_of(key: str, value: Mapping[str, Any]) -> Any:
    """The class or function that a Node names; `key` is the setting, for messages.

    Raises DistillError where there is none of that name.
    """
    name = value.get("_target_")
    if not isinstance(name, str):
        raise DistillError(f"{key}._target_: missing; it names the class to build")
    ours = (name := current_name(name)).partition(".")[0] in plugins.shipped()
    try:
        module, _, inside = name.rpartition(".")
        try:  # `resolve_name` does not say what a module lacks
            return getattr(import_module(module), inside)
        except ModuleNotFoundError as error:
            if ours or not f"{module}.".startswith(f"{error.name}."):
                raise
            return resolve_name(name)  # of a class inside a class
    except (ImportError, AttributeError, ValueError) as error:
        if isinstance(error, ModuleNotFoundError) and error.name == "torch":
            raise  # an installation for inference alone, which is said in other words
        problem = lacking(error) if ours and isinstance(error, ImportError) else ""
        problem = problem or f"cannot be imported ({error})"
        raise DistillError(f"{key}._target_={name}: {problem}") from error
    except Exception as error:  # a module of the user's raises whatever it likes
        if ours:
            raise
        why = f"{type(error).__name__}: {reason_of(error, 200)}{place_of(error)}"
        raise DistillError(f"{key}._target_={name}: cannot be imported ({why})") from error


def flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Settings within settings, by their dotted keys."""
    settings: dict[str, Any] = {}
    for key, value in tree.items():
        name = f"{prefix}{key}"
        settings |= flat(value, f"{name}.") if isinstance(value, dict) else {name: value}
    return settings


def check_part(value: Mapping[str, Any], package: str, base: type) -> None:
    """Refuse a Node that came in a file unless it is a `base` of `package`, or of a plug-in.

    A config of one's own may name any class; a checkpoint from elsewhere must not, since building
    `os.system` from it would run whatever it says. Nothing else is even imported.
    """
    name = current_name(str(value.get("_target_")))
    module, _, inner = name.rpartition(".")
    if not name.startswith("distill."):
        _check_plugin(name, base)
        return
    part_class: Any = None
    with suppress(ModuleNotFoundError):  # no such module, or none above it
        inside = module.startswith(f"{package}.")  # of others what is above is imported at most
        part_class = vars(import_module(module)).get(inner) if inside else find_spec(module)
    if part_class is None:
        raise DistillError(
            f"{name}: no such class; a run names the classes of the version that trained it, so "
            "use it with that version, or train again"
        )
    if (
        not inspect.isclass(part_class)
        or not issubclass(part_class, base)
        or part_class.__module__ != module
    ):
        raise DistillError(f"{name}: refused; only classes of {package} are built from a file")


def _check_plugin(name: str, base: type) -> None:
    top = name.partition(".")[0]
    plugin = next((each for each in plugins.plugins() if name.startswith(f"{each}.")), None)
    if plugin is None:
        may = top.isidentifier() and top not in {*sys.stdlib_module_names, "torch"}
        remedy = f"; if you trust {top}, add plugins=[{top}]" if may and "." in name else ""
        refusal = "refused; only classes of distill and of plug-ins are built from a file"
        raise DistillError(f"{name}: {refusal}{remedy}")
    part_class = class_of("file", {"_target_": name})
    # It may be listed in another module than its own.
    inside = getattr(part_class, "__module__", "")
    if not inspect.isclass(part_class) or not f"{inside}.".startswith(f"{plugin}."):
        raise DistillError(f"{name}: refused; is no class of {plugin}")
    if not issubclass(part_class, base):
        raise DistillError(f"{name}: refused; is no {base.__name__}")


def unknown_name(key: str, allowed: list[str], what: str = "setting") -> str:
    """The one line for a name that does not exist: what was meant or, if unclear, what there is."""
    meant = did_you_mean(key, allowed) or f"allowed: {', '.join(allowed) or 'nothing here'}"
    return f"{key}: no such {what}; {meant}"
