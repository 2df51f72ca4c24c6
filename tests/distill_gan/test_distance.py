from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytorch_lightning as pl
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

from distill.core.errors import DistillError
from distill_gan.distance import Distance
from support.feature_networks import Means


class Model(pl.LightningModule):
    """Adds `shift` to what it is given."""

    def __init__(self, shift: float) -> None:
        super().__init__()
        self.shift = nn.Parameter(torch.tensor(shift))

    def training_step(self, batch: Any, index: int) -> Tensor:
        return self.shift**2

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), lr=0.0)

    def validation_step(self, batch: dict[str, Tensor], index: int) -> dict[str, Tensor]:
        if "target" in batch:
            return {"output": batch["photo"] + self.shift, "target": batch["target"]}
        there, back = batch["a"] + self.shift, batch["b"] - self.shift
        return {"a": batch["a"], "to_b": there, "b": batch["b"], "to_a": back}


def flat(values: list[int], channels: int = 3) -> Tensor:
    """Pictures of one grey each, in 255ths."""
    grey = torch.tensor(values, dtype=torch.float32) / 255
    return grey.view(-1, 1, 1, 1).expand(-1, channels, 2, 2).clone()


def validate(
    tmp_path: Path,
    model: Model,
    items: list[dict[str, Tensor]],
    distance: Distance | None = None,
    rounds: int = 1,
    batch: int = 3,
) -> tuple[Distance, dict[str, float]]:
    distance = distance or Distance(Means())
    trainer = pl.Trainer(
        max_steps=rounds, val_check_interval=1, check_val_every_n_epoch=None,
        accelerator="cpu", logger=False, callbacks=[distance], enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False, default_root_dir=tmp_path,
        num_sanity_val_steps=2,
    )  # fmt: skip
    trainer.fit(model, DataLoader(items[:1] * rounds), DataLoader(items, batch))
    return distance, {k: float(v) for k, v in trainer.callback_metrics.items()}


def pairs(photos: list[int], targets: list[int], channels: int = 3) -> list[dict[str, Tensor]]:
    both = zip(flat(photos), flat(targets, channels), strict=True)
    return [{"photo": a, "target": b} for a, b in both]


def test_a_shift_of_all_colours_has_a_known_distance(tmp_path, capsys):
    """Equal spreads: the Fréchet distance is the squared gap of the means, 3 channels of 51/255."""
    items = pairs([10, 60, 90, 120], [10, 60, 90, 120])
    _, logged = validate(tmp_path, Model(51 / 255), items)
    assert logged["val/frechet"] == pytest.approx(3 * 0.2**2, abs=1e-6)
    assert "output: Fréchet (means) 0.12, KID (means) ×1000" in capsys.readouterr().out


def kernel_distance(output: list[int], real: list[int], paired: bool) -> float:
    """By the sums of Gretton et al. 2012: lemma 6's for pairs, without those of i with i."""
    x, y = (np.repeat(np.array(v, np.float64)[:, None] / 255, 3, 1) for v in (output, real))
    n, m = len(x), len(y)
    k = [[(u @ v / 3 + 1) ** 3 for u in [*x, *y]] for v in [*x, *y]]
    own = sum(k[i][j] for i in range(n) for j in range(n) if i != j) / (n * n - n)
    other = sum(k[n + i][n + j] for i in range(m) for j in range(m) if i != j) / (m * m - m)
    across = [k[i][n + j] for i in range(n) for j in range(m) if not (paired and i == j)]
    return own + other - 2 * sum(across) / len(across)


@pytest.mark.parametrize("paired", [False, True])
def test_the_kernel_distance_is_the_formula_s(tmp_path, paired):
    """A photo's output and target depend on each other and are not compared."""
    a, b = [10, 60, 90], [200, 220, 250]
    _, logged = validate(tmp_path, Model(0.0), (pairs if paired else unpaired)(a, b))
    assert logged["val/kid"] == pytest.approx(kernel_distance(a, b, paired), rel=1e-5)


