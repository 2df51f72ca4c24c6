import numpy as np
import pytest
import torch
import torchvision
from scipy.ndimage import gaussian_filter
from skimage.metrics import structural_similarity
from torch import Tensor

from distill.core.arrays import over_white
from distill.core.errors import DistillError
from distill.metrics.similarity import (
    LPIPS,
    MaskIoU,
    MeanError,
    grid,
    lpips_or_none,
    psnr,
    ssim,
)


@pytest.mark.parametrize(("gap", "decibel"), [(0.1, 20.0), (0.01, 40.0), (1.0, 0.0), (0.5, 6.0206)])
def test_psnr_by_formula(gap, decibel):
    a = torch.zeros(1, 3, 4, 4)
    assert psnr(a, a + gap).item() == pytest.approx(decibel, abs=1e-3)


def test_psnr_is_per_picture_and_ends_at_100():
    a = torch.rand(3, 3, 8, 8)
    b = a.clone()
    b[1, :, :4] += 0.2  # half the values are 0.2 off: an error of 0.02
    values = psnr(a, b)
    assert values.shape == (3,)
    torch.testing.assert_close(values, torch.tensor([100.0, 16.9897, 100.0]), atol=1e-3, rtol=0)


def test_ssim_against_scikit_image():
    rng = np.random.default_rng(0)
    a = gaussian_filter(rng.random((3, 48, 37)), (0, 2, 2)).astype(np.float32)
    b = (a + 0.05 * rng.normal(size=a.shape)).clip(0, 1).astype(np.float32)
    expected = structural_similarity(
        a, b, channel_axis=0, data_range=1, gaussian_weights=True, sigma=1.5,
        use_sample_covariance=False,
    )  # fmt: skip
    assert expected < 0.95
    got = ssim(torch.from_numpy(a)[None], torch.from_numpy(b)[None])
    assert got.item() == pytest.approx(expected, abs=1e-4)


def test_ssim_does_not_look_beyond_the_border():
    """One window fits into 11 pixels: what is wrong in a corner weighs as its centre sees it."""
    a = torch.full((1, 1, 11, 11), 0.5)
    b = a.clone()
    b[..., 0, 0] = 1.0
    weight = np.exp(-0.5 * (np.arange(-5, 6) / 1.5) ** 2)
    corner = (weight[0] / weight.sum()) ** 2
    mean, var = 0.5 + 0.5 * corner, 0.25 * corner * (1 - corner)
    expected = (mean + 1e-4) / (0.25 + mean**2 + 1e-4) * 9e-4 / (var + 9e-4)
    assert ssim(a, b).item() == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("size", [(10, 40), (40, 10)])
def test_ssim_wants_a_whole_window(size):
    a = torch.rand(1, 3, *size)
    with pytest.raises(DistillError, match=f"11 pixels, and these are of {size[0]}×{size[1]}"):
        ssim(a, a)


def test_figures_of_mattes():
    a, b = torch.zeros(2, 1, 8, 8), torch.zeros(2, 1, 8, 8)
    a[0, :, :4], b[0, :, 2:6] = 0.8, 0.9  # rows 0–3 and 2–5: 2 of 6 rows are in both
    a[1], b[1] = 0.4, 0.1  # nobody in either
    ours, theirs = over_white(a), over_white(b)  # as eval_fid has them
    assert MaskIoU()(ours, theirs).tolist() == pytest.approx([1 / 3, 1.0])
    assert MeanError()(ours, theirs).tolist() == pytest.approx([(1.6 + 0.2 + 1.8) / 8, 0.3])


def test_ssim_of_flat_pictures():
    """No structure, so only the means speak: (2ab + c) / (a² + b² + c)."""
    a, b = torch.full((1, 3, 16, 16), 0.2), torch.full((1, 3, 16, 16), 0.6)
    expected = (2 * 0.2 * 0.6 + 1e-4) / (0.04 + 0.36 + 1e-4)
    assert ssim(a, b).item() == pytest.approx(expected, abs=1e-3)


@pytest.fixture(scope="module")
def alexnet():
    torch.manual_seed(0)
    return torchvision.models.AlexNet(num_classes=1).features.eval()


@pytest.fixture(scope="module")
def lpips(alexnet):
    return LPIPS({f"features.{k}": v for k, v in alexnet.state_dict().items()})


def test_lpips_by_the_papers_formula(lpips, alexnet):
    """Σ over layers of mean over places of w·(â - b̂)², with features of unit length."""
    a, b = torch.rand(2, 3, 64, 64), torch.rand(2, 3, 64, 64)
    mean = torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)
    std = torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1)
    heads = {k: v for k, v in lpips.state_dict().items() if ".lins." in k and "weight" in k}
    assert len(heads) == 5

    def unit(picture: Tensor) -> list[Tensor]:
        x, out = (picture - mean) / std, []
        for layer in alexnet:
            x = layer(x)
            if isinstance(layer, torch.nn.ReLU):
                out.append(x / x.square().sum(1, keepdim=True).clamp_min(1e-12).sqrt())
        return out

    expected = sum(
        ((x - y).square() * head.flatten().view(1, -1, 1, 1)).sum(1).mean((1, 2))
        for x, y, head in zip(unit(a), unit(b), heads.values(), strict=True)
    )
    got = lpips(a, b)
    assert got.shape == (2,)
    assert got.min() > 0
    # LPIPS rounds the mean and deviation to two or three digits.
    torch.testing.assert_close(got, expected, rtol=0.02, atol=1e-4)


def test_lpips_only_where_the_weights_are(monkeypatch, tmp_path):
    def refuse(*_args: object) -> None:
        raise AssertionError("LPIPS must not download on its own")

    monkeypatch.setattr("distill.core.weights._fetch", refuse)
    monkeypatch.setenv("DISTILL_WEIGHTS", str(tmp_path))
    assert lpips_or_none() is None


ROW, COLUMN = torch.arange(34)[:, None], torch.arange(50)
WAYS = {"columns": COLUMN + 0 * ROW, "rows": ROW + 0 * COLUMN, "checkerboard": ROW + COLUMN}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("amplitude", [0.02, 0.3])
def test_a_pattern_has_its_amplitude(way, amplitude):
    pattern = 0.5 + amplitude * (1 - 2 * (WAYS[way] % 2))
    pictures = torch.stack([pattern.expand(3, -1, -1), torch.full((3, 34, 50), 0.5)])
    assert grid(pictures).tolist() == pytest.approx([amplitude, 0], abs=1e-6)


def test_slopes_and_wider_patterns_have_none():
    slope = (0.01 * COLUMN + 0.005 * ROW).expand(1, 3, -1, -1)
    stripes = (COLUMN // 2 % 2 + 0.0 * ROW).expand(1, 3, -1, -1)  # a period of four
    assert grid(slope).item() == pytest.approx(0, abs=1e-6)
    assert grid(stripes).item() == pytest.approx(0, abs=1e-6)


def test_noise_cancels_out():
    noise = 0.1 * torch.randn(4, 3, 258, 258, generator=torch.Generator().manual_seed(0))
    assert grid(noise).max() < 0.1 / 8
