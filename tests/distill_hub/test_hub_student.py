"""Students on the Hub: there and back in a folder, and pushed to the last step before a network."""

import json
import shutil
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import yaml

from distill.core.errors import DistillError
from distill.core.licence_terms import Licence, Terms
from distill.data.cards import licence_table
from distill.models import network_file
from distill.runs.published_student import PublishedStudent
from distill_hub.published_student import student_card
from support.gan_runs import RESNET, built, settings
from support.students_on_file import distilled, settings_of_student

PHOTO = torch.rand(2, 3, 75, 90, generator=torch.Generator().manual_seed(3))


@pytest.fixture
def file(tmp_path):
    """The safetensors file of a student."""
    path = tmp_path / "s.safetensors"
    network_file.write_network(distilled(), network_file.description(settings_of_student()), path)
    return path


def run_of(tmp_path: Path) -> Path:
    """A run's folder with a last checkpoint of the same student."""
    folder = tmp_path / "runs/mine"
    (folder / "checkpoints").mkdir(parents=True)
    state = {f"student.{key}": value for key, value in distilled().state_dict().items()}
    said = asdict(settings_of_student(teacher=None))
    torch.save({"distill": said, "state_dict": state}, folder / "checkpoints/last.ckpt")
    return folder


def same(one: torch.nn.Module, other: torch.nn.Module) -> bool:
    ours, theirs = one.state_dict(), other.state_dict()
    return ours.keys() == theirs.keys() and all(torch.equal(ours[k], theirs[k]) for k in ours)


# By itself


def test_a_run_a_checkpoint_and_a_file_give_the_same_student(tmp_path, file):
    run = run_of(tmp_path)
    students = [PublishedStudent.of(p) for p in (run, run / "checkpoints/last.ckpt", str(file))]
    expected = distilled()
    for student in students:
        assert same(student.student, expected)
        with torch.inference_mode():  # 75×90 is filled up to 96×96
            padded = torch.nn.functional.pad(PHOTO, (0, 6, 0, 21), mode="replicate")
            assert torch.equal(student(PHOTO), expected(padded)[..., :75, :90])
    students[0].save(tmp_path / "again.safetensors")
    again = PublishedStudent.of(tmp_path / "again.safetensors")
    assert again.description.teacher is None
    assert same(again.student, expected)


def test_what_is_no_student_ends_in_one_line(tmp_path):
    path = tmp_path / "g.safetensors"
    said = network_file.description(settings("pix2pix", RESNET))
    network_file.write_network(built(RESNET), said, path)
    with pytest.raises(
        DistillError, match=r"g\.safetensors: a network of recipe=pix2pix, expected a stud"
    ):
        PublishedStudent.of(path)
    with pytest.raises(DistillError, match="no such checkpoint"):
        PublishedStudent.of(tmp_path)
    with pytest.raises(DistillError, match="no such file"):
        PublishedStudent.of(tmp_path / "gone.safetensors")


