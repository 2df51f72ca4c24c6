"""The recipes with a discriminator from the command line: trained, stopped, gone on, refused."""

import csv
import json
import signal
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from distill.config import compose, registry
from distill.data.pairs import find_pairs
from distill.export import __main__ as export
from distill.metrics import frechet
from distill.stylize.stylizing import open_student
from distill.train import __main__ as train
from distill_gan import pix2pix
from distill_gan.cyclegan import cyclegan_module
from distill_gan.distance import Distance
from distill_gan.pix2pix import pix2pix_module
from support.commands import run
from support.feature_networks import Means
from support.last_checkpoints import differences, saved

SMALL = [
    "data.size=36",
    "data.crop_size=32",
    "data.workers=0",
    "data.val_fraction=0.4",
    "discriminator.width=0.125",
    "distance=none",
    "trainer.log_every=1",
]
PIX2PIX = [
    "recipe=pix2pix",
    "data.root=pairs",
    "generator.build.encoder=0.125",
    "generator.build.decoder=0.125",
    *SMALL,
]
DOMAINS = ["recipe=cyclegan", "data.root=domains", *SMALL]
CYCLEGAN = [*DOMAINS, "generator.build.blocks=1", "generator.build.width=8"]
LENGTH = ["trainer.max_steps=6", "trainer.val_every=3"]


def soft(seed, width=64):
    noise = np.random.default_rng(seed).integers(0, 255, (5, 6, 3), dtype=np.uint8)
    return Image.fromarray(noise).resize((width, 64), Image.Resampling.BICUBIC)


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """pairs/ of eight pictures side by side, domains/ with six of A and eight of B."""
    monkeypatch.chdir(tmp_path)
    for place, count, width in (("pairs", 8, 128), ("domains/A", 6, 64), ("domains/B", 8, 72)):
        (tmp_path / place).mkdir(parents=True)
        for i in range(count):
            soft(len(place) * 100 + i, width).save(tmp_path / place / f"{chr(97 + i)}.png")
    return tmp_path


@pytest.mark.parametrize("recipe", [PIX2PIX, CYCLEGAN], ids=["pix2pix", "cyclegan"])
@pytest.mark.parametrize(
    "more",
    [["adversarial.noise=0.1"], ["adversarial=wasserstein", "schedule=cosine"]],
    ids=["noise", "wasserstein"],
)
@pytest.mark.campaign
def test_interrupted_and_resumed_equals_uninterrupted(folders, signal_at, recipe, more):
    options = [*recipe, *more, *LENGTH]
    assert run(train, *options, "run=whole") == 0
    signal_at(2, signal.SIGTERM)  # between two validations
    assert run(train, *options, "run=parts") == 130
    assert saved("parts")["global_step"] == 2
    signal_at(3, signal.SIGINT)  # where a validation is due
    assert run(train, *options, "run=parts") == 130
    assert run(train, *options, "run=parts") == 0
    whole, parts = saved("whole"), saved("parts")
    assert len(whole["optimizer_states"]) == len(whole["lr_schedulers"]) == 2
    for part in ("state_dict", "optimizer_states", "lr_schedulers", "global_step", "loops"):
        assert not differences(whole[part], parts[part], part)
    if recipe is CYCLEGAN:
        assert len(whole["state_dict"]["pool_a.pictures"]) == 6  # one a batch
    tables = [Path("runs") / name / "metrics.csv" for name in ("whole", "parts")]
    assert tables[0].read_text() == tables[1].read_text()


def weights_of(name, part):
    state = saved(name)["state_dict"]
    return torch.cat([v.flatten() for k, v in state.items() if k.startswith(part)])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("recipe", "kind", "parts"),
    [
        (PIX2PIX, "wasserstein_clip", ("generator.", "discriminator.")),
        (CYCLEGAN, "wasserstein", ("a_to_b.", "judge_a.")),
    ],
    ids=["pix2pix", "cyclegan"],
)
def test_a_short_run_with_a_critic(folders, recipe, parts, kind):
    assert run(train, *recipe, *LENGTH, f"adversarial={kind}", "run=a") == 0
    with Path("runs/a/metrics.csv").open() as stream:
        rows = [*csv.DictReader(stream)]
    losses = [float(v) for row in rows for k, v in row.items() if "generator" in k and v]
    assert len(losses) >= 4
    assert np.isfinite(losses).all()
    assert run(train, *recipe, "trainer.max_steps=1", f"adversarial={kind}", "run=b") == 0
    for part in parts:
        assert (weights_of("a", part) != weights_of("b", part)).any()
    if kind == "wasserstein_clip":
        state = saved("a")["state_dict"]
        convs = [v for k, v in state.items() if k.startswith(parts[1]) and v.ndim == 4]
        assert max(v.abs().max() for v in convs) <= 0.01 + 1e-6


