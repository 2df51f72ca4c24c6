"""The catalogue of odd pictures: read file by file, labelled as one folder, trained from."""

import ast
import contextlib
import faulthandler
import io
import json
import os
import re
import signal
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import EpsImagePlugin, Image

from distill.data.datasets import PhotoSet
from distill.data.photos import BadPhoto, find_photos, read_photo
from support.labelling import MANIFEST, make
from support.odd_encodings import (
    PHONE,
    PICTURE,
    SRGB,
    black_ink,
    encoded,
    fits,
    gamma,
    linear_grey,
    profile,
    see_through,
)
from support.picture_catalogue import EPS, NO_FILE, NOT_TAKEN, PLACED, SKIPPED, USED

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="names and files that only Linux allows"),
    pytest.mark.filterwarnings("error"),  # none shall reach the user
]


def put(path, data):
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data())
    return path


@pytest.fixture(autouse=True)
def _no_waiting():
    """A pipe that is opened waits for ever: that fails here, or stops all tests from a thread."""

    def fail(*_):
        raise InterruptedError("waited for a minute")

    before = signal.signal(signal.SIGALRM, fail)
    signal.alarm(60)
    faulthandler.dump_traceback_later(90, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def everything(tmp_path):
    """The whole catalogue in one folder."""
    for name, used in USED.items():
        put(tmp_path / "photos" / name, used.data)
    for name, (data, _) in SKIPPED.items():
        put(tmp_path / "photos" / name, data)
    for name, (place, _) in PLACED.items():
        place(tmp_path / "photos" / name)
    for name, data in NOT_TAKEN.items():
        put(tmp_path / "photos" / name, data)
    os.mkfifo(tmp_path / "photos" / "pipe")
    (tmp_path / "photos" / "folder.png").mkdir()
    (tmp_path / "photos" / "around.jpg").symlink_to(tmp_path / "photos", target_is_directory=True)
    (tmp_path / "photos" / "link.jpg").symlink_to("plain.jpg")
    return tmp_path / "photos"


GOOD = USED | {"link.jpg": USED["plain.jpg"]}
REASONS = {name: reason for name, (_, reason) in (SKIPPED | PLACED).items()}


def reason_of(path):
    with pytest.raises(BadPhoto) as error:
        read_photo(path)
    return str(error.value)


# File by file


@pytest.mark.parametrize("name", USED, ids=ascii)
def test_what_can_be_used_gives_its_pixels(tmp_path, name):
    read = read_photo(put(tmp_path / name, USED[name].data))
    assert (read.mode, read.size) == ("RGB", USED[name].pixels.shape[1::-1])
    assert fits(read, USED[name])


@pytest.mark.parametrize("name", SKIPPED, ids=ascii)
def test_what_cannot_be_used_gives_its_reason(tmp_path, name):
    data, reason = SKIPPED[name]
    said = reason_of(put(tmp_path / name, data))
    assert said.startswith(reason)
    assert said.isprintable()
    assert len(said) < 160


@pytest.mark.parametrize("name", PLACED)
def test_what_is_no_file_is_not_waited_for(tmp_path, name):
    os.mkfifo(tmp_path / "pipe")
    place, reason = PLACED[name]
    place(tmp_path / name)
    assert reason_of(tmp_path / name).startswith(reason)


def test_the_catalogue_proves_something():
    """Every profile that matters changes colours by more than any tolerance here."""
    seen = [u.pixels for n, u in USED.items() if n.startswith(("profile Disp", "profile Ad"))]
    assert len(seen) >= 6
    assert all(np.abs(pixels.astype(int) - PICTURE)[:32, :64].max() > 9 for pixels in seen)
    assert len(USED) + len(SKIPPED) + len(PLACED) + len(NOT_TAKEN) > 150


def test_no_other_program_is_started_for_a_picture(tmp_path, monkeypatch):
    monkeypatch.setattr(EpsImagePlugin, "Ghostscript", lambda *_: pytest.fail("started"))
    assert "kind EPS" in reason_of(put(tmp_path / "x.jpg", lambda: EPS))


@pytest.mark.parametrize("alpha", [False, True])
@pytest.mark.parametrize(
    "data",
    [
        lambda: see_through(128, icc_profile=PHONE),
        # A profile that does not fit the pixels must not be saved with them: then it would fit.
        lambda: encoded(PICTURE, "PNG", "L", icc_profile=profile(SRGB, gamma(1))),
    ],
    ids=["fits", "does not fit"],
)
def test_a_copy_that_is_saved_is_read_as_it_was(tmp_path, data, alpha):
    first = read_photo(put(tmp_path / "x.png", data), alpha=alpha)
    first.save(tmp_path / "copy.png")
    assert (np.asarray(read_photo(tmp_path / "copy.png", alpha=alpha)) == np.asarray(first)).all()
    assert first.mode == ("RGBA" if alpha else "RGB")


def test_inks_are_seen_through_their_profile(tmp_path):
    # A press that has black ink only: whatever the three colours, the paper stays white.
    pixels = 255 * (1 - np.array([[0.0, 1.0]])[..., None].repeat(3, -1))
    picture = np.zeros((64, 64, 4), np.uint8)
    picture[:, 32:, 3] = 255
    picture[..., :3] = 70
    out = io.BytesIO()
    Image.fromarray(picture, "CMYK").save(out, "JPEG", quality=95, icc_profile=black_ink())
    read = read_photo(put(tmp_path / "x.jpg", out.getvalue))
    assert np.abs(np.asarray(read)[8:9, [8, 56]] - pixels).max() <= 3


def test_a_photo_that_is_complete_when_it_is_read_is_used(tmp_path):
    data = encoded(PICTURE, "PNG")
    path = put(tmp_path / "x.png", lambda: data[:-200])
    (found,) = find_photos(tmp_path)
    path.write_bytes(data)
    assert fits(read_photo(found.path), USED["plain.png"])


def test_a_photo_that_goes_between_listing_and_reading_has_a_reason(tmp_path):
    path = put(tmp_path / "x.png", USED["plain.png"].data)
    (found,) = find_photos(tmp_path)
    path.unlink()
    assert reason_of(found.path) == "cannot be read (No such file or directory)"
    path.mkdir()
    assert reason_of(found.path) == NO_FILE


def without_rights(folder, do):
    """What `do` returns and prints in a process that may do no more than anybody; JSON."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        with open(write, "w") as out, contextlib.redirect_stdout(io.StringIO()) as printed:
            os.chdir(folder)  # the folders above are closed to others
            if not os.geteuid():
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
            try:
                result = do()
            except BaseException as error:
                result = repr(error)
            json.dump([result, printed.getvalue()], out)
            out.flush()
            os._exit(0)
    os.close(write)
    with open(read) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return json.loads(text)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_what_may_not_be_read_is_skipped_and_a_closed_folder_named(tmp_path):
    for name in ("open.png", "closed.png", "locked/inside.png", "unlisted/inside.png"):
        put(tmp_path / name, USED["plain.png"].data).chmod(0o644)
    (tmp_path / "closed.png").chmod(0)
    (tmp_path / "locked").chmod(0)
    (tmp_path / "unlisted").chmod(0o711)  # what is in it could be read by who knows the names
    tmp_path.chmod(0o755)

    def look():
        found = find_photos(Path())
        return [[p.key, read_or_reason(p.path)] for p in found]

    found, printed = without_rights(tmp_path, look)
    (tmp_path / "locked").chmod(0o755)  # so that it can be removed
    assert found == [["closed.png", "cannot be read (Permission denied)"], ["open.png", [128, 64]]]
    assert sorted(printed.splitlines()) == [
        f"left out the folder './{name}': Permission denied" for name in ("locked", "unlisted")
    ]


def read_or_reason(path):
    try:
        return read_photo(path).size
    except BadPhoto as reason:
        return str(reason)


# All in one folder


def test_the_folders_photos_are_found_and_nothing_else(everything):
    assert sorted(p.key for p in find_photos(everything)) == sorted(GOOD.keys() | REASONS.keys())


def labelled(photos, root):
    """Half of the photos held out: near-duplicates, as most of the good ones are, stay together."""
    manifest = replace(MANIFEST, val_fraction=0.5)
    return make(None, root, manifest, photos=photos, batch_size=4)


def pixels(path):
    with Image.open(path) as image:
        return np.asarray(image).astype(int)


def middle(array):
    """The centre square of a picture 64 pixels high or wide."""
    top, left = ((side - 64) // 2 for side in array.shape[:2])
    return array[top : top + 64, left : left + 64]


def test_the_whole_folder_is_labelled(everything, tmp_path, capsys):
    photos, root = find_photos(everything), tmp_path / "set"
    report = labelled(photos, root)
    said = capsys.readouterr().out.splitlines()
    others, *said = said
    assert re.fullmatch(rf"{everything}: \d+ files? left out: \..*", others)
    assert [line.partition(":")[0] for line in said] == ["teacher"]  # and of no photo
    assert report.skipped.keys() == REASONS.keys()

    good = {f"{photo.pair_name}.png": photo for photo in photos if photo.key in GOOD}
    for kind in ("photo", "stylized"):
        assert sorted(path.name for path in root.glob(f"*/{kind}/*")) == sorted(good)
    for kept in root.glob("*/photo/*"):
        source = np.asarray(read_photo(good[kept.name].path))
        assert (pixels(kept) == middle(source)).all()
        assert (pixels(kept.parent.parent / "stylized" / kept.name) == 255 - pixels(kept)).all()

    # Every photo that was skipped is one line of the list.
    text = (root / "skipped.tsv").read_text(encoding="utf-8")
    head, *lines = text.removesuffix("\n").split("\n")
    assert head == "photo\treason"
    rows = [line.split("\t") for line in lines]
    listed = {ast.literal_eval(name): reason for name, reason in rows}
    assert len(rows) == len(listed) == len(REASONS)
    assert [name for name, said in REASONS.items() if not listed[name].startswith(said)] == []
    assert all(field.isprintable() for row in rows for field in row)


@pytest.mark.slow
def test_training_names_every_skipped_photo_on_one_line_once(everything, capsys):
    data = PhotoSet(find_photos(everything), 64, train=False)
    names = {data[i]["name"] for i in range(len(data))}
    names |= {data[i]["name"] for i in range(len(data))}
    assert names == set(GOOD)
    others, *lines = capsys.readouterr().out.removesuffix("\n").split("\n")
    assert others == f"{everything}: 1 file left out: .gif"
    said = {
        name: f"skipped {str(everything / name)!r}: {reason}" for name, reason in REASONS.items()
    }
    assert len(lines) == len(said)
    assert [text for text in said.values() if not any(x.startswith(text) for x in lines)] == []
    assert all(line.isprintable() for line in lines)


@pytest.mark.parametrize("mode", ["L", "LA"])
def test_grey_is_seen_through_its_profile_beside_an_alpha_too(tmp_path, mode):
    grey = Image.fromarray(np.arange(0, 256, 4, np.uint8).repeat(64).reshape(64, 64)).convert(mode)
    grey.save(tmp_path / "x.png", icc_profile=linear_grey())
    linear = np.arange(0, 256, 4) / 255  # sRGB's own curve, IEC 61966-2-1
    curve = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    read = np.asarray(read_photo(tmp_path / "x.png"))[:, 8, 1]
    assert np.abs(read - 255 * curve)[4:].max() <= 3
