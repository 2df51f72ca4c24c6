"""What may stand beside settings, and one line for all else."""

import pytest

from distill import __version__
from distill.config.arguments import read_words
from distill.core.errors import DistillError
from distill.train import __main__ as train
from support.commands import run


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--help"],
        ["-m"],
        ["--cfg", "job"],
        ["--cfg=job", "--resolve"],
        ["-c", "job"],
        ["--info", "defaults"],
        ["--version"],
    ],
)
def test_flags_that_say_what_would_be_done(words):
    read_words(words)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--foo"], "--foo: no such flag; there are --help, "),
        (["--foo=3"], "--foo: no such flag"),
        (["--experimental-rerun", "x"], "--experimental-rerun: no such flag"),
        (["--shell-completion", "install=bash"], "--shell-completion: no such flag"),
        (["-sc"], "-sc: no such flag"),
        (["paprika"], "paprika: no setting; settings are typed KEY=VALUE"),
        (["--cfg", "hydra"], "--cfg: say what of: --cfg job"),
        (["--info"], "--info: say what of: --info defaults"),
        (["--resolve"], "--resolve: goes with --cfg job"),
    ],
)
def test_anything_else_ends_in_one_line(words, said):
    with pytest.raises(DistillError, match="^" + said.replace(".", r"\.")):
        read_words(words)


def test_a_typo_beside_a_flag_is_one_line_too(capsys):
    assert run(train, "--cfg", "job", "lrr=3") == 1
    error = capsys.readouterr().err
    assert error.startswith("error: lrr: no such setting; did you mean lr?")
    assert error.count("\n") == 1


def test_a_group_of_plug_ins_without_choices(capsys):
    assert run(train, "callbacks=mine", "photos=x") == 1
    assert "error: callbacks: no choice here; a plug-in or --config-dir" in capsys.readouterr().err


def test_the_version_is_ours_and_not_hydra_s(capsys):
    assert run(train, "--version") == 0
    assert capsys.readouterr().out == f"distill {__version__}\n"
