"""Runs and packages from before these recipes had a package of their own."""

from pkgutil import resolve_name

import pytest
import torch

from distill.core.plugins import entries
from distill.models.checkpoint import load_network
from support import gan_runs

OURS = {old: new for old, new in entries("moved") if new.startswith("distill_gan.")}


@pytest.mark.parametrize(
    ("recipe", "node", "network"),
    [("pix2pix", gan_runs.UNET, "generator"), ("cyclegan", gan_runs.RESNET, "a_to_b")],
)
def test_a_run_that_names_classes_of_the_core_loads(recipe, node, network, tmp_path):
    old = node["_target_"].replace("distill_gan.", "distill.models.")
    generator = gan_runs.built(node)
    settings = gan_runs.settings(recipe, node | {"_target_": old})
    run = gan_runs.write(tmp_path / "run", settings, **{network: generator})
    loaded, _ = load_network(run / "checkpoints/last.ckpt")
    photo = torch.rand(1, 3, gan_runs.SIDE, gan_runs.SIDE)
    assert torch.equal(loaded(photo), generator(photo))


@pytest.mark.parametrize("old", OURS)
def test_old_imports_work_with_a_warning(old):
    with pytest.warns(DeprecationWarning, match=f"{old} is {OURS[old]} now"):
        resolve_name(old)
