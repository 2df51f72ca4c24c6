import json
import os
import shutil
from dataclasses import asdict, replace
from functools import cache, reduce
from pathlib import Path

import pytest
import torch
import yaml

from distill.config import compose
from distill.config.registry import schema_of, settings_of
from distill.config.settings.commands import Export
from distill.config.settings.training import Train
from distill.core.errors import DistillError
from distill.runs.run_folder import (
    Run,
    as_typed,
    differences,
    ended_early,
    find_run,
    finished_message,
    run_named,
    step_of,
)


def choice(runs, *overrides):
    return compose.load("export", [f"runs={runs}", *overrides], Export)


def trained(folder, age=0):
    run = Run(folder)
    run.last.parent.mkdir(parents=True)
    run.last.write_bytes(b"x")
    os.utime(run.last, (1_000_000 - age, 1_000_000 - age))
    return run


@pytest.mark.campaign
def test_finds_the_latest_or_the_one_named(tmp_path):
    old, new = trained(tmp_path / "toon-nnconv", age=9), trained(tmp_path / "hayao-fastdepth")
    assert find_run(choice(tmp_path)) == new
    assert find_run(choice(tmp_path, "style=toon")) == old
    assert find_run(choice(tmp_path, "decoder=nnconv")) == old
    assert find_run(choice(tmp_path, "style=hayao", "decoder=fastdepth")) == new
    assert find_run(choice(tmp_path, "run=toon-nnconv")) == old


def test_the_latest_may_have_any_name_and_is_one_that_can_be_gone_on_with(tmp_path):
    mine = trained(tmp_path / "mine", age=9)
    trained(tmp_path / "mine.old-1", age=5)
    (tmp_path / "toon-nnconv/export").mkdir(parents=True)
    assert find_run(choice(tmp_path)) == mine
    assert run_named(None, str(tmp_path)) == mine
    other = trained(tmp_path / "other", age=99)
    assert run_named("other", str(tmp_path)) == other


@pytest.mark.parametrize(
    "overrides", [["run=nope"], ["style=webtoon"], ["style=toon", "decoder=fastdepth"]]
)
def test_an_unknown_run_lists_the_known_ones(tmp_path, overrides):
    trained(tmp_path / "toon-nnconv")
    with pytest.raises(DistillError, match="there are: toon-nnconv"):
        find_run(choice(tmp_path, *overrides))


def test_no_run_at_all(tmp_path):
    with pytest.raises(DistillError, match=r"train first: python -m distill\.train"):
        find_run(choice(tmp_path / "runs"))


@cache
def composed(*words):
    return compose.load("train", ["run=it", *words], Train)


def older(*unknown):
    """The settings of a run that says nothing of these keys."""
    plain = asdict(composed())
    for key in unknown:
        *parts, last = key.split(".")
        del reduce(dict.get, parts, plain)[last]
    return settings_of(plain)


def test_only_what_decides_the_outcome_must_agree():
    free = composed("data.workers=1", "trainer.max_steps=9", "trainer.threads=1")
    other = composed("data.workers=1", "lr=2e-3", "trainer.clip=2")
    assert differences(composed(), free) == {}
    assert differences(composed(), other) == {"lr": (0.003, 0.002), "trainer.clip": (1.0, 2.0)}


def test_pictures_a_step_must_agree_whichever_processes_take_them():
    one, two = composed(), composed("trainer.devices=2")
    accumulated = composed("trainer.accumulate=2")
    assert differences(two, one) == {"trainer.accumulate × devices": (2, 1)}
    assert differences(two, accumulated) == {}
    assert differences(one, composed("trainer.devices=auto")) == {}  # any number
    nodes = composed("trainer.devices=2", "trainer.num_nodes=2")
    assert differences(nodes, two) == {"trainer.accumulate × devices": (4, 2)}


