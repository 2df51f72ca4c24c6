import hashlib
import pickle
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from distill.core.errors import DistillError
from distill.data.pairs import Pair, Pairs, find_pairs
from distill.data.photos import BadPhoto

PHOTO, TARGET = (200, 40, 40), (40, 40, 200)


def colour(path, rgb, size=(64, 64)):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, rgb).save(path)


def two_folders(left, right):
    def make(folder, names):
        for name in names:
            colour(folder / left / name, PHOTO)
            colour(folder / right / name, TARGET)

    return make


def side_by_side(folder, names):
    for name in names:
        picture = np.empty((64, 128, 3), np.uint8)
        picture[:, :64], picture[:, 64:] = PHOTO, TARGET
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture).save(folder / name)


LAYOUTS = {
    "photo-stylized": two_folders("photo", "stylized"),
    "a-b": two_folders("A", "B"),
    "faces-style": two_folders("faces", "hayao"),
    "side-by-side": side_by_side,
}
every_layout = pytest.mark.parametrize("make", LAYOUTS.values(), ids=LAYOUTS)


def names(pairs):
    return [pair.name for pair in pairs]


@every_layout
@pytest.mark.parametrize("val", ["val", "valid", "test"])
def test_one_held_out_folder_beside_train_is_for_validation(tmp_path, make, val):
    """Whatever it is called, training chooses by it: it is no test."""
    make(tmp_path / "train", ["a.png", "b.png"])
    make(tmp_path / val, ["c.png"])
    sides = find_pairs(tmp_path, "hayao", 0.1, 0, 0.1)
    assert {side: names(pairs) for side, pairs in sides.items()} == {
        "train": ["a.png", "b.png"],
        "val": ["c.png"],
        "test": [],
    }
    for pair in [*sides["train"], *sides["val"]]:
        photo, target = pair.read()
        assert photo.size == target.size == (64, 64)
        assert (photo.mode, target.mode) == ("RGB", "RGB")
        assert photo.getcolors() == [(64 * 64, PHOTO)]
        assert target.getcolors() == [(64 * 64, TARGET)]


@every_layout
@pytest.mark.parametrize("below", ["", "train"])
def test_without_val_the_split_is_by_a_hash_of_the_names(tmp_path, make, below):
    files = [f"{letter}.png" for letter in "abcdefghijkl"]
    make(tmp_path / below, files)

    def share(name):  # where the hash of seed and group falls in [0, 1)
        digest = hashlib.sha256(f"5:{name.removesuffix('.png')}".encode()).hexdigest()
        return int(digest[:16], 16) / 16**16

    sides = find_pairs(tmp_path, "hayao", 0.3, 5)
    assert names(sides["val"]) == [name for name in files if share(name) < 0.3]
    assert names(sides["train"]) == [name for name in files if share(name) >= 0.3]
    assert names(sides["test"]) == []
    sides = find_pairs(tmp_path, "hayao", 0.3, 5, 0.25)
    assert names(sides["test"]) == [name for name in files if share(name) < 0.25]
    assert names(sides["val"]) == [name for name in files if 0.25 <= share(name) < 0.55]
    assert names(sides["train"]) == [name for name in files if share(name) >= 0.55]
    assert all(sides.values())


@every_layout
@pytest.mark.parametrize(("folder", "tested"), [("val", 0), ("valid", 0), ("test", 2)])
def test_a_held_out_folder_alone_is_there_to_be_evaluated_on(tmp_path, make, folder, tested):
    make(tmp_path / folder, ["a.png", "b.png"])
    sides = find_pairs(tmp_path, "hayao", 0.1, 0, 0.1)
    assert (names(sides["train"]), names(sides["val"])) == ([], ["a.png", "b.png"])
    assert len(sides["test"]) == tested


