import pickle

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader

from distill.core.errors import DistillError
from distill.data.datasets import PairSet, PhotoSet
from distill.data.pairs import Pair
from distill.data.photos import Photo
from distill.data.sampler import StreamSampler
from support.coordinate_pictures import coordinates
from support.last_checkpoints import differences


def noise(path, seed, size=(72, 64)):
    """A picture without any symmetry, so that no crop or mirror image looks like another."""
    array = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), np.uint8)
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(array).save(path)
    return path


def inverted_pairs(folder, count, size=(72, 64)):
    """Pairs whose target is the photo's negative."""
    for i in range(count):
        with Image.open(noise(folder / "photo" / f"{i}.png", i, size)) as photo:
            (folder / "stylized").mkdir(exist_ok=True)
            Image.fromarray(255 - np.asarray(photo)).save(folder / "stylized" / f"{i}.png")
    return [
        Pair(folder / "photo" / f"{i}.png", folder / "stylized" / f"{i}.png") for i in range(count)
    ]


def photos(folder, count):
    return [Photo(noise(folder / f"{i}.png", i, (96, 80)), f"{i}.png") for i in range(count)]


KINDS = {
    "pairs": lambda folder, seed=0: PairSet(
        inverted_pairs(folder, 5), 64, train=True, crop_size=48, seed=seed
    ),
    "photos": lambda folder, seed=0: PhotoSet(photos(folder, 5), 48, train=True, seed=seed),
}
every_kind = pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)


# What a position gives


@every_kind
def test_a_position_gives_the_same_item_in_any_order_and_any_object(tmp_path, make):
    one, other = make(tmp_path), make(tmp_path)
    forward = {p: one[p] for p in range(12)}
    for position in (11, 0, 7, 3, 7, 5):
        assert not differences(other[position], forward[position])


@every_kind
def test_worker_processes_give_what_the_main_process_gives(tmp_path, make):
    data, start = make(tmp_path), 3
    loader = DataLoader(data, 2, sampler=StreamSampler(11, start), num_workers=2)
    loaded = [
        {k: v[i] for k, v in batch.items()} for batch in loader for i in range(len(batch["name"]))
    ]
    assert len(loaded) == 8
    assert not any(differences(item, data[start + i]) for i, item in enumerate(loaded))


@every_kind
def test_every_picture_is_seen_once_per_pass_in_a_new_order(tmp_path, make):
    data = make(tmp_path)
    names = [data[p]["name"] for p in range(30)]
    passes = [names[i : i + 5] for i in range(0, 30, 5)]
    assert all(sorted(each) == [f"{i}.png" for i in range(5)] for each in passes)
    assert len({tuple(each) for each in passes}) > 1


@every_kind
def test_a_picture_looks_different_in_every_pass(tmp_path, make):
    data = make(tmp_path)
    views = [item["photo"] for item in (data[p] for p in range(20)) if item["name"] == "0.png"]
    assert len(views) == 4
    assert len({view.numpy().tobytes() for view in views}) == 4


@every_kind
def test_another_seed_gives_another_stream(tmp_path, make):
    one, other = make(tmp_path, seed=0), make(tmp_path, seed=1)
    assert any(differences(one[p], other[p]) for p in range(5))


# Pairs


def test_without_training_pair_p_comes_as_it_is(tmp_path):
    pairs = inverted_pairs(tmp_path, 3, (64, 64))
    data = PairSet(pairs, 64, train=False, crop_size=40)
    for index, pair in enumerate(pairs):
        item = data[index]
        with Image.open(pair.photo) as photo:
            expected = torch.from_numpy(np.asarray(photo).copy())
        assert item["name"] == f"{index}.png"
        assert torch.equal(item["photo"], expected)
    assert len(data) == 3


# What cannot be read


@pytest.mark.parametrize("side", ["photo", "stylized"])
def test_a_bad_pair_is_replaced_by_the_next_and_named_once(tmp_path, capsys, side):
    pairs = inverted_pairs(tmp_path, 3, (64, 64))
    (tmp_path / side / "1.png").write_bytes(b"")
    data = PairSet(pairs, 64, train=False)
    assert [data[i]["name"] for i in (0, 1, 2, 1)] == ["0.png", "2.png", "2.png", "2.png"]
    said = capsys.readouterr().out
    assert said.count("\n") == 1
    assert str(tmp_path / side / "1.png") in said
    assert "not a picture" in said


def test_nothing_readable_at_all_is_an_error_and_no_endless_loop(tmp_path):
    pairs, found = inverted_pairs(tmp_path / "a", 2), photos(tmp_path / "b", 2)
    for path in [pair.photo for pair in pairs] + [photo.path for photo in found]:
        path.write_bytes(b"")
    with pytest.raises(DistillError, match="no pair of the training set can be read"):
        PairSet(pairs, 64, train=True)[0]
    with pytest.raises(DistillError, match="no photo of the held-out set can be read"):
        PhotoSet(found, 64, train=False)[0]


