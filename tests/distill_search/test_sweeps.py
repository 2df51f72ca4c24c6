"""Several jobs by one command: what -m makes of lists, each job's folder, and the summary."""

import csv
import os
import signal
import sys
from itertools import product
from types import SimpleNamespace

import pytest
import torch
from PIL import Image

from distill.config import compose, multirun
from distill.config.arguments import TypedKeys, overrides_of
from distill.config.command import Command
from distill.config.settings.training import Prepare, Train
from distill.core.errors import INTERRUPTED, DistillError
from distill.eval_fid import __main__ as eval_fid
from distill.export import __main__ as export
from distill.runs.run_folder import Run
from distill.train import __main__ as train
from distill.train.callbacks.reports import MetricsTable
from distill_search import sweep_summary as summary
from distill_search.sweeps import SweepFolders, folder_name, safe
from support import gan_runs
from support.commands import QUICK, run

TINY = ["photos=photos", *QUICK, "trainer.max_steps=2", "trainer.val_every=1"]


def jobs(*overrides):
    return multirun.jobs("train", overrides, train.main.job)


def swept(*overrides):
    return [tuple(job.swept.values()) for job in jobs(*overrides)]


def command(task, *arguments):
    """The exit status of `task` as a command that has the settings of prepare."""
    return run(SimpleNamespace(__name__="x", main=Command("prepare", Prepare, task)), *arguments)


# What is run


@pytest.mark.parametrize("one", ["gka_layers=[[a,b],[c,d]]", "photos='a,b'", "run='a,b'"])
def test_commas_in_brackets_and_quotes_part_nothing(one):
    assert swept(one) == [()]


@pytest.mark.campaign
def test_folders_with_any_name_are_parted_at_commas(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    seen = []
    typed = ["photos=my faces (2),b/c", "style=toon"]
    assert command(lambda s: seen.append(s.photos), "-m", *typed) == 0
    assert seen == ["my faces (2)", "b/c"]
    seen.clear()
    assert command(lambda s: seen.append(s.photos), "-m", "photos=choice(a,b c)") == 0
    assert seen == ["a", "b c"]
    (tmp_path / "x,y").mkdir()  # a folder of that very name is one folder
    seen.clear()
    assert command(lambda s: seen.append(s.photos), "-m", "photos=x,y", "crop=0.8,0.9") == 0
    assert seen == ["x,y", "x,y"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["crop=0.8,1.5"], "crop=1.5: input should be less than or equal to 1"),
        (["style=toon,tooon"], "style=tooon: no such choice; did you mean style=toon?"),
        (["crop=0.8,0.9", "phtos=x"], "phtos: no such setting; did you mean photos?"),
        (["style=glob(nothing*)"], "style=glob(nothing*): no value fits"),
        (["crop=interval(0,1)"], "crop: an interval holds no list of values"),
        (["crop=0.8"], "-m: no setting has several values"),
        (["crop=0.8,0.9", "--cfg", "job"], "--cfg: beside -m only settings"),
    ],
)
def test_a_mistake_in_any_job_is_found_before_the_first_begins(capsys, arguments, message):
    assert command(lambda _: pytest.fail("a job began"), "-m", *arguments) == 1
    out, error = capsys.readouterr()
    assert out == ""
    assert error.startswith(f"error: {message}")
    assert len(error.splitlines()) == 1


# Where it goes


def placed(*overrides):
    return SweepFolders().place(jobs(*overrides))


@pytest.mark.slow
def test_a_job_s_own_command_line_gives_its_settings():
    # A distributed training starts its other processes with it.
    for job in placed("decoder=nnconv,fastdepth", "style.weights=a b,c", "sweep=x", "runs=my runs"):
        overrides = overrides_of(job.overrides, TypedKeys(Train))
        assert compose.load("train", overrides, Train) == job.settings


def test_names_never_collide():
    odd = ["a/b", "a_b", "a b", "a\nb", "ä", "a-lr=b", "a=b", "A" * 300, "A" * 301, "", ".", ".."]
    odd += [safe("a/b"), safe("a/b").replace("~", "_")]
    part = SimpleNamespace(name="x")
    settings = SimpleNamespace(recipe="distill", style=part, decoder=part, loss=part)
    names = [
        folder_name(multirun.Job({"q": q, "z.lr": lr, "p": p}, [], settings))
        for q, lr, p in product(odd, odd, odd)
    ]
    assert len(set(names)) == len(names) == len(odd) ** 3
    assert all(len(name.encode()) <= 255 and not set(name) & set("/\\\n '") for name in names)


