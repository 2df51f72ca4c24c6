"""Heads: what their pictures are, where students begin, and what every one of them exports to."""

import io

import numpy as np
import onnxruntime
import pytest
import torch
from scipy.cluster.vq import kmeans
from skimage.color import rgb2lab
from torch import nn

from distill.core.errors import DistillError
from distill.export.graph.operator_gate import foreign_operators
from distill.export.graph.plain import SigmoidMixture
from distill.export.onnx import OnnxExporter
from distill.metrics.complexity import graph_macs
from distill.models.batchnorm import fold_batchnorm
from distill.models.build import build_student
from distill.models.students.heads import (
    LayersHead,
    Mixture,
    PaletteHead,
    PredictedPaletteHead,
    initial_state,
)

INKS = ["#0b2b44", "#d3222c", "#6c9ca6", "#fbeec2"]
HEADS = {
    "palette": {"_target_": "distill.models.students.heads.PaletteHead", "inks": INKS},
    "two": {"_target_": "distill.models.students.heads.PaletteHead", "inks": INKS[:2]},
    "layers": {"_target_": "distill.models.students.heads.LayersHead", "opacity": 0.85},
    "coloured": {"_target_": "distill.models.students.heads.LayersHead", "ink": None},
    "tones": {"_target_": "distill.models.students.heads.LayersHead", "tones": [0.1, 0.5, 0.9]},
    "predicted": {"_target_": "distill.models.students.heads.PredictedPaletteHead", "count": 4},
}
# All heads in the profiles with most and fewest operators; `transposed` gives the summary apart.
IN_FILES = [*((head, "global") for head in HEADS), ("palette", "strict"), ("palette", "transposed")]
IN_FILES += [  # predicted inks need operators that only `global` has
    pytest.param(head, "strict", marks=pytest.mark.slow)
    for head in ("two", "layers", "coloured", "tones")
]
ENCODER = {
    "_target_": "distill.models.students.encoder.MobileNetV2Encoder",
    "width": 0.25,
    "weights": "none",
    "expansion": 2,
}
DECODERS = {
    "detail": {"_target_": "distill.models.students.decoders.detail.Detail"},
    "nnconv": {"_target_": "distill.models.students.decoders.nnconv.NNConv"},
    "fastdepth": {"_target_": "distill.models.students.decoders.fastdepth.FastDepth"},
    "residual": {"_target_": "distill.models.students.decoders.residual.Residual"},
}


def student_of(head, decoder="detail", statistics="thumbnail", channels=3):
    torch.manual_seed(0)
    return build_student(ENCODER, DECODERS[decoder], channels, statistics, head).eval()


def colours(*texts):
    return torch.tensor([[*bytes.fromhex(text[1:])] for text in texts]) / 255


def test_a_palette_gives_the_ink_of_the_largest_logit():
    head = PaletteHead(INKS, sharpness=100)
    logits = torch.zeros(1, 3, 1, 4)
    logits[0, :, 0, 0] = -1  # all below the first, whose logit is 0
    for place in (1, 2, 3):
        logits[0, place - 1, 0, place] = 1
    picture = head(logits)[0, :, 0].T
    torch.testing.assert_close(picture, colours(*INKS), atol=1e-6, rtol=0)


