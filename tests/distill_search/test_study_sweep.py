"""Jobs that Optuna draws: the space as typed, trials that go on, pruning, and what is found."""

import csv
import itertools
import re
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest
from PIL import Image

from distill.config.multirun import Outcome
from distill.core.errors import INTERRUPTED, DistillError
from distill.export import __main__ as export
from distill.train import __main__ as train
from support.commands import QUICK, run
from support.stand_training import Stand, psnr_of

pytest.importorskip("optuna")

from distill_search import front, objectives, study_sweep, trial_loop, trials
from distill_search.space import space_of

RATES = "lr=tag(log,interval(1e-4,1e-1))"
OPTUNA = ["-m", "search=optuna", "sweep=x"]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def summed(folder="runs/sweep-x"):
    return list(csv.DictReader((Path(folder) / "summary.csv").open()))


def space(*words):
    return space_of("train", words, train.main.job)


# What may be drawn


@pytest.mark.slow
def test_axes_are_what_was_typed():
    typed = [RATES, "decoder=detail,nnconv", "seed=range(1,10,3)", "crop=interval(0.5,1)",
             "data.batch_size=int(interval(1,5))", "ema=range(0,0.9,0.3)",
             "channels=3"]  # fmt: skip
    rate, decoder, seed, crop, batch, ema = (found := space(*typed)).axes
    assert (rate.low, rate.high, rate.step, rate.log) == (1e-4, 1e-1, None, True)
    assert list(decoder.choices) == ["detail", "nnconv"]
    assert (seed.low, seed.high, seed.step, seed.whole) == (1, 7, 3, True)
    assert (crop.low, crop.high, crop.whole, crop.log) == (0.5, 1, False, False)
    assert (batch.low, batch.high, batch.step, batch.whole) == (1, 5, 1, True)
    assert [ema.typed(x) for x in (0.0, 0.3, 0.6)] == ["0", "0.3", "0.6"]
    assert found.fixed == ["channels=3"]
    chosen = {"lr": 0.00123456, "decoder": "nnconv", "seed": 4, "crop": 0.99999, "ema": 0.3,
              "data.batch_size": 2}  # fmt: skip
    job = found.make(found.typed(chosen))
    assert (job.settings.lr, job.settings.decoder.name, job.settings.seed) == (
        0.001235, "nnconv", 4,
    )  # fmt: skip
    assert job.settings.crop == 1.0
    assert job.swept["lr"] == "0.001235"
    assert "channels=3" in job.overrides


def test_rounding_stays_between_the_ends():
    (axis,) = space("crop=interval(0.55554,0.66666)").axes
    assert axis.typed(0.55554) == "0.55554"  # rounded it were 0.5555
    assert axis.typed(0.6666) == "0.6666"
    assert axis.typed(0.66666) == "0.66666"  # and 0.6667


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["decoder=detail,nncnv"], "decoder=nncnv: no such choice; did you mean decoder=nnconv?"),
        (["crop=interval(0.5,2)"], "crop=2: input should be less than or equal to 1"),
        (["lr=tag(log,interval(0,1))"], "lr=tag(log,interval(0,1)): an interval must increase"),
        (["lr=tag(fast,interval(0.1,1))"], "lr=tag(fast,interval(0.1,1)): tag fast is unsupported"),
        (["lr=0.1"], "-m: no setting has several values"),
        (["lr=1,2", "search.trials=1,2"], "search.trials: one for all jobs"),
        (["lr=1,2", "search.trails=3"], "search.trails: no such setting; did you mean"),
        (["lr=1,2", "search.trials=0"], "search.trials=0: input should be greater than 0"),
        (["lr=1,2", "search.objectives=[ms]"], "name a validation figure first"),
        (["lr=1,2", "search.objectives=[psnr,psnr]"], "name each objective once"),
        (["lr=1,2", "search.objectives=[psnr,ms]", "search.pruner=median"], "one objective"),
        (["lr=1,2", "trainer.devices=2", "search.pruner=median"], "set trainer.devices=1"),
        (["lr=1,2", "run=mine"], "run: a sweep names its runs itself"),
        (["lr=1,2", "search.storage=nodb://x"], "nodb://x: no study can be kept there"),
    ],
)
@pytest.mark.campaign
def test_a_mistake_is_one_line_before_the_first_trial(words, message, capsys):
    stand = Stand()
    assert stand.typed(*OPTUNA, *words) == 1
    error = capsys.readouterr().err
    assert message in error
    assert len(error.splitlines()) == 1
    assert stand.seen == []


