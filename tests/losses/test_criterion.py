from collections.abc import Callable, Mapping
from typing import ClassVar

import pytest
import torch
from torch import nn

from distill.core.errors import DistillError
from distill.losses.criterion import Criterion, make_criterion
from distill.losses.gka import GKA
from distill.losses.ink import InkWeighted
from distill.losses.smooth_l1 import SmoothL1
from distill.losses.sobel import Sobel
from distill.losses.term import LossTerm, Reads

# A ramp of slope 0.1 over 9 columns against black, by hand: see test_sobel.py.
RAMP = (torch.arange(9) * 0.1).expand(4, 3, 5, 9)
BLACK = torch.zeros(4, 3, 5, 9)
HUBER = (sum(0.1 * i for i in range(1, 9)) - 8 * 0.025) / 9
EDGES = 0.1 * 8 / 9 / 2


@pytest.mark.parametrize(("w1", "w2"), [(1.0, 1.0), (10.0, 0.5), (0.0, 3.0)])
def test_weighted_sum_and_raw_values(w1, w2):
    terms = {"smooth_l1": SmoothL1(), "sobel": Sobel()}
    total, raw = Criterion(terms, {"smooth_l1": w1, "sobel": w2})(RAMP, BLACK)
    assert list(raw) == ["smooth_l1", "sobel"]
    assert raw["smooth_l1"].item() == pytest.approx(HUBER, rel=1e-5)
    assert raw["sobel"].item() == pytest.approx(EDGES, rel=1e-5)
    assert total.item() == pytest.approx(w1 * HUBER + w2 * EDGES, rel=1e-5)


def test_weights_of_absent_terms_do_not_count():
    criterion = Criterion({"sobel": Sobel()}, {"sobel": 2, "style": 1e6})
    total, raw = criterion(RAMP, BLACK)
    assert list(raw) == ["sobel"]
    assert total.item() == pytest.approx(2 * EDGES, rel=1e-5)


@pytest.mark.parametrize(
    ("terms", "weights", "line"),
    [
        (
            "sobel",
            {"sobel": 1.0, "dark": 0.5},
            r"^loss\.weights\.dark: no such term; there are",
        ),
        ("dark", {}, r"^loss\.terms\.dark: has no weight, add \+loss\.weights\.dark=1"),
    ],
)
def test_a_term_and_its_weight_belong_together(terms, weights, line):
    with pytest.raises(DistillError, match=line):
        make_criterion({terms: {"_target_": "distill.losses.sobel.Sobel"}}, weights, {})


def test_activations_go_to_gka_and_pictures_to_the_rest():
    criterion = Criterion(
        {"smooth_l1": SmoothL1(), "gka": GKA({"s": "t"}, "centred")}, {"smooth_l1": 1, "gka": 4}
    )
    features = torch.randn(4, 6)
    same, _ = criterion(RAMP, BLACK, {"s": features}, {"t": features * 3})
    assert same.item() == pytest.approx(HUBER, abs=1e-4)
    # Pictures that vary apart share nothing: 1 - GKA is 1.
    apart = torch.tensor([[1.0, -1, 0, 0], [0, 0, 1, -1]])
    other, raw = criterion(RAMP, BLACK, {"s": apart[0][:, None]}, {"t": apart[1][:, None]})
    assert raw["gka"].item() == pytest.approx(1, abs=1e-5)
    assert other.item() == pytest.approx(HUBER + 4, abs=1e-4)


def test_gradient_is_the_weighted_sum_of_gradients():
    def gradient(criterion: Criterion) -> torch.Tensor:
        student = RAMP.clone().requires_grad_()
        criterion(student, BLACK)[0].backward()
        return student.grad

    both = Criterion({"a": SmoothL1(), "b": Sobel()}, {"a": 2, "b": 5})
    first, second = Criterion({"a": SmoothL1()}, {"a": 1}), Criterion({"b": Sobel()}, {"b": 1})
    torch.testing.assert_close(gradient(both), 2 * gradient(first) + 5 * gradient(second))


def test_nothing_to_learn_is_refused():
    with pytest.raises(DistillError, match="every loss weight is 0"):
        Criterion({}, {"smooth_l1": 0.0})


def test_lists_the_layers_gka_needs_once_each():
    layers = {"encoder.blocks.3": "block_a", "encoder.blocks.6": "block_c", "decoder": "block_c"}
    criterion = Criterion({"sobel": Sobel(), "gka": GKA(layers)}, {"sobel": 1, "gka": 1})
    assert criterion.student_layers == ("encoder.blocks.3", "encoder.blocks.6", "decoder")
    assert criterion.teacher_layers == ("block_a", "block_c")


def test_of_pictures_alone_it_needs_no_layers():
    criterion = Criterion({"sobel": Sobel()}, {"sobel": 1})
    assert criterion.student_layers == criterion.teacher_layers == ()
    assert criterion.min_batch == 1


class Means(LossTerm):
    """A term of one's own: how far apart the means of two layers are."""

    reads = Reads.ACTIVATIONS
    min_batch = 3
    layers: ClassVar = {"own": "taught"}

    def forward(self, student: Mapping, teacher: Mapping) -> torch.Tensor:
        return (student["own"].mean() - teacher["taught"].mean()).abs()