def test_a_list_that_an_older_run_does_not_know_is_empty():
    old, now = composed(), replace(composed(), encoder=composed().encoder | {"more": []})
    assert differences(old, now) == {}
    assert differences(old, replace(now, encoder=old.encoder | {"more": [3]})) == {
        "encoder.more": (None, [3])
    }


@pytest.mark.parametrize("argument", ["stages", "expansion", "multiple"])
def test_an_argument_that_an_older_run_does_not_know_is_its_default(argument):
    new = composed()
    old = replace(new, encoder={k: v for k, v in new.encoder.items() if k != argument})
    assert differences(old, new) == {}
    other = replace(new, encoder=new.encoder | {argument: 4})
    assert differences(old, other) == {f"encoder.{argument}": (new.encoder[argument], 4)}


def test_a_run_from_before_there_was_a_test_side_has_none():
    old = older("data.test_fraction")
    assert differences(old, composed("data.test_fraction=0")) == {}
    assert differences(old, composed("data.test_fraction=0.1")) == {
        "data.test_fraction": (0.0, 0.1)
    }


def test_what_an_older_run_does_not_name_is_what_it_was_trained_with():
    unknown = ("batchnorm", "global_statistics", "init", "logger", "recipe", "trainer.num_nodes")
    younger = ("data.zoom", "data.photo_colour", "data.sizes", "data.share_of_sizes")
    old = older(*unknown, *younger)
    assert differences(old, composed()) == {}
    new = composed("global_statistics=thumbnail")
    line = "global_statistics: 'none' then, 'thumbnail' now"
    assert as_typed(differences(old, new), new) == line
    assert differences(old, composed("data.sizes=[512]"))["data.sizes"] == (None, [512])


def test_the_share_of_sizes_matters_where_there_are_sizes():
    shares = [f"data.share_of_sizes={share}" for share in (0.57, 0.3)]
    assert differences(*map(composed, shares)) == {}
    plain, other = (composed(share, "data.sizes=[512]") for share in shares)
    assert differences(plain, other) == {"data.share_of_sizes": (0.57, 0.3)}


def test_keys_that_only_another_version_knows_are_left_out():
    plain = asdict(composed())
    plain["data"] |= {"of_tomorrow": 3}
    assert settings_of(plain | {"of_tomorrow": 1}) == composed()


@pytest.mark.parametrize("recipe", ["distill", "pix2pix", "cyclegan"])
def test_settings_come_back_from_plain_values(recipe):
    settings = compose.load("train", [f"recipe={recipe}"], schema_of)
    assert settings_of(json.loads(json.dumps(asdict(settings)))) == settings


def test_runs_of_another_recipe_differ():
    other = compose.load("train", ["recipe=pix2pix", "data.root=x"], schema_of)
    assert differences(composed(), other)["recipe"] == ("distill", "pix2pix")


def with_loss(**parts):
    return replace(composed(), loss=replace(composed().loss, **parts))


def test_parts_of_faces_that_an_older_run_does_not_know_count_once():
    now = with_loss(region={"eyes": 1, "brows": 1})
    assert differences(with_loss(region={"eyes": 1}), now) == {}
    assert differences(with_loss(region={}), with_loss(region={"eyes": 3})) == {
        "loss.region.eyes": (None, 3)
    }


def test_terms_of_which_an_older_run_knows_no_start_begin_with_it():
    def now(**start):
        weights, terms = {"l1": 1.0, "ink": 0.0}, {"l1": {}, "ink": {}}
        return with_loss(weights=weights, terms=terms, start=start)

    old = with_loss(weights={"l1": 1.0}, terms={"l1": {}}, start={})
    assert differences(old, now(l1=0.0, ink=0.0)) == {}
    assert differences(old, now(l1=0.0, ink=0.5)) == {}  # of a term that is not in use
    assert differences(old, now(l1=0.5)) == {"loss.start.l1": (None, 0.5)}