# Photos


def test_photos_to_validate_on_are_centre_squares(tmp_path):
    picture = np.zeros((64, 100, 3), np.uint8)
    picture[:, 18:82] = (0, 255, 0)
    Image.fromarray(picture).save(tmp_path / "x.png")
    item = PhotoSet([Photo(tmp_path / "x.png", "x.png")], 64, train=False)[0]
    assert torch.equal(
        item["photo"], torch.tensor([0, 255, 0], dtype=torch.uint8).expand(64, 64, 3)
    )


def test_photos_to_train_on_change_their_colours_only_when_asked(tmp_path):
    Image.new("RGB", (80, 80), (100, 100, 100)).save(tmp_path / "x.png")
    photo = Photo(tmp_path / "x.png", "x.png")
    plain = PhotoSet([photo], 48, train=True, colour=0)
    assert all(set(plain[p]["photo"].unique().tolist()) == {100} for p in range(4))
    varied = PhotoSet([photo], 48, train=True, colour=0.2)
    assert len({float(varied[p]["photo"].float().mean()) for p in range(4)}) > 1


# Pairs of recipe=pix2pix: direction, squares, colours


def coordinate_pairs(folder, size=(96, 96), alpha=None):
    photo = coordinates(folder / "p.png", 10, size)
    return [Pair(photo, coordinates(folder / "t.png", 20, size, alpha))]


@pytest.mark.parametrize("alpha", [None, 255])
def test_every_crop_and_mirror_image_is_of_one_place_on_both_sides(tmp_path, alpha):
    pairs = coordinate_pairs(tmp_path, alpha=alpha)
    data = PairSet(pairs, 96, train=True, crop_size=64, channels=4 if alpha else 3)
    seen = set()
    for position in range(40):
        item = data[position]
        photo, target = item["photo"], item["target"]
        assert torch.equal(photo[..., :2], target[..., :2])
        assert (int(photo[0, 0, 2]), int(target[0, 0, 2])) == (10, 20)
        xs, ys = photo[0, :, 0].int(), photo[:, 0, 1].int()
        assert torch.equal(xs.sort().values, torch.arange(64, dtype=torch.int) + xs.min())
        assert torch.equal(ys, torch.arange(64, dtype=torch.int) + ys[0])
        seen.add((int(xs.min()), int(ys[0]), bool(xs[0] > xs[-1])))
    lefts, tops, mirrored = map(set, zip(*seen, strict=True))
    assert mirrored == {False, True}
    assert min(len(lefts), len(tops)) > 15
    assert max(*lefts, *tops) <= 32


@pytest.mark.parametrize("one_file", [False, True])
def test_swap_makes_the_target_the_input(tmp_path, one_file):
    pairs = coordinate_pairs(tmp_path)
    if one_file:
        both = Image.new("RGB", (192, 96))
        for left, name in ((0, "p.png"), (96, "t.png")):
            with Image.open(tmp_path / name) as half:
                both.paste(half, (left, 0))
        both.save(tmp_path / "both.png")
        pairs = [Pair(tmp_path / "both.png", None)]
    for train in (True, False):
        straight, swapped = (PairSet(pairs, 96, train, 64, swap=swap)[3] for swap in (False, True))
        assert torch.equal(straight["photo"], swapped["target"])
        assert torch.equal(straight["target"], swapped["photo"])
        assert straight["name"] == swapped["name"]
        assert int(straight["photo"][0, 0, 2]) == 10


def test_swapped_targets_keep_the_photo_s_transparency(tmp_path):
    Image.new("RGBA", (64, 64), (255, 0, 0, 51)).save(tmp_path / "p.png")
    Image.new("RGBA", (64, 64), (0, 0, 255, 51)).save(tmp_path / "t.png")
    item = PairSet([Pair(tmp_path / "p.png", tmp_path / "t.png")], 64, False, channels=4, swap=True)
    assert item[0]["target"][0, 0].tolist() == [255, 0, 0, 51]
    assert item[0]["photo"][0, 0].tolist() == [204, 204, 255]  # over white


def test_grey_targets_keep_their_place_and_their_levels(tmp_path):
    """Of 8 bits, 16 bits and colours (Rec. 601), beside a photo whose colours vary."""
    x = np.tile(np.arange(96, dtype=np.uint8), (96, 1))
    photo = coordinates(tmp_path / "p.png", 10, (96, 96))
    Image.fromarray(x).save(tmp_path / "8.png")
    Image.fromarray(x.astype(np.uint16) * 257).save(tmp_path / "16.png")
    Image.new("RGB", (96, 96), (255, 0, 0)).save(tmp_path / "red.png")
    for name in ("8.png", "16.png"):
        data = PairSet([Pair(photo, tmp_path / name)], 96, True, 64, channels=1)
        for item in (data[position] for position in range(6)):
            assert item["target"].shape == (64, 64, 1)
            assert torch.equal(item["target"][..., 0], item["photo"][..., 0])  # its red is x
    red = PairSet([Pair(photo, tmp_path / "red.png")], 64, train=False, channels=1)[0]["target"]
    assert red.unique().tolist() == [round(0.299 * 255)]
    how = {"flip": False, "channels": 1, "pad": "edge"}
    plain, varied = (
        PairSet([Pair(photo, tmp_path / "8.png")], 96, True, colour=colour, **how)[0]
        for colour in (0.0, 0.3)
    )
    assert torch.equal(plain["target"], varied["target"])
    assert not torch.equal(plain["photo"], varied["photo"])