@pytest.mark.slow
def test_transparency_is_learnt(tmp_path, monkeypatch):
    """RGBA targets, opaque where the photo is bright: after a short run the network knows it."""
    monkeypatch.chdir(tmp_path)
    for side in "AB":
        Path(f"pairs/{side}").mkdir(parents=True)
    for number in range(8):
        photo = soft(number)
        photo.save(f"pairs/A/{number}.png")
        photo.putalpha(photo.convert("L").point(lambda value: 255 if value > 128 else 0))
        photo.save(f"pairs/B/{number}.png")
    sizes = ["data.size=64", "data.crop_size=64"]
    length = ["trainer.max_steps=100", "trainer.val_every=50", "lr=1e-3"]
    assert run(train, *PIX2PIX, *sizes, *length, "channels=4") == 0
    assert run(export, "run=pix2pix-pairs", "formats=onnx") == 0
    (file,) = Path("runs/pix2pix-pairs/export").rglob("generator.onnx")
    student = open_student(file)
    assert student.channels == 4
    with Image.open("pairs/B/0.png") as target, Image.open("pairs/A/0.png") as photo:
        wanted = np.asarray(target.getchannel("A"))
        pixels = np.asarray(photo, np.float32).transpose(2, 0, 1)[None] / 255
    alpha = student(pixels)[0, 3]
    assert alpha[wanted > 0].mean() > alpha[wanted == 0].mean() + 0.3


@pytest.mark.slow
def test_a_run_is_named_by_recipe_and_folder_and_holds_what_people_open(folders, capsys):
    assert run(train, *CYCLEGAN, *LENGTH) == 0
    folder = Path("runs/cyclegan-domains")
    assert (folder / "checkpoints/last.ckpt").is_file()
    assert (folder / "previews/step-000006.png").is_file()
    with (folder / "metrics.csv").open() as stream:
        columns = csv.DictReader(stream).fieldnames
    wanted = {"train/generator", "train/discriminator", "train/D_A(real)", "train/D_B(fake)"}
    assert wanted | {"val/cycle", "val/identity"} <= {*columns}
    assert "a new run of 6 batches" in capsys.readouterr().out
    assert run(train, *CYCLEGAN, *LENGTH) == 0
    assert "finished at step 6" in capsys.readouterr().out


@pytest.mark.slow
def test_the_length_of_a_run_is_all_its_epochs(folders, capsys):
    pictures = 8 - held_out_count()
    assert run(train, *PIX2PIX, "epochs=1", "decay_epochs=1") == 0
    assert saved("pix2pix-pairs")["global_step"] == 2 * pictures
    rates = [s["_last_lr"] for s in saved("pix2pix-pairs")["lr_schedulers"]]
    assert rates == [[0.0], [0.0]]


def held_out_count():
    sides = find_pairs(Path("pairs"), None, 0.4, 0, 0.1)
    assert sides["test"]
    return len(sides["val"]) + len(sides["test"])


def hold_out(a, b):
    for domain, count in (("testA", a), ("testB", b)):
        Path("domains", domain).mkdir()
        for i in range(count):
            soft(i).save(Path("domains", domain, f"{i}.png"))


@pytest.mark.parametrize(
    ("recipe", "few"),
    [(PIX2PIX, "data.val_limit=1"), (CYCLEGAN, "data.val_limit=8")],
    ids=["val_limit", "one of two domains"],
)
@pytest.mark.slow
def test_too_few_held_out_are_refused_before_the_first_step(
    folders, monkeypatch, capsys, recipe, few
):
    monkeypatch.setattr(Distance, "of", lambda name: Distance(Means()))
    hold_out(1, 3)
    assert run(train, *recipe, *LENGTH, few, "distance=mobilenet") == 1
    assert "at least 2 held-out pictures of each side, not 1; hold" in capsys.readouterr().err
    assert not list(Path("runs").glob("*/config.yaml"))


GIVEN = [
    "data.root=x",
    "lr=1e-3",
    "seed=4",
    "trainer.clip=0.5",
    "data.size=64",
    "data.crop_size=64",
]


def made_by(*typed):
    settings = compose.load("train", [*GIVEN, *typed], registry.schema_of)
    made = {"pix2pix": pix2pix_module, "cyclegan": cyclegan_module}
    return made[settings.recipe](settings)