@pytest.mark.parametrize("val", ["val", "valid", "test"])
def test_two_folders_may_each_be_divided(tmp_path, val):
    """As pix2pix' own script to combine pictures wants them."""
    for side, files in (("train", ["a.png", "b.png"]), (val, ["c.png"])):
        for name in files:
            colour(tmp_path / "A" / side / name, PHOTO)
            colour(tmp_path / "B" / side / name, TARGET)
    sides = find_pairs(tmp_path, None, 0.1, 0)
    assert {s: names(pairs) for s, pairs in sides.items()} == {
        "train": ["a.png", "b.png"],
        "val": ["c.png"],
        "test": [],
    }
    photo, target = sides["val"][0].read()
    assert (photo.getpixel((0, 0)), target.getpixel((0, 0))) == (PHOTO, TARGET)


def test_two_divided_folders_without_val_are_split(tmp_path):
    files = [f"{letter}.png" for letter in "abcdefghijkl"]
    for name in files:
        colour(tmp_path / "A" / "train" / name, PHOTO)
        colour(tmp_path / "B" / "train" / name, TARGET)
    LAYOUTS["a-b"](tmp_path / "whole", files)
    divided, whole = (find_pairs(root, None, 0.3, 5) for root in (tmp_path, tmp_path / "whole"))
    assert names(divided["val"]) == names(whole["val"])
    assert names(divided["train"]) == names(whole["train"])


def test_pictures_beside_a_folder_called_train_are_the_set(tmp_path):
    LAYOUTS["a-b"](tmp_path, ["a.png", "b.png"])
    for folder in "AB":
        colour(tmp_path / folder / "train" / "other.png", PHOTO)
    sides = find_pairs(tmp_path, None, 0.5, 0)
    assert sorted(names(sides["train"]) + names(sides["val"])) == ["a.png", "b.png"]


@pytest.mark.parametrize("val", ["val", "valid"])
@pytest.mark.parametrize("inside", [False, True])
def test_three_folders_are_the_three_sides(tmp_path, val, inside):
    """pix2pix' sets have all three; test/ is for after the training."""
    wanted = {"train": ["a.png"], "val": ["b.png"], "test": ["c.png", "d.png"]}
    for side, files in wanted.items():
        folder = val if side == "val" else side
        if inside:
            for name in files:
                colour(tmp_path / "A" / folder / name, PHOTO)
                colour(tmp_path / "B" / folder / name, TARGET)
        else:
            side_by_side(tmp_path / folder, files)
    for fraction in (0.0, 0.1):
        sides = find_pairs(tmp_path, None, 0.1, 0, fraction)
        assert {side: names(pairs) for side, pairs in sides.items()} == wanted


def test_val_comes_before_valid(tmp_path):
    for folder in ("train", "valid", "val"):
        side_by_side(tmp_path / folder, [f"{folder}.png"])
    assert names(find_pairs(tmp_path, None, 0.1, 0)["val"]) == ["val.png"]


def test_without_a_style_no_style_s_folder_is_wanted(tmp_path):
    two_folders("faces", "None")(tmp_path, ["a.png"])
    with pytest.raises(DistillError) as error:
        find_pairs(tmp_path, None, 0.1, 0)
    assert "wanted photo/ + stylized/ or A/ + B/ with the same file names" in str(error.value)
    colour(tmp_path / "x" / "a.png", PHOTO)
    with pytest.raises(DistillError, match=r"distill\.prepare --help says how to make pairs"):
        find_pairs(tmp_path / "x", None, 0.1, 0)


def test_the_outlines_are_pairs(assets):
    """139 pictures, 512 pixels wide and 154 to 256 high; one person or more in each."""
    sides = find_pairs(assets / "pairs" / "outline_ab", None, 0.1, 0)
    assert sum(map(len, sides.values())) == 139
    for pair in [*sides["val"], *sides["train"][:9]]:
        photo, outline = pair.read()
        assert photo.size == outline.size
        assert photo.width == 256
        light, lines = (np.asarray(half.convert("L")) for half in (photo, outline))
        assert (lines > 225).mean() > 0.8  # mostly paper
        assert light.mean() < lines.mean()


