"""Which packages parts may come from: what is installed, named, made for this contract."""

import re
import runpy
import sys
import warnings
from pathlib import Path

import pytest
from torch import nn

import distill.__main__ as distill
from distill import api
from distill.config import compose, groups
from distill.config.command import Command
from distill.config.help import comments_by_key
from distill.config.registry import recipe_named
from distill.config.settings.commands import CheckSettings
from distill.config.settings.training import Train
from distill.core import plugins
from distill.core.errors import DistillError
from distill.core.nodes import check_part, is_plugin, part
from distill.data.kinds.registry import data_source
from distill.export.graph.operator_gate import STRICT_OPERATORS, operators_of
from distill.models.teachers.teacher import Teacher
from support.refusals import refusal

SHIPPED = sorted(path.name for path in (Path(__file__).parents[2] / "src").glob("distill_*"))
OWN = "from torch import nn\nclass Net(nn.Module): ...\n"


def forget(package):
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        del sys.modules[name]


@pytest.fixture
def lab(tmp_path, monkeypatch):
    """A function that puts a package `mylab` into site/, installed or not."""
    monkeypatch.setenv(plugins.NAMED, "")
    monkeypatch.chdir(tmp_path)

    def put(installed=True, contract="contract: 1", place="site"):
        site = tmp_path / place
        (site / "mylab/conf/decoder").mkdir(parents=True)
        (site / "mylab/__init__.py").write_text("")
        (site / "mylab/nets.py").write_text(OWN)
        (site / "mylab/conf/decoder/mine.yaml").write_text("# Mine.\nname: mine\n")
        if contract:
            (site / "mylab/conf/plugin.yaml").write_text(contract)
        if installed:
            info = site / "mylab-1.dist-info"
            info.mkdir()
            (info / "METADATA").write_text("Name: mylab\nVersion: 1\n")
            (info / "entry_points.txt").write_text("[distill.plugins]\nmylab = mylab\n")
        monkeypatch.syspath_prepend(site)
        return site

    forget("mylab")  # another test's package of that name
    yield put
    forget("mylab")


def test_an_installed_package_brings_choices_and_classes(lab):
    site = lab()
    assert plugins.plugins() == [*SHIPPED, "mylab"]
    assert plugins.shipped() == ["distill", *SHIPPED]
    assert plugins.conf_folders()[-1] == site / "mylab/conf"
    assert "mylab" not in sys.modules
    check_part({"_target_": "mylab.nets.Net"}, "distill.models.students", nn.Module)


def test_of_two_choices_of_one_name_the_one_that_is_taken_is_said_once(lab, tmp_path, capsys):
    site = lab()
    (tmp_path / "own/decoder").mkdir(parents=True)
    for name in ("nnconv", "mine"):
        (tmp_path / f"own/decoder/{name}.yaml").write_text("name: mine\n")
    for _ in range(2):
        groups.tell_hidden((groups.conf_folder(), tmp_path / "own", *plugins.conf_folders()))
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        f"decoder=nnconv: {groups.conf_folder()}/decoder/nnconv.yaml is taken, "
        f"{tmp_path}/own/decoder/nnconv.yaml has the same name",
        f"decoder=mine: {tmp_path}/own/decoder/mine.yaml is taken, "
        f"{site}/mylab/conf/decoder/mine.yaml has the same name",
    ]


def test_what_lies_in_the_current_folder_is_not_installed(lab, tmp_path):
    lab(place=".")
    assert plugins.plugins() == SHIPPED


def test_a_package_that_is_named_is_trusted_and_one_that_is_not_is_not(lab):
    site = lab(installed=False)
    with pytest.raises(DistillError) as error:
        check_part({"_target_": "mylab.nets.Net"}, "distill.models.students", nn.Module)
    assert str(error.value).endswith("from a file; if you trust mylab, add plugins=[mylab]")
    assert "mylab" not in sys.modules
    plugins.name_plugins(["mylab"])
    check_part({"_target_": "mylab.nets.Net"}, "distill.models.students", nn.Module)
    assert plugins.conf_folders()[0] == site / "mylab/conf"


@pytest.mark.parametrize(
    ("contract", "said"),
    [
        ("contract: 2", "made for contract 2 of distill's plug-ins, and this distill has contract"),
        ("contract: '1'", "made for contract '1' of distill's plug-ins"),
        ("", "plugin.yaml is missing; it has one line, contract: 1"),
        (": [", "plugin.yaml has no contract; it has one line, contract: 1"),
        ("usage: {}", "plugin.yaml has no contract"),
    ],
)
def test_a_plug_in_for_another_contract(lab, contract, said, capsys, monkeypatch):
    lab(contract=contract)
    assert plugins.plugins() == SHIPPED
    line = capsys.readouterr().err
    assert line.startswith("left out: plug-in mylab: ")
    assert said in line
    assert line.count("\n") == 1
    assert said in refusal(plugins.name_plugins, ["mylab"])
    monkeypatch.setenv(plugins.NAMED, "mylab")  # as a command has it before its words are read
    with pytest.raises(DistillError, match=re.escape(said)):
        plugins.name_plugins(())