@pytest.mark.parametrize("word", ["search=optuna", "launcher.jobs=2", "search=grid"])
def test_a_search_without_a_sweep_is_refused(word, capsys):
    stand = Stand()
    assert stand.typed(word) == 1
    assert capsys.readouterr().err == f"error: {word}: is for several jobs; add -m\n"
    assert stand.seen == []


@pytest.mark.slow
def test_a_missing_optuna_is_one_line(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "optuna", None)
    assert Stand().typed(*OPTUNA, RATES) == 1
    assert capsys.readouterr().err.splitlines() == [
        "error: search=optuna: needs optuna; pip install 'distill[search]'"
    ]


# Limits

WIDTHS = "encoder=mobilenetv2_035,mobilenetv2_050,mobilenetv2_075,mobilenetv2_100"
LIMITS = ["search.most.macs=50e6", "search.least.parameters=250e3", "style.resolution=128"]


@pytest.mark.campaign
def test_only_networks_within_the_limits_are_trained_and_count():
    stand = Stand()
    assert stand.typed(*OPTUNA, WIDTHS, RATES, *LIMITS, "search.trials=5") == 0
    # At 128²: 0.35 has 150 thousand parameters, 0.75 and 1.0 have 55 and 74 million MACs.
    assert {settings.encoder["width"] for settings in stand.seen} == {0.5}
    assert len({settings.run for settings in stand.seen}) == 5
    assert len({settings.lr for settings in stand.seen}) == 5
    assert [row["job"] for row in summed()] == [settings.run for settings in stand.seen]


@pytest.mark.slow
def test_limits_that_nothing_is_within_are_said(capsys, monkeypatch):
    monkeypatch.setattr(trial_loop, "ATTEMPTS", 3)
    stand = Stand()
    assert stand.typed(*OPTUNA, WIDTHS, "search.most.macs=1e6", "style.resolution=128") == 1
    error = capsys.readouterr().err
    assert re.search(r"not one of [1-3] combinations? is within them \(the last: ", error)
    assert " macs, at most 1,000,000); widen" in error
    assert len(error.splitlines()) == 1
    assert stand.seen == []


@pytest.mark.slow
def test_what_was_drawn_twice_is_not_waited_for(capsys, monkeypatch):
    """Of two combinations both are known to be outside long before 200 draws are."""
    asked = []
    outside = trial_loop.outside
    monkeypatch.setattr(trial_loop, "outside", lambda *each: asked.append(each) or outside(*each))
    stand = Stand()
    two = "encoder=mobilenetv2_035,mobilenetv2_050"
    assert stand.typed(*OPTUNA, two, "search.most.macs=1e6", "style.resolution=128") == 1
    assert "not one of 2 combinations is within them" in capsys.readouterr().err
    assert 2 <= len(asked) < 50


# How it goes on


@pytest.mark.campaign
def test_a_study_goes_on_where_it_was_and_draws_as_if_it_had_not_stopped():
    whole, first, second = Stand(), Stand(), Stand()
    assert whole.typed("-m", "search=optuna", "sweep=whole", RATES, "search.trials=14") == 0
    assert first.typed(*OPTUNA, RATES, "search.trials=12") == 0
    assert second.typed(*OPTUNA, RATES, "search.trials=14") == 0
    assert (len(first.seen), len(second.seen)) == (12, 2)
    rates = [settings.lr for settings in whole.seen]
    assert [settings.lr for settings in first.seen + second.seen] == rates
    assert len(set(rates)) == 14  # no state of the random numbers is used twice
    assert all(1e-4 <= rate <= 1e-1 for rate in rates)
    third = Stand()
    assert third.typed(*OPTUNA, RATES, "search.trials=14") == 0
    assert third.seen == []


@pytest.mark.parametrize(
    ("names", "typed", "sampler", "directions"),
    [
        ("psnr", "auto", "TPESampler", ["MAXIMIZE"]),
        ("loss", "random", "RandomSampler", ["MINIMIZE"]),
        ("ssim,ms", "auto", "NSGAIISampler", ["MAXIMIZE", "MINIMIZE"]),
        ("frechet,macs", "tpe", "TPESampler", ["MINIMIZE", "MINIMIZE"]),
    ],
)
@pytest.mark.campaign
def test_what_is_drawn_from_and_which_way_is_better(names, typed, sampler, directions):
    asked = searched(f"search.objectives=[{names}]", f"search.sampler={typed}")
    opened = trials.Trials(asked, Path("runs/sweep-x"), space(RATES), 2, 1)
    opened.take()
    assert type(opened.study.sampler).__name__ == sampler
    assert [each.name for each in opened.study.directions] == directions