@pytest.mark.parametrize(
    ("then", "now", "said"),
    [
        ([], ["decoder=nnconv"], "decoder: detail then, nnconv now"),
        (["style=hayao"], ["style=toon"], "style: hayao then, toon now"),
        ([], ["schedule=plateau"], "schedule: cosine then, plateau now"),
        ([], ["teacher=onnx"], "teacher: Toon then, OnnxTeacher now"),
        (
            [],
            ["lr=0.1", "decoder.build.half=24"],
            "decoder.build.half: 16 then, 24 now; lr: 0.003 then, 0.1 now",
        ),
        (
            ["loss=full"],
            ["loss=full", "style_backbone=vgg19_relu3_1"],
            "style_backbone: 'vgg16' then, 'vgg19_relu3_1' now",
        ),
        ([], ["loss=ink"], "loss: lines then, ink now"),
    ],
)
@pytest.mark.slow
def test_changed_settings_are_said_as_they_are_typed(then, now, said):
    old, new = composed(*then), composed(*now)
    assert as_typed(differences(old, new), new) == said


def test_a_node_further_down_is_no_choice_of_a_group():
    """A term's own class is no choice that anybody types."""
    changed = {"loss.terms.l1._target_": ("a.L1", "b.Huber"), "lr": (1, 2)}
    assert as_typed(changed, composed()) == (
        "loss.terms.l1._target_: 'a.L1' then, 'b.Huber' now; lr: 1 then, 2 now"
    )


@pytest.mark.parametrize("damaged", [["a"], 5, None])
def test_a_class_that_is_no_name_is_told_as_it_is(damaged):
    both = {"decoder._target_": (damaged, "b.Detail")}
    assert as_typed(both, composed()) == f"decoder._target_: {damaged!r} then, 'b.Detail' now"


def test_a_run_of_another_name_goes_on(tmp_path):
    """Copied, or renamed."""
    first, copy = Run(tmp_path / "a"), Run(tmp_path / "b")
    first.start(replace(composed(), run="a"), None, "5 steps")
    first.last.parent.mkdir()
    torch.save({"global_step": 3}, first.last)
    shutil.copytree(first.folder, copy.folder)
    assert copy.resumable(replace(composed(), run="b")) == copy.last


def test_a_new_run_then_the_same_again_then_anew(tmp_path, capsys):
    folder = tmp_path / "run"
    run, other = Run(folder), composed("lr=2e-3")
    assert run.resumable(composed()) is None
    run.start(composed(), None, "5 steps")
    run.last.parent.mkdir()
    torch.save({"global_step": 3}, run.last)
    assert run.settings() == composed()
    assert run.resumable(composed()) == run.last
    said = (
        r"lr: 0\.003 then, 0\.002 now.*start over with resume=false, or choose another name with "
        "run=NAME"
    )
    with pytest.raises(DistillError, match=said):
        run.resumable(other)
    anew = replace(other, resume=False)
    assert run.resumable(anew) is None
    run.start(anew, None, "5 steps")
    assert "starts over; the earlier run is kept as" in capsys.readouterr().out
    assert step_of(tmp_path / "run.old-1" / "checkpoints" / "last.ckpt") == 3


@pytest.mark.parametrize(("step", "is_over"), [(4, False), (5, True), (6, True)])
def test_a_run_is_over_at_its_last_step(tmp_path, step, is_over):
    torch.save({"global_step": step}, tmp_path / "last.ckpt")
    said = f"finished at step {step}; for more: trainer.max_steps=N" if is_over else ""
    assert finished_message(tmp_path / "last.ckpt", 5) == said


@pytest.mark.parametrize(
    ("key", "watched"),
    [
        ("EarlyStopping{'monitor': 'val/frechet', 'mode': 'min'}", "val/frechet"),
        ("EarlyStopping", "val/loss"),
    ],
)
def test_what_had_not_fallen_is_named(tmp_path, key, watched):
    for waited in (2, 3):
        state = {"wait_count": waited, "patience": 3}
        torch.save({"global_step": 4, "callbacks": {key: state}}, tmp_path / "last.ckpt")
        assert (ended_early(tmp_path / "last.ckpt") is not None) == (waited == 3)
    why = f"{watched} had not fallen for 3 validations"
    assert ended_early(tmp_path / "last.ckpt") == why
    assert finished_message(tmp_path / "last.ckpt", 9, 3) == f"ended early at step 4: {why}"
    assert finished_message(tmp_path / "last.ckpt", 9, 4) == ""