@pytest.mark.campaign
def test_the_recipes_are_known_without_a_command(file):
    code = (
        "import sys; from distill_hub.published_student import PublishedStudent as P; "
        "print(P.of(sys.argv[1]).description.recipe, 'huggingface_hub' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(file)], capture_output=True, text=True)
    assert done.stdout.split() == ["distill", "False"], done.stderr


# The card


def head_of(card: str) -> tuple[dict[str, Any], str]:
    _, head, body = card.split("---\n", 2)
    return yaml.safe_load(head), body


def test_the_card(file):
    student = PublishedStudent.of(file)
    head, body = head_of(student_card(student, "me/mine", "sheet.jpg"))
    assert head == {
        "license": "other", "license_name": "see-terms",
        "license_link": "https://example.org/heavy", "library_name": "distill",
        "pipeline_tag": "image-to-image",
        "tags": ["image-to-image", "knowledge-distillation", "stylization"],
    }  # fmt: skip
    assert "# mine\n\n![photo and stylised picture, side by side](sheet.jpg)" in body
    assert 'HubStudent.from_pretrained("me/mine")' in body
    assert "| teacher heavy.pt | unknown | unknown | unknown | mine alone (says the publ" in body
    assert "| **this student** | unknown |" in body
    count = sum(p.numel() for p in distilled().parameters())
    assert f"- parameters: {count:,}\n" in body
    assert "- teacher: CheckpointTeacher: heavy.pt, https://example.org/heavy\n" in body
    assert "MobileNetV2-0.35, decoder detail" in body
    said = Terms((Licence.from_text("x|y", "MIT, as this project"),)).plain()
    style = replace(student.description.style, name="a|b\n# c")
    student.description = replace(student.description, style=style, terms=said)
    head, body = head_of(student_card(student))
    assert head["license"] == "mit"
    assert "\n# a\\|b # c\n" in body
    assert "![" not in body


def test_the_card_of_a_student_of_pairs_names_no_teacher(file):
    student = PublishedStudent.of(file)
    assert "as its heavy teacher `mine` does" in student_card(student)
    student.description = replace(student.description, teacher=None)
    body = head_of(student_card(student))[1]
    assert "as pairs of pictures showed it" in body
    assert "The pictures that it learnt from are not in it" in body


@pytest.mark.parametrize(
    ("licence", "name"),
    [
        ("MIT", "mit"), ("MIT, as this project", "mit"), ("MITRE's own", "other"),
        ("CC BY 4.0, and freer: CC0, public domain, by photo", "cc-by-4.0"),
        ("CC0, personal use only", "other"), ("CC BY 4.0 (not for sale)", "other"),
        ("CC BY-NC-SA 4.0", "cc-by-nc-sa-4.0"), ("CC BY-NC-SA 4.0 (White-box)", "cc-by-nc-sa-4.0"),
        ("AnimeGANv2: free for academic and non-commercial use only", "other"), ("", "other"),
    ],
)  # fmt: skip
def test_licences_as_the_hub_calls_them(licence, name):
    entries = licence_table.licence_entries(Terms((Licence.from_text("x", licence, "my drawer"),)))
    assert entries["license"] == name
    assert entries.get("license_link") == (None if name != "other" else "README.md")


def test_one_licence_of_several_where_it_is_all_there_is_to_say():
    words = ("MIT", "CC0", "CC BY-NC 4.0", "CC BY-SA 4.0")
    mit, cc0, ours, alike = (Licence.from_text("x", text) for text in words)
    assert licence_table.licence_entries(Terms((mit, cc0)))["license"] == "mit"
    assert licence_table.licence_entries(Terms((cc0,)))["license"] == "cc0-1.0"
    assert licence_table.licence_entries(Terms((mit, ours)))["license"] == "cc-by-nc-4.0"
    assert licence_table.licence_entries(Terms((alike, ours)))["license"] == "other"
    assert licence_table.licence_entries(Terms((mit, Licence("photos"))))["license"] == "other"
    stated = Licence.from_text("pairs", "MIT", stated=True)
    allowed = Terms((ours, Licence("photos"), stated)).permitted("hub", True)
    assert licence_table.licence_entries(allowed)["license"] == "mit"
    section = licence_table.terms_section(allowed, "this student")
    assert "licence.i_have_permission=true of distill.hub" in section
    assert "| photos | unknown | unknown | unknown | not said |  |" in section


# The Hub's own library


@pytest.fixture
def hub():
    """distill_hub.hub_student, where the extra `hub` is installed."""
    pytest.importorskip("huggingface_hub")
    from distill_hub import hub_student

    return hub_student


def test_there_and_back_in_a_folder(hub, tmp_path, file):
    student = hub.HubStudent.of(file)
    folder = tmp_path / "out/mine"
    (folder).mkdir(parents=True)
    (folder / "README.md").write_text("of another student")
    student.save_pretrained(folder)
    assert sorted(p.name for p in folder.iterdir()) == [
        "README.md", "config.json", "model.safetensors",
    ]  # fmt: skip
    assert (folder / "model.safetensors").read_bytes() == file.read_bytes()
    config = json.loads((folder / "config.json").read_text())
    assert config == {"description": asdict(student.description)}
    assert "# mine" in (folder / "README.md").read_text()
    back = hub.HubStudent.from_pretrained(folder)
    assert type(back) is hub.HubStudent
    assert not back.training
    assert same(back, student)
    with torch.inference_mode():
        assert torch.equal(back(PHOTO), student(PHOTO))
    assert back.description == student.description
    (folder / "config.json").unlink()  # it is for the Hub's counters
    assert same(hub.HubStudent.from_pretrained(str(folder)), student)


def test_a_name_is_fetched_by_the_library(hub, file, monkeypatch):
    asked = []

    def download(repo: str, name: str, **how: Any) -> str:
        asked.append((repo, name, how["revision"], how["local_files_only"]))
        return str(file)

    monkeypatch.setattr(hub, "hf_hub_download", download)
    monkeypatch.setattr("huggingface_hub.hub_mixin.hf_hub_download", lambda **_: no_config())
    back = hub.HubStudent.from_pretrained("me/mine", revision="v1", local_files_only=True)
    assert asked == [("me/mine", "model.safetensors", "v1", True)]
    assert same(back.student, distilled())


def no_config() -> str:
    from huggingface_hub.errors import HfHubHTTPError

    raise HfHubHTTPError("no config.json", response=SimpleNamespace(headers={}, request=None))


def test_pushed_to_the_last_step_before_a_network(hub, file, tmp_path, monkeypatch):
    sent: dict[str, Any] = {}

    class StandIn:
        """HfApi, as far as a push asks it."""

        def __init__(self, token: str | None = None) -> None:
            sent["token"] = token

        def create_repo(self, repo_id: str, private: bool | None, exist_ok: bool) -> Any:
            sent["created"] = (repo_id, private, exist_ok)
            return SimpleNamespace(repo_id=repo_id)

        def upload_folder(self, folder_path: Path, **how: Any) -> str:
            files = (p for p in Path(folder_path).rglob("*") if p.is_file())
            sent["files"] = {p.name: p.read_bytes() for p in files}
            sent["how"] = how
            return "https://hub/commit"

    monkeypatch.setattr("huggingface_hub.hub_mixin.HfApi", StandIn)
    run = tmp_path / "runs/mine"
    run.mkdir(parents=True)
    (run / "config.yaml").touch()
    student = hub.HubStudent.of(shutil.copy(file, run / "student.safetensors"))
    assert student.push_to_hub("me/mine", private=True, token="t") == "https://hub/commit"
    assert sent["created"] == ("me/mine", True, True)
    assert sent["how"]["repo_id"] == "me/mine"
    assert sent["how"]["repo_type"] == "model"
    assert sent["files"].keys() == {"README.md", "config.json", "model.safetensors"}
    assert sent["files"]["model.safetensors"] == file.read_bytes()
    assert (run / "published.txt").read_text() == "me/mine\n"
    assert b'from_pretrained("me/mine")' in sent["files"]["README.md"]
    (tmp_path / "got").mkdir()
    for name, content in sent["files"].items():
        (tmp_path / "got" / name).write_bytes(content)
    assert same(hub.HubStudent.from_pretrained(tmp_path / "got"), student)


def test_without_the_library_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    monkeypatch.delitem(sys.modules, "distill_hub.hub_student", raising=False)
    with pytest.raises(DistillError, match=r"pip install 'distill\[hub\]'"):
        __import__("distill_hub.hub_student")
