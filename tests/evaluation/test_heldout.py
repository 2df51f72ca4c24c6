from __future__ import annotations

from pathlib import Path

import torch

from distill.core.images import batches, to_uint8
from distill.data.pairs import Pair
from distill.data.photos import Photo
from distill.evaluation.heldout import _by_group


def test_one_person_s_pictures_lie_side_by_side():
    names = [
        Photo(Path(), f"Person_{person}_{number:04d}.jpg").pair_name + ".png"
        for person in range(20)
        for number in (1, 2, 3)
    ]
    ordered = sorted((Pair(Path(name), None) for name in names), key=_by_group)
    persons = [pair.name.split("_")[1] for pair in ordered]
    assert persons != sorted(persons)
    changes = sum(a != b for a, b in zip(persons, persons[1:], strict=False))
    assert changes == 19


def test_batches_keep_the_order_and_break_where_the_size_changes():
    sizes = [4, 4, 4, 8, 8, 4]
    pictures = [torch.full((3, s, s), i, dtype=torch.uint8) for i, s in enumerate(sizes)]
    made = list(batches(pictures, 2))
    assert [tuple(b.shape) for b in made] == [
        (2, 3, 4, 4), (1, 3, 4, 4), (2, 3, 8, 8), (1, 3, 4, 4),
    ]  # fmt: skip
    order = [round(float(picture[0, 0, 0]) * 255) for batch in made for picture in batch]
    assert order == list(range(6))


def test_bytes_are_what_a_png_would_hold():
    values = torch.tensor([-0.1, 0.0, 0.499 / 255, 0.501 / 255, 1.0, 1.2])
    assert to_uint8(values).tolist() == [0, 0, 0, 1, 255, 255]
