"""Checkpoints whose weights are a compiled module's, or went wrong."""

import pytest
import torch

from distill.core.errors import DistillError
from distill.models.checkpoint import load_network
from support.gan_runs import RESNET, built, settings, write


@pytest.fixture
def saved(tmp_path):
    run = write(tmp_path / "r", settings("pix2pix", RESNET), generator=built(RESNET))
    path = run / "checkpoints/last.ckpt"
    return path, torch.load(path, weights_only=True)


@pytest.mark.parametrize("new", ["generator._orig_mod.", "_orig_mod.generator."])
def test_a_compiled_module_is_read_as_any(saved, new):
    path, content = saved
    state = content["state_dict"]
    content["state_dict"] = {k.replace("generator.", new, 1): v for k, v in state.items()}
    torch.save(content, path)
    for name, value in load_network(path)[0].state_dict().items():
        assert torch.equal(value, state[f"generator.{name}"]), name


def test_weights_that_are_not_finite_are_said(saved):
    path, content = saved
    name = next(n for n, v in content["state_dict"].items() if n.endswith("weight") and v.dim() > 1)
    content["state_dict"][name].view(-1)[0] = torch.nan
    torch.save(content, path)
    with pytest.raises(DistillError, match=r"not finite .* in 1 tensor, first .*weight"):
        load_network(path)