def test_a_term_of_one_s_own_gets_what_it_states_to_read():
    # Any module of two pictures is a term, too.
    criterion = Criterion({"means": Means(), "mse": nn.MSELoss()}, {"means": 2, "mse": 1})
    assert (criterion.student_layers, criterion.teacher_layers) == (("own",), ("taught",))
    assert criterion.min_batch == 3
    ones = torch.ones(4, 2)
    total, raw = criterion(RAMP, RAMP, {"own": 3 * ones}, {"taught": ones})
    assert (total.item(), raw["mse"].item()) == (4, 0)


def test_a_batch_too_small_for_a_term_is_left_to_the_others():
    criterion = Criterion({"gka": GKA({"s": "t"}), "sobel": Sobel()}, {"gka": 1, "sobel": 1})
    small = (RAMP[:3], BLACK[:3], {"s": RAMP[:3]}, {"t": RAMP[:3]})
    assert list(criterion.eval()(*small)[1]) == ["sobel"]
    four = torch.rand(4, 3, 8, 8)
    assert list(criterion.eval()(four, four, {"s": four}, {"t": four})[1]) == ["gka", "sobel"]
    with pytest.raises(DistillError, match="at least 4, got 3"):
        criterion.train()(*small)


class Steps(LossTerm):
    """A term of one's own: how far a second pass of the network is from the first."""

    reads = Reads.NETWORK

    def forward(self, network: Callable, photo: torch.Tensor, output: torch.Tensor) -> torch.Tensor:
        return (network(photo) - output).abs().mean()


def test_a_term_that_asks_the_network_is_counted_with_the_rest():
    criterion = Criterion({"sobel": Sobel(), "steps": Steps()}, {"sobel": 1, "steps": 3})
    further = criterion.of_network(lambda photo: photo + 0.5, BLACK, BLACK)
    assert {name: v.item() for name, v in further.items()} == {"steps": 0.5}
    total, raw = criterion(RAMP, BLACK, None, None, further)
    assert list(raw) == ["sobel", "steps"]
    assert total.item() == pytest.approx(EDGES + 1.5, rel=1e-5)
    assert Criterion({"sobel": Sobel()}, {"sobel": 1}).of_network(lambda x: x, RAMP, RAMP) == {}


def names(criterion: Criterion) -> list[str]:
    """The terms that count, in the total too."""
    asked = criterion.of_network(lambda photo: photo + 1, BLACK, BLACK)
    total, raw = criterion(RAMP, BLACK, None, None, asked)
    values = {"sobel": EDGES, "mse": (RAMP**2).mean().item(), "steps": 1.0}
    assert total.item() == pytest.approx(sum(values[name] for name in raw), rel=1e-5)
    return list(raw)


def late() -> Criterion:
    terms = {"sobel": Sobel(), "mse": nn.MSELoss(), "steps": Steps()}
    return Criterion(terms, dict.fromkeys(terms, 1.0), {"mse": 0.8, "steps": 0.9})


@pytest.mark.parametrize("steps", [10, 30, 600, 4000, 7])
def test_a_term_counts_from_its_share_of_the_run_on(steps):
    criterion, counted = late(), {}
    for step in range(steps):
        criterion.advance(step / steps)
        counted[step] = names(criterion) if step % (steps // 5) < 2 or steps < 40 else None
    for step, found in counted.items():
        # In whole numbers: 10 · step against 8 and 9 times the length.
        wanted = ["sobel"] + ["mse"] * (10 * step >= 8 * steps)
        wanted += ["steps"] * (10 * step >= 9 * steps)
        assert found in (None, wanted)


def test_all_terms_count_where_nobody_says_how_far_the_run_is_and_in_evaluation():
    criterion = late()
    assert names(criterion) == ["sobel", "mse", "steps"]
    criterion.advance(0.0)
    assert names(criterion) == ["sobel"]
    assert names(criterion.eval()) == ["sobel", "mse", "steps"]


def test_terms_that_all_start_late_are_refused():
    with pytest.raises(DistillError, match="every term starts late"):
        Criterion({"sobel": Sobel()}, {"sobel": 1}, {"sobel": 0.5, "mse": 0.0})


def test_a_region_weighs_the_difference_in_terms_by_pixel():
    """On SmoothL1's linear side a weight of 3 is three times the difference; Sobel is exact."""

    class Squares(LossTerm):
        def forward(self, student: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
            return (student - target).square().mean()

    terms = {"l1": SmoothL1(), "sobel": Sobel(), "ink": InkWeighted(), "other": Squares()}
    criterion = Criterion(terms, dict.fromkeys(terms, 1.0))
    target, region = torch.full((2, 3, 8, 8), 0.5), torch.ones(2, 1, 8, 8)
    target[..., 4, :] = 0.1  # a line, for the ink
    student = target + 0.2
    _, plain = criterion(student, target)
    _, once = criterion(student, target, region=region)
    assert {n: v.item() for n, v in once.items()} == pytest.approx(
        {n: v.item() for n, v in plain.items()}
    )
    _, thrice = criterion(student, target, region=3 * region)
    assert thrice["l1"].item() == pytest.approx(3 * 0.2 - 0.025, rel=1e-5)
    assert thrice["ink"].item() == pytest.approx(3 * plain["ink"].item(), rel=1e-4)
    assert thrice["other"].item() == pytest.approx(plain["other"].item())
    region[:, :, :, :4] = 3
    _, half = criterion(student, target, region=region)
    assert half["l1"].item() == pytest.approx(2 * 0.2 - 0.025, rel=1e-5)
    # The difference steps from 0.6 to 0.2 between two columns: Sobel sees it in both.
    assert half["sobel"].item() == pytest.approx(2 * 0.4 / 2 / 8 / 2, rel=1e-4)
