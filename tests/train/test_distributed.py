"""Processes on one machine or several learn what one process learns that accumulates."""

import csv
import os
import shutil
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from distill.core.errors import DistillError
from distill.prepare import __main__ as prepare
from distill.train import __main__ as train
from distill.train import launch
from distill.train.distillation import DistillModule
from distill_scale.shards import __main__ as shards
from support.commands import QUICK, SMALL, go, run

STEPS = 4
LENGTH = [
    "loss.weights.gka=0.5",
    "data.batch_size=4",
    f"trainer.max_steps={STEPS}",
    "trainer.val_every=2",
    "trainer.log_every=1",
]
RATE = "lr=0.01"
CPU = ["trainer=ddp", "trainer.accelerator=cpu", "trainer.precision=32-true", "trainer.threads=1"]
MODULE = ["-m", "distill.train"]
WORDS = ["photos=photos", "decoder=residual", *QUICK]


@pytest.fixture
def halves(here, monkeypatch):
    return accumulated(monkeypatch)


def accumulated(monkeypatch, *words: str) -> list[float]:
    """A run `one` of one process that accumulates two batches; the losses of its batches."""
    losses = []
    plain = DistillModule.training_step

    def recorded(self, batch, index):
        step = plain(self, batch, index)
        losses.append(float(step["loss"].detach()))
        return step

    with monkeypatch.context() as patch:
        patch.setattr(DistillModule, "training_step", recorded)
        assert go("run=one", *words, *LENGTH, RATE, "trainer.accumulate=2") == 0
    assert len(losses) == 2 * STEPS
    return losses


def learnt_the_same(name: str, halves: list[float]) -> None:
    with Path(f"runs/{name}/metrics.csv").open() as table:
        rows = [row for row in csv.DictReader(table) if row["train/loss"]]
    logged = [float(row["train/loss"]) for row in rows]
    wanted = [(a + b) / 2 for a, b in zip(halves[::2], halves[1::2], strict=True)]
    # metrics.csv has six digits. BatchNorm and GKA see half-batches in both.
    assert logged == pytest.approx(wanted, rel=2e-5)

    one, two = (
        torch.load(f"runs/{each}/checkpoints/last.ckpt", weights_only=True)["state_dict"]
        for each in ("one", name)
    )
    # BatchNorm's running statistics are those of the first process's halves only.
    weights = [k for k in one if "running" not in k and "num_batches" not in k]
    for key in weights:
        assert torch.allclose(one[key], two[key], rtol=0, atol=1e-6), key


@pytest.mark.slow
def test_ddp_equals_accumulation_of_the_same_half_batches(halves):
    on_two_processes()
    learnt_the_same("two", halves)


@pytest.mark.campaign
@pytest.mark.parametrize("workers", [0, 1])
def test_ddp_on_shards_equals_accumulation_of_the_same_half_batches(here, monkeypatch, workers):
    pytest.importorskip("pyarrow", reason="needs the extra shards")
    assert run(prepare, "photos=photos", "data.root=set", "style=toon", *SMALL) == 0
    packed = ["data.root=set", "output=packed", "codec=raw", "pairs=3", "workers=0"]
    assert run(shards, *packed) == 0
    words = ["style=toon", "data=shards", "data.root=packed"]
    halves = accumulated(monkeypatch, *words)
    on_two_processes(*words, f"data.workers={workers}")
    learnt_the_same("two", halves)