@pytest.mark.slow
def test_adversarial_losses_of_one_kind_have_folders_of_their_own():
    both = "adversarial=wasserstein,wasserstein_clip"
    listed = jobs("recipe=cyclegan", both, "cycle=5,10")
    assert [job.name for job in SweepFolders().place(listed)] == [
        "cyclegan-resnet-wasserstein-cycle=5",
        "cyclegan-resnet-wasserstein-cycle=10",
        "cyclegan-resnet-wasserstein_clip-cycle=5",
        "cyclegan-resnet-wasserstein_clip-cycle=10",
    ]


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["decoder=nnconv,nnconv"], "toon-nnconv-lines: two jobs have this folder"),
        (["lr=0.001,1e-3"], "two jobs have this folder"),
        (["decoder=nnconv,fastdepth", "run=mine"], "name the sweep with sweep=NAME"),
        (["runs=a,b"], "runs: one for all jobs"),
        (["sweep=a,b", "lr=1,2"], "sweep: one for all jobs"),
    ],
)
@pytest.mark.slow
def test_what_a_sweep_cannot_place_is_one_line(overrides, message, capsys, here):
    assert run(train, "-m", *overrides) == 1
    error = capsys.readouterr().err
    assert message in error
    assert len(error.splitlines()) == 1
    assert not (here / "runs").exists()


def test_a_sweep_s_name_without_a_sweep_is_refused(capsys):
    assert run(train, "sweep=mine") == 1
    assert "add -m" in capsys.readouterr().err


# How it runs


@pytest.mark.slow
def test_a_job_that_fails_leaves_the_others_alone(capsys):
    seen = []

    def task(settings):
        seen.append(settings.crop)
        if settings.crop == 0.7:
            raise DistillError("no good")
        if settings.crop == 0.8:
            raise RuntimeError("a bug")
        if settings.crop == 0.9:
            sys.exit(3)

    assert command(task, "--multirun", "crop=0.6,0.7,0.8,0.9,1.0") == 1
    out, error = capsys.readouterr()
    assert seen == [0.6, 0.7, 0.8, 0.9, 1.0]
    assert out.splitlines() == [f"[{i}/5] crop={c}" for i, c in enumerate(seen, 1)]
    assert "error: no good\n" in error
    assert "RuntimeError: a bug\n" in error  # with its traceback
    assert error.splitlines()[-1] == "error: 3 of 5 jobs failed: crop=0.7, crop=0.8, crop=0.9"


@pytest.mark.slow
def test_ctrl_c_while_a_job_labels_ends_the_sweep():
    seen = []

    def task(settings):
        seen.append(settings.crop)
        raise KeyboardInterrupt

    assert command(task, "-m", "crop=0.8,0.9") == INTERRUPTED
    assert seen == [0.8]


@pytest.mark.slow
def test_a_job_finds_the_process_as_if_it_were_alone():
    seen = []

    def task(settings):
        seen.append((sys.argv[1:], os.environ.get("LOCAL_RANK"), signal.getsignal(signal.SIGINT)))
        os.environ["LOCAL_RANK"] = "0"
        signal.signal(signal.SIGINT, lambda *_: None)
        store = torch.distributed.HashStore()
        torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)

    before = signal.getsignal(signal.SIGINT)
    assert command(task, "-m", "crop=0.8,0.9", "style=toon") == 0
    assert seen == [([f"crop={crop}", "style=toon"], None, before) for crop in (0.8, 0.9)]
    assert signal.getsignal(signal.SIGINT) is before
    assert "LOCAL_RANK" not in os.environ
    assert not torch.distributed.is_initialized()


# What is said of it


METRICS = """step,train/loss,val/psnr,val/ssim,val/loss,health/living_weights
1,0.5,,,,
2,,20.5,0.7,0.04,0.99
3,0.4,,,,
4,,22.25,0.8,0.03,0.9
6,,21,0.9,0.02,0.8
8,,nan,0.1,9,0.1
"""


def written(tmp_path, names_and_outcomes, tables):
    """A summary's rows as in summary.csv, of runs that hold nothing but the tables given."""
    settings = SimpleNamespace(trainer=SimpleNamespace(max_steps=8))
    listed = [multirun.Job({"lr": name}, [], settings, name) for name in names_and_outcomes]
    for name, table in tables.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "metrics.csv").write_text(table)
    summary.write(tmp_path, listed, list(names_and_outcomes.values()))
    return list(csv.DictReader((tmp_path / "summary.csv").open()))