@pytest.mark.parametrize("killed", [False, True])
@pytest.mark.campaign
def test_an_interrupted_or_killed_trial_goes_on_in_its_folder(killed, monkeypatch, capsys):
    first, second = Stand(stop_at=2), Stand()
    with monkeypatch.context() as patch:
        if killed:  # the process is gone before it can say so; its lock with it
            patch.setattr(trials.Trials, "requeue", lambda s, t: s._held[t.number].release())
        assert first.typed(*OPTUNA, RATES, "search.trials=3") == INTERRUPTED
    assert second.typed(*OPTUNA, RATES, "search.trials=3") == 0
    assert (second.seen[0].run, second.seen[0].lr) == (first.seen[1].run, first.seen[1].lr)
    assert len(second.seen) == 2
    assert [row["state"] for row in summed()] == ["finished"] * 3
    assert len({row["job"] for row in summed()}) == 3


@pytest.mark.slow
def test_a_trial_at_work_in_another_process_is_left_alone():
    one, other = (
        trials.Trials(searched(), Path("runs/sweep-x"), space(RATES), 2, 1) for _ in range(2)
    )
    first, second = one.take(), other.take()
    assert (first.number, second.number) == (0, 1)
    assert first.params != second.params
    one.requeue(first)
    assert other.take().params == first.params


def searched(*words):
    usual = ["search=optuna", "search.trials=3", "search.objectives=[psnr]"]
    return study_sweep.searching_of("train", [*usual, *words]).search


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["lr=tag(log,interval(1e-4,1))"], f"has {RATES}, not tag(log,interval(1e-4,1))"),
        ([RATES, "decoder=detail,nnconv"], "has decoder=as it is by default, not detail,nnconv"),
        ([RATES, "crop=0.9"], "has crop=as it is by default, not 0.9"),
        ([RATES, "search.objectives=[psnr,ssim]"], "has search.objectives=psnr, not psnr,ssim"),
    ],
)
@pytest.mark.campaign
def test_another_search_in_the_same_folder_is_refused(words, message, capsys):
    assert Stand().typed(*OPTUNA, RATES, "search.trials=1") == 0
    capsys.readouterr()
    stand = Stand()
    assert stand.typed(*OPTUNA, *words, "search.trials=2") == 1
    error = capsys.readouterr().err
    assert message in error
    assert error.endswith("start a new search with sweep=NAME\n")
    assert len(error.splitlines()) == 1
    assert stand.seen == []


@pytest.mark.slow
def test_no_trial_starts_after_the_time_is_up(monkeypatch):
    clock = itertools.count()
    monkeypatch.setattr(trial_loop, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    stand = Stand()
    assert stand.typed(*OPTUNA, RATES, "search.timeout=3") == 0
    assert len(stand.seen) == 2  # looked at after 1, 2 and 3 seconds


# What fails, and what falls behind


@pytest.mark.campaign
def test_a_trial_that_fails_does_not_stop_the_search(capsys):
    def psnr(settings):
        if settings.seed == 2:
            raise DistillError("no good")
        return settings.seed

    assert Stand(psnr=psnr).typed(*OPTUNA, "seed=1,2,3", "search.trials=10") == 0
    states = {row["seed"]: row["state"] for row in summed()}
    assert states == {"1": "finished", "2": "failed: no good", "3": "finished"}
    assert "summary.md says why" in capsys.readouterr().out


@pytest.mark.slow
def test_where_all_fail_the_first_reason_is_said(capsys):
    def psnr(_):
        raise DistillError("no good")

    assert Stand(psnr=psnr).typed(*OPTUNA, RATES, "search.trials=2") == 1
    assert capsys.readouterr().err.splitlines()[-1].endswith("first that failed: no good")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "name"),
    [
        ([], "psnr"),
        (["recipe=pix2pix", "data.root=x"], "psnr"),
        (["recipe=cyclegan", "data.root=x"], "frechet"),
        (["recipe=picture", "style_image=x.png"], "loss"),
    ],
)
def test_without_an_objective_it_is_one_that_the_recipe_has(words, name):
    stand = Stand(frechet=lambda settings: settings.lr, loss=lambda settings: settings.lr)
    assert stand.typed(*OPTUNA, RATES, "search.trials=1", *words) == 0
    assert [key for key in summed()[0] if key.startswith("objective ")] == [f"objective {name}"]