def on_two_processes(*more: str) -> None:
    words = [*WORDS, "run=two", *CPU, *LENGTH, RATE, "trainer.devices=2", *more]
    done = subprocess.run(
        [sys.executable, *MODULE, *words],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("trained; best checkpoint") == 1  # one process speaks


def on_two_nodes(*words: str) -> list[tuple[int, str]]:
    """The command on two machines, of one process each; here both are this one."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nnodes=2", "--nproc-per-node=1"]
    # Lightning sets a number of threads where this does not stand; trainer.threads=1 must hold.
    own = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    address = ["--master-addr=127.0.0.1", f"--master-port={port}"]
    nodes = [
        subprocess.Popen(
            [*torchrun, *address, f"--node-rank={rank}", *MODULE, *words],
            env=own, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        for rank in (1, 0)  # the one that waits comes first
    ]  # fmt: skip
    try:
        said = [node.communicate(timeout=150)[0] for node in nodes]
    finally:
        for node in nodes:
            node.kill()
    return [(node.returncode, text) for node, text in zip(nodes, said, strict=True)][::-1]


@pytest.mark.campaign
def test_two_nodes_learn_the_same_from_a_set_that_is_not_there_yet_and_from_one_that_is(halves):
    shutil.rmtree("data")
    words = [*WORDS, *CPU, *LENGTH, "trainer.devices=1", "trainer.num_nodes=2"]
    for name in ("cold", "warm"):
        first, second = on_two_nodes(f"run={name}", *words, RATE)
        assert (first[0], second[0]) == (0, 0), first[1] + second[1]
        assert ("16 new" in first[1]) == (name == "cold")
        assert "another command is labelling" not in second[1]
        assert "trained; best checkpoint" in first[1]
        assert "trained" not in second[1]
        learnt_the_same(name, halves)


@pytest.mark.campaign
def test_two_nodes_take_what_the_first_has_measured_and_end_with_it(here):
    words = [*WORDS, *CPU, *LENGTH, "trainer.devices=1", "trainer.num_nodes=2"]
    first, second = on_two_nodes("run=found", *words, "lr=auto")
    assert (first[0], second[0]) == (0, 0), first[1] + second[1]
    assert Path("runs/found/measured.yaml").is_file()
    again = on_two_nodes("run=found", *words, "lr=auto")
    assert [code for code, _ in again] == [0, 0], again[0][1] + again[1][1]
    assert "finished at step 4" in again[0][1]
    wrong = on_two_nodes("run=other", *words, "lr=0.01", "drop=missing.txt")
    assert wrong[0][0] == 1
    assert "drop=missing.txt: no such file" in wrong[0][1]
    assert wrong[1][0] == 1


class Started:
    """A launcher's processes, as many as a test says."""

    main_address, main_port = "127.0.0.1", 1

    def __init__(self, processes):
        self.processes = processes

    def world_size(self):
        return self.processes


def test_several_machines_need_a_launcher(here, capsys):
    assert run(train, *WORDS, "trainer.num_nodes=2") == 1
    assert "trainer.num_nodes=2: start the command on every machine" in capsys.readouterr().err


@pytest.mark.parametrize(("devices", "nodes"), [(1, 1), (2, 3)])
def test_as_many_processes_as_the_settings_say(devices, nodes, monkeypatch):
    monkeypatch.setattr(launch, "launcher", lambda: Started(4))
    machine = replace(MACHINE, devices=devices, num_nodes=nodes)
    said = f"{devices * nodes} processes, but 4 were started"
    with pytest.raises(DistillError, match=said), launch.rank_zero_first(True, machine):
        pass


@pytest.mark.parametrize(
    ("accelerator", "started", "cards", "devices"),
    [("gpu", None, 4, 4), ("cpu", None, 4, 1), ("auto", None, 0, 1), ("gpu", Started(6), 8, 3)],
)
def test_devices_of_auto_are_counted(accelerator, started, cards, devices, monkeypatch):
    monkeypatch.setattr(launch, "launcher", lambda: started)
    monkeypatch.setattr(launch.torch.cuda, "device_count", lambda: cards)
    machine = replace(MACHINE, accelerator=accelerator, devices="auto", num_nodes=2)
    assert launch.with_devices(machine) == replace(machine, devices=devices)
    assert launch.with_devices(MACHINE) is MACHINE


@pytest.mark.slow
def test_a_run_of_auto_resumes_with_as_many_devices(here, capsys):
    words = ["run=one", "trainer.max_steps=1"]
    assert go(*words, "trainer.devices=auto") == 0
    assert "  devices: 1\n" in Path("runs/one/config.yaml").read_text()
    assert go(*words, "trainer.devices=2", "trainer.strategy=ddp", "trainer.max_steps=2") == 1
    assert "trainer.accumulate × devices: 1 then, 2 now" in capsys.readouterr().err


def test_alone_nothing_is_waited_for(monkeypatch):
    monkeypatch.setattr(launch, "launcher", lambda: Started(1))
    with launch.rank_zero_first(True, MACHINE):
        launch.release_other_ranks()


MACHINE = launch.Machine(
    max_steps=1, accelerator="cpu", devices=1, num_nodes=1, strategy="auto", precision="32-true",
    val_every=1, log_every=1, clip=None, accumulate=1, patience=None, compile=False, fused=True,
    threads=None,
)  # fmt: skip