def test_numbered_pictures_of_one_person_stay_on_one_side(tmp_path):
    people = [f"Person{p}_{n:04d}.png" for p in range(8) for n in (1, 2, 3)]
    LAYOUTS["a-b"](tmp_path, people)
    sides = find_pairs(tmp_path, "hayao", 0.3, 0, 0.3)
    there = [{name.split("_")[0] for name in names(pairs)} for pairs in sides.values()]
    assert all(there)
    assert len(set.union(*there)) == sum(map(len, there)) == 8


def test_targets_may_have_another_suffix_and_photos_without_one_are_said(tmp_path, capsys):
    for name in ("a", "b", "c"):
        colour(tmp_path / "val" / "A" / f"{name}.jpg", PHOTO)
    for name in ("a.png", "b.webp", "z.png"):
        colour(tmp_path / "val" / "B" / name, TARGET)
    pairs = find_pairs(tmp_path, "hayao", 0.1, 0)["val"]
    assert [(p.photo.name, p.target.name) for p in pairs] == [
        ("a.jpg", "a.png"),
        ("b.jpg", "b.webp"),
    ]
    said = f"{tmp_path}: without a partner of the same name, left out (2): "
    said += f"'val/A/c.jpg', 'val/B/z.png', all listed in {tmp_path / 'unpaired.txt'}\n"
    assert said in capsys.readouterr().out
    assert (tmp_path / "unpaired.txt").read_text() == "val/A/c.jpg\nval/B/z.png\n"
    (tmp_path / "val/A/c.jpg").unlink()
    (tmp_path / "val/B/z.png").unlink()
    find_pairs(tmp_path, "hayao", 0.1, 0)
    assert not (tmp_path / "unpaired.txt").exists()


def test_two_files_of_one_stem_are_not_both_paired_with_one(tmp_path):
    for name in ("A/a.png", "A/a.jpg", "B/a.png"):
        colour(tmp_path / "val" / name, PHOTO)
    said = f"{tmp_path}/val/B: 'a.png' may be of the photo 'a.jpg' and of 'a.png'; rename one"
    with pytest.raises(DistillError, match=f"^{re.escape(said)}"):
        find_pairs(tmp_path, None, 0.1, 0)
    colour(tmp_path / "val/B/a.jpg", TARGET)  # now each has its own
    pairs = find_pairs(tmp_path, None, 0.1, 0)["val"]
    assert [(p.photo.name, p.target.name) for p in pairs] == [("a.jpg",) * 2, ("a.png",) * 2]


@pytest.mark.parametrize("swap", [False, True])
def test_a_target_of_another_shape_is_told(tmp_path, swap):
    colour(tmp_path / "a.png", PHOTO, (96, 96))
    for size, fits in {(64, 96): False, (96, 94): False, (192, 190): True, (64, 64): True}.items():
        colour(tmp_path / "b.png", TARGET, size)
        pair = Pair(tmp_path / "a.png", tmp_path / "b.png")
        if fits:
            assert pair.read(swap=swap)[1 - swap].size == size
            continue
        said = f"is {size[0]}×{size[1]}, which does not fit 96×96"
        with pytest.raises(BadPhoto, match=said):
            pair.read(swap=swap)
        with pytest.raises(BadPhoto, match=said):
            pair.read_transparent()


def test_pictures_of_other_kinds_are_read_or_counted(tmp_path, capsys):
    for suffix in ("avif", "tif", "bmp", "jfif"):
        (tmp_path / "val/A").mkdir(parents=True, exist_ok=True)
        kind = {"jfif": "JPEG", "tif": "TIFF"}.get(suffix, suffix.upper())
        Image.new("RGB", (64, 64), PHOTO).save(tmp_path / f"val/A/{suffix}.{suffix}", kind)
        colour(tmp_path / f"val/B/{suffix}.png", TARGET)
    for name in ("a.GIF", "b.gif", "c.nef", "notes.txt"):
        (tmp_path / "val/A" / name).write_bytes(b"")
    pairs = find_pairs(tmp_path, None, 0.1, 0)["val"]
    assert len(pairs) == 4
    for pair in pairs:
        levels = np.asarray(pair.read()[0], np.int16) - PHOTO
        assert np.abs(levels).max() <= 6, pair.name  # AVIF and JPEG lose a little
    assert f"{tmp_path}/val/A: 3 files left out: .gif (2), .nef (1)\n" in capsys.readouterr().out