def test_a_table_that_is_damaged_counts_as_far_as_it_can_be_read(tmp_path):
    table = tmp_path / "metrics.csv"
    table.write_bytes(METRICS.encode().replace(b"0.8", b"\xff.8"))
    whole, damaged = (row.keys() for row in Run(tmp_path).validations()[:2])
    assert whole - damaged == {"val/ssim"}
    table.write_text(METRICS)
    readable = Run(tmp_path).validations()
    table.write_text(METRICS + "x" * 200_000)  # more than a CSV field may hold
    assert Run(tmp_path).validations() == readable
    assert len(readable) == 3  # of the last one the PSNR is no number


def test_the_best_validation_of_each_run(tmp_path, capsys):
    outcomes = {
        "one": multirun.Outcome(0),
        "two": multirun.Outcome(1, "a | b"),
        "three": multirun.Outcome(),
    }
    rows = written(tmp_path, outcomes, {"one": METRICS, "two": METRICS[: METRICS.index("\n4,")]})
    best = [(r["best val/psnr (dB)"], r["at step"], r["val/ssim"], r["val/loss"]) for r in rows]
    assert best == [("22.25", "4", "0.8", "0.03"), ("20.5", "2", "0.7", "0.04"), ("",) * 4]
    assert [row["nonzero weights"] for row in rows] == ["0.9", "0.99", ""]
    assert [row["state"] for row in rows] == ["finished", "failed: a | b", "not started"]
    assert [row["lr"] for row in rows] == ["one", "two", "three"]
    page = (tmp_path / "summary.md").read_text()
    assert "| one | one | finished |  | 22.25 | 4 | 0.8000 | 0.03 | 90.0% |" in page
    assert "failed: a \\| b" in page
    assert "val/loss does not compare between jobs whose losses differ" in page
    assert "20.50" in capsys.readouterr().out


def test_a_run_s_state_is_that_of_its_last_checkpoint(tmp_path):
    steps = {"short": 5, "whole": 8}
    early = {"wait_count": 3, "patience": 3}
    for name, step in {**steps, "early": 4, "broken": 0}.items():
        path = tmp_path / name / "checkpoints" / "last.ckpt"
        path.parent.mkdir(parents=True)
        callbacks = {"EarlyStopping{}": early} if name == "early" else {}
        torch.save({"global_step": step, "callbacks": callbacks}, path)
    (tmp_path / "broken/checkpoints/last.ckpt").write_bytes(b"x")
    names = ["short", "whole", "early", "broken"]
    rows = written(tmp_path, dict.fromkeys(names, multirun.Outcome(INTERRUPTED)), {})
    states = [row["state"] for row in rows]
    assert states[:3] == ["stopped at step 5", "finished", "finished"]
    assert states[3].startswith("failed: ")
    assert "damaged" in states[3]
    assert [row["steps"] for row in rows] == ["5", "8", "4", ""]


def test_the_picture_has_a_line_per_run_and_says_what_it_shows(tmp_path, monkeypatch):
    from matplotlib.figure import Figure

    figures = []
    save = Figure.savefig
    monkeypatch.setattr(Figure, "savefig", lambda s, *a, **k: figures.append(s) or save(s, *a, **k))
    outcomes = {name: multirun.Outcome(0) for name in ("one", "two", "none")}
    written(tmp_path, outcomes, {"one": METRICS, "two": METRICS.replace("22.25", "30")})
    with Image.open(tmp_path / "summary.png") as picture:
        assert min(picture.size) > 400
    left, right = figures[0].axes
    assert [(a.get_xlabel(), a.get_ylabel()) for a in (left, right)] == [
        ("step", "val/psnr (dB)"), ("step", "val/ssim"),
    ]  # fmt: skip
    assert [list(line.get_ydata()) for line in left.lines] == [[20.5, 22.25, 21], [20.5, 30, 21]]
    assert [list(line.get_ydata()) for line in right.lines] == [[0.7, 0.8, 0.9]] * 2
    assert [text.get_text() for text in figures[0].legends[0].get_texts()] == ["one", "two"]


def test_where_nothing_ran_there_is_a_table_and_no_picture(tmp_path):
    rows = written(tmp_path, {"one": multirun.Outcome(1, "x")}, {"one": "no table\x00"})
    assert [row["state"] for row in rows] == ["failed: x"]
    assert not (tmp_path / "summary.png").exists()


