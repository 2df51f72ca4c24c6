import os
from pathlib import Path

import numpy as np
import pytest
import pytorch_fid.fid_score as fid_score
import pytorch_fid.inception as fid_inception
import scipy.linalg
import torch
import torchvision
from PIL import Image
from torch import Tensor, nn

from distill.core.errors import DistillError
from distill.metrics import features
from distill.metrics.features import FeatureNetwork, Inception, MobileNet, feature_network
from distill.metrics.frechet import frechet_from_features

State = dict[str, Tensor]


def calibrated(network: nn.Module, pictures: Tensor) -> State:
    """State of a random network whose norms have seen pictures, so that features have a size."""
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.momentum = 1.0
    with torch.no_grad():
        network.train()(pictures)
    return network.state_dict()


@pytest.fixture(scope="module")
def inception(pictures):
    """Random weights in the layout of pytorch-fid's file, which is not available in tests."""
    torch.manual_seed(0)
    found: dict[str, nn.Module] = {}

    class Caught(Exception):
        pass

    def catch(network: nn.Module, _state: object) -> None:
        found["network"] = network
        raise Caught

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fid_inception, "load_state_dict_from_url", lambda *_a, **_k: {})
        patch.setattr(torchvision.models.Inception3, "load_state_dict", catch)
        with pytest.raises(Caught):
            fid_inception.fid_inception_v3()
    photos = torch.stack([tensor(p) for p in pictures[::2]])
    return calibrated(found["network"], nn.functional.interpolate(photos * 2 - 1, 139))


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """12 small PNGs, the second half smoother and darker."""
    folder, rng = tmp_path_factory.mktemp("pictures"), np.random.default_rng(0)
    for i in range(12):
        side, top = (48, 255) if i < 6 else (6, 160)
        values = rng.integers(0, top, size=(side, side, 3), dtype=np.uint8)
        Image.fromarray(values).resize((48, 40)).save(folder / f"{i:02}.png")
    return sorted(folder.iterdir())


def tensor(path: Path) -> Tensor:
    values = np.asarray(Image.open(path).convert("RGB"), np.float32) / 255
    return torch.from_numpy(values.transpose(2, 0, 1).copy())


def distance(a: np.ndarray, b: np.ndarray) -> float:
    """pytorch-fid's formula, in the few dimensions that 12 pictures span: a rotation of them."""
    basis = np.linalg.qr(np.concatenate([a, b]).T)[0]
    x, y = a @ basis, b @ basis
    s, t = np.cov(x, rowvar=False), np.cov(y, rowvar=False)
    gap = x.mean(0) - y.mean(0)
    root = scipy.linalg.sqrtm(s @ t + 1e-12 * np.eye(len(s)))
    return float(gap @ gap + np.trace(s + t - 2 * root.real))


@pytest.mark.campaign
def test_inception_is_pytorch_fids(inception, pictures, monkeypatch):
    monkeypatch.setattr(fid_inception, "load_state_dict_from_url", lambda *_a, **_k: inception)
    theirs = fid_inception.InceptionV3([3])
    monkeypatch.undo()
    x = fid_score.get_activations(pictures, theirs, batch_size=4, num_workers=0)
    batches = [torch.stack([tensor(p) for p in pictures[i : i + 3]]) for i in range(0, 12, 3)]
    y = Inception(inception).features(batches, 12, "tests")
    assert y.shape == (12, 2048)
    assert y.dtype == np.float64
    np.testing.assert_allclose(y, x, atol=1e-4, rtol=1e-3)
    expected = distance(x[:6], x[6:])
    assert expected > 1  # random or not, the halves are told apart
    # The order of float32 sums is another one: no more than some 1e-7 for each of the 94 layers.
    assert frechet_from_features(y[:6], y[6:]) == pytest.approx(expected, rel=5e-6)


def test_inception_lends_its_loader_only_while_it_builds(inception):
    before = fid_inception.load_state_dict_from_url
    network = Inception(inception)
    assert fid_inception.load_state_dict_from_url is before
    assert not network.training
    assert not any(p.requires_grad for p in network.parameters())
    with pytest.raises(RuntimeError):
        Inception({})
    assert fid_inception.load_state_dict_from_url is before


def test_no_norm_is_left_and_no_convolution_lost(inception, mobilenet):
    for network, convolutions in ((Inception(inception), 94), (MobileNet(mobilenet), 52)):
        kinds = [type(module) for module in network.modules()]
        assert nn.BatchNorm2d not in kinds
        assert kinds.count(nn.Conv2d) == convolutions
        assert not any(module.training for module in network.modules())


@pytest.mark.slow
def test_a_features_value_is_its_pictures_alone(inception, pictures):
    """Whatever is beside it in the batch, and in whichever layout it comes."""
    network = Inception(inception)
    batch = torch.stack([tensor(path) for path in pictures[4:8]])
    together = network(batch)
    torch.testing.assert_close(network(batch[2:3]), together[2:3], rtol=1e-4, atol=1e-4)
    last = batch.contiguous(memory_format=torch.channels_last)
    assert torch.equal(network(last), together)