def test_settings_reach_the_recipes():
    made = made_by("recipe=pix2pix", "l1=7", "adversarial=lsgan")
    assert (made.l1, made.lr, made.seed, made.clip) == (7, 1e-3, 4, 0.5)
    assert made.adversary.kind == "lsgan"
    small = ["generator.build.blocks=1", "generator.build.width=8", "discriminator.width=0.125"]
    made = made_by("recipe=cyclegan", "cycle=3", "identity=2", "pool=9", *small)
    assert (made.cycle, made.identity, made.pool_a.size, made.pool_b.size) == (3, 2, 9, 9)


def test_networks_begin_as_in_the_papers():
    made = made_by("recipe=pix2pix")
    for network in (made.generator, made.discriminator):
        layers, norms = [], []
        for module in network.modules():
            if isinstance(module, torch.nn.BatchNorm2d):
                norms.append(module.weight.detach())
            elif isinstance(module, torch.nn.Conv2d):
                layers.append(module.weight.detach().flatten())
            else:
                continue
            assert module.bias is None or not module.bias.any()
        layers, norms = torch.cat(layers), torch.cat(norms)
        assert layers.mean().item() == pytest.approx(0.0, abs=1e-4)
        assert layers.std().item() == pytest.approx(0.02, rel=0.01)
        assert norms.mean().item() == pytest.approx(1.0, abs=0.003)
        assert norms.std().item() == pytest.approx(0.02, rel=0.15)


def observed_by(name):
    best = torch.load(Path("runs") / name / "checkpoints" / "best.ckpt", weights_only=True)
    (watched,) = (key for key in best["callbacks"] if key.startswith("ModelCheckpoint"))
    return watched


@pytest.mark.slow
def test_without_pairs_best_checkpoint_and_early_end_go_by_the_distance(
    folders, monkeypatch, capsys
):
    monkeypatch.setattr(Distance, "of", lambda name: Distance(Means()))
    for name in ("frechet_from_features", "kid"):  # no progress
        monkeypatch.setattr(frechet, name, lambda *features, **how: 1.0)
    hold_out(2, 2)
    still = ["trainer.max_steps=12", "trainer.val_every=2", "trainer.patience=2"]
    assert run(train, *CYCLEGAN, *still) == 0
    said = capsys.readouterr().out
    assert "val/frechet had not fallen for 2 validations" in said
    assert "val/frechet" in observed_by("cyclegan-domains")


@pytest.mark.slow
def test_with_pairs_the_best_checkpoint_goes_by_them(folders, monkeypatch):
    monkeypatch.setattr(Distance, "of", lambda name: Distance(Means()))
    assert run(train, *PIX2PIX, *LENGTH) == 0
    assert "val/l1" in observed_by("pix2pix-pairs")


def test_a_part_counts_again_and_has_a_discriminator_of_its_own():
    module = made_by("recipe=pix2pix", "parts=[[0.25,0.5,0.75,1]]")
    picture = torch.zeros(1, 3, 64, 64)
    picture[..., 32:, 16:48] = 0.5  # the box exactly
    whole, part = module.views(picture)
    assert whole is picture
    assert part.shape == (1, 3, 32, 32)
    assert (part == 0.5).all()
    first, second = module.discriminators
    assert {p.shape for p in first.parameters()} == {p.shape for p in second.parameters()}
    assert not torch.equal(next(first.parameters()), next(second.parameters()))


@pytest.mark.slow
def test_a_run_starts_with_the_networks_of_another(folders, monkeypatch, capsys):
    monkeypatch.setattr(pix2pix, "FeatureDistance", lambda *_, **__: Doubled())
    wide = [*PIX2PIX, "data.size=64", "data.crop_size=64", "parts=[[0,0,1,0.5]]"]
    wide += ["features=3", "phases=2"]
    assert run(train, *wide, *LENGTH, "run=first") == 0
    state = saved("first")["state_dict"]
    assert {name.split(".")[0] for name in state} == {
        "generator", "discriminator", "part_discriminators",
    }  # fmt: skip
    with Path("runs/first/metrics.csv").open() as stream:
        logged = [row for row in csv.DictReader(stream) if row["train/features"]]
    assert float(logged[0]["train/features"]) == 2.0
    assert float(logged[0]["train/phases"]) > 0
    start = "init=runs/first/checkpoints/last.ckpt"
    # A rate so low that the weights stay what they were.
    assert run(train, *wide, start, "trainer.max_steps=1", "lr=1e-30", "run=second") == 0
    after = saved("second")["state_dict"]
    assert all(torch.equal(v, after[n]) for n, v in state.items() if n.endswith("weight"))
    capsys.readouterr()
    assert run(train, *PIX2PIX, start, "trainer.max_steps=1", "run=third") == 1
    assert "other networks than this run's" in capsys.readouterr().err
    assert run(train, *PIX2PIX, "init=nowhere.ckpt", "trainer.max_steps=1", "run=third") == 1
    assert "init=nowhere.ckpt: no such file" in capsys.readouterr().err
    assert not Path("runs/third/config.yaml").exists()