def test_hidden_files_are_no_pictures(tmp_path):
    # What macOS puts beside every file of an archive or a USB stick.
    for make in LAYOUTS.values():
        make(tmp_path / "val", ["a.png"])
    for folder in (tmp_path / "val", tmp_path / "val" / "photo", tmp_path / "val" / "stylized"):
        (folder / "._a.png").write_bytes(b"Mac OS X")
    assert names(find_pairs(tmp_path, "hayao", 0.1, 0)["val"]) == ["a.png"]
    for pair in ("photo", "A", "faces"):
        (tmp_path / "val" / pair).rename(tmp_path / "val" / f"not {pair}")
    assert names(find_pairs(tmp_path, "hayao", 0.1, 0)["val"]) == ["a.png"]


@pytest.mark.parametrize(
    ("prepare", "said"),
    [
        (lambda root: root.rmdir(), "no such folder"),
        (
            lambda root: None,
            "no pairs found; wanted photo/ + stylized/, A/ + B/ or faces/ + hayao/",
        ),
        (lambda root: colour(root / "A" / "a.png", PHOTO), "no pairs found"),
        (lambda root: two_folders("faces", "shinkai")(root, ["a.png"]), "no pairs found"),
        (
            lambda root: (colour(root / "A/a.png", PHOTO), colour(root / "B/b.png", TARGET)),
            "no pairs found",
        ),
        (lambda root: colour(root / "a.png", PHOTO), "64×64 is no side-by-side pair"),
        (lambda root: colour(root / "a.png", PHOTO, (140, 100)), "for photos without targets"),
        (lambda root: (root / "a.png").write_bytes(b"x" * 99), "none of its pictures can be read"),
        (lambda root: side_by_side(root, ["a.png"]), "one photo alone"),
        (lambda root: side_by_side(root / "train", ["a.png"]), "one photo alone"),
        (
            lambda root: (
                side_by_side(root / "train", ["a.png"]),
                colour(root / "val/set/a.png", PHOTO),
            ),
            "val: no pairs found",
        ),
    ],
)
def test_what_is_no_paired_folder_ends_in_one_line_that_names_it(tmp_path, prepare, said):
    root = tmp_path / "set"
    root.mkdir()
    prepare(root)
    with pytest.raises(DistillError) as error:
        find_pairs(root, "hayao", 0.1, 0)
    assert said in str(error.value)
    assert str(root) in str(error.value) or "one photo" in said


# Reading


def test_alpha_is_kept_or_put_over_white(tmp_path):
    colour(tmp_path / "p.png", PHOTO)
    Image.new("RGBA", (64, 64), (0, 0, 0, 51)).save(tmp_path / "t.png")
    pair = Pair(tmp_path / "p.png", tmp_path / "t.png")
    photo, target = pair.read(alpha=True)
    assert (photo.mode, target.mode, target.getpixel((0, 0))) == ("RGB", "RGBA", (0, 0, 0, 51))
    _, target = pair.read()
    assert (target.mode, target.getpixel((0, 0))) == ("RGB", (204, 204, 204))


