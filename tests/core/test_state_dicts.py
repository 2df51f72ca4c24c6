"""Weights files: finite values, names as the modules have them."""

import re

import numpy as np
import onnx
import pytest
import torch
from onnx import numpy_helper
from safetensors.torch import save_file
from torch import nn
from torch.optim import swa_utils

from distill.core.errors import DistillError
from distill.core.state_dicts import load_into, load_tensors, tensors_in_graph
from distill.models.teachers.animegan2 import AnimeGANv2
from support.onnx_networks import negative

NOT_FINITE = "values that are not finite (NaN or infinite) in 1 tensor, first weight"


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize(("save", "name"), [(torch.save, "a.pt"), (save_file, "a.safetensors")])
def test_values_that_are_not_finite_are_refused(tmp_path, value, save, name):
    state = nn.Linear(2, 2).state_dict()
    state["weight"][0, 1] = value
    save(state, tmp_path / name)
    with pytest.raises(DistillError, match=re.escape(f"{tmp_path}/{name}: {NOT_FINITE}")):
        load_tensors(tmp_path / name)


@pytest.mark.parametrize("name", ["a.pt", "a.safetensors"])
def test_a_missing_file_is_no_damaged_one(tmp_path, name):
    with pytest.raises(DistillError, match="no such file of weights"):
        AnimeGANv2(str(tmp_path / name))


def test_of_an_onnx_file_too(tmp_path):
    negative().save(str(tmp_path / "a.onnx"))
    model = onnx.load(tmp_path / "a.onnx")
    model.graph.initializer.append(numpy_helper.from_array(np.float32([np.nan]), "weight"))
    onnx.save(model, tmp_path / "a.onnx")
    with pytest.raises(DistillError, match=re.escape(NOT_FINITE)):
        tensors_in_graph(tmp_path / "a.onnx")


@pytest.mark.parametrize("wrap", [nn.Module.cpu, nn.DataParallel, swa_utils.AveragedModel])
@pytest.mark.parametrize("compiled", [False, True])
def test_weights_of_a_wrapped_module_have_their_plain_names(tmp_path, wrap, compiled):
    network, other = nn.Sequential(nn.Linear(2, 3)), nn.Sequential(nn.Linear(2, 3))
    wrapped = wrap(torch.compile(network) if compiled else network)
    assert not compiled or any("_orig_mod." in name for name in wrapped.state_dict())
    torch.save(wrapped.state_dict(), tmp_path / "a.pt")
    load_into(other, str(tmp_path / "a.pt"))
    assert torch.equal(other[0].weight, network[0].weight)
    assert torch.equal(other[0].bias, network[0].bias)


def test_a_teacher_takes_its_weights_by_a_text_too(tmp_path):
    network = AnimeGANv2()
    torch.save(network.state_dict(), tmp_path / "a.pt")
    same = AnimeGANv2(str(tmp_path / "a.pt"))
    assert torch.equal(same.out_layer[0].weight, network.out_layer[0].weight)
    assert same.origin == str(tmp_path / "a.pt")
