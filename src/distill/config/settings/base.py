"""What all settings share: kinds of values, and a line on each for --help; conf/ has defaults.

A setting with a default here has it since runs from before it have none.
"""

from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from distill.core import plugins
from distill.core.nodes import Node


def _name(name: str) -> str:
    if not name.strip(".") or {"/", "\\"} & {*name}:
        raise PydanticCustomError("name", "want a folder's name, without slashes, not only dots")
    return name


def one_of(entry: str, *ours: str) -> AfterValidator:
    """One of `ours`, or of the names that plug-ins have below an entry of plugin.yaml."""

    def known(name: str) -> str:
        names = [*ours, *(name for name, _ in plugins.entries(entry))]
        if name not in names:
            raise PydanticCustomError("name", "want one of {names}", {"names": ", ".join(names)})
        return name

    return AfterValidator(known)


Direction = Literal["AtoB", "BtoA"]
Positive = Annotated[int, Field(gt=0, lt=2**40)]  # times a batch, it is a length in Python
Seed = Annotated[int, Field(ge=0, lt=2**32)]  # as NumPy takes it
Name = Annotated[str, AfterValidator(_name)]  # of a folder
Fraction = Annotated[float, Field(gt=0, le=1)]


@dataclass(frozen=True)
class Given:
    """Marks a Node: arguments that code adds, which no config may set, and those that are texts."""

    names: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()


Nodes = dict[str, Annotated[Node, Given()]]  # by names of the user's choice


@dataclass(frozen=True)
class PathMark:
    """Marks a path or the name of a folder."""


def _without_null(text: str) -> str:
    """Python's file functions raise ValueError of such a name, not OSError."""
    if "\0" in text:
        raise PydanticCustomError("null", "a path cannot hold a null byte; type another one")
    return text


PathText = Annotated[str, AfterValidator(_without_null), PathMark()]
RunName = Annotated[Name, AfterValidator(_without_null), PathMark()]  # a sweep's have a = in it
Paths = PathText | list[PathText]  # one, or several as [A,B]
Folders = PathText | Annotated[list[PathText], Field(min_length=1)]
_TEXTS = "path folder pipeline prompt negative_prompt controlnet lora call version input output"
TeacherNode = Annotated[  # None: of pairs of one's own, whose targets nobody can make again
    Node | None, Given(("weights", "typed"), (*_TEXTS.split(), "revision", "variant"))
]


def setting(
    about: str = "", *, free: bool = False, brings: tuple[str, ...] = (), **default: Any
) -> Any:
    """A field with the line that `--help` and the page of settings have on it.

    `free`: it may differ when a run resumes. Another choice of it `brings` other values of these
    dotted keys along (`*` for any).
    """
    return field(metadata={"about": about, "free": free, "brings": brings}, **default)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Unknown keys are errors; numbers are taken as text where text is wanted (run=5).

    `not_used` are keys that a choice of a config group brings along, for other commands to use.
    """

    not_used: ClassVar[frozenset[str]] = frozenset()
    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid",
        coerce_numbers_to_str=True,
        arbitrary_types_allowed=True,
        allow_inf_nan=False,
    )


@dataclass(frozen=True, kw_only=True)
class LicenceSettings(Settings):
    """What only the user knows of the terms that a network is under."""

    pictures: str | None = setting(
        "terms of your photos, pairs and style pictures, as in 'CC BY 4.0'; null: as stated before",
        default=None,
    )
    i_have_permission: bool = setting(
        "true: all whose terms the card names permit what you state instead, which it records",
        default=False,
    )


@dataclass(frozen=True, kw_only=True)
class TakedownSettings(Settings):
    """Of what was made with pictures that were taken down since."""

    accept: str | None = setting(
        "why it is published although pictures of it were taken down, which its files record",
        default=None,
    )


@dataclass(frozen=True, kw_only=True)
class ListSetting(Settings):
    """A setting made of several choices of its config group at once, typed KEY=A,B.

    Hydra writes KEY=[A,B], and takes A,B for a sweep: it is read as a list, with -m too.
    """


@dataclass(frozen=True, kw_only=True)
class NameSetting(Settings):
    """A setting with nothing but a name, typed KEY=NAME, where conf/KEY/ is another command's.

    Hydra takes each word that is a folder below conf/ for a config group, in every command, and a
    group of one's own cannot answer to the same word: so KEY=NAME is read as KEY.name=NAME.
    """
