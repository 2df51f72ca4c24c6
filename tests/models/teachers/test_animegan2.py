import copy
import io
import math

import onnx
import onnxruntime
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from distill.core.errors import DistillError
from distill.metrics.complexity import module_macs
from distill.models.teachers.animegan2 import AnimeGANv2, twice


def cna(name: str, inputs: int, outputs: int, kernel: int = 3, depthwise: bool = False) -> dict:
    """Shapes of one padding-convolution-norm-activation of the public port."""
    shapes = {f"{name}.1.weight": (outputs, 1 if depthwise else inputs, kernel, kernel)}
    if depthwise:  # the port gives only its depthwise layers a bias
        shapes[f"{name}.1.bias"] = (outputs,)
    return shapes | {f"{name}.2.weight": (outputs,), f"{name}.2.bias": (outputs,)}


def residual(name: str, inputs: int, outputs: int) -> dict:
    hidden = inputs * 2
    return (
        cna(f"{name}.layers.0", inputs, hidden, kernel=1)
        | cna(f"{name}.layers.1", hidden, hidden, depthwise=True)
        | {f"{name}.layers.2.weight": (outputs, hidden, 1, 1)}
        | {f"{name}.layers.3.weight": (outputs,), f"{name}.layers.3.bias": (outputs,)}
    )


PORT = (
    cna("block_a.0", 3, 32, kernel=7)
    | cna("block_a.1", 32, 64)
    | cna("block_a.2", 64, 64)
    | cna("block_b.0", 64, 128)
    | cna("block_b.1", 128, 128)
    | cna("block_c.0", 128, 128)
    | residual("block_c.1", 128, 256)
    | residual("block_c.2", 256, 256)
    | residual("block_c.3", 256, 256)
    | residual("block_c.4", 256, 256)
    | cna("block_c.5", 256, 128)
    | cna("block_d.0", 128, 128)
    | cna("block_d.1", 128, 128)
    | cna("block_e.0", 128, 64)
    | cna("block_e.1", 64, 64)
    | cna("block_e.2", 64, 32, kernel=7)
    | {"out_layer.0.weight": (3, 32, 1, 1)}
)
NORMS = 24  # 10 plain layers of blocks a, b, d, e; 2 of block c; 3 in each of 4 residuals


def reference(state: dict[str, Tensor], x: Tensor) -> Tensor:
    """The public port's forward pass on [-1, 1], written out in plain functions."""

    def norm(name: str, x: Tensor) -> Tensor:
        return F.group_norm(x, 1, state[f"{name}.weight"], state[f"{name}.bias"])

    def layer(name: str, x: Tensor, stride: int = 1) -> Tensor:
        weight = state[f"{name}.1.weight"]
        side = weight.shape[-1] // 2
        x = F.pad(x, (0, 1, 0, 1) if stride == 2 else (side,) * 4, mode="reflect")
        groups = x.shape[1] // weight.shape[1]
        x = F.conv2d(x, weight, state.get(f"{name}.1.bias"), stride, groups=groups)
        return F.leaky_relu(norm(f"{name}.2", x), 0.2)

    def bottleneck(name: str, x: Tensor) -> Tensor:
        y = layer(f"{name}.layers.1", layer(f"{name}.layers.0", x))
        y = norm(f"{name}.layers.3", F.conv2d(y, state[f"{name}.layers.2.weight"]))
        return y + x if y.shape == x.shape else y

    def grow(x: Tensor) -> Tensor:
        return F.interpolate(x, scale_factor=2.0, mode="bilinear", align_corners=True)

    y = layer("block_a.2", layer("block_a.1", layer("block_a.0", x), stride=2))
    y = layer("block_b.1", layer("block_b.0", y, stride=2))
    y = layer("block_c.0", y)
    for number in (1, 2, 3, 4):
        y = bottleneck(f"block_c.{number}", y)
    y = grow(layer("block_c.5", y))
    y = grow(layer("block_d.1", layer("block_d.0", y)))
    y = layer("block_e.2", layer("block_e.1", layer("block_e.0", y)))
    return torch.tanh(F.conv2d(y, state["out_layer.0.weight"]))


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    """A state dict with random values everywhere, norms included, whose output is in mid-range."""
    torch.manual_seed(1)
    state = {}
    for name, shape in PORT.items():
        if len(shape) == 4:
            state[name] = torch.randn(shape) / math.sqrt(math.prod(shape[1:]))
        elif name.endswith("weight"):
            state[name] = torch.rand(shape) + 0.5
        else:
            state[name] = torch.randn(shape) * 0.3
    path = tmp_path_factory.mktemp("weights") / "random.pt"
    torch.save(state, path)
    return path


