"""Lightning gets its two classes of torchmetrics; everything else of it is as ever."""

import subprocess
import sys

import pytest

# Each in a process of its own: here everything is imported long ago.
DEFER = "from distill.core.deferred_imports import defer_torchmetrics as defer; defer()\n"
LEAN = """
import sys, pytorch_lightning
heavy = {"torchmetrics.functional.text", "transformers", "scipy.signal", "torchvision"}
heavy |= {"matplotlib", "matplotlib.pyplot"}
assert not heavy & sys.modules.keys(), heavy & sys.modules.keys()
"""
SAME = """
import sys
from pytorch_lightning.core import module
import torchmetrics
assert torchmetrics.Metric is module.Metric
assert torchmetrics.MetricCollection is module.MetricCollection
assert issubclass(torchmetrics.MeanMetric, module.Metric)
from torchmetrics.functional.image.lpips import _LPIPS
from torchmetrics import Accuracy, functional
mean = torchmetrics.MeanMetric()
mean.update(2.0)
mean.plot()
assert "matplotlib.pyplot" in sys.modules
assert torchmetrics.__version__ and Accuracy.__module__.startswith("torchmetrics.classification")
try:
    from torchmetrics import nonsense
except ImportError:
    print("as ever")
"""
ELSEWHERE = """
from distill.core import deferred_imports
deferred_imports.CLASSES["metric"] = "OfAnotherVersion"
"""
ALONE = "import torchmetrics.aggregation as of; print(of.MeanMetric()(2.0).item())"
THERE = """
import sys, torchmetrics
from distill.core.deferred_imports import defer_torchmetrics as defer
whole = torchmetrics.functional
defer()
assert sys.modules["torchmetrics"].functional is whole
"""


def said(code: str) -> str:
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert not made.returncode, made.stderr
    return made.stdout.strip()


@pytest.mark.campaign
def test_lightning_comes_without_the_metrics_that_it_does_not_use():
    assert said(DEFER + LEAN + SAME) == "as ever"


@pytest.mark.campaign
def test_a_version_with_its_classes_elsewhere_is_imported_whole():
    assert said(f"{ELSEWHERE}{DEFER}{SAME}") == "as ever"


@pytest.mark.slow
def test_a_module_of_it_can_be_imported_first():
    assert said(DEFER + ALONE) == "2.0"


@pytest.mark.campaign
def test_what_is_there_already_is_left_alone():
    said(THERE)


@pytest.mark.campaign
@pytest.mark.parametrize("name", ["__version__", "__all__"])
def test_what_its_init_says_of_itself_is_there(name):
    assert said(f"{DEFER}import torchmetrics; print(bool(torchmetrics.{name}))") == "True"


@pytest.mark.campaign
def test_who_imports_distill_has_it_as_ever():
    said("import sys, distill.config.compose, torchmetrics; sys.modules['torchmetrics.text']")