def test_a_share_of_the_photos_is_as_cameras_give_them_and_no_target(tmp_path):
    pairs = inverted_pairs(tmp_path, 1, (64, 64))
    plain, spoilt = (PairSet(pairs, 64, train=True, camera=share) for share in (0.0, 0.3))
    changed = []
    for one, other in ((plain[p], spoilt[p]) for p in range(60)):
        assert torch.equal(one["target"], other["target"])
        changed.append(not torch.equal(one["photo"], other["photo"]))
    assert abs(sum(changed) - 18) < 4 * (60 * 0.3 * 0.7) ** 0.5
    held_out = (PairSet(pairs, 64, train=False, camera=share)[0]["photo"] for share in (0.0, 1.0))
    assert torch.equal(*held_out)


@pytest.mark.parametrize(
    ("pad", "around"), [("white", [255, 255, 255]), ("black", [0, 0, 0]), ("edge", None)]
)
@pytest.mark.parametrize("size", [(96, 64), (64, 96)])
def test_padding_shows_all_of_both_sides(tmp_path, pad, around, size):
    pairs = coordinate_pairs(tmp_path, size, alpha=200)
    item = PairSet(pairs, 96, train=False, channels=4, pad=pad)[0]
    wide = size[0] > size[1]
    for name, blue in (("photo", 10), ("target", 20)):
        picture = item[name] if wide else item[name].transpose(0, 1)
        inside = coordinates(tmp_path / "x.png", blue, size, 200 if name == "target" else None)
        with Image.open(inside) as image:
            wanted = torch.from_numpy(np.asarray(image).copy())
        wanted = wanted if wide else wanted.transpose(0, 1)
        assert torch.equal(picture[16:80], wanted)
        clear = [*around, 0][: picture.shape[-1]] if around else None
        top = torch.tensor(clear) if clear else wanted[0]
        bottom = torch.tensor(clear) if clear else wanted[-1]
        assert bool((picture[:16] == top).all())
        assert bool((picture[80:] == bottom).all())


def test_colours_vary_alike_on_both_sides_and_not_the_transparency(tmp_path):
    photo = noise(tmp_path / "p.png", 0, (64, 64))
    with Image.open(photo) as image:
        see_through = image.convert("RGBA")
    alpha = np.tile(np.arange(64, dtype=np.uint8), (64, 1))
    see_through.putalpha(Image.fromarray(alpha))
    see_through.save(tmp_path / "t.png")
    pairs, changed = [Pair(photo, tmp_path / "t.png")], set()
    data = PairSet(pairs, 64, train=True, flip=False, channels=4, colour=0.3)
    plain = PairSet(pairs, 64, train=True, flip=False, channels=4)[0]
    for position in range(6):
        item = data[position]
        assert torch.equal(item["photo"], item["target"][..., :3])
        assert torch.equal(item["target"][..., 3], torch.from_numpy(alpha))
        changed.add(float((item["photo"].float() - plain["photo"].float()).mean()))
    assert len(changed) == 6
    held_out = PairSet(pairs, 64, train=False, channels=4, colour=0.3)[0]
    assert torch.equal(held_out["photo"], plain["photo"])


def test_colours_leave_the_crops_where_they_are(tmp_path):
    """The same positions with and without them, so that runs can be compared."""
    pairs = inverted_pairs(tmp_path, 2, (64, 64))
    varied, plain = (PairSet(pairs, 64, True, 40, colour=c)[5]["photo"] for c in (1e-6, 0.0))
    assert (varied.int() - plain.int()).abs().max() <= 3  # each of three changes rounds down


@pytest.mark.parametrize("kind", KINDS)
def test_a_dataset_can_be_sent_to_a_process_that_is_no_copy(tmp_path, kind):
    data = KINDS[kind](tmp_path)
    assert not differences(pickle.loads(pickle.dumps(data))[7], data[7])


def test_validation_is_not_varied(tmp_path):
    pairs = inverted_pairs(tmp_path, 2, (64, 64))
    varied = PairSet(pairs, 64, train=False, zoom=0.3, photo_colour=0.3)
    assert not differences(varied[1], PairSet(pairs, 64, train=False)[1])