def test_a_package_of_the_environment_that_is_not_there(lab, monkeypatch):
    monkeypatch.setenv(plugins.NAMED, "nowhere")
    with pytest.raises(DistillError, match="DISTILL_PLUGINS=nowhere: there is no such package"):
        plugins.name_plugins(())


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("my-lab", "plugins=my-lab: there is no such package"),
        ("", "plugins=: there is no such package"),
        ("nowhere", "plugins=nowhere: there is no such package; install it, or put"),
    ],
)
def test_names_of_no_package(lab, name, said):
    with pytest.raises(DistillError, match=said):
        plugins.name_plugins([name])


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("os.system", "refused; only classes of distill and of plug-ins are built from a file"),
        ("support.own_parts.system", "refused; is no class of support"),
        ("support.own_parts.half", "refused; is no class of support"),  # a lambda
        ("support.own_parts.os.system", "refused; is no class of support"),
        ("support.own_parts.nn.Linear", "refused; is no class of support"),
        ("support.own_parts.Half", "refused; is no Teacher"),
        ("support.own_parts.Gone", "cannot be imported"),
        ("supporting.own_parts.Half", "refused; only classes"),
    ],
)
def test_a_trusted_package_is_no_way_to_other_code(name, said, monkeypatch):
    monkeypatch.setenv(plugins.NAMED, "support")
    check_part({"_target_": "support.own_parts.Dark"}, "distill.models.teachers", Teacher)
    with pytest.raises(DistillError) as error:
        check_part({"_target_": name}, "distill.models.teachers", Teacher)
    assert said in str(error.value)
    assert ("add plugins=" in str(error.value)) == name.startswith("supporting")


def test_what_a_module_of_one_s_own_lacks_is_said(lab):
    (lab() / "mylab/needy.py").write_text("import nowhere_at_all\nclass Net: ...\n")
    with pytest.raises(DistillError, match=r"cannot be imported .No module named 'nowhere_at_all'"):
        part("teacher", {"_target_": "mylab.needy.Net"}, Teacher)
    with pytest.raises(DistillError, match="is no Teacher"):  # a class inside a class
        part("teacher", {"_target_": "torch.nn.Module.__class__"}, Teacher)


def test_a_part_may_be_made_by_a_function_or_be_there():
    node = {"_target_": "support.own_parts.Dark", "factor": 0.25}
    assert part("teacher", node, Teacher).factor == 0.25
    with pytest.raises(DistillError, match="is no Teacher"):
        part("teacher", {"_target_": "support.own_parts.here"}, Teacher)


def test_what_comes_with_distill_is_no_part_of_the_user_s(lab):
    lab()
    assert not is_plugin({"_target_": "distill_diffusion.diffusion_teacher.DiffusionTeacher"})
    assert is_plugin({"_target_": "mylab.nets.Net"})


def test_the_metadata_of_an_installation_names_the_plug_ins_as_a_checkout_does(
    tmp_path, monkeypatch
):
    """The copy of the module has no pyproject.toml above it, as in site-packages."""
    info = tmp_path / "distill-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Name: distill\nVersion: 1\n")
    points = "[console_scripts]\ndistill = distill.__main__:main\n[distill.plugins]\n"
    (info / "entry_points.txt").write_text(points + "distill_diffusion = distill_diffusion\n")
    monkeypatch.setattr(plugins, "__file__", str(tmp_path / "a/b/c/plugins.py"))
    assert dict(plugins._registered((str(tmp_path),))) == {"distill_diffusion": True}


def test_lines_for_the_help_of_a_command(lab, capsys):
    lab(contract="contract: 1\nusage:\n  check: mine\n  lens: 5\nmoved: [1]\n")
    assert plugins.usage("check").endswith("mine")  # behind those of distill's own plug-ins
    assert plugins.usage("lens") == "5"
    assert plugins.usage("curate") == ""
    assert "distill.models.teachers.diffusion" in plugins.moved()
    page = Command("check", CheckSettings, lambda _: None).help()
    assert page.startswith(f"{__doc__}\n\n")
    assert "\nmine\n" in page


COMMANDS = "commands: {hello: {package: mylab.hello, about: says hello}, odd: 3}\n"


def test_a_command_of_a_package_runs_by_its_name(lab, capsys, monkeypatch):
    inside = lab(contract=f"contract: 1\n{COMMANDS}") / "mylab/hello"
    inside.mkdir()
    (inside / "__init__.py").write_text("")
    (inside / "__main__.py").write_text("import sys\nprint('hello', *sys.argv[1:])")
    assert "  hello      says hello\n" in distill.usage()
    monkeypatch.setattr(sys, "argv", ["distill", "hello", "you"])
    distill.main()
    assert capsys.readouterr().out == "hello you\n"
    with warnings.catch_warnings(action="error"):
        runpy.run_module("distill.hello", run_name="__main__", alter_sys=True)
    assert capsys.readouterr().out.startswith("hello")
    assert "odd" not in distill.commands()