@pytest.fixture(scope="module")
def pair(weights):
    return AnimeGANv2(weights, norm="group"), AnimeGANv2(weights, norm="instance")


@torch.no_grad()
def difference(a: nn.Module, b: nn.Module, photo: Tensor) -> float:
    return float((a(photo) - b(photo)).abs().max())


def per_channel(group: AnimeGANv2) -> AnimeGANv2:
    """The wrong swap: the same weights in a norm over every channel on its own."""
    wrong = copy.deepcopy(group)
    for parent in list(wrong.modules()):
        for name, child in parent.named_children():
            if isinstance(child, nn.GroupNorm):
                norm = nn.InstanceNorm2d(child.num_channels, eps=child.eps, affine=True)
                norm.weight, norm.bias = child.weight, child.bias
                setattr(parent, name, norm)
    return wrong


@pytest.mark.parametrize("norm", ["group", "instance"])
def test_layout_is_the_public_ports(norm):
    state = AnimeGANv2(norm=norm).state_dict()
    assert {name: tuple(tensor.shape) for name, tensor in state.items()} == PORT
    assert sum(math.prod(shape) for shape in PORT.values()) == 2_143_552
    assert sum(tensor.numel() for tensor in state.values()) == 2_143_552


@pytest.mark.parametrize("index", [0, 1])
def test_gives_what_the_public_port_gives(pair, weights, index):
    x = torch.rand(2, 3, 32, 48) * 2 - 1
    expected = reference(torch.load(weights, weights_only=True), x)
    assert expected.std() > 0.1
    torch.testing.assert_close(pair[index].generate(x), expected, atol=1e-4, rtol=1e-4)


def test_real_weights_agree_and_the_wrong_swap_does_not(assets):
    path = assets / "teachers/animegan2_hayao.pt"
    group, instance = AnimeGANv2(path, norm="group"), AnimeGANv2(path, norm="instance")
    x = torch.linspace(0, 1, 96).expand(96, 96)
    photo = torch.stack([x, x.T, (x * 20).sin() * 0.4 + 0.5])[None]
    assert difference(group, instance, photo) <= 1e-4
    with torch.no_grad():
        error = (group(photo) - per_channel(group)(photo)).square().mean()
    assert -10 * error.log10() < 20  # dB; on photos it is 10 to 13


@pytest.mark.parametrize("index", [0, 1])
def test_fast_form_gives_the_same(pair, index):
    fast = copy.deepcopy(pair[index]).fast()
    assert sum(isinstance(m, nn.GroupNorm) for m in fast.modules()) == NORMS
    assert difference(pair[index], fast, torch.rand(1, 3, 32, 32)) <= 1e-4
    assert not any(p.requires_grad for p in fast.parameters())


def test_border_is_zero_to_one(pair):
    """Picture p stands for 2p - 1 inside, and the network's y for y/2 + 1/2 outside."""
    teacher, photo = pair[0], torch.rand(1, 3, 32, 32)
    output = teacher(photo)
    assert 0 <= output.min() < output.max() <= 1
    torch.testing.assert_close(output, teacher.generate(photo * 2 - 1) / 2 + 0.5)


@pytest.mark.parametrize(("height", "width"), [(33, 32), (32, 35), (37, 30)])
def test_any_size_comes_back(pair, height, width):
    photo = torch.rand(1, 3, height, width)
    output = pair[0](photo)
    assert output.shape == photo.shape
    # The padding mirrors the photo, so a photo mirrored beforehand gives the same picture.
    mirrored = F.pad(photo, (0, -width % 4, 0, -height % 4), mode="reflect")
    torch.testing.assert_close(output, pair[0](mirrored)[..., :height, :width])