def test_a_half_that_is_see_through_stays_so(tmp_path):
    both = Image.new("RGBA", (128, 64), (0, 0, 0, 51))
    both.paste((0, 0, 255, 102), (64, 0, 128, 64))
    both.save(tmp_path / "both.png")
    pair = Pair(tmp_path / "both.png", None)
    photo, target = pair.read(alpha=True)
    assert (photo.mode, photo.getpixel((0, 0))) == ("RGB", (204, 204, 204))
    assert (target.mode, target.getpixel((0, 0))) == ("RGBA", (0, 0, 255, 102))
    target, photo = pair.read(alpha=True, swap=True)
    assert (target.mode, target.getpixel((0, 0))) == ("RGB", (153, 153, 255))
    assert (photo.mode, photo.getpixel((0, 0))) == ("RGBA", (0, 0, 0, 51))
    assert [half.mode for half in pair.read()] == ["RGB", "RGB"]


def test_targets_without_transparency_are_opaque(tmp_path):
    side_by_side(tmp_path, ["both.png"])
    colour(tmp_path / "p.png", PHOTO)
    colour(tmp_path / "t.png", TARGET)
    for pair in (Pair(tmp_path / "both.png", None), Pair(tmp_path / "p.png", tmp_path / "t.png")):
        assert pair.read(alpha=True)[1].getpixel((9, 9)) == (*TARGET, 255)


def test_an_odd_width_gives_equal_halves_without_the_middle_column(tmp_path):
    picture = np.zeros((64, 129, 3), np.uint8)
    picture[:, :64], picture[:, 65:] = PHOTO, TARGET
    Image.fromarray(picture).save(tmp_path / "x.png")
    photo, target = Pair(tmp_path / "x.png", None).read()
    assert photo.getcolors() == [(64 * 64, PHOTO)]
    assert target.getcolors() == [(64 * 64, TARGET)]


@pytest.mark.parametrize("bad", ["p.png", "t.png"])
@pytest.mark.parametrize("alpha", [False, True])
def test_a_damaged_half_is_a_bad_photo(tmp_path, bad, alpha):
    for name in ("p.png", "t.png"):
        colour(tmp_path / name, PHOTO)
    whole = (tmp_path / bad).read_bytes()
    (tmp_path / bad).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(BadPhoto):
        Pair(tmp_path / "p.png", tmp_path / "t.png").read(alpha)


def test_pairs_are_a_sequence_of_any_names(tmp_path):
    rows = [
        ("a.png", "a.webp"),
        ("ü b.jpg", "ü b.png"),
        ("caf\udce9.png", "caf\udce9.png"),
        ("z.png", "z.png"),
    ]
    pairs = Pairs(rows, tmp_path / "photo", tmp_path / "stylized")
    wanted = [Pair(tmp_path / "photo" / p, tmp_path / "stylized" / t) for p, t in rows]
    assert list(pairs) == wanted
    assert (pairs[-1], pairs[1:3][1]) == (wanted[3], wanted[2])
    assert list(pairs.take([3, 0])) == [wanted[3], wanted[0]]
    with pytest.raises(IndexError):
        pairs[4]
    assert list(Pairs([("x.png", "")], tmp_path)) == [Pair(tmp_path / "x.png", None)]


def test_200_000_pairs_take_a_few_megabytes():
    pairs = Pairs(((f"{i:08d}.png", f"{i:08d}.png") for i in range(200_000)), Path("a"), Path("b"))
    assert len(pickle.dumps(pairs)) < 10_000_000
    assert pairs[123_456].name == "00123456.png"


@every_layout
def test_what_the_set_s_list_names_is_left_out_and_the_others_keep_their_sides(
    tmp_path, make, capsys
):
    pictures = [f"{number}.png" for number in range(12)]
    make(tmp_path, pictures)
    before = find_pairs(tmp_path, "hayao", 0.3, 5, 0.25)
    path = before["train"][1].photo.relative_to(tmp_path).as_posix()
    gone = {before["train"][0].name, before["train"][1].name, before["val"][0].name}
    lines = [before["train"][0].name, path, before["val"][0].name, "not here.png", ""]
    (tmp_path / "dropped.txt").write_text("\n".join(lines))
    after = find_pairs(tmp_path, "hayao", 0.3, 5, 0.25)
    for side, pairs in before.items():
        assert names(after[side]) == [name for name in names(pairs) if name not in gone]
    assert "3 pairs left out by its dropped.txt" in capsys.readouterr().out
    whole = find_pairs(tmp_path, "hayao", 0.3, 5, 0.25, with_dropped=True)
    assert {side: names(pairs) for side, pairs in whole.items()} == {
        side: names(pairs) for side, pairs in before.items()
    }


