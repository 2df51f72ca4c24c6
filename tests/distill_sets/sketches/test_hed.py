"""HED: the layout of the public file, and the network written out once more."""

import pytest
import torch
from torch.nn import functional as F

from distill.core.errors import DistillError
from distill.core.state_dicts import load_into
from distill_sets.sketches.lines import HED

STAGES = {"One": (0, 2), "Two": (1, 3), "Thr": (1, 3, 5), "Fou": (1, 3, 5), "Fiv": (1, 3, 5)}
CHANNELS = {"One": 64, "Two": 128, "Thr": 256, "Fou": 512, "Fiv": 512}


def layout():
    """Names and shapes of network-bsds500.pytorch, as the port's own network has them."""
    found, before = {"moduleCombine.0.weight": (1, 5, 1, 1), "moduleCombine.0.bias": (1,)}, 3
    for stage, places in STAGES.items():
        width = CHANNELS[stage]
        for place in places:
            found[f"moduleVgg{stage}.{place}.weight"] = (width, before, 3, 3)
            found[f"moduleVgg{stage}.{place}.bias"] = (width,)
            before = width
        found[f"moduleScore{stage}.weight"] = (1, width, 1, 1)
        found[f"moduleScore{stage}.bias"] = (1,)
    return found


@pytest.fixture(scope="module")
def state():
    generator = torch.Generator().manual_seed(0)
    fans = {name: max(1, torch.Size(shape[1:]).numel()) for name, shape in layout().items()}
    return {
        name: torch.randn(shape, generator=generator) * (2 / fans[name]) ** 0.5
        for name, shape in layout().items()
    }


def reference(state, picture):
    """Xie and Tu's network by functions: blue, green, red, mean taken off, five scores, fused."""
    means = torch.tensor([104.00698793, 116.66876762, 122.67891434]).view(1, 3, 1, 1)
    x, scores = picture[:, [2, 1, 0]] * 255 - means, []
    for stage, places in STAGES.items():
        x = x if stage == "One" else F.max_pool2d(x, 2)
        for place in places:
            w, b = (state[f"moduleVgg{stage}.{place}.{kind}"] for kind in ("weight", "bias"))
            x = F.conv2d(x, w, b, padding=1).relu()
        score = F.conv2d(x, *(state[f"moduleScore{stage}.{k}"] for k in ("weight", "bias")))
        scores.append(F.interpolate(score, picture.shape[-2:], mode="bilinear"))
    fused = torch.cat(scores, 1)
    weight, bias = state["moduleCombine.0.weight"].view(5), state["moduleCombine.0.bias"]
    return ((fused * weight.view(1, 5, 1, 1)).sum(1, keepdim=True) + bias).sigmoid()


def test_the_public_file_s_layout_loads_and_gives_the_network(tmp_path, state):
    torch.save(state, tmp_path / "hed.pytorch")
    network = HED()
    load_into(network, tmp_path / "hed.pytorch")
    picture = torch.rand(1, 3, 40, 56)
    with torch.inference_mode():
        found = network(picture)
        torch.testing.assert_close(found, reference(state, picture))
    assert found.shape == (1, 1, 40, 56)


def test_parameters():
    """VGG16's 13 convolutions (14,714,688), five scores (1,477) and the fusion (6)."""
    assert sum(p.numel() for p in HED().parameters()) == 14_714_688 + 1_477 + 6


def test_another_file_is_refused_by_what_it_lacks(tmp_path, state):
    torch.save({k: v for k, v in state.items() if "Fiv.5" not in k}, tmp_path / "hed.pytorch")
    with pytest.raises(
        DistillError, match=r"does not fit HED: .*: 2 tensors, first moduleVggFiv\.5\.bias"
    ):
        load_into(HED(), tmp_path / "hed.pytorch")
