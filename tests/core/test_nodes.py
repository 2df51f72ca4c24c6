"""Nodes: only classes of one package are built from a file; what a class lacks is said."""

import sys

import pytest
from torch import nn

import distill_drawings
from distill.core.errors import DistillError
from distill.core.nodes import check_part, class_of
from support.refusals import refusal

PACKAGE = "distill.models.students"
GONE, REFUSED = "no such class; a run names the classes of the version", "refused; only classes of"


def test_a_class_of_the_package_passes():
    check_part({"_target_": f"{PACKAGE}.encoder.MobileNetV2Encoder"}, PACKAGE, nn.Module)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("distill.students.encoder.MobileNetV2Encoder", GONE),  # where an earlier version had it
        (f"{PACKAGE}.encoder.MobileNetV9Encoder", GONE),
        (f"{PACKAGE}.encoder.nn.Conv2d", GONE),  # not a module of ours
        (f"{PACKAGE}.encoder.Tensor", REFUSED),  # imported there, defined elsewhere
        (f"{PACKAGE}.encoder.Scaling", REFUSED),  # no network
        ("distill.losses.criterion.Criterion", REFUSED),
        ("torch.hub.load", REFUSED),
        ("os.system", REFUSED),
    ],
)
def test_any_other_is_refused_in_one_line(name, said):
    assert refusal(check_part, {"_target_": name}, PACKAGE, nn.Module).startswith(f"{name}: {said}")


def test_a_package_that_a_class_needs_and_is_not_installed_is_named(monkeypatch):
    """Which resolve_name alone would hide: to it the module is not there."""
    monkeypatch.setitem(sys.modules, "kornia", None)
    monkeypatch.delitem(sys.modules, "distill_drawings.toon", raising=False)
    monkeypatch.delattr(distill_drawings, "toon", raising=False)
    with pytest.raises(DistillError) as error:
        class_of("teacher", {"_target_": "distill_drawings.toon.Toon"})
    said = "needs kornia, which is not installed; pip install distill"
    assert str(error.value) == f"teacher._target_=distill_drawings.toon.Toon: {said}"