def test_a_fingerprint_knows_the_weights(mobilenet, monkeypatch):
    names = {MobileNet(mobilenet).fingerprint, MobileNet(dict(mobilenet)).fingerprint}
    assert len(names) == 1
    other = {k: v.clone() for k, v in mobilenet.items()}
    other["features.3.conv.1.1.running_var"][5] *= 1.001  # folded away, and still part of it
    names.add(MobileNet(other).fingerprint)
    monkeypatch.setattr(MobileNet, "resize", "otherwise")
    names.add(MobileNet(mobilenet).fingerprint)
    monkeypatch.undo()
    monkeypatch.setattr(features, "VERSION", features.VERSION + 1)
    names.add(MobileNet(mobilenet).fingerprint)
    assert len(names) == 4


@pytest.fixture(scope="module")
def mobilenet():
    torch.manual_seed(0)
    return calibrated(torchvision.models.mobilenet_v2(weights=None), torch.rand(8, 3, 96, 96))


def test_mobilenet_reads_the_pooled_features(mobilenet):
    """What torchvision's own network hands to its classifier, at the size that needs no resize."""
    theirs = torchvision.models.mobilenet_v2(weights=None).eval()
    theirs.load_state_dict(mobilenet)
    seen = []
    theirs.classifier.register_forward_pre_hook(lambda _m, args: seen.append(args[0]))
    pictures = torch.rand(2, 3, 224, 224)
    with torch.no_grad():
        theirs(pictures * 2 - 1)
        ours = MobileNet(mobilenet)(pictures)
    assert ours.shape == (2, 1280)
    torch.testing.assert_close(ours, seen[0], atol=1e-4, rtol=1e-3)


def test_features_joins_batches_in_order():
    class Mean(FeatureNetwork):
        def forward(self, pictures: Tensor) -> Tensor:
            return pictures.mean((2, 3))

    values = torch.rand(5, 3)
    pictures = values[:, :, None, None].expand(5, 3, 4, 4)
    got = Mean().features([pictures[:2], pictures[2:4], pictures[4:]], 5, "tests")
    assert got.dtype == np.float64
    np.testing.assert_allclose(got, values.numpy(), rtol=1e-6)


def test_none_has_no_network():
    assert feature_network("none") is None


@pytest.mark.usefixtures("no_downloads")
@pytest.mark.parametrize(
    ("name", "file"),
    [("inception", "pt_inception-2015-12-05"), ("mobilenet", "mobilenet_v2_100.safetensors")],
)
def test_missing_weights_are_named(name, file):
    with pytest.raises(DistillError, match=file) as error:
        feature_network(name)
    assert "DISTILL_WEIGHTS" in str(error.value)
    assert "available" not in str(error.value)


def test_real_mobilenet_tells_photos_from_noise(assets, monkeypatch):
    monkeypatch.setenv("DISTILL_WEIGHTS", str(assets / "encoders"))
    network = feature_network("mobilenet")
    assert network is not None
    folder = assets / "photos/people"
    if not folder.is_dir():
        pytest.skip(f"no photos in {folder}")
    files = sorted(os.listdir(folder))[::60][:8]
    photos = torch.stack([small(folder / name) for name in files])
    grainy = (photos + 0.01 * torch.randn_like(photos)).clamp(0, 1)
    x, near, far = np.split(
        network.features([photos, grainy, torch.rand_like(photos)], 24, "tests"), 3
    )
    assert frechet_from_features(x, far) > 5 * frechet_from_features(x, near)


def small(path: Path) -> Tensor:
    values = np.asarray(Image.open(path).convert("RGB").resize((160, 160)), np.float32) / 255
    return torch.from_numpy(values.transpose(2, 0, 1).copy())


def test_where_the_features_are_computed(monkeypatch):
    for there, kind in ((True, "cuda"), (False, "cpu")):
        monkeypatch.setattr(torch.cuda, "is_available", lambda there=there: there)
        assert features._device().type == kind


def test_one_network_is_offered_where_only_the_other_is_there(monkeypatch, tmp_path):
    monkeypatch.setattr(features.weights_files, "find_or_none", lambda _: tmp_path / "there")

    def missing(file: features.WeightsFile) -> Path:
        raise DistillError(f"{file.name}: missing")

    monkeypatch.setattr(features.weights_files, "find", missing)
    with pytest.raises(DistillError, match="MobileNetV2's are available: features=mobilenet, in"):
        features.feature_network("inception")
    with pytest.raises(DistillError, match=r"missing$"):
        features.feature_network("mobilenet")


def test_large_pictures_are_made_smaller_with_antialiasing(mobilenet):
    """Stripes three pixels wide are grey at a quarter of the size, unless pixels are picked."""
    stripes = (torch.arange(896) // 3 % 2).float().expand(1, 3, 896, 896)
    network = MobileNet(mobilenet)
    seen: list[torch.Tensor] = []
    monkey = network.net.features.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    network(stripes)
    monkey.remove()
    assert seen[0].shape[-2:] == (224, 224)
    assert seen[0].std() < 0.3  # picked pixels: 0.9
