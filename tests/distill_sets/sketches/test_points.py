"""Points of cats and people: the format of the files, and which eye is the left one."""

import pytest

from distill.data.decode import BadPhoto
from distill.data.faces import Box, Face
from distill_sets.sketches.framing import cat_file, of_face, read_cat

# As one of the dataset's own files: eyes, mouth, three points of each ear.
LINE = "9 175 160 239 162 199 199 149 121 137 78 166 93 281 101 312 96 296 133 "


def cat(folder, text, size=(400, 300)):
    path = folder / "a.jpg.cat"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_cat(path, size)


def test_a_cat_s_nine_points(tmp_path):
    points = cat(tmp_path, LINE)
    assert (points.left, points.right) == ((175, 160), (239, 162))
    assert points.nose == pytest.approx((207 + 0.8 * (199 - 207), 161 + 0.8 * (199 - 161)))
    assert points.others == ((199, 199), (149, 121), (137, 78), (166, 93), (281, 101), (312, 96),
                             (296, 133))  # fmt: skip
    assert points.eyes == pytest.approx((64**2 + 2**2) ** 0.5)


def test_the_file_lies_beside_the_picture(tmp_path):
    assert cat_file(tmp_path / "a.b.jpg") == tmp_path / "a.b.jpg.cat"


@pytest.mark.parametrize(
    "text",
    ["", "8 " + LINE[2:], LINE + "7", "9 1 2 3", LINE.replace("160", "x"),
     LINE.replace("160", "nan"), LINE.replace("160", "inf")],
)  # fmt: skip
def test_files_of_another_format_are_refused(tmp_path, text):
    with pytest.raises(BadPhoto, match=r"no points: 'a\.jpg\.cat' is not 9 and nine times x y"):
        cat(tmp_path, text)


def test_a_missing_or_unreadable_file_is_refused(tmp_path):
    with pytest.raises(BadPhoto, match=r"there is no 'b\.jpg\.cat'"):
        read_cat(tmp_path / "b.jpg.cat", (9, 9))
    with pytest.raises(BadPhoto, match="cannot be read"):
        cat(tmp_path, b"9 \xff\xfe")
    (tmp_path / "c.jpg.cat").mkdir()
    with pytest.raises(BadPhoto, match="cannot be read"):
        read_cat(tmp_path / "c.jpg.cat", (9, 9))


def test_eyes_outside_of_the_picture_are_refused_but_ears_are_not(tmp_path):
    assert cat(tmp_path, LINE, (239, 162)).right == (239, 162)
    with pytest.raises(BadPhoto, match="eyes lie outside"):
        cat(tmp_path, LINE, (238, 300))


def test_the_mouth_says_which_eye_is_left(tmp_path):
    swapped = "9 239 162 175 160 " + LINE.split(maxsplit=5)[5]
    assert cat(tmp_path, swapped).left == (175, 160)
    head_down = "9 239 162 175 160 207 100" + " 1 1" * 6
    assert cat(tmp_path, head_down).left == (239, 162)


def test_people_s_five_points():
    spots = ((10.0, 20.0), (30.0, 20.0), (20.0, 30.0), (14.0, 40.0), (26.0, 40.0))
    points = of_face(Face(Box(0, 0, 50, 40), spots), (40, 50))
    assert (points.left, points.right, points.nose) == spots[:3]
    assert points.others == spots[3:]
    assert points.centre == (20, 20)