@pytest.mark.slow
def test_domains_start_with_the_networks_of_another_run_but_not_with_its_fakes(folders):
    assert run(train, *CYCLEGAN, "trainer.max_steps=2", "run=first") == 0
    start = "init=runs/first/checkpoints/last.ckpt"
    assert run(train, *CYCLEGAN, start, "trainer.max_steps=1", "lr=1e-30", "run=second") == 0
    assert torch.equal(weights_of("first", "a_to_b."), weights_of("second", "a_to_b."))
    assert len(saved("second")["state_dict"]["pool_a.pictures"]) == 1


class Doubled(torch.nn.Module):
    """In place of a VGG that is not there."""

    def __init__(self):
        super().__init__()
        self.vgg = torch.nn.Conv2d(3, 3, 1).requires_grad_(False)

    def forward(self, output, target):
        return 2.0 + 0.0 * output.mean()


def test_a_set_that_is_not_finished_is_refused(folders, capsys):
    manifest = {"format": 1, "recipe": {"recipe": "pix2pix"}, "counts": None}
    Path("pairs/dataset.json").write_text(json.dumps(manifest))
    assert run(train, *PIX2PIX, "trainer.max_steps=1") == 1
    assert "data.root=pairs: a set that is not finished" in capsys.readouterr().err


WRONG = [
    (PIX2PIX, "lr=auto", "lr='auto': adversarial training has no loss"),
    (PIX2PIX, "schedule=plateau", "schedule=plateau: "),
    (PIX2PIX, "trainer.accumulate=2", "trainer.accumulate=2: not with recipe=pix2pix"),
    (PIX2PIX, "trainer.compile=true", "trainer.compile=True: not with recipe=pix2pix"),
    (
        PIX2PIX,
        "trainer.devices=2",
        "trainer.devices=2 num_nodes=1 strategy=auto: recipe=pix2pix trains",
    ),
    (CYCLEGAN, "channels=4", "channels=4: "),
    ([*PIX2PIX, "data.size=96"], "data.crop_size=96", "data.crop_size=96: a U-Net halves"),
    (PIX2PIX, "adversarial.penalty=10", "penalty and clip bound a critic"),
    (PIX2PIX, "generator.build.sperable=true", "generator.build.sperable: no such setting; did"),
    (PIX2PIX, "decoder=detail", "decoder: no such setting"),
    (PIX2PIX, "l1=-1", "l1=-1"),
    (PIX2PIX, "parts=[[0.5,0,0.5,1]]", "parts=[0.5, 0, 0.5, 1]: want [left,top,right,bottom]"),
    (["recipe=cyclegan"], "data=pairs", "data.kind='pairs': input should be 'unpaired'"),
    ([], "generator=unet", "generator: no such setting here; it goes with recipe=cyclegan or"),
    (CYCLEGAN, "data=pairs", "data.size: no such setting here; it goes with recipe=pix2pix or"),
    (DOMAINS, "generator=student", "generator=student: takes RGB of 64 pixels a side"),
    (CYCLEGAN, "trainer.patience=3", "trainer.patience=3: there is nothing to monitor"),
    (CYCLEGAN, "data.crop_size=100", "data.crop_size=100: input should be a multiple of 32"),
    (
        [*CYCLEGAN, "adversarial=wasserstein"],
        "discriminator.norm=batch",
        "discriminator.norm=batch: a gradient penalty",
    ),
]


@pytest.mark.parametrize(("recipe", "typed", "line"), WRONG, ids=[w[1] for w in WRONG])
@pytest.mark.slow
def test_what_cannot_be_ends_in_one_line(folders, capsys, recipe, typed, line):
    assert run(train, *recipe, "trainer.max_steps=1", typed) == 1
    error = capsys.readouterr().err
    assert line in error
    assert error.count("\n") == 1
    assert not list(Path("runs").glob("*/config.yaml"))


def test_of_too_few_held_out_pictures_auto_measures_no_distance(folders, capsys):
    few = [*CYCLEGAN, "data.val_fraction=0.1", "trainer.max_steps=1"]
    assert run(train, *few, "distance=auto", "trainer.val_every=1") == 0
    said = capsys.readouterr().out
    assert "at least 2 held-out pictures of each side, not 1" in said
    assert "until then distance=auto is none" in said
    assert run(train, *few, "distance=mobilenet", "run=asked") == 1
    assert "at least 2 held-out pictures" in capsys.readouterr().err
    assert not Path("runs/asked").exists()