def test_a_damaged_last_checkpoint_gives_way_to_the_one_before(tmp_path, capsys):
    run = trained(tmp_path / "run")
    (run.folder / "config.yaml").write_text(yaml.safe_dump(asdict(composed())))
    torch.save({"global_step": 7}, run.previous)
    assert run.resumable(composed()) == run.previous
    assert "last.ckpt: damaged" in (said := capsys.readouterr().out)
    assert "previous.ckpt, step 7, is used instead" in said


@pytest.mark.parametrize("names", [["previous", "best"], ["best"]])
def test_without_its_last_checkpoint_a_run_goes_on_from_another(tmp_path, names):
    run = Run(tmp_path / "run")
    run.start(composed(), None, "5 steps")
    run.last.parent.mkdir()
    for step, name in enumerate(names, 3):
        torch.save({"global_step": step}, run.last.with_stem(name))
    assert run.resumable(composed()) == run.last.with_stem(names[0])
    with pytest.raises(DistillError, match=r"lr: 0\.003 then, 0\.002 now"):
        run.resumable(composed("lr=2e-3"))
    run.start(composed("resume=false"), None, "5 steps")
    assert (tmp_path / "run.old-1/checkpoints/best.ckpt").is_file()
    assert not run.checkpoints


def test_a_run_goes_on_whose_settings_name_a_class_where_an_earlier_version_had_it(tmp_path):
    run = trained(tmp_path / "run")
    torch.save({"global_step": 7}, run.last)
    now = composed()
    assert now.schedule["_target_"] == "distill.train.schedules.cosine"
    then = asdict(now)
    then["schedule"]["_target_"] = "distill.training.schedules.cosine"
    (run.folder / "config.yaml").write_text(yaml.safe_dump(then))
    assert run.resumable(now) == run.last


NO_UTF8, NO_DAY = b"a: \xff", b"a: 2026-99-99"


@pytest.mark.parametrize("content", [b"a: [", b"", b"- 1", NO_UTF8, NO_DAY, b"[" * 9999])
@pytest.mark.campaign
def test_a_damaged_config_is_an_error(tmp_path, content):
    (tmp_path / "config.yaml").write_bytes(content)
    with pytest.raises(DistillError, match=r"config\.yaml: damaged"):
        Run(tmp_path).settings()


@pytest.mark.parametrize(
    "content", ["loss: [1]", "loss: {weights: 3}", "data: x", "loss: {start: [a]}", "a: &a {b: *a}"]
)
def test_a_config_of_another_shape_is_damaged_too(tmp_path, content):
    run = trained(tmp_path / "run")
    (run.folder / "config.yaml").write_text(content)
    with pytest.raises(DistillError, match=r"config\.yaml: damaged"):
        run.resumable(composed())


@pytest.mark.parametrize("both", [False, True])
def test_a_damaged_checkpoint_is_an_error(tmp_path, both):
    run = trained(tmp_path / "run")
    if both:
        run.previous.write_bytes(b"x")
    (run.folder / "config.yaml").write_text(yaml.safe_dump(asdict(composed())))
    named = "previous" if both else "last"
    with pytest.raises(DistillError, match=rf"{named}\.ckpt: damaged .* resume=false"):
        run.resumable(composed())


@pytest.mark.parametrize("step", [None, "x" * 300, float("inf"), [1]])
def test_a_checkpoint_whose_step_is_no_number_is_damaged(tmp_path, step):
    file = tmp_path / "last.ckpt"
    torch.save({"global_step": step, "callbacks": {}}, file)
    with pytest.raises(DistillError, match=r"last\.ckpt: damaged .* resume=false"):
        step_of(file)


