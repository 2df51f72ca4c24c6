"""Every shipped YAML composes, and every node in it fits its constructor."""

import re
from importlib import import_module

import pytest
import yaml

from distill.__main__ import commands
from distill.config import compose, registry
from distill.config.groups import choices, conf_folders, file_at
from distill.config.settings.commands import CheckSettings, EvalFid, Export, Stylize
from distill.config.settings.training import Prepare, Train
from distill.core.errors import DistillError
from distill_benchmark.settings import Benchmark
from distill_curate.settings import Curate
from distill_hub.settings import HubSettings
from distill_lens.settings import Lens
from distill_scale.settings import ShardSettings

SCHEMAS = {
    "train": registry.schema_of, "prepare": Prepare, "export": Export, "eval_fid": EvalFid,
    "stylize": Stylize, "check": CheckSettings, "benchmark": Benchmark,
    "lens": Lens, "shards": ShardSettings, "curate": Curate, "hub": HubSettings,
}  # fmt: skip
GROUPS = {  # what each command's settings choose from, in train by recipe
    "train recipe=distill": ["recipe", "style", "teacher", "encoder", "decoder", "student", "loss",
                             "data", "optimizer", "schedule", "trainer", "logger", "search", "head",
                             "launcher"],
    "train recipe=pix2pix": ["generator", "discriminator", "adversarial", "data", "schedule",
                             "trainer"],
    "train recipe=cyclegan": ["generator", "discriminator", "adversarial", "data", "schedule",
                              "trainer"],
    "prepare": ["style", "teacher", "data", "engine"],
    "export": ["style", "decoder", "formats"],
    "check": ["profile", "report"],
    "eval_fid": ["style", "decoder"],
    "benchmark": ["style", "teacher"],
}  # fmt: skip
ELSEWHERE = {  # choices of a group that belong to another recipe
    ("train recipe=distill", "data", "unpaired"),
    ("prepare", "data", "unpaired"),
    *(("train recipe=pix2pix", "data", c) for c in ("demo", "photos", "sizes", "unpaired")),
    *(("train recipe=cyclegan", "data", c) for c in ("demo", "photos", "pairs", "shards", "sizes")),
    ("train recipe=distill", "schedule", "linear"),
    *((f"train recipe={recipe}", "trainer", "few") for recipe in ("pix2pix", "cyclegan")),
}
CHOICES = [
    (command, group, choice)
    for command, groups in GROUPS.items()
    for group in groups
    for choice in choices(group)
    if (command, group, choice) not in ELSEWHERE
]


@pytest.mark.parametrize("name", SCHEMAS)
def test_defaults_compose(name):
    compose.load(name, [], SCHEMAS[name])


@pytest.mark.parametrize(("command", "group", "choice"), CHOICES)
@pytest.mark.campaign
def test_every_choice_composes(command, group, choice):
    name, *recipe = command.split()
    compose.load(name, [*recipe, f"{group}={choice}"], SCHEMAS[name])


@pytest.mark.parametrize(("command", "group", "choice"), sorted(ELSEWHERE))
@pytest.mark.slow
def test_a_choice_of_another_recipe_is_refused(command, group, choice):
    name, *recipe = command.split()
    with pytest.raises(DistillError):
        compose.load(name, [*recipe, f"{group}={choice}"], SCHEMAS[name])


@pytest.mark.parametrize("recipe", registry.recipes())
def test_recipes_have_settings_of_their_own(recipe):
    settings = compose.load("train", [f"recipe={recipe}"], registry.schema_of)
    assert type(settings) is registry.recipe_named(recipe).settings
    assert settings.recipe == recipe


def test_every_group_is_tried():
    folders = {p.name for conf in conf_folders() for p in conf.iterdir() if p.is_dir()}
    assert folders - SCHEMAS.keys() == {group for groups in GROUPS.values() for group in groups}


@pytest.mark.parametrize("group", ["style", "decoder"])
@pytest.mark.campaign
def test_choices_carry_their_own_name(group):
    for choice in choices(group):
        settings = compose.load("train", [f"{group}={choice}", "data.root=own"], Train)
        assert getattr(settings, group).name == choice  # style=own is called like the folder


@pytest.mark.parametrize(
    "path", sorted(p for conf in conf_folders() for p in conf.rglob("*.yaml")), ids=lambda p: p.stem
)
def test_every_file_says_what_it_is(path):
    comments = [line for line in path.read_text().splitlines() if line.startswith("# ")]
    assert any("@package" not in line for line in comments)


def test_every_class_that_a_choice_names_is_there():
    files = [path.read_text() for conf in conf_folders() for path in conf.rglob("*.yaml")]
    classes = set(re.findall(r"_target_: (distill\w*[\w.]*)\.(\w+)\s", "".join(files)))
    assert len(classes) > 50
    missing = [each for each in classes if not hasattr(import_module(each[0]), each[1])]
    assert not missing


