import hashlib

import pytest

from distill.core.errors import DistillError
from distill_gan.domains import find_unpaired
from support.refusals import refusal

PEOPLE = [f"Person{letter}" for letter in "abcdefghijklmnop"]


def fill(folder, names):
    """Files that need no reading: where pictures lie is told by their names alone."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"")
    return folder


def keys(sides):
    return {
        side: tuple([p.key for p in photos] for photos in domains)
        for side, domains in sides.items()
    }


def share(name, seed):
    """Where the hash of seed and group falls in [0, 1)."""
    return int(hashlib.sha256(f"{seed}:{name}".encode()).hexdigest()[:16], 16) / 16**16


@pytest.mark.parametrize("val", ["test", "val", "valid"])
@pytest.mark.parametrize("pattern", ["{}A {}B", "{}/A {}/B"])
def test_folders_to_train_on_and_to_hold_out_are_the_two_sides(tmp_path, val, pattern):
    for side, names in (("train", ["x.jpg", "deep/er/y.png"]), (val, ["z.webp"])):
        for domain, folder in zip("ab", pattern.format(side, side).split(), strict=True):
            fill(tmp_path / folder, [f"{domain}-{name}" for name in names])
    assert keys(find_unpaired(tmp_path, None, None, 0.1, 0)) == {
        "train": (["a-deep/er/y.png", "a-x.jpg"], ["b-deep/er/y.png", "b-x.jpg"]),
        "val": (["a-z.webp"], ["b-z.webp"]),
    }


def test_what_is_held_out_alone_is_there_to_be_evaluated_on(tmp_path):
    fill(tmp_path / "testA", ["a.png"])
    fill(tmp_path / "testB", ["b.png"])
    found = keys(find_unpaired(tmp_path, None, None, 0.1, 0))
    assert found == {"train": ([], []), "val": (["a.png"], ["b.png"])}


@pytest.mark.parametrize("given", ["root", "two", "train"])
def test_what_was_taken_down_is_learnt_from_no_more(tmp_path, given):
    below = tmp_path / "train" if given == "train" else tmp_path
    fill(below / "A", ["a.png", "b.png", "c.png", "d.png", "e.png", "f.png"])
    fill(below / "B", ["a.png", "y.png", "z.png"])
    (below / "A/c.png").write_bytes(b"its content")
    sha = hashlib.sha256(b"its content").hexdigest()
    at = "train/A" if given == "train" else "A"
    lines = ["a.png", f"{at}/b.png", f"sha256:{sha} 11 earlier name.png"]
    (tmp_path / "dropped.txt").write_text("\n".join(lines))
    folders = (None, below / "A", below / "B") if given == "two" else (tmp_path, None, None)
    sides = keys(find_unpaired(*folders, 0.4, 0))
    assert sorted(sides["train"][0] + sides["val"][0]) == ["d.png", "e.png", "f.png"]
    assert sorted(sides["train"][1] + sides["val"][1]) == ["y.png", "z.png"]
    (tmp_path / "dropped.txt").write_text("y.png\nz.png\na.png")
    with pytest.raises(DistillError, match=r"B: .*dropped\.txt names all"):
        find_unpaired(*folders, 0.4, 0)


def two(layout, root):
    """Where A and B lie, and the arguments that find them."""
    if layout == "anywhere":
        a, b = root / "photos", root / "elsewhere" / "paintings"
        return a, b, (None, a, b)
    names = {"plain": ("A", "B"), "train": ("trainA", "trainB")}[layout]
    return root / names[0], root / names[1], (root, None, None)


@pytest.mark.parametrize("layout", ["plain", "train", "anywhere"])
def test_otherwise_the_split_is_by_a_hash_of_the_names(tmp_path, layout):
    a, b, given = two(layout, tmp_path)
    first = [f"{person}_{n:04d}.jpg" for person in PEOPLE[:12] for n in (1, 2)]
    second = [f"x/{person}_{n:04d}.png" for person in PEOPLE[6:] for n in (3, 4, 5)]
    fill(a, first), fill(b, second)
    sides = keys(find_unpaired(*given, 0.4, 5))
    for domain, names in enumerate((first, second)):
        person = {name: name.split("/")[-1].split("_")[0] for name in names}
        assert sides["val"][domain] == [n for n in names if share(person[n], 5) < 0.4]
        assert sides["train"][domain] == [n for n in names if share(person[n], 5) >= 0.4]
        assert sides["val"][domain]
    assert keys(find_unpaired(*given, 0.4, 5)) == sides
    assert keys(find_unpaired(*given, 0.4, 6)) != sides


def test_who_is_held_out_of_a_small_folder_is_held_out_of_both(tmp_path):
    # By the hashes nobody of A would be held out; the lower one is, and B's pictures of that one.
    low = sorted(PEOPLE, key=lambda name: share(name, 0))
    few, many = low[3:5], low
    fill(tmp_path / "A", [f"{person}_0001.png" for person in few])
    fill(tmp_path / "B", [f"{person}_{n:04d}.png" for person in many for n in (1, 2)])
    fraction = (share(low[2], 0) + share(low[3], 0)) / 2
    sides = keys(find_unpaired(tmp_path, None, None, fraction, 0))
    held_out, learnt = (
        {n.split("_")[0] for domain in sides[s] for n in domain} for s in ("val", "train")
    )
    assert held_out == set(low[:4])
    assert not held_out & learnt
    assert all(domains for side in sides.values() for domains in side)


def test_one_person_in_both_folders_is_split_picture_by_picture(tmp_path, capsys):
    for domain in "AB":
        fill(tmp_path / domain, [f"frame_x_{n:04d}.png" for n in range(6)])
    sides = keys(find_unpaired(tmp_path, None, None, 0.3, 0))
    assert all(domains for side in sides.values() for domains in side)
    assert "too few groups" in capsys.readouterr().out


def half_a_test(root):
    for name in ("A", "B", "testA"):
        fill(root / name, ["a.png", "b.png"])
    return root


def same_folder(root):
    fill(root / "A", ["a.png", "b.png"])
    return root / "A", root / "A" / ".." / "A"


WRONG = {
    "nothing": (lambda root: (None, None, None), "data.root=null: no pictures to learn from; give"),
    "b alone": (lambda root: (None, None, root), "data.a=null: data.b="),
    "a alone": (lambda root: (None, root, None), "data.b=null: data.a="),
    "both ways": (lambda root: (root, root, root), "give either"),
    "no root": (lambda root: (root / "no", None, None), "no: no such folder; give a folder with"),
    "no folders": (lambda root: (root, None, None), "no two folders of pictures in it; give"),
    "no B": (
        lambda root: (fill(root / "trainA", ["a.png"]).parent, None, None),
        "holds trainA/ but no trainB/; give",
    ),
    "no A": (
        lambda root: (fill(root / "train" / "B", ["a.png"]).parents[1], None, None),
        "holds train/B/ but no train/A/; give",
    ),
    "no testB": (
        lambda root: (half_a_test(root), None, None), "holds testA/ but no testB/; give",
    ),
    "no folder a": (
        lambda root: (None, root / "no", fill(root / "b", ["b.png"])),
        "no: no such folder; put photos there",
    ),
    "empty b": (
        lambda root: (None, fill(root / "a", ["a.png"]), fill(root / "b", ["b.txt"])),
        "b: no pictures in it",
    ),
    "empty B": (
        lambda root: (fill(fill(root / "A", ["a.png"]).parent / "B", ["b.gif"]).parent, None, None),
        "B: no pictures in it",
    ),
    "twice": (lambda root: (None, *same_folder(root)), "given for A and for B"),
    "inside": (
        lambda root: (None, root, fill(root / "b", ["b.png"])),
        "one lies inside the other",
    ),
    "one picture": (
        lambda root: (None, fill(root / "a", ["a.png", "b.png"]), fill(root / "b", ["b.png"])),
        "b.png: one picture alone cannot be split",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_two_domains_ends_in_one_line(tmp_path, case):
    make, said = WRONG[case]
    assert said in refusal(find_unpaired, *make(tmp_path), 0.1, 0)


def test_a_link_to_the_other_folder_is_the_same_folder(tmp_path):
    fill(tmp_path / "trainA", ["a.png", "b.png"])
    (tmp_path / "trainB").symlink_to(tmp_path / "trainA")
    with pytest.raises(DistillError, match="given for A and for B"):
        find_unpaired(tmp_path, None, None, 0.1, 0)