@pytest.mark.slow
def test_an_objective_that_the_recipe_does_not_measure(capsys):
    words = [*OPTUNA, RATES, "search.objectives=[frechet]", "search.trials=3"]
    assert Stand().typed(*words) == 1
    said = capsys.readouterr()
    assert said.err.count("has no val/frechet") == 1  # no other trial is trained for nothing


@pytest.mark.parametrize("pruner", ["median", "hyperband"])
@pytest.mark.campaign
def test_trials_that_fall_behind_are_cut_short(pruner):
    # The later, the worse; Optuna's median waits for five.
    numbers = itertools.count()
    psnr = {}

    def falling(settings):
        return psnr.setdefault(settings.run, -next(numbers))

    stand = Stand(psnr=falling, steps=(1, 2, 3))
    words = [f"search.pruner={pruner}", "trainer.val_every=1", "trainer.max_steps=3"]
    assert stand.typed(*OPTUNA, RATES, *words, "search.trials=8") == 0
    states = [row["state"] for row in summed()]
    assert states[0] == "finished"
    assert states[-1] == "pruned at step 1"
    assert {row["front"] for row in summed() if row["state"] != "finished"} == {""}


# Side by side


@pytest.mark.slow
def test_another_process_carries_a_trial_out(capsys):
    """It draws nothing, tells the study, and leaves the lock to the one that took the trial."""
    first = trials.Trials(searched(), Path("runs/sweep-x"), space(RATES), 2, 1)
    taken = first.take()
    stand = Stand()
    words = [*OPTUNA, RATES, "search.trials=3"]
    assert stand.typed(*words, f"launcher.only={taken.number}") == 0
    assert [settings.lr for settings in stand.seen] == [float(f"{taken.params['lr']:.4g}")]
    assert first.study.trials[taken.number].values == [psnr_of(stand.seen[0])]
    assert first._lock(taken.number).lock_file in map(str, Path("runs/sweep-x").glob(".taken*"))
    first.process_ended(taken, Outcome(0))
    assert not list(Path("runs/sweep-x").glob(".taken-*.lock"))
    assert stand.typed(*words, "launcher.only=7") == 1
    assert "launcher.only=7: no such trial is running" in capsys.readouterr().err


@pytest.mark.parametrize("outcome", [Outcome(1, "its node is gone"), Outcome(INTERRUPTED)])
@pytest.mark.slow
def test_what_a_process_left_untold_is_told_for_it(outcome):
    opened = trials.Trials(searched(), Path("runs/sweep-x"), space(RATES), 2, 1)
    taken = opened.take()
    opened.process_ended(taken, outcome)
    told = opened.study.trials[taken.number]
    assert told.state.name == "FAIL"
    assert told.user_attrs.get(trials.REASON) == (outcome.reason or None)
    opened.requeue(taken)  # as the other process may, late: once is enough
    following = opened.take()  # an interrupted one is the next one again
    assert (following.params == taken.params) == (outcome.status == INTERRUPTED)


@pytest.mark.parametrize("most", [3, 1])
@pytest.mark.campaign
def test_machines_that_draw_at_the_same_moment_draw_two_trials(most, monkeypatch):
    """Each has its own folder, so no lock; the study's database is all that they share."""
    asked = searched(f"search.trials={most}", f"search.storage=sqlite:///{Path.cwd()}/study.db")
    one, other = (
        trials.Trials(asked, Path(name) / "sweep-x", space(RATES), 2, 1) for name in ("a", "b")
    )
    ask, between = one.study.ask, []

    def later(*given):
        if not between:  # the other one draws when this one has seen how many there are
            between.append(other.take())
        return ask(*given)

    monkeypatch.setattr(one.study, "ask", later)
    drawn = [each for each in (one.take(), *between) if each]
    assert len(drawn) == min(most, 2)
    assert len({each.params["lr"] for each in drawn}) == len(drawn)
    assert {each.user_attrs[trials.RUN] for each in drawn} == {"trial-001", "trial-002"} - (
        set() if most > 1 else {"trial-002"}
    )
    alone = trials.Trials(searched(), Path("c/sweep-x"), space(RATES), 2, 1)
    expected = [alone.take().params for _ in drawn]
    assert sorted(each.params["lr"] for each in drawn) == sorted(p["lr"] for p in expected)
    assert len(trials.counted(one.study.trials)) == len(drawn)  # an excess one counts as none


