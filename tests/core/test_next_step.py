import sys

import pytest

from distill.core.next_step import next_step, same_settings


def test_files_and_settings_are_quoted_for_a_shell():
    line = next_step("stylize", "my photo.jpg", run="mine", runs="other runs")
    assert line == "next: python -m distill.stylize 'my photo.jpg' run=mine runs='other runs'"


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ([], "next: python -m distill.train"),
        (["photos=my own", "crop=0.8"], "next: python -m distill.train 'photos=my own' crop=0.8"),
        (["-m", "style=toon,hayao"], "next: python -m distill.train with the same settings"),
        ([f"photos={'x' * 400}"], "next: python -m distill.train with the same settings"),
    ],
)  # fmt: skip
def test_what_was_typed_is_repeated(monkeypatch, typed, expected):
    monkeypatch.setattr(sys, "argv", ["distill.prepare", *typed])
    assert same_settings("train") == expected
