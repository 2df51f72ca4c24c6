"""What is typed behind a command, as Hydra is to read it: paths quoted, names on their own."""

import re
import shlex
import subprocess
from dataclasses import dataclass
from typing import Annotated, Literal

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from omegaconf import OmegaConf

from distill.config import compose
from distill.config.arguments import TypedKeys, overrides_of, read_words
from distill.config.extension import extended
from distill.config.settings.base import Given, Node, PathText
from distill.config.settings.commands import CheckSettings, EvalFid, Export, Stylize
from distill.config.settings.training import Prepare, Train
from distill.core.errors import DistillError
from distill.core.next_step import next_step, unquoted
from distill_benchmark.settings import Benchmark
from distill_gan.settings import CycleGANTrain, Pix2PixTrain
from distill_hub.settings import HubSettings
from distill_lens.settings import Lens

LABELLED = {"photos", "val_photos", "drop", "restore", "data.root", "style.weights"}
WholePrepare, WholeExport = extended("prepare", Prepare), extended("export", Export)
LISTED = {"attributes", "identities", "quickdraw.files"}
RUN = {"run", "runs", "checkpoint", "output"}
PATHS = {
    (Train, Pix2PixTrain, CycleGANTrain): LABELLED
    | {"data.a", "data.b", "run", "runs", "sweep", "loss.masks"},
    (WholePrepare,): LABELLED | {"sketch.mask", "sketch.hed.weights"} | LISTED,
    (WholeExport,): {*RUN, "photos", "calibration", "tflite.python", "style.weights"},
    (EvalFid,): {*RUN, "photos", "a", "b", "style.weights"},
    (Stylize,): {"model", "run", "runs", "output", "wear", "overlay"},
    (CheckSettings,): {"output", "run", "runs"},
    (Benchmark,): {"model", "run", "runs", "output", "style.weights"},
    (Lens,): {"students", "sketches", "run", "runs", "output", "static"},
    (HubSettings,): {"run", "runs", "model", "data.root", "repo"},
}  # fmt: skip
LISTS = {"photos", "val_photos", "students", "sketches", "providers", "names", "frames", "balance"}
LISTS |= {"overlay", "quickdraw.files", "trainable"}


@pytest.mark.parametrize("schemas", PATHS, ids=lambda schemas: schemas[0].__name__)
def test_the_settings_say_which_of_them_are_paths(schemas):
    keys = TypedKeys(*schemas)
    assert keys.paths == PATHS[schemas]
    assert keys.paths <= keys.texts
    one = {"photos"} if schemas[0] in (WholeExport, EvalFid) else set()
    assert keys.lists == (LISTS & keys.texts) - one


@dataclass
class Inner:
    text: str
    path: PathText | None
    number: int


@dataclass
class OfEveryKind:
    inner: Inner
    several: str | list[str]
    node: Annotated[Node | None, Given(texts=("prompt",))]
    choice: Literal["a", "b"]
    table: dict[str, str]
    two: tuple[str, str]


def test_texts_are_found_wherever_they_stand():
    keys = TypedKeys(OfEveryKind)
    assert keys.texts == {"inner.text", "inner.path", "several", "node.prompt"}
    assert (keys.paths, keys.lists) == ({"inner.path"}, {"several"})
    assert {"teacher.prompt", "teacher.lora", "style.licence"} < TypedKeys(Train).texts


def test_the_settings_say_which_of_them_are_names():
    assert {s.__name__: TypedKeys(s).names for s, *_ in PATHS if TypedKeys(s).names} == {
        "Prepare": {"recipe", "card"},
        "Stylize": {"style"},
    }


TYPED = {
    "photos=a/b": "photos=a/b",
    "photos=my faces (2)": "photos='my faces (2)'",
    "photos=[a b,c]": "photos=['a b',c]",
    "photos=it's": r"photos='it\'s'",
    "photos='a,b'": "photos='a,b'",
    "photos=": "photos=",
    "photos=null": "photos=null",
    "photos=Bücher": "photos='Bücher'",
    "photos=[Bücher,'a, b', c ]": "photos=['Bücher','a, b',c]",
    "+photos=a~b": "+photos='a~b'",
    "photos='Tis": r"photos='\'Tis'",
    r"photos=C:\out\\": r"photos='C:\out\\\\'",  # Hydra reads two as one only before a quote
    "photos=${m}": r"photos='\${m}'",
    "run=007": "run='007'",  # no number
    "run=true": "run='true'",
    "crop=ü": "crop='ü'",  # so that it is pydantic which says what is wrong
    "sketch.mask=x,y.onnx": "sketch.mask='x,y.onnx'",
    "run=toon-lines-seed=1": "run='toon-lines-seed=1'",  # as a sweep names it
    "recipe=pix2pix": "recipe.name=pix2pix",
    "style=toon": "style=toon",
    "crop=0.8": "crop=0.8",
}