class Opened:
    def __reduce__(self):
        return Path.touch, (Path("opened"),)


def test_a_checkpoint_that_would_run_code_is_damaged(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.save({"global_step": 1, "callbacks": {"x": Opened()}}, "last.ckpt")
    with pytest.raises(DistillError, match=r"last\.ckpt: damaged \(UnpicklingError\)"):
        step_of(Path("last.ckpt"))
    assert not Path("opened").exists()


def test_a_run_without_its_settings_is_none(tmp_path):
    with pytest.raises(DistillError, match=r"config\.yaml: missing, so this is no run of distill"):
        trained(tmp_path / "run").settings()


def test_a_checkpoint_by_path_belongs_to_its_own_run(tmp_path):
    run = trained(tmp_path / "other" / "run")
    assert find_run(choice(tmp_path, f"checkpoint={run.last}")) == run
    (tmp_path / "loose.ckpt").touch()
    with pytest.raises(DistillError, match="name an output folder: output=DIR"):
        find_run(choice(tmp_path, f"checkpoint={tmp_path}/loose.ckpt"))


def test_best_falls_back_to_last(tmp_path):
    run = trained(tmp_path / "run")
    assert run.checkpoint("best") == run.last
    run.best.write_bytes(b"x")
    assert (run.checkpoint("last"), run.checkpoint("best")) == (run.last, run.best)
    with pytest.raises(DistillError, match="no such checkpoint"):
        run.checkpoint(str(tmp_path / "none.ckpt"))


def test_terms_of_weight_0_decide_nothing():
    """A run from before a term was there goes on, and one that does without it."""
    old = with_loss(weights={"l1": 1.0}, terms={"l1": {"beta": 0.05}}, start={})

    def now(style, beta=0.05):
        terms = {"l1": {"beta": beta}, "style": {"backbone": "x"}}
        return with_loss(weights={"l1": 1.0, "style": style}, terms=terms, start={})

    assert differences(old, now(0.0)) == {}
    assert differences(old, now(2.0)) == {
        "loss.weights.style": (None, 2.0),
        "loss.terms.style.backbone": (None, "x"),
    }
    assert differences(old, now(0.0, beta=1.0)) == {"loss.terms.l1.beta": (0.05, 1.0)}


def test_what_is_refused_leaves_nothing_behind(tmp_path):
    run = Run(tmp_path / "deep/runs/mine")
    with pytest.raises(DistillError, match="refused"), run.alone():
        raise DistillError("refused")
    assert not [*tmp_path.iterdir()]
    (tmp_path / "runs").mkdir()
    with Run(tmp_path / "runs/mine").alone():
        pass
    assert (tmp_path / "runs").is_dir()  # it was there before
    assert not [*(tmp_path / "runs").iterdir()]


def test_two_cannot_be_alone_whether_or_not_the_run_has_begun(tmp_path):
    run = Run(tmp_path / "runs/mine")
    for begun in (False, True):
        with run.alone():
            if begun:
                run.folder.mkdir()
            with (
                pytest.raises(DistillError, match=r"mine: another distill\.train is using it"),
                run.alone(),
            ):
                pass
            with Run(tmp_path / "runs/other").alone():
                pass
        assert run.folder.with_name(".mine.lock").exists() == begun


def test_gka_of_an_earlier_run_goes_on_with_its_estimator():
    """It had `centred: true`, and knows of no estimator."""
    of_now, typed = composed("loss=full"), composed("loss=full", "loss.terms.gka.centred=true")
    gka = {k: v for k, v in typed.loss.terms["gka"].items() if k != "estimator"}
    old = replace(typed, loss=replace(typed.loss, terms=typed.loss.terms | {"gka": gka}))
    assert differences(old, typed) == {}
    assert as_typed(differences(old, of_now), of_now) == (
        "loss.terms.gka.centred: True then, None now"
    )