def test_pairs_added_later_move_none_and_are_said(tmp_path, capsys):
    make, how = two_folders("A", "B"), (None, 0.2, 0, 0.2)
    make(tmp_path, [f"{i}.png" for i in range(12)])
    first = find_pairs(tmp_path, *how)  # looking remembers nothing
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == []
    assert capsys.readouterr().out == ""
    find_pairs(tmp_path, *how, remember=True)
    before = {pair.name: side for side, pairs in first.items() for pair in pairs}
    make(tmp_path, [f"new{i}.png" for i in range(10)] + ["Anna_0001.png", "Anna_0002.png"])
    colour(tmp_path / "A/x.png", PHOTO)
    sides = find_pairs(tmp_path, *how, remember=True)
    after = {pair.name: side for side, pairs in sides.items() for pair in pairs}
    assert len(after) == 24
    assert before.items() <= after.items()
    assert after["Anna_0001.png"] == after["Anna_0002.png"]
    counts = {side: sum(own == side for own in after.values()) - len(first[side]) for side in sides}
    said = ", ".join(f"{count} {side}" for side, count in counts.items() if count)
    assert (
        f"{tmp_path}: 12 new pairs: {said}; the others keep their sides" in capsys.readouterr().out
    )
    make(tmp_path, ["Anna_0003.png"])  # joins those of its name
    again = find_pairs(tmp_path, *how)
    assert "Anna_0003.png" in names(again[after["Anna_0001.png"]])
    assert (
        find_pairs(tmp_path, None, 0.2, 1, 0.2).keys() == again.keys()
    )  # another split is another
    kept = next(tmp_path.glob("split-*.tsv"))
    assert kept.name == "split-0.2-0.2-0.tsv"
    kept.write_bytes(b"\xff\nnowhere\ta\ntrain\t\nval\tnew0.png\n")  # damaged: what it says counts
    assert "new0.png" in names(find_pairs(tmp_path, *how)["val"])


def test_a_side_that_a_list_emptied_is_no_side(tmp_path):
    side_by_side(tmp_path / "train", ["a.png", "b.png"])
    side_by_side(tmp_path / "val", ["c.png"])
    for folder in ("photo", "stylized"):
        (tmp_path / "test" / folder).mkdir(parents=True)
    sides = find_pairs(tmp_path, "hayao", 0.1, 0)
    assert {side: len(pairs) for side, pairs in sides.items()} == {"train": 2, "val": 1, "test": 0}


def test_test_pairs_validate_where_a_list_names_all_of_val(tmp_path):
    for side, name in (("train", "a.png"), ("val", "b.png"), ("test", "c.png")):
        side_by_side(tmp_path / side, [name])
    (tmp_path / "dropped.txt").write_text("val/b.png\n")
    sides = find_pairs(tmp_path, "hayao", 0.1, 0)
    assert names(sides["val"]) == ["c.png"]
    assert not sides["test"]
    (tmp_path / "dropped.txt").write_text("val/b.png\ntest/c.png\n")
    with pytest.raises(DistillError, match="names every held-out pair there is"):
        find_pairs(tmp_path, "hayao", 0.1, 0)


def test_a_photo_is_not_its_own_target_where_the_style_is_called_faces(tmp_path):
    two_folders("faces", "sketchy")(tmp_path, ["a.png", "b.png"])
    with pytest.raises(DistillError, match=r"faces/ \+ NAME/ by style\.name=NAME"):
        find_pairs(tmp_path, "faces", 0.1, 0)
