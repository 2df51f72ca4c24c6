"""What distill.eval_fid refuses, before it fetches weights."""

import pytest

from distill.config import compose
from distill.config.settings.commands import EvalFid
from distill.core.errors import DistillError
from distill.eval_fid import paired_scores, run_scores


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["a=x"], "two folders are compared: name both"),
        (["a=x", "b=y", "run=mine"], "run: a=DIR and b=DIR are compared without a run"),
        (["a=x", "b=y", "photos=z"], "photos: a=DIR and b=DIR are compared without a run"),
        (["run=mine"], "runs/mine: no such run"),
        (["checkpoint=mine.ckpt"], "mine.ckpt: no such checkpoint"),
    ],
)
def test_refused_before_weights_are_fetched(words, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(paired_scores, "feature_network", lambda name: pytest.fail("fetched"))
    with pytest.raises(DistillError, match=f"^{said}"):
        run_scores.carry_out(compose.load("eval_fid", words, EvalFid))
