"""The vision transformers against those of transformers, with small random weights."""

import pytest
import torch
from torch import Tensor

from distill.metrics import features
from distill.metrics.features import CLIPVision, DINOv2
from distill.metrics.vit import VisionTransformer, of_dinov2

transformers = pytest.importorskip("transformers")
PATCH, WIDTH, DEPTH = 14, 128, 2
LAYERS = {"hidden_size": WIDTH, "num_hidden_layers": DEPTH, "num_attention_heads": WIDTH // 64}


def randomised(module: torch.nn.Module) -> dict[str, Tensor]:
    torch.manual_seed(0)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.3 if parameter.ndim == 1 else 0.08)
    return module.eval().state_dict()


def renamed(state: dict[str, Tensor], names: dict[str, str]) -> dict[str, Tensor]:
    """By longest names first; queries, keys and values of a layer joined."""
    found = {}
    for key, value in state.items():
        for before, now in names.items():
            key = key.replace(before, now)
        found[key] = value
    for key in [key for key in found if ".query." in key]:
        parts = [found.pop(key.replace("query", part)) for part in ("query", "key", "value")]
        found[key.replace("query.", "QKV")] = torch.cat(parts)
    return found


@pytest.fixture(scope="module")
def dinov2():
    config = transformers.Dinov2Config(patch_size=PATCH, image_size=4 * PATCH, **LAYERS)
    theirs = transformers.Dinov2Model(config)
    names = {
        "embeddings.cls_token": "cls_token", "embeddings.mask_token": "mask_token",
        "embeddings.position_embeddings": "pos_embed",
        "embeddings.patch_embeddings.projection": "patch_embed.proj", "encoder.layer.": "blocks.",
        "attention.q_proj": "attn.query", "attention.k_proj": "attn.key",
        "attention.v_proj": "attn.value", "attention.o_proj": "attn.proj",
        "layer_scale1.lambda1": "ls1.gamma", "layer_scale2.lambda1": "ls2.gamma",
        "layernorm.": "norm.",
    }  # fmt: skip
    state = renamed(randomised(theirs), names)
    return theirs, {key.replace("QKV", "qkv."): value for key, value in state.items()}


@pytest.fixture(scope="module")
def clip():
    config = transformers.CLIPVisionConfig(
        patch_size=PATCH, image_size=4 * PATCH, projection_dim=32, intermediate_size=4 * WIDTH,
        hidden_act="quick_gelu", **LAYERS,
    )  # fmt: skip
    theirs = transformers.CLIPVisionModelWithProjection(config)
    names = {
        "vision_model.": "visual.", "embeddings.": "", "patch_embedding": "conv1",
        "position_embedding.weight": "positional_embedding", "pre_layrnorm": "ln_pre",
        "encoder.layers": "transformer.resblocks", "self_attn.q_proj": "attn.query",
        "self_attn.k_proj": "attn.key", "self_attn.v_proj": "attn.value",
        "self_attn.out_proj": "attn.out_proj", "layer_norm1": "ln_1", "layer_norm2": "ln_2",
        "mlp.fc1": "mlp.c_fc", "mlp.fc2": "mlp.c_proj", "post_layernorm": "ln_post",
    }  # fmt: skip
    state = renamed(randomised(theirs), names)
    state = {
        key.replace("QKV", "in_proj_"): v for key, v in state.items() if "position_ids" not in key
    }
    state["visual.proj"] = state.pop("visual_projection.weight").T
    return theirs, {key: v.half().float() for key, v in state.items()}


def test_dinov2_as_in_transformers(dinov2):
    theirs, state = dinov2
    pictures = torch.randn(2, 3, 4 * PATCH, 4 * PATCH)
    with torch.inference_mode():
        expected = theirs(pictures).pooler_output
        got = VisionTransformer(of_dinov2(state))(pictures)
    assert expected.std() > 0.1
    torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-4)


def test_clip_as_in_transformers(clip):
    theirs, state = clip
    pictures = torch.rand(2, 3, 70, 60)
    network = CLIPVision(state)
    assert network.side == 4 * PATCH
    by_clip = features._normalised(pictures, network.side, features.OPENAI)
    with torch.inference_mode():
        expected = theirs(by_clip).image_embeds
        got = network(pictures)
    expected = expected / expected.norm(dim=1, keepdim=True)
    assert (expected[0] - expected[1]).abs().max() > 1e-3
    torch.testing.assert_close(got, expected, rtol=1e-2, atol=3e-3)  # ours are of half precision
    torch.testing.assert_close(got.norm(dim=1), torch.ones(2))


def test_positions_of_another_size_are_interpolated(dinov2):
    """By Keys' cubic kernel; place i of the new grid is at (i + ½)/scale − ½ of the old one."""
    _, state = dinov2
    known, side = 8, 16
    values = torch.rand(known)  # of the rows; all columns are alike
    grid = torch.cat([torch.full((1,), -7.0), values.repeat_interleave(known)])[
        None, :, None
    ].expand(1, -1, WIDTH)
    network = VisionTransformer(of_dinov2(state | {"pos_embed": grid.clone()}))
    got = network._positions(side)[:, 0]
    assert got.shape == (1 + side**2,)
    assert got[0] == -7
    rows = got[1:].reshape(side, side)
    places = (torch.arange(side) + 0.5) * known / (side + 0.1) - 0.5
    apart = (places[:, None] - torch.arange(-3, known + 3)).abs()
    near = 1.25 * apart**3 - 2.25 * apart**2 + 1
    far = -0.75 * (apart**3 - 5 * apart**2 + 8 * apart - 4)
    kernel = torch.where(apart <= 1, near, torch.where(apart < 2, far, 0))
    expected = kernel @ values[torch.arange(-3, known + 3).clamp(0, known - 1)]
    torch.testing.assert_close(rows, expected[:, None].expand(-1, side), atol=1e-4, rtol=0)


def test_dinov2_takes_any_picture_at_224(dinov2):
    network = DINOv2(dinov2[1])
    got = network(torch.rand(2, 3, 50, 80))
    assert got.shape == (2, WIDTH)
    assert got.isfinite().all()