def test_pictures_are_compared_as_files_of_them_would_be(tmp_path):
    """Less than half a level of 255 is no difference, and what lies outside of [0, 1] is cut."""
    _, logged = validate(tmp_path, Model(0.4 / 255), pairs([10, 60, 90], [10, 60, 90]))
    assert logged["val/frechet"] == pytest.approx(0, abs=1e-9)
    _, logged = validate(tmp_path, Model(2.0), pairs([10, 60, 90], [255, 255, 255]))
    assert logged["val/frechet"] == pytest.approx(0, abs=1e-9)


def test_transparency_is_put_over_white(tmp_path):
    items = pairs([255, 255, 255], [0, 50, 100], channels=4)
    for item in items:
        item["target"][3] = 0  # nothing of it is seen
    _, logged = validate(tmp_path, Model(0.0), items)
    assert logged["val/frechet"] == pytest.approx(0, abs=1e-9)


def unpaired(a: list[int], b: list[int]) -> list[dict[str, Tensor]]:
    count = max(len(a), len(b))
    first, second = (flat([side[i % len(side)] for i in range(count)]) for side in (a, b))
    return [{"a": x, "b": y} for x, y in zip(first, second, strict=True)]


def test_both_directions_and_the_shorter_side_counted_once(tmp_path, capsys):
    a, b = [10, 20, 30, 40, 50], [40, 90, 140]
    _, logged = validate(tmp_path, Model(51 / 255), unpaired(a, b), batch=2)

    def expected(x: list[int], y: list[int]) -> float:  # of one grey in three equal channels
        (m, s), (n, t) = ((np.mean(v) / 255, np.std(v, ddof=1) / 255) for v in (x, y))
        return 3 * ((m - n) ** 2 + (s - t) ** 2)

    assert logged["val/frechet"] == pytest.approx(expected([v + 51 for v in a], b), rel=1e-4)
    back = [v - 51 if v > 51 else 0 for v in b]
    assert logged["val/frechet_a"] == pytest.approx(expected(back, a), rel=1e-4)
    assert "val/kid_a" in logged
    printed = capsys.readouterr().out
    assert "A to B" in printed
    untranslated = logged["val/frechet_untranslated"]
    assert untranslated == pytest.approx(expected(a, b), rel=1e-4)
    assert f"(5 outputs, 3 real; untranslated {untranslated:.2f})" in printed
    assert f"(3 outputs, 5 real; untranslated {untranslated:.2f})" in printed


def test_real_pictures_go_through_the_network_once(tmp_path):
    distance, _ = validate(tmp_path, Model(0.1), pairs([1, 2, 3, 4], [5, 6, 7, 8]), rounds=3)
    assert sum(distance.network.seen) == 4 + 3 * 4
    distance, _ = validate(tmp_path, Model(0.1), unpaired([1, 2, 3, 4], [5, 6]), rounds=3)
    assert sum(distance.network.seen) == 4 + 2 + 3 * (4 + 2)


def test_two_rounds_and_other_batches_say_the_same(tmp_path):
    items = pairs([1, 60, 3, 41, 9], [5, 99, 7, 8, 77])
    first = validate(tmp_path, Model(0.1), items)[1]
    again = validate(tmp_path, Model(0.1), items, rounds=2, batch=5)[1]
    assert again["val/frechet"] == first["val/frechet"]
    assert again["val/kid"] == first["val/kid"]


def test_one_picture_ends_in_one_line(tmp_path):
    with pytest.raises(DistillError, match="at least 2 held-out pictures of each side, not 1"):
        validate(tmp_path, Model(0.1), pairs([1], [2]))


def test_without_weights_auto_is_none_and_says_so(capsys):
    assert Distance.of("none") is None
    assert Distance.of("auto") is None
    assert "neither pt_inception" in capsys.readouterr().out


def test_auto_takes_what_is_at_hand_and_leaves_random_numbers_alone(assets, monkeypatch):
    monkeypatch.setenv("DISTILL_WEIGHTS", str((assets / "encoders").resolve()))
    before = torch.get_rng_state()
    made = Distance.of("auto")
    assert torch.equal(torch.get_rng_state(), before)
    assert made.network.fid == "Fréchet (MobileNetV2)"
    assert made.monitor == "val/frechet"
