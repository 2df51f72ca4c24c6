"""logger=A,B: each is told figures, settings, pictures and the end, and goes on in its run."""

import csv
import json
import signal
import struct
import time
from pathlib import Path

import pytest
import yaml

from distill.config import multirun
from distill.config.arguments import TypedKeys, overrides_of
from distill.config.settings.training import Train
from distill.train import __main__ as train
from distill.train import loggers
from support.commands import QUICK, go, run

SHORT = ["trainer.max_steps=4", "trainer.val_every=2", "trainer.threads=1"]
BLOCK = 32768  # bytes
OFFLINE = ["logger=wandb", "logger.wandb.mode=offline"]


@pytest.fixture
def no_account(monkeypatch, tmp_path):
    """No account, server or settings of the user's, and nothing that calls home."""
    for name in ("WANDB_API_KEY", "WANDB_MODE", "WANDB_DIR", "MLFLOW_TRACKING_URI"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    monkeypatch.setenv("WANDB_ERROR_REPORTING", "false")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))


def rows(name):
    with Path(f"runs/{name}/metrics.csv").open() as table:
        return list(csv.DictReader(table))


def typed(*words, several=False):
    return overrides_of(words, TypedKeys(Train), several)


@pytest.mark.parametrize("several", [False, True])
def test_a_comma_names_several_loggers_with_m_too(several):
    assert typed("logger=csv,wandb", several=several) == ["logger=[csv,wandb]"]
    assert typed("logger=wandb", several=several) == ["logger=[wandb]"]
    for hydras_own in ("logger=[csv,wandb]", "logger=[csv],[wandb]", "logger.wandb.mode=offline"):
        assert typed(hydras_own, several=several) == [hydras_own]


def test_with_m_the_loggers_are_of_every_job():
    words = typed("logger=csv,wandb", "lr=1e-3,1e-2", several=True)
    found = multirun.jobs("train", words, train.main.job)
    assert [job.settings.lr for job in found] == [1e-3, 1e-2]
    assert all(job.settings.logger.csv and job.settings.logger.wandb for job in found)
    assert not any(job.settings.logger.tensorboard for job in found)


@pytest.mark.parametrize("name", ["wandb", "mlflow"])
def test_a_missing_package_is_one_line_before_anything_begins(here, monkeypatch, capsys, name):
    monkeypatch.setattr(loggers, "find_spec", lambda _: None)
    assert run(train, "photos=photos", *QUICK, *SHORT, f"logger={name}") == 1
    said = capsys.readouterr().err
    assert said.startswith(f"error: logger={name}: {name} is not installed; pip install 'distill[")
    assert said.count("\n") == 1
    assert not Path("runs").exists()
    assert not Path("data").exists()


@pytest.mark.campaign
def test_tensorboard_has_settings_and_the_end(here):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    assert go("run=r", *SHORT) == 0
    events = EventAccumulator("runs/r/tensorboard")
    events.Reload()
    (text,) = events.Tensors("settings/text_summary")
    assert "max_steps: 4" in text.tensor_proto.string_val[0].decode()
    (final,) = events.Scalars("final/psnr")
    assert final.step == 4
    assert final.value == pytest.approx(float(rows("r")[-1]["val/psnr"]), rel=1e-5)