def test_fingerprint_follows_the_weights_only(pair, weights, tmp_path):
    group, instance = pair
    assert group.fingerprint() == instance.fingerprint()
    assert copy.deepcopy(instance).fast().fingerprint() == group.fingerprint()
    state = torch.load(weights, weights_only=True)
    state["out_layer.0.weight"][0, 0] += 1e-3
    torch.save(state, tmp_path / "other.pt")
    assert AnimeGANv2(tmp_path / "other.pt").fingerprint() != group.fingerprint()


def test_stays_frozen():
    teacher = AnimeGANv2().train()
    assert not any(m.training for m in teacher.modules())
    assert not any(p.requires_grad for p in teacher.parameters())
    nn.ModuleList([teacher]).train()
    assert not any(m.training for m in teacher.modules())


def test_weights_that_do_not_fit_are_named_in_one_line(tmp_path):
    torch.save({"block_a.0.1.weight": torch.zeros(32, 3, 7, 7)}, tmp_path / "part.pt")
    with pytest.raises(DistillError, match=r"part\.pt: does not fit AnimeGANv2"):
        AnimeGANv2(tmp_path / "part.pt")


@pytest.mark.filterwarnings("ignore")  # the tracing exporter is deprecated
@pytest.mark.campaign
def test_exported_graph_normalises_by_instance_only(pair):
    photo, buffer = torch.rand(1, 3, 32, 32), io.BytesIO()
    torch.onnx.export(pair[1], (photo,), buffer, opset_version=11, dynamo=False)
    graph = onnx.load_from_string(buffer.getvalue()).graph
    kinds = [node.op_type for node in graph.node]
    assert {kind for kind in kinds if "Norm" in kind} == {"InstanceNormalization"}
    assert kinds.count("InstanceNormalization") == NORMS
    assert not {"ReduceMean", "Sqrt", "Div", "Pow", "ReciprocalSqrt"} & set(kinds)
    session = onnxruntime.InferenceSession(buffer.getvalue(), providers=["CPUExecutionProvider"])
    (output,) = session.run(None, {session.get_inputs()[0].name: photo.numpy()})
    assert (torch.from_numpy(output) - pair[0](photo)).abs().max() <= 1e-4


@pytest.mark.slow
def test_macs():
    macs = module_macs(AnimeGANv2(norm="group"), 256)
    assert macs is not None
    assert round(macs / 1e9, 3) == 26.285


MODES = ("asymmetric", "align_corners", "half_pixel")


@pytest.mark.parametrize("mode", MODES)
def test_enlarges_as_onnx_runtime_does_in_the_mode_of_that_name(mode):
    """ONNX's Resize has all three; its `asymmetric` is TensorFlow 1's bilinear."""
    x = torch.rand(1, 2, 5, 7)
    node = onnx.helper.make_node(
        "Resize", ["x", "", "scales"], ["y"], mode="linear", coordinate_transformation_mode=mode
    )
    value = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [node],
        "resize",
        [value("x", onnx.TensorProto.FLOAT, [1, 2, 5, 7])],
        [value("y", onnx.TensorProto.FLOAT, [1, 2, 10, 14])],
        [onnx.helper.make_tensor("scales", onnx.TensorProto.FLOAT, [4], [1.0, 1.0, 2.0, 2.0])],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 13)])
    model.ir_version = 9
    session = onnxruntime.InferenceSession(model.SerializeToString())
    (wanted,) = session.run(None, {"x": x.numpy()})
    torch.testing.assert_close(twice(x, mode), torch.from_numpy(wanted), atol=1e-6, rtol=0)


def test_fingerprint_follows_the_upsampling():
    """Of the port's own it is what it was before there was a choice."""
    torch.manual_seed(0)
    first = AnimeGANv2()
    prints = {}
    for mode in MODES:
        other = AnimeGANv2(upsampling=mode)
        other.load_state_dict(first.state_dict())
        prints[mode] = other.fingerprint()
    assert prints["align_corners"] == first.fingerprint()
    assert len(set(prints.values())) == 3


def test_an_open_upsampling_has_choices_that_share_the_weights():
    teacher = AnimeGANv2(upsampling="auto")
    choices = teacher.open_choices()
    assert tuple(choices) == MODES
    assert [choice.upsampling for choice in choices.values()] == list(MODES)
    assert {id(p) for c in choices.values() for p in c.parameters()} == {
        id(p) for p in teacher.parameters()
    }
    teacher.choose("half_pixel")
    assert teacher.upsampling == "half_pixel"
    assert not teacher.open_choices()