@pytest.mark.parametrize("typed", TYPED)
def test_as_hydra_reads_it(typed):
    line = read_words([typed, "--cfg", "job"])
    assert line.shown == ["--cfg", "job"]
    assert overrides_of(line.settings, TypedKeys(Train, WholePrepare)) == [TYPED[typed]]


@pytest.mark.parametrize(
    ("typed", "parted"),
    [
        ("model=a,b c.onnx", "model=a,'b c.onnx'"),
        ("model=glob(*)", "model=glob(*)"),
        ("model='a,b',größe", "model='a,b','größe'"),
        ("style=hayao,toon", "style.name=hayao,toon"),
    ],
)
def test_of_several_values_each_is_quoted(typed, parted):
    assert overrides_of([typed], TypedKeys(Stylize), several=True) == [parted]


def test_a_folder_of_that_very_name_is_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "[a,b]").mkdir()
    for several in (False, True):
        keys = TypedKeys(Train, WholePrepare)
        assert overrides_of(["photos=[a,b]"], keys, several) == ["photos='[a,b]'"]


@pytest.mark.parametrize("typed", ["=hayao", "+=hayao", "++=1", "~=", "+@x=y", "@=", "="])
def test_a_value_without_a_key_ends_in_one_line(typed):
    with pytest.raises(DistillError, match=f"^{re.escape(typed)}: names no setting; write KEY="):
        read_words(["style=toon", typed])


GRAMMARS = st.sampled_from("\\$${}'\",[]:=~() ?mnu/")  # what Hydra, OmegaConf and shells read
ANY_TEXT = st.text(
    st.one_of(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), GRAMMARS),
    max_size=12,
)
NAMES = [
    "Bücher",
    "日本 (2)",
    "😀👩‍🎤",
    "שלום",
    "${m}",
    r"\\${m}\\",
    "???",
    "null",
    "[a]",
    "'a'",
    "1e3",
    "",
]


@pytest.fixture(scope="module")
def parser():
    with compose.over_conf("prepare") as found:
        yield found


@settings(deadline=None, max_examples=300, derandomize=True)
@given(text=ANY_TEXT, several=st.booleans())
def test_any_text_comes_back_as_it_was_printed(parser, text, several):
    keys = TypedKeys(WholePrepare)
    line = next_step("prepare", **{"photos": text, "card.licence": text})
    if "=$'" not in line or text.isprintable():  # else Python's shlex cannot read the notation
        _, *typed = shlex.split(line.removeprefix("next: python -m "))
        for argument in typed if not several or "," not in text else []:
            overrides = overrides_of([argument], keys, several)
            assert overrides_of(overrides, keys, several) == overrides  # a job's, typed anew
            value = parser.parse_overrides(overrides)[0].value()
            assert unquoted(value) == text
            # OmegaConf, which reads every value once more, is the judge of that.
            assert OmegaConf.to_container(OmegaConf.create([value]), resolve=True) == [text]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_of_any_letters_is_composed_as_it_is(name):
    line = next_step(
        "prepare", **{"photos": name, "card.source": name, "style.name": name.strip("\\") or "x"}
    )
    overrides = overrides_of(shlex.split(line)[4:], TypedKeys(WholePrepare))
    found = compose.load("prepare", [*overrides, "style.resolution=64"], Prepare)
    assert (found.photos, found.card.source, found.style.name) == (
        name,
        name,
        name.strip("\\") or "x",
    )


@settings(deadline=None, max_examples=15, derandomize=True)
@given(
    texts=st.lists(
        st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])),
        min_size=20,
        max_size=40,
    )
)
@example(texts=["a\nb", "\u202etxt.exe", "\udcff", "\t'\\"])
def test_a_shell_reads_what_is_printed_as_it_was(texts):
    words = next_step("stylize", *texts).partition("stylize")[2]
    assert not re.search("[\\n\\r\\x1b\u2028\u202e]", words)
    printed = subprocess.run(
        ["bash", "-c", f"printf '%s\\0' x {words}"], capture_output=True, check=True
    ).stdout
    assert printed.split(b"\0")[1:-1] == [text.encode(errors="surrogateescape") for text in texts]


def test_what_hydra_cannot_read_says_how_a_text_is_typed():
    said = r"crop=a\(b\)\): is no value that Hydra reads; if it is a text, type "
    with pytest.raises(DistillError, match=f"^{said}"):
        compose.load("prepare", ["crop=a(b))"], Prepare)