@pytest.mark.slow
def test_a_database_whose_tables_several_make_at_once_is_opened_by_all(tmp_path):
    """Optuna looks which tables there are, then makes the others: two who do so collide."""
    together, count = threading.Barrier(5), 5
    search = searched("search.trials=9", f"search.storage=sqlite:///{tmp_path}/study.db")
    drawn_from = space(RATES)

    def opened(number):
        together.wait()
        folder = tmp_path / str(number) / "sweep-x"
        return trials.Trials(search, folder, drawn_from, 2, 1).take().number

    with ThreadPoolExecutor(count) as pool:
        assert sorted(pool.map(opened, range(count))) == list(range(count))


# What is found


def test_figures_are_those_of_the_best_step_of_the_first_objective(tmp_path):
    (tmp_path / "metrics.csv").write_text(
        "step,val/psnr,val/ssim,val/loss\n1,20,0.9,0.5\n2,22,0.7,0.3\n3,21,0.8,0.1\n"
    )
    of = objectives.Run(tmp_path)
    assert objectives.values(of, ["psnr", "ssim"]) == [22, 0.7]
    assert objectives.values(of, ["ssim", "loss"]) == [0.9, 0.5]
    assert objectives.values(of, ["loss", "psnr"]) == [0.1, 21]


def test_the_front_is_what_nothing_beats():
    points = [(20, 5), (22, 9), (21, 9), (19, 4), (19, 6), (20, 5)]
    given = [SimpleNamespace(values=list(point), number=n) for n, point in enumerate(points)]
    best = front.front(given, ["psnr", "ms"])
    assert [trial.number for trial in best] == [1, 0, 3]
    for trial in given:
        del trial.values[1]
    assert [trial.number for trial in front.front(given, ["psnr"])] == [1]
    assert [trial.number for trial in front.front(given, ["loss"])] == [3]


@pytest.mark.campaign
def test_the_front_is_written_drawn_and_said(capsys):
    # SSIM is best for the smallest seed, PSNR for the largest; crop only costs both.
    stand = Stand(
        psnr=lambda s: s.seed - 10 * (1 - s.crop), ssim=lambda s: -s.seed / 100 - (1 - s.crop)
    )
    words = ["seed=1,2,3", "crop=0.5,1.0", "search.objectives=[psnr,ssim]", "search.trials=60"]
    assert stand.typed(*OPTUNA, *words) == 0
    rows = {(row["seed"], row["crop"]): row for row in summed()}
    assert len(rows) == 6
    assert {key for key, row in rows.items() if row["front"]} == {
        ("1", "1.0"), ("2", "1.0"), ("3", "1.0"),
    }  # fmt: skip
    assert float(rows["3", "0.5"]["objective psnr"]) == -2
    out, page = capsys.readouterr().out, Path("runs/sweep-x/front.md").read_text()
    best = rows["3", "1.0"]["job"]
    export = f"python -m distill.export run={best} runs=runs/sweep-x"
    again = f"python -m distill.train seed=3 crop=1.0 run=x-{best}"
    for text in (out, page):
        assert export in text
        assert again in text
    assert page.count("distill.export") == 3
    with Image.open("runs/sweep-x/front.png") as picture:
        assert min(picture.size) > 400


# All of it


TINY = ["photos=photos", *QUICK, "trainer.max_steps=2", "trainer.val_every=1"]
REAL = [
    *TINY,
    "sweep=x",
    "head=picture",
    "search=optuna",
    "decoder=residual,fastdepth",
    "lr=interval(1e-3,1e-2)",
]


@pytest.mark.slow
def test_a_search_by_fidelity_and_cost(here, capsys):
    words = [*REAL, "search.objectives=[psnr,macs,ms]", "search.trials=2"]
    assert run(train, "-m", *words) == 0
    rows = summed()
    assert [row["state"] for row in rows] == ["finished"] * 2
    # README's counts on the exported graph at 256²; 64² has a sixteenth of the pixels.
    counts = {"residual": 126_680_064 // 16, "fastdepth": 112_737_280 // 16}
    for row in rows:
        assert float(row["objective macs"]) == float(row["MACs"]) == counts[row["decoder"]]
        assert float(row["objective psnr"]) == float(row["best val/psnr (dB)"])
        assert float(row["objective ms"]) > 0
    assert (here / "runs/sweep-x/front.png").is_file()
    assert (here / "runs/sweep-x/summary.png").is_file()
    line = next(
        line
        for line in capsys.readouterr().out.splitlines()
        if line.startswith("python -m distill.export")
    )
    assert run(export, *line.split()[3:], "exporter.size=64") == 0
