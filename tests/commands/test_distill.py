"""distill NAME …: the commands by their names."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import distill
from distill import __main__ as script

PACKAGE = Path(distill.__file__).parent


def typed(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_every_command_of_the_package_is_listed_and_no_other():
    packages = {path.parent.name for path in PACKAGE.glob("*/__main__.py")}
    assert {*script.COMMANDS} == packages
    shown = typed("distill")
    assert shown.returncode == 0
    assert shown.stdout == typed("distill", "--help").stdout
    assert all(f"  {name} " in shown.stdout for name in packages)


def test_the_console_script_is_this_one():
    project = tomllib.loads((PACKAGE.parents[1] / "pyproject.toml").read_text())["project"]
    assert project["scripts"] == {"distill": f"{script.__name__}:{script.main.__name__}"}


def test_the_version():
    assert typed("distill", "--version").stdout == f"distill {distill.__version__}\n"


def test_a_command_that_is_not_there_ends_in_one_line():
    ended = typed("distill", "trian")
    assert ended.returncode == 1
    assert ended.stderr == "error: trian: no such command; did you mean train?\n"


@pytest.fixture
def probe(tmp_path, monkeypatch):
    """A function that runs `distill probe`, a command of this code."""

    def call(code: str, *words: str) -> None:
        (tmp_path / "probe").mkdir()
        (tmp_path / "probe/__main__.py").write_text(code)
        monkeypatch.setattr(distill, "__path__", [*distill.__path__, str(tmp_path)])
        monkeypatch.setitem(script.COMMANDS, "probe", "")
        monkeypatch.setattr(sys, "argv", ["distill", "probe", *words])
        script.main()

    return call


def test_a_process_that_starts_itself_again_starts_the_command(probe, capsys):
    """Lightning's launcher of further processes reads `__main__` and what was typed."""
    code = "import sys\nprint(sys.modules['__main__'].__spec__.name, __name__, sys.argv[1:])\n"
    probe(code, "a=1", "-m")
    assert capsys.readouterr().out == "distill.probe.__main__ __main__ ['a=1', '-m']\n"


@pytest.mark.parametrize("status", [0, 3])
def test_the_exit_status_is_the_command_s(status, probe):
    with pytest.raises(SystemExit) as ended:
        probe(f"raise SystemExit({status})\n")
    assert ended.value.code == status