def test_a_source_of_a_package_is_a_data_kind(lab):
    site = lab(contract="contract: 1\nsources: {mine: mylab.mine.Mine, other: mylab.nets.Net}\n")
    of = "from distill.data.kinds.pair_folder import PairFolder\nclass Mine(PairFolder): ...\n"
    (site / "mylab/mine.py").write_text(of)
    (site / "mylab/conf/data").mkdir()
    (site / "mylab/conf/data/mine.yaml").write_text("defaults: [pairs]\nkind: mine\n")
    words = ["style=own", "data.root=x"]
    settings = compose.load("train", [*words, "data=mine"], Train)
    assert type(data_source(settings)).__name__ == "Mine"
    kinds = "pairs, photos, demo, loader, shards, mine, other"
    with pytest.raises(DistillError, match=f"data.kind='yours': want one of {kinds}"):
        compose.load("train", [*words, "data.kind=yours"], Train)
    other = compose.load("train", [*words, "data.kind=other"], Train)
    with pytest.raises(DistillError, match=r"sources\.other.*is no Source"):
        data_source(other)


RECIPES = """
from distill.config.registry import Pix2PixRecipe, Recipe

class Bare(Recipe): ...
class Ways(Recipe):
    networks = {"there": "student"}
class Sides(Pix2PixRecipe):
    learns_from = "pictures"
class Kind(Recipe):
    settings = dict
class Short(Recipe):
    def train(self, settings): ...
class Broken(Recipe):
    monitor = property(lambda self: 1 / 0)
"""


def test_a_recipe_has_the_parts_of_its_base(lab):
    (lab() / "mylab/recipes.py").write_text(RECIPES)
    recipe = recipe_named("mylab.recipes.Bare")
    assert (recipe.name, recipe.monitor, recipe.networks["AtoB"]) == ("bare", "val/loss", "student")
    assert recipe.folder_parts(None, {}) == {"recipe": "bare"}
    with pytest.raises(DistillError, match=r"recipe=mylab.recipes.Bare: has no train\(self, "):
        recipe.train(None, None, True)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Ways", "networks is to be a name for each of AtoB and BtoA"),
        ("Sides", "learns_from one of photos, pairs, domains"),
        ("Broken", r"raised ZeroDivisionError \(division by zero, .*recipes.py:14\)"),
        ("Short", r"want train\(self, settings, run, first\), too many positional arguments"),
        ("Kind", "settings is no subclass of distill.config.settings.training.Training"),
    ],
)
def test_a_wrong_part_of_a_recipe_is_one_line(lab, name, said):
    (lab() / "mylab/recipes.py").write_text(RECIPES)
    with pytest.raises(DistillError, match=f"recipe=mylab.recipes.{name}.*{said}"):
        recipe_named(f"mylab.recipes.{name}")


def test_a_choice_that_is_no_yaml_is_one_line(lab):
    file = lab() / "mylab/conf/decoder/torn.yaml"
    file.parent.mkdir(exist_ok=True)
    file.write_text("name: [torn")
    plugins.name_plugins("mylab")
    with pytest.raises(DistillError, match=r"file is no YAML \(.*torn\.yaml\", line 1") as error:
        compose.load("train", ["decoder=torn"], Train)
    assert "\n" not in str(error.value)
    with pytest.raises(DistillError, match=r"torn\.yaml: no YAML \("):
        comments_by_key()


NAMED = """
contract: 1
recipes: {named: mylab.recipes.Named, wrong: mylab.recipes.Kind}
operators: {lab: [Tanh]}
students: {lab: mylab.recipes.fetch}
"""


def test_recipes_operators_and_students_by_names_of_their_own(lab):
    text = f"{RECIPES}class Named(Recipe): ...\nfetch = 'FILE of {{}}'.format\n"
    (lab(contract=NAMED) / "mylab/recipes.py").write_text(text)
    assert type(recipe_named("named")).__qualname__ == "Named"
    with pytest.raises(DistillError, match=r"recipes=mylab\.recipes\.Kind: settings is no sub"):
        recipe_named("wrong")
    assert operators_of("lab") == STRICT_OPERATORS | {"Tanh"}
    assert api._file_of("lab:mine") == "FILE of mine"


def test_a_choice_of_a_package_that_is_left_out_says_why(lab, capsys):
    site = lab(contract=None)
    why = f"plug-in mylab: {site}/mylab/conf/plugin.yaml is missing; it has one line, contract: 1"
    with pytest.raises(DistillError, match=re.escape(f"decoder=mine: {why}")):
        compose.load("train", ["decoder=mine"], Train)
    assert capsys.readouterr().err.startswith("left out: ")
    assert plugins.why_left_out("decoder", "other") == ""