@pytest.mark.slow
@pytest.mark.usefixtures("no_account")
def test_mlflow_has_all_and_goes_on_in_its_run(here, signal_at):
    mlflow = pytest.importorskip("mlflow")
    words = ["run=r", *SHORT, "logger=csv,mlflow"]
    signal_at(3, signal.SIGTERM)
    assert go(*words) == 130
    name = yaml.safe_load(Path("runs/r/loggers.yaml").read_text())["mlflow"]
    client = mlflow.MlflowClient(f"sqlite:///{Path('runs/r/mlflow/mlflow.db').resolve()}")
    assert client.get_run(name).info.status == "KILLED"
    assert go(*words) == 0
    (experiment,) = client.search_experiments(filter_string="name = 'distill'")
    (run,) = client.search_runs([experiment.experiment_id])
    assert (run.info.run_id, run.info.status, run.info.run_name) == (name, "FINISHED", "r")
    assert run.data.params["trainer/max_steps"] == "4"
    table = rows("r")
    # Lightning counts steps from 0, as in TensorBoard.
    told = client.get_metric_history(name, "val/psnr")
    assert [(m.step, m.value) for m in told] == [
        (int(r["step"]) - 1, pytest.approx(float(r["val/psnr"]), rel=1e-5))
        for r in table
        if r["val/psnr"]
    ]
    assert run.data.metrics["final/psnr"] == pytest.approx(float(table[-1]["val/psnr"]), rel=1e-5)
    assert {"config.yaml", "images"} <= {a.path for a in client.list_artifacts(name)}
    pictures = [p.name for p in Path("runs/r/mlflow/artifacts").rglob("images/*.png")]
    assert len(pictures) == 2  # one for each validation


@pytest.mark.campaign
@pytest.mark.usefixtures("no_account")
def test_wandb_offline_has_all_and_goes_on_in_its_run(here, signal_at):
    wandb = pytest.importorskip("wandb")
    words = ["run=r", *SHORT, *OFFLINE]
    signal_at(3, signal.SIGTERM)
    assert go(*words) == 130
    assert go(*words) == 0
    assert wandb.run is None  # the next run of a sweep has one of its own
    name = yaml.safe_load(Path("runs/r/loggers.yaml").read_text())["wandb"]
    folders = sorted(Path("runs/r/wandb").glob("offline-run-*"))
    assert len(folders) == 2
    assert all(folder.name.endswith(f"-{name}") for folder in folders)
    assert len(list(Path("runs/r/wandb").glob("offline-run-*/files/media/images/*.png"))) == 2
    settings, figures = told_offline(folders)
    assert settings["trainer"]["max_steps"] == 4
    told = {f["trainer/global_step"]: f["val/psnr"] for f in figures if "val/psnr" in f}
    table = {int(r["step"]) - 1: float(r["val/psnr"]) for r in rows("r") if r["val/psnr"]}
    assert told == pytest.approx(table, rel=1e-5)
    assert [f["final/psnr"] for f in figures if "final/psnr" in f] == [
        pytest.approx(table[3], rel=1e-5)
    ]


def records(path):
    """The records of a .wandb file: LevelDB's log format after 7 bytes of its own."""
    content, at, whole = path.read_bytes(), 7, b""
    while at + 7 <= len(content):
        left = BLOCK - at % BLOCK
        if left < 7:  # a block's end is filled up
            at += left
            continue
        length, kind = struct.unpack_from("<HB", content, at + 4)  # after the checksum
        if at + 7 + length > len(content):  # being written
            return
        whole += content[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # whole, or the last part of one
            yield whole
            whole = b""


def finished_records(path):
    """All of a run that has ended: its process writes the end after `finish` has returned."""
    from wandb.proto.wandb_internal_pb2 import Record

    for _ in range(600):
        found = [Record.FromString(data) for data in records(path)]
        if any(record.HasField("exit") for record in found):
            return found
        time.sleep(0.1)
    raise AssertionError(f"{path}: has no end")


def told_offline(folders):
    """Settings and figures of what `wandb sync` would send."""
    settings, figures = {}, []
    for folder in folders:
        for record in finished_records(next(folder.glob("*.wandb"))):
            for item in (*record.config.update, *record.run.config.update):
                settings[item.key or item.nested_key[0]] = json.loads(item.value_json)
            told = record.history.item
            figures.append(
                {i.key or "/".join(i.nested_key): json.loads(i.value_json) for i in told}
            )
    return settings, figures


@pytest.mark.slow
@pytest.mark.usefixtures("no_account")
def test_a_logger_that_cannot_be_opened_is_one_line(here, capsys):
    pytest.importorskip("mlflow")
    Path("file").touch()
    assert go("run=r", *SHORT, "logger=mlflow", "logger.mlflow.uri=nonsense://x") == 1
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("error: logger=mlflow: cannot be opened (")
