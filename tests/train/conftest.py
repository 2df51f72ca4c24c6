import pytest
import torch

from support.small_vgg import small_vgg


@pytest.fixture
def vgg_in_small(monkeypatch):
    """Random, with no weights to look for, and always the same."""

    def made(*_):
        with torch.random.fork_rng():
            torch.manual_seed(0)
            return small_vgg()

    monkeypatch.setattr("distill.losses.feature_distance.vgg_features", made)
