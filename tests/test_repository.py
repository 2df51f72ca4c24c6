"""What lies beside the code for other people's tools: workflows, the citation."""

import ast
import json
import re
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

import distill

ROOT = Path(__file__).resolve().parents[1]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


def _steps(path):
    for job in yaml.safe_load(path.read_text())["jobs"].values():
        yield from job["steps"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_are_pinned_to_a_commit_with_their_version_beside_it(path):
    used = [line for line in path.read_text().splitlines() if "uses:" in line]
    assert used
    for line in used:
        assert re.search(r"uses: [\w.-]+/[\w.-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+$", line), line


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_no_workflow_may_more_than_its_jobs_say(path):
    workflow = yaml.safe_load(path.read_text())
    assert workflow["permissions"] == {}
    assert all("timeout-minutes" in job for job in workflow["jobs"].values())


def test_only_the_publishing_job_speaks_for_us_and_it_runs_none_of_our_code():
    jobs = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())["jobs"]
    trusted = [name for name, job in jobs.items() if "id-token" in job["permissions"]]
    assert trusted == ["publish"]
    assert all("run" not in step for step in jobs["publish"]["steps"])


def test_ci_does_what_anybody_does():
    steps = _steps(ROOT / ".github/workflows/ci.yml")
    assert [step["run"] for step in steps if "run" in step] == ["bash .ci/run"]


def test_the_citation_is_of_this_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == distill.__version__
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()


def test_the_citation_credits_the_paper_its_release_and_every_shipped_teacher():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    for each in citation["references"]:
        assert {"type", "title", "authors", "notes"} <= each.keys()
        assert all("name" in author or "family-names" in author for author in each["authors"])
    said = " ".join(each["notes"] for each in citation["references"])
    assert "The paper" in said
    for path in (ROOT / "src/distill/models/zoo").glob("*.json"):
        ours = json.loads(path.read_text())["teacher"]["file"] is None
        assert path.stem in said or ours, path.stem


COUNTED = "batch|channel|drawing|file|frame|group|image|input|job|layer|line|note|output|pair|photo"
COUNTED += "|picture|place|run|shard|step|student|trial|worker"


def test_what_is_counted_is_said_in_one_way():
    """`counted(1, "photo")` says 1 photo; an f-string's "{count} photos" says 1 photos.

    A name in capitals is a number of our own, and text or a KEY= before `photos=` no number.
    """
    plural = re.compile(
        rf" (?:(?:new|held-out|training|validation|test|damaged) )?(?:{COUNTED})e?s\b(?!=)"
    )
    found = []
    for path in sorted((ROOT / "src").rglob("*.py")):
        parts = (
            n.values for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.JoinedStr)
        )
        for number, text in (each for values in parts for each in pairwise(values)):
            if not (isinstance(number, ast.FormattedValue) and isinstance(text, ast.Constant)):
                continue
            value = ast.unparse(number.value)
            if plural.match(str(text.value)) and not value.split(".")[-1].isupper():
                found.append(f"{path.name}:{text.lineno}: {value}{text.value}")
    assert found == []