# All of it


@pytest.mark.campaign
def test_two_by_two_runs_interrupted_then_finished(here, capsys, monkeypatch):
    sweep = [*TINY, "decoder=residual,fastdepth", "loss=l1,l1_sobel"]
    folder = here / "runs/sweep-decoder+loss"
    names = [f"toon-{d}-{loss}" for d in ("residual", "fastdepth") for loss in ("l1", "l1_sobel")]

    def summed():
        rows = list(csv.DictReader((folder / "summary.csv").open()))
        assert [row["job"] for row in rows] == names
        return rows

    with monkeypatch.context() as patch:
        interrupt_at(patch, folder / names[1], step=1)
        assert run(train, "-m", *sweep) == INTERRUPTED
    assert [row["state"] for row in summed()] == [
        "finished", "stopped at step 1", "not started", "not started",
    ]  # fmt: skip
    capsys.readouterr()
    assert run(train, "-m", *sweep) == 0
    out = capsys.readouterr().out
    assert (out.count("finished at step 2"), out.count("resumes at step 1")) == (1, 1)
    assert {(row["state"], row["steps"]) for row in summed()} == {("finished", "2")}
    # README's counts on the exported graph at 256²; 64² has a sixteenth of the pixels.
    assert {int(row["MACs"]) for row in summed()} == {126_680_064 // 16, 112_737_280 // 16}
    assert (folder / "summary.png").is_file()

    # The same run alone is the same to the last digit: no job is touched by the one before it.
    assert run(train, *TINY, "decoder=fastdepth", "loss=l1", "run=alone") == 0
    alone, third = (p / "metrics.csv" for p in (here / "runs/alone", folder / names[2]))
    assert alone.read_text() == third.read_text()

    (folder / names[0] / "config.yaml").write_text("- damaged")
    capsys.readouterr()
    assert run(train, "-m", *sweep) == 1
    out, error = capsys.readouterr()
    assert out.count("finished at step 2") == 3
    assert error.splitlines()[-1] == f"error: 1 of 4 jobs failed: {names[0]}"
    assert "damaged" in summed()[0]["state"]

    of = ["runs=runs/sweep-decoder+loss", f"run={names[3]}"]
    assert run(export, *of, "exporter.size=64") == 0
    assert (folder / names[3] / "export/student.onnx").is_file()
    assert run(eval_fid, *of, "features=none", "bootstrap=0") == 0
    assert (folder / names[3] / "eval/results.json").is_file()


def interrupt_at(patch, folder, step):
    """Ctrl-C after the validation of this step in this run."""
    ours = MetricsTable.on_validation_end

    def on_validation_end(table, trainer, module):
        ours(table, trainer, module)
        if table.path.parent.resolve() == folder and trainer.global_step == step:
            os.kill(os.getpid(), signal.SIGINT)

    patch.setattr(MetricsTable, "on_validation_end", on_validation_end)


def test_runs_without_pairs_are_compared_by_their_distance(tmp_path, monkeypatch, capsys):
    from matplotlib.figure import Figure

    figures = []
    save = Figure.savefig
    monkeypatch.setattr(Figure, "savefig", lambda s, *a, **k: figures.append(s) or save(s, *a, **k))
    table = "step,val/cycle,val/frechet,val/kid\n2,0.1,90,0.3\n4,0.1,70.5,0.2\n6,0.1,80,0.1\n"
    outcomes = {name: multirun.Outcome(0) for name in ("one", "two")}
    rows = written(tmp_path, outcomes, {"one": table})
    assert [row["lowest val/frechet"] for row in rows] == ["70.5", ""]
    assert [row["best val/psnr (dB)"] for row in rows] == ["", ""]
    assert "70.50" in (tmp_path / "summary.md").read_text()
    assert "70.50" in capsys.readouterr().out
    assert [axes.get_ylabel() for axes in figures[0].axes] == ["val/frechet", "val/kid"]


def test_the_network_of_a_generator_s_run_is_counted(tmp_path):
    network = gan_runs.built(gan_runs.RESNET)
    said = gan_runs.settings("pix2pix", gan_runs.RESNET)
    gan_runs.write(tmp_path / "one", said, generator=network)
    (row,) = written(tmp_path, {"one": multirun.Outcome(0)}, {})
    assert int(row["parameters"]) == sum(p.numel() for p in network.parameters())
    assert int(row["MACs"]) > 0
    assert "lowest val/frechet" not in row