@pytest.mark.parametrize("count", [2, 3, 32])
def test_a_palette_mixes_as_softmax_does(count):
    inks = [f"#{value:06x}" for value in range(0, 2**24, 2**24 // count)][:count]
    logits = torch.randn(2, count - 1, 3, 5)
    shares = torch.softmax(2.5 * torch.cat([torch.zeros(2, 1, 3, 5), logits], 1), 1)
    expected = torch.einsum("nkhw,kc->nchw", shares, colours(*inks))
    torch.testing.assert_close(PaletteHead(inks, sharpness=2.5)(logits), expected)


def test_layers_put_ink_over_paint_by_their_share():
    head = LayersHead(ink="#204060", opacity=0.8)
    logits = torch.randn(1, 4, 3, 3)
    paint, alpha = torch.sigmoid(logits[:, :3]), 0.8 * torch.sigmoid(-logits[:, 3:])
    ink = colours("#204060").view(1, 3, 1, 1)
    torch.testing.assert_close(head(logits), (1 - alpha) * paint + alpha * ink)


def test_paint_of_tones_is_gathered_at_the_nearest():
    """Without colour it is grey of that lightness (CIE 1976), else σ(colour + the grey's logit)."""
    tones = [0.2, 0.5, 0.8]
    head = LayersHead(tones=tones, sharpness=200)
    logits = torch.zeros(1, 5, 1, 6)
    logits[:, 3] = 50  # no line
    logits[0, 4, 0] = torch.tensor([-0.3, 0.3, 0.4, 0.6, 0.7, 1.4])
    grey = head(logits)
    light = rgb2lab(grey[0].movedim(0, -1).numpy())[0]
    np.testing.assert_allclose(light[:, 0], [20, 20, 50, 50, 80, 80], atol=0.1)
    np.testing.assert_allclose(light[:, 1:], 0, atol=0.1)
    logits[:, :3] = colour = torch.tensor([-2.0, 1.0, 0.5]).view(3, 1, 1)
    torch.testing.assert_close(head(logits), torch.sigmoid(colour + grey.logit()))


def test_tones_are_decided_by_squared_distances():
    """Classes are the tones, a softmax of −k (lightness − tone)², and line."""
    tones = torch.tensor([0.1, 0.4, 0.9])
    head, decided = LayersHead(tones=tones.tolist()), []
    head.decision.register_forward_hook(lambda *hooked: decided.append(hooked[2]))
    logits = torch.randn(2, 5, 4, 4)
    head(logits)
    away = (logits[:, 4:] - tones.view(1, 3, 1, 1)).square()
    nearest = torch.softmax(-3 / 0.3**2 * away, 1)
    bare = torch.sigmoid(logits[:, 3:4])
    expected = torch.cat([bare * nearest, 1 - bare], 1)
    torch.testing.assert_close(torch.softmax(decided[0], 1), expected)


def test_the_tone_of_a_target_is_that_of_its_paint():
    """Lightness .5 lies at sRGB .466 (CIE 1976), also where a line covers half of it."""
    head = LayersHead(tones=[0.2, 0.5, 0.8])
    picture = torch.full((1, 3, 1, 2), 0.466) * torch.tensor([1.0, 0.5])
    shares = head.target_classes(picture, lines=torch.tensor([[[[0.0, 0.5]]]]))
    torch.testing.assert_close(shares[0, :, 0].T, torch.tensor([[0, 1.0, 0, 0], [0, 0.5, 0, 0.5]]))


def test_a_student_of_tones_goes_on_from_one_of_layers():
    """Its lines stay, to the bit; its paint is that of the colours, as from a student without."""
    first, student = student_of(HEADS["layers"] | {"opacity": 1.0}), student_of(HEADS["tones"])
    for parameter in first.parameters():
        torch.nn.init.normal_(parameter, std=0.05)
    plain = student_of(None, channels=4).state_dict()
    student.load_state_dict(initial_state(student, student.head, first.state_dict(), plain))
    logits, photo = {}, torch.rand(1, 3, 64, 64)
    for network in (first, student):
        network.head.bare.register_forward_hook(
            lambda _, seen, bare, network=network: logits.update({network: (seen[0], bare)})
        )
        with torch.no_grad():
            network(photo)
    (before, lines), (after, kept) = logits[first], logits[student]
    assert torch.equal(kept, lines)
    # Gains by channel become their mean; the photo's own are equal.
    weight = student.decoder.out.weight
    luma = torch.tensor([0.299, 0.587, 0.114]) / 4
    colours = first.decoder.out.weight[:, :3]
    torch.testing.assert_close(weight[:, 4], torch.einsum("c,ic...->i...", luma, colours))
    assert after.shape[1] == before.shape[1] + 1


def test_shares_of_two_inks_are_linear_between_them():
    head = PaletteHead(["#000000", "#ffffff"])
    picture = torch.full((1, 3, 1, 1), 0.25)
    assert head.target_classes(picture).flatten().tolist() == [0.75, 0.25]


def test_the_layer_is_the_share_of_lines_by_their_opacity():
    shares = LayersHead(opacity=0.5).target_classes(
        torch.ones(1, 3, 1, 2), lines=torch.tensor([[[[0.25, 0.5]]]])
    )
    assert shares[0, 1].flatten().tolist() == [0.5, 1.0]


def test_without_the_layer_thin_dark_lines_are_the_layer():
    picture = torch.ones(1, 3, 16, 16)
    picture[..., 8, :] = 0
    line = LayersHead().target_classes(picture)[0, 1]
    assert line[8].min() == 1
    assert line[:6].max() == 0


def test_predicted_inks_are_given_by_the_description_and_a_pixel_has_the_nearest():
    head = PredictedPaletteHead(4, sharpness=1e5)
    centres, inks = torch.rand(2, 4, 3, generator=torch.Generator().manual_seed(0))
    points = torch.rand(3, 50)
    numbers = torch.cat([torch.ones(1), centres.flatten(), inks.flatten()])
    picture = head(points[None, :, None], numbers.view(1, -1, 1, 1))
    nearest = torch.cdist(points.T, centres).argmin(1)
    torch.testing.assert_close(picture[0, :, 0].T, inks[nearest], atol=1e-4, rtol=0)


def test_an_untrained_palette_has_the_colours_of_the_photo():
    colours_of_photo = colours(*INKS)[torch.randint(4, (32, 32))].movedim(-1, 0)
    thumbnail = colours_of_photo.repeat_interleave(8, 1).repeat_interleave(8, 2)[None]
    head = PredictedPaletteHead(4)
    spread, *palette = head.describe(thumbnail).flatten()
    centres, inks = torch.tensor(palette).view(2, 4, 3)
    assert float(spread) < 1e-3  # the colours are the centres
    away = torch.cdist(colours(*INKS), centres)
    assert away.amin(1).max() < 1e-2
    torch.testing.assert_close(inks, torch.sigmoid(4 * (centres - 0.5)), atol=1e-3, rtol=0)


def test_a_palette_is_as_near_to_the_colours_as_that_of_scipy():
    photo = torch.rand(1, 3, 4, 4, generator=torch.Generator().manual_seed(3))
    points = torch.nn.functional.interpolate(photo, size=(32, 32), mode="bicubic").flatten(2)
    centres, shares = PredictedPaletteHead(5).palette.centres(points)
    colours_of_photo = points[0].T.double().numpy()
    _, mean_distance = kmeans(colours_of_photo, 5, iter=20, rng=0)
    assert torch.cdist(points[0].T, centres[0]).amin(1).mean() <= 1.1 * mean_distance
    torch.testing.assert_close(shares.sum(2), torch.ones(1, 5))


@pytest.mark.parametrize("inks", [[], INKS[:1], ["#000000"] * 33])
def test_one_ink_or_too_many_are_refused(inks):
    with pytest.raises(DistillError, match="want 2 to 32 inks"):
        PaletteHead(inks)


@pytest.mark.parametrize(
    ("make", "line"),
    [
        (lambda: PaletteHead(["red", "#ffffff"]), "'red' is no colour; want #rrggbb"),
        (lambda: LayersHead(opacity=0), "head.opacity=0: above 0, at most 1"),
        (lambda: LayersHead(tones=[0.5]), "a palette of 1, want 2 to 32 tones"),
        (lambda: LayersHead(tones=[0.5, 0.2]), r"head.tones=\[0.5, 0.2\]: from 0 to 1, each above"),
        (lambda: LayersHead(sharpness=-1), "head.sharpness=-1: above 0"),
        (lambda: PredictedPaletteHead(1), "a palette of 1, want 2 to 32 inks"),
    ],
)
def test_wrong_arguments_are_one_line(make, line):
    with pytest.raises(DistillError, match=line):
        make()


def test_targets_of_other_colours_are_refused():
    PaletteHead(INKS).check_target(colours(INKS[2]).view(3, 1, 1).expand(3, 8, 8))
    with pytest.raises(DistillError, match="far from every ink"):
        PaletteHead(INKS).check_target(colours("#30ff30").view(3, 1, 1).expand(3, 8, 8))


def test_inks_by_number_begin_at_those_of_the_targets():
    head = PaletteHead(4)
    pixels = colours(*INKS)[torch.randint(4, (3, 40, 50))].movedim(-1, 1)
    with pytest.raises(DistillError, match="far from every ink"):
        head.check_target(pixels[0])
    head.begin_at(pixels)
    torch.testing.assert_close(head.inks.data, colours(*INKS), atol=1e-3, rtol=0)  # by lightness
    head.check_target(pixels[0])
    assert head.inks.requires_grad
    other = PaletteHead(4)
    other.load_state_dict(head.state_dict())
    torch.testing.assert_close(other.inks, head.inks)


def test_a_decoder_that_ends_by_itself_takes_no_head():
    class Own(nn.Module):
        def __init__(self, channels, strides, out_channels):
            super().__init__()

    import sys

    module = sys.modules[__name__]
    module.Own = Own
    node = {"_target_": f"{__name__}.Own"}
    with pytest.raises(DistillError, match="Own has no `activation`"):
        build_student(ENCODER, node, 3, "none", HEADS["two"])


def test_predicted_inks_need_the_whole_picture():
    with pytest.raises(DistillError, match="add global_statistics=thumbnail"):
        student_of(HEADS["predicted"], statistics="none")(torch.rand(1, 3, 64, 64))


@pytest.mark.parametrize("decoder", DECODERS)
@pytest.mark.parametrize("head", HEADS)
def test_every_decoder_takes_every_head(decoder, head):
    student = student_of(HEADS[head], decoder)
    with torch.no_grad():
        output = student(torch.rand(2, 3, 64, 96))
    assert output.shape == (2, 3, 64, 96)
    assert output.min() >= 0
    assert output.max() <= 1


@pytest.mark.parametrize("head", ["palette", "layers"])
def test_a_student_goes_on_from_one_without_a_head(head):
    """The photo, which an untrained student gives, is printed in the inks nearest to it."""
    plain, student = student_of(None), student_of(HEADS[head])
    student.load_state_dict(
        initial_state(
            student, student.head, plain.state_dict(), student_of(None, channels=4).state_dict()
        )
    )
    student.head.sharpness.fill_(50)
    inks = colours(*INKS)
    photo = inks[torch.randint(4, (64, 64))].permute(2, 0, 1)[None]
    photo = torch.nn.functional.interpolate(photo[..., :8, :8], scale_factor=8.0)
    with torch.no_grad():
        before, after = plain(photo), student(photo)
    if head == "layers":
        torch.testing.assert_close(after, before, atol=1e-4, rtol=0)
    else:
        assert (after - photo).abs().mean() < 0.5 * (before - photo).abs().mean()


@pytest.mark.parametrize("head", ["palette", "layers", "tones", "predicted"])
def test_a_student_goes_on_from_one_with_the_same_head(head):
    """What was learnt stays, of the head too; what is a setting is the new run's."""
    first, student = student_of(HEADS[head]), student_of(HEADS[head] | {"sharpness": 2.0})
    for parameter in first.parameters():
        torch.nn.init.normal_(parameter, std=0.05)
    plain = student_of(None, channels=4).state_dict()
    student.load_state_dict(initial_state(student, student.head, first.state_dict(), plain))
    assert float(student.head.sharpness) == 2
    for (name, before), after in zip(first.named_parameters(), student.parameters(), strict=True):
        assert torch.equal(before, after), name


@pytest.mark.parametrize(("head", "profile"), IN_FILES)
def test_files_compute_what_the_network_does(head, profile):
    network = fold_batchnorm(student_of(HEADS[head]))
    network.head.sharpness.fill_(3)
    exporter = OnnxExporter(profile=profile, size=256)
    model = exporter.export(network)
    assert foreign_operators(model, profile) == []
    session = onnxruntime.InferenceSession(model.SerializeToString())
    photo = torch.rand(1, 3, 256, 256)
    with torch.no_grad():
        feed = {"photo": photo.numpy()}
        if exporter.summary_is_input(network):
            feed["summary"] = network.summary(photo).numpy()
        expected = network(photo).numpy()
    np.testing.assert_allclose(session.run(None, feed)[0], expected, atol=2e-5)


def test_mixtures_are_softmax_times_inks_for_large_logits_too():
    logits = torch.randn(1, 6, 8, 8) * torch.tensor([0.0, 1, 3, 10, 15, 10]).view(6, 1, 1)
    inks = torch.rand(6, 3)
    expected = torch.einsum("nkhw,kc->nchw", torch.softmax(logits, 1), inks)
    for mixture in (Mixture(6), SigmoidMixture(6)):
        torch.testing.assert_close(mixture(logits, inks), expected, atol=1e-6, rtol=1e-4)


def test_a_palette_costs_what_its_channels_do():
    """Of ink k's logit 4 × 16 MACs a pixel of half the side; two 1×1 convolutions at full size."""
    costs = [
        graph_macs(OnnxExporter(size=64, profile="transposed").export(fold_batchnorm(network)))
        for network in (
            student_of(None, statistics="none"),
            student_of(HEADS["palette"], statistics="none"),
        )
    ]
    assert costs[1] - costs[0] == 64 * 64 * (3 * 4 + 4 * 4)


def test_a_head_travels_in_a_state_dict():
    student, other = student_of(HEADS["palette"]), student_of(HEADS["palette"])
    student.head.sharpness.fill_(4)
    buffer = io.BytesIO()
    torch.save(student.state_dict(), buffer)
    buffer.seek(0)
    other.load_state_dict(torch.load(buffer, weights_only=True))
    assert float(other.head.sharpness) == 4