@pytest.mark.parametrize("name", SCHEMAS)
def test_help_names_every_setting(name):
    content = yaml.safe_load(file_at(f"{name}.yaml").read_text())
    text = import_module(f"{commands()[name].package}.__main__").main.help()
    folders = conf_folders() if name == "train" else []
    recipes = [path for folder in folders for path in (folder / "recipe").glob("*.yaml")]
    keys = {*content, *(key for path in recipes for key in yaml.safe_load(path.read_text()))}
    keys -= {"defaults", "hydra", "discriminator", "optimizer"}  # groups, named above
    assert not [key for key in keys if not re.search(rf"\b{key}\b", text)]


def test_style_brings_its_teacher_and_the_command_line_wins():
    assert "AnimeGANv2" in compose.load("train", ["style=paprika"], Train).teacher["_target_"]
    mixed = compose.load("train", ["style=paprika", "teacher=toon"], Train)
    assert "Toon" in mixed.teacher["_target_"]


@pytest.mark.parametrize(
    ("command", "key"), [("stylize", "output"), ("export", "run"), ("train", "data.root")]
)
def test_a_path_with_a_null_byte(command, key):
    with pytest.raises(DistillError, match=rf"^{key}='a\\x00b': a path cannot hold a null byte"):
        compose.load(command, [f'{key}="a\0b"'], SCHEMAS[command])


def test_names_of_runs():
    assert compose.load("train", ["style=paprika", "decoder=fastdepth"], Train).run == (
        "paprika-fastdepth"
    )
    assert compose.load("train", ["run=5"], Train).run == "5"


@pytest.mark.campaign
def test_what_is_typed_beside_the_paper_s_preset_counts():
    assert compose.load("train", ["loss=paper", "schedule=cosine"], Train).schedule["warmup"] == 100
    assert compose.load("train", ["loss=paper", "data.batch_size=8"], Train).data.batch_size == 8


def test_a_head_that_is_not_there():
    """The style brings one where it has one, so the group may be empty, but not what is typed."""
    with pytest.raises(DistillError, match="head=layer: no such choice; did you mean"):
        compose.load("train", ["head=layer"], Train)


@pytest.mark.parametrize(
    ("typed", "line"),
    [
        ("schedule=linear", "schedule=linear: epochs: no such setting here; it goes with recipe="),
        ("loss.region={tail:3}", "loss.region.tail: no such setting; allowed: loss.region.eyes"),
        ("decoder.build={halv:3}", "decoder.build.halv: no such setting; did you mean decoder.b"),
        ("+loss=l1", "+loss=l1: is there already; type it without a plus: loss=l1"),
        ("++loss=l1", "++loss=l1: is there already; type it without a plus: loss=l1"),
        ("+lr=3", "+lr=3: is there already; type it without a plus: lr=3"),
        ("decoder=null", "decoder=null: no such choice; allowed: decoder=detail"),
        ("decoder=detail,nnconv", "decoder=detail,nnconv: several choices; add -m to try them"),
        ("data.weights=[inf]", "data.weights.0=inf: input should be a finite number"),
        ("lr=inf", "lr=inf: input should be a finite number"),
        ("seed=-1", "seed=-1: input should be greater than or equal to 0"),
        (f"trainer.max_steps={2**63}", f"trainer.max_steps={2**63}: input should be less than"),
        ("seed=5000000000", "seed=5000000000: input should be less than 4294967296"),
    ],
)
def test_what_is_wrong_is_named(typed, line):
    with pytest.raises(DistillError, match=f"^{re.escape(line)}"):
        compose.load("train", [typed], registry.schema_of)


PORT = {  # file: git blob id, as the port's repository has them
    "paprika": ("paprika.pt", "58086c9db9fc7a9e5c2876ca31b8079599352643"),
    "webtoon": ("celeba_distill.pt", "3b7ea61b02254980831cc3bc77af30666dbc999c"),
    "face_v1": ("face_paint_512_v1.pt", "19c1a1da4d9580186109a2b055d91044e5127de6"),
    "face_v2": ("face_paint_512_v2.pt", "d75102f8f201ddaf8dbe6b913b1a97585b55f838"),
}


@pytest.mark.parametrize("style", PORT)
def test_the_port_s_weights(style):
    settings = compose.load("prepare", [f"style={style}"], Prepare).style
    assert (settings.file, settings.git_blob) == PORT[style]
    assert settings.url is not None
    assert settings.url.endswith(f"bryandlee/animegan2-pytorch/main/weights/{settings.file}")


@pytest.mark.parametrize("typed", ["recipe=", "recipe=distill", "loss=lines"])
def test_a_group_of_another_command(typed):
    with pytest.raises(DistillError, match=rf"^{typed.partition('=')[0]}: no such setting"):
        compose.load("lens", [typed], Lens)
