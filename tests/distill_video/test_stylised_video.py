"""Whole videos, made negatives: what must be as before, and what goes wrong on the way."""

from fractions import Fraction

import numpy as np
import pytest

av = pytest.importorskip("av", reason="PyAV is missing: pip install 'distill[video]'")

from distill_video import stylised_video  # noqa: E402
from distill_video.stylised_video import stylise_video  # noqa: E402
from distill_video.videos import BadVideo  # noqa: E402
from support import small_videos  # noqa: E402

VARIABLE = [0, 512, 600, 5000, 5001, 9000, 9500, 12800, 20000, 20512, 40000, 41000]


def negative(picture):
    return 255 - picture


@pytest.fixture
def stylise(tmp_path):
    """A function from a video to what is made of it: the file, the report, the remarks."""

    def run(source, name="out.mp4", infer=negative, **options):
        said = []
        target = tmp_path / "out" / name
        report = stylise_video(source, target, infer, said.append, **{"crf": 10, **options})
        assert [p.name for p in target.parent.iterdir()] == [name]
        return target, report, said

    return run


def opened(path):
    """Its video stream, its first frame and its metadata."""
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        frame = next(container.decode(stream))
        return stream, frame, dict(container.metadata)


def close_to(seen, pictures, levels=6):
    """On average: 4:2:0 blurs the colours of the bar's edge."""
    assert len(seen) == len(pictures)
    for have, want in zip(seen, pictures, strict=True):
        assert have.shape == want.shape
        assert np.abs(have - want.astype(int)).mean() < levels


@pytest.mark.parametrize("kind", ["yuva420p", "yuv420p"])
def test_transparency_that_is_lost_is_said(tmp_path, stylise, kind):
    """FFmpeg's decoder of VP9 does not even give it."""
    how = {"codec": "libvpx-vp9", "pix_fmt": kind, "time_base": Fraction(1, 1000)}
    remarks = stylise(small_videos.make(tmp_path / "in.webm", **how), "out.webm")[2]
    assert remarks == ["has transparency, which its stylised video has not"] * (kind[3] == "a")


# Times


@pytest.mark.parametrize("suffix", ["mp4", "mov", "mkv", "webm", "m4v"])
def test_every_frame_is_stylised_and_keeps_its_time(tmp_path, stylise, suffix):
    muxer = {"m4v": "mp4"}.get(suffix)
    codec, base = ("libvpx-vp9", Fraction(1, 1000)) if suffix == "webm" else ("libx264", None)
    kwargs = {"codec": codec, "format": muxer} | ({"time_base": base} if base else {})
    source = small_videos.make(tmp_path / f"a.{suffix}", **kwargs)
    target, report, said = stylise(source, f"b.{suffix}")
    assert (report.frames, report.lost, report.cut, said) == (12, 0, None, [])
    assert small_videos.times(target) == small_videos.times(source)
    assert opened(target)[0].time_base == opened(source)[0].time_base
    close_to(small_videos.decoded(target), [255 - p for p in small_videos.pictures()])


@pytest.mark.parametrize("base", [Fraction(1, 12800), Fraction(1, 90000), Fraction(1, 600)])
def test_variable_frame_rate_keeps_every_time_to_the_tick(tmp_path, stylise, base):
    source = small_videos.make(tmp_path / "a.mp4", pts=VARIABLE, time_base=base)
    target, _, _ = stylise(source)
    assert (
        small_videos.times(target)[0]
        == [pts * base for pts in VARIABLE]
        == small_videos.times(source)[0]
    )


def test_a_broadcast_s_clock_starts_at_zero(tmp_path, stylise):
    source = small_videos.make(tmp_path / "a.ts")
    before = small_videos.times(source)[0]
    target, _, _ = stylise(source)
    after = small_videos.times(target)[0]
    assert after[0] < Fraction(1, 10)
    assert [t - after[0] for t in after] == [t - before[0] for t in before]


# Sound and what else is in the file


@pytest.mark.parametrize(("suffix", "sound"), [("mp4", "aac"), ("mkv", "flac"), ("mov", "aac")])
def test_sound_is_copied_bit_by_bit(tmp_path, stylise, suffix, sound):
    source = small_videos.make(tmp_path / f"a.{suffix}", sound=sound)
    target, _, said = stylise(source, f"b.{suffix}")
    before, after = small_videos.packets(source, "audio"), small_videos.packets(target, "audio")
    assert len(before) > 4
    assert [data for _, data in after] == [data for _, data in before]
    assert [time for time, _ in after] == [time for time, _ in before]
    assert small_videos.times(target) == small_videos.times(source)
    assert said == []


def test_sound_that_does_not_fit_is_encoded_and_that_is_said(tmp_path, stylise):
    source = small_videos.make(tmp_path / "a.mkv", sound="pcm_s16le")
    target, _, said = stylise(source, "b.webm")
    assert said == ["its sound (pcm_s16le) does not go into this kind of file: now libopus"]
    with av.open(str(target)) as container:
        stream = container.streams.audio[0]
        frames = [f.to_ndarray() for f in container.decode(stream)]
    heard = np.concatenate(frames, 1).mean(0)[4800:14400]
    if np.abs(heard).max() > 2:
        heard = heard / 32768
    spectrum = np.abs(np.fft.rfft(heard))
    assert spectrum.argmax() * 48_000 / len(heard) == pytest.approx(440, abs=5)
    assert np.abs(heard).max() == pytest.approx(9000 / 32768, rel=0.2)


@pytest.mark.parametrize("sound", ["flac", "libopus"])
def test_sound_that_only_the_header_refuses_is_encoded_too(tmp_path, stylise, sound):
    source = small_videos.make(tmp_path / "a.mkv", sound=sound)
    target, report, said = stylise(source, "b.mov")
    assert report.dropped == 0
    assert said[0].endswith("does not go into this kind of file: now aac")
    with av.open(str(target)) as container:
        assert container.streams.audio[0].codec_context.name == "aac"


@pytest.mark.parametrize("suffix", ["mp4", "webm"])  # copied, encoded again
def test_damaged_sound_costs_that_sound_only(tmp_path, stylise, suffix):
    source = small_videos.make(tmp_path / "a.ts", small_videos.pictures(50), sound="aac")
    content = bytearray(source.read_bytes())
    with av.open(str(source)) as container:
        found = [p for p in container.demux(container.streams.audio[0]) if p.size]
        place = found[len(found) // 2].pos
    content[place + 24 : place + 188] = bytes(range(24, 188))
    source.write_bytes(content)
    target, report, _ = stylise(source, f"b.{suffix}")
    assert report.frames == 50
    assert 0 < report.dropped < len(found) // 2
    assert small_videos.packets(target, "audio")


def test_too_wide_for_the_encoder_is_one_line(tmp_path):
    pictures = [np.zeros((16, 8200, 3), np.uint8)]
    source = small_videos.make(tmp_path / "a.mkv", pictures, codec="ffv1", pix_fmt="bgr0")
    with pytest.raises(BadVideo, match="its output is 16400×16, at most 16384 a side"):
        stylise_video(source, tmp_path / "b.mp4", negative, print, crf=10, compare=True)
    assert [p.name for p in tmp_path.iterdir()] == ["a.mkv"]


def test_title_and_sound_s_language_stay(tmp_path, stylise):
    source = tmp_path / "a.mp4"
    with av.open(str(source), "w") as out:
        out.metadata["title"] = "naïve"
        video = out.add_stream("libx264", rate=25)
        video.width, video.height, video.pix_fmt = 64, 48, "yuv420p"
        audio = out.add_stream("aac", rate=48_000, layout="mono")
        audio.metadata["language"] = "deu"
        for picture in small_videos.pictures():
            out.mux(video.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        out.mux(video.encode(None))
        small_videos.add_tone(out, audio, 0.4)
    target, _, _ = stylise(source)
    assert opened(target)[2]["title"] == "naïve"
    with av.open(str(target)) as container:
        assert container.streams.audio[0].language == "deu"


def test_of_several_video_streams_the_first(tmp_path, stylise):
    source = small_videos.make(tmp_path / "a.mkv", streams=2)
    _, report, said = stylise(source, "b.mkv")
    assert report.frames == 12
    assert said == ["has 2 video streams; the first is stylised"]


@pytest.mark.parametrize("suffix", ["mp4", "mkv"])
def test_a_second_video_stream_that_is_longer_is_no_promise(tmp_path, stylise, suffix):
    """Only the first one is read: that the file goes on after it is no damage."""
    source = tmp_path / f"a.{suffix}"
    with av.open(str(source), "w") as out:
        streams = [out.add_stream("libx264", rate=25) for _ in range(2)]
        for stream in streams:
            stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for stream, count in zip(streams, (10, 60), strict=True):
            for picture in small_videos.pictures(count):
                out.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
            out.mux(stream.encode(None))
    _, report, _ = stylise(source, f"b.{suffix}")
    assert (report.frames, report.cut) == (10, None)


def test_h264_in_avi_keeps_every_frame_in_its_place(tmp_path, stylise):
    """AVI stores no times: those that FFmpeg gives B-frames are not in the frames' order."""
    source = small_videos.make(
        tmp_path / "a.avi", small_videos.pictures(24), time_base=Fraction(1, 25)
    )
    target, report, _ = stylise(source)
    assert (report.frames, report.lost, report.cut) == (24, 0, None)
    close_to(small_videos.decoded(target), [255 - p for p in small_videos.pictures(24)])
    times = small_videos.times(target)[0]
    assert all(0 < b - a <= Fraction(3, 25) for a, b in zip(times, times[1:], strict=False))
    assert times[-1] - times[0] == pytest.approx(23 / 25, abs=2 / 25)


def test_sound_whose_clock_jumps_back_costs_that_sound_only(tmp_path, stylise):
    """Two recordings in one file, as cameras and `cat` make them."""
    once = small_videos.make(tmp_path / "once.ts", small_videos.pictures(30), sound="aac")
    source = tmp_path / "a.ts"
    source.write_bytes(2 * once.read_bytes())
    target, report, _ = stylise(source)
    assert report.frames == 30
    assert report.dropped > 0
    assert (
        len(small_videos.packets(target, "audio")) >= len(small_videos.packets(once, "audio")) - 2
    )


# How a frame looks


@pytest.mark.parametrize("turn", [(0,), (90,), (180,), (270,), (0, True), (0, False, True)])
def test_what_lies_is_set_upright(tmp_path, stylise, turn):
    """As the player shows the source, the output is stored. Turns are counterclockwise."""
    source = small_videos.make(tmp_path / "a.mp4", turn=turn)
    target, _, _ = stylise(source)
    degrees, across, down = (*turn, False, False)[:3]
    expected = [np.rot90(255 - p, degrees // 90) for p in small_videos.pictures()]
    expected = [p[:: -1 if down else 1, :: -1 if across else 1] for p in expected]
    close_to(small_videos.decoded(target), expected)
    assert opened(target)[1].rotation == 0


@pytest.mark.parametrize("turn", [(0,), (90,)])
def test_pixels_that_are_not_square_stay_so(tmp_path, stylise, turn):
    source = small_videos.make(tmp_path / "a.mp4", shape=Fraction(16, 11), turn=turn)
    target, _, _ = stylise(source)
    expected = Fraction(11, 16) if turn[0] else Fraction(16, 11)
    assert opened(target)[0].sample_aspect_ratio == expected


@pytest.mark.parametrize(("width", "height"), [(65, 48), (64, 47), (65, 47), (1, 1)])
def test_odd_sides_get_a_line_more(tmp_path, stylise, width, height):
    pictures = small_videos.pictures(3, width, height)
    source = small_videos.make(tmp_path / "a.mkv", pictures, codec="ffv1", pix_fmt="bgr0")
    target, _, said = stylise(source, "b.mkv", crf=0)
    even = (width + width % 2, height + height % 2)
    assert said == [
        f"is {width}×{height}; its output is {even[0]}×{even[1]}, as the encoder needs it even"
    ]
    seen = small_videos.decoded(target)
    assert seen[0].shape == (even[1], even[0], 3)
    close_to([s[:height, :width] for s in seen], [255 - p for p in pictures])
    if height % 2:
        assert np.abs(seen[0][-1] - seen[0][-2]).max() <= 4


COLOURS = [(1, 1, 1, 1), (1, 1, 13, 2), (6, 6, 6, 1), (9, 9, 14, 1)]


@pytest.mark.parametrize("colours", COLOURS)
def test_colours_mean_what_they_meant(tmp_path, stylise, colours):
    """Matrix, primaries, transfer and range are told, and the numbers fit them."""
    flat = [np.full((48, 64, 3), (200, 90, 40), np.uint8)] * 3
    source = small_videos.make(tmp_path / "a.mp4", flat, colours=colours)
    target, _, _ = stylise(source, infer=lambda picture: picture)
    (_, before, _), (_, after, _) = opened(source), opened(target)
    told = [(f.colorspace, f.color_primaries, f.color_trc, f.color_range) for f in (before, after)]
    assert told == [colours, colours]
    for plane, other in zip(before.planes, after.planes, strict=True):
        values = [np.frombuffer(bytes(p), np.uint8)[:32].astype(int) for p in (plane, other)]
        assert np.abs(values[0] - values[1]).max() <= 2


def test_compare_is_input_and_output(tmp_path, stylise):
    source = small_videos.make(tmp_path / "a.mp4")
    target, _, _ = stylise(source, compare=True)
    close_to(
        small_videos.decoded(target),
        [np.concatenate([p, 255 - p], 1) for p in small_videos.pictures()],
    )


# Damage


def overwritten(source, number):
    """Zeros, which no decoder takes, for a packet but its first bytes; gives its time."""
    with av.open(str(source)) as container:
        packet = [p for p in container.demux(container.streams.video[0]) if p.size][number]
        place, size, time = packet.pos, packet.size, packet.pts * packet.time_base
    content = bytearray(source.read_bytes())
    content[place + 8 : place + size] = b"\0" * (size - 8)
    source.write_bytes(content)
    return time


def test_a_damaged_frame_is_left_out_and_counted_the_others_keep_their_times(tmp_path, stylise):
    every = {"preset": "ultrafast", "g": "1"}  # each frame on its own
    source = small_videos.make(tmp_path / "a.mp4", sound="aac", options=every)
    times, sound = small_videos.times(source)[0], small_videos.packets(source, "audio")
    gone = overwritten(source, 5)
    target, report, _ = stylise(source)
    assert (report.frames, report.lost, report.cut) == (11, 1, None)
    assert small_videos.times(target)[0] == [t for t in times if t != gone]
    assert small_videos.packets(target, "audio") == sound


def test_all_frames_that_need_a_damaged_one_are_counted_or_there(tmp_path, stylise):
    source = small_videos.make(tmp_path / "a.mp4")
    overwritten(source, 0)
    target, report, _ = stylise(source)
    assert report.lost >= 1
    assert report.frames + report.lost == 12
    assert len(small_videos.times(target)[0]) == report.frames


@pytest.mark.parametrize("suffix", ["mkv", "mp4"])
def test_a_file_cut_short_is_stylised_as_far_as_it_goes(tmp_path, stylise, suffix):
    front = {"options": small_videos.FAST} | (
        {"container_options": {"movflags": "+faststart"}} if suffix == "mp4" else {}
    )
    source = small_videos.make(
        tmp_path / f"a.{suffix}", small_videos.pictures(40), sound="aac", **front
    )
    times = small_videos.times(source)[0]
    content = source.read_bytes()
    source.write_bytes(content[: len(content) * 6 // 10])
    target, report, _ = stylise(source)
    assert report.cut.startswith("breaks off at ")
    assert 0 < report.frames < 40
    assert set(small_videos.times(target)[0]) <= set(times)


def text(path):
    path.write_text("no video, but a text\n" * 40)


def sound_only(path):
    with av.open(str(path), "w", format="mp4") as out:
        small_videos.add_tone(out, out.add_stream("aac", rate=48_000, layout="mono"), 0.5)


def no_index(path):
    content = small_videos.make(path).read_bytes()
    path.write_bytes(content[: len(content) // 2])


def nothing_decodes(path):
    small_videos.make(path, small_videos.pictures(1))
    overwritten(path, 0)


def playlist(path):
    """Which would have FFmpeg open what it names."""
    small_videos.make(path.with_name("other.ts"))
    path.write_text(f"#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\n{path.with_name('other.ts')}\n")


BAD = {
    text: "not a video, or damaged at its start or end",
    lambda path: path.write_bytes(b""): "not a video: the file is empty",
    lambda path: path.mkdir(): "not a file but a folder",
    lambda path: None: r"cannot be read \(No such file",
    sound_only: "has no video stream",
    no_index: "not a video, or damaged at its start or end",
    nothing_decodes: "not one of its frames can be decoded",
    playlist: "not a video, or damaged at its start or end",
}


@pytest.mark.parametrize("spoil", BAD)
def test_what_is_no_video_is_said_in_one_line_and_leaves_nothing(tmp_path, spoil):
    source, target = tmp_path / "a.mp4", tmp_path / "out" / "b.mp4"
    spoil(source)
    with pytest.raises(BadVideo, match=BAD[spoil]) as reason:
        stylise_video(source, target, negative, print, crf=10)
    assert len(str(reason.value).splitlines()) == 1
    assert not target.parent.exists()


# Ends


@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
def test_an_error_on_the_way_leaves_the_last_output_alone(tmp_path, error):
    source, target = small_videos.make(tmp_path / "a.mp4"), tmp_path / "b.mp4"
    target.write_bytes(b"an earlier one")
    seen = []

    def infer(picture):
        seen.append(1)
        if len(seen) == 7:
            raise error
        return picture

    with pytest.raises(error):
        stylise_video(source, target, infer, print, crf=10)
    assert target.read_bytes() == b"an earlier one"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.mp4", "b.mp4"]


def test_what_a_killed_run_left_is_replaced(tmp_path, stylise):
    source = small_videos.make(tmp_path / "a.mp4")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / ".out.mp4.part").write_bytes(b"half of one")
    stylise(source)  # which looks that nothing else is there


def test_no_file_can_be_written(tmp_path):
    source = small_videos.make(tmp_path / "a.mp4")
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        stylise_video(source, tmp_path / "file" / "b.mp4", negative, print, crf=10)


def test_a_name_may_hold_anything(tmp_path, stylise):
    for name in ("http:x y%d.mp4", "日本 naïve.mp4", "concat:a|b.mp4"):
        target, _, _ = stylise(
            small_videos.make(tmp_path / "a.mp4").rename(tmp_path / name), "out.mp4"
        )
        assert len(small_videos.times(target)[0]) == 12


# Stability


def test_smooth_lowers_the_flicker_of_a_still_video_as_computed(tmp_path, stylise):
    """The output alternates by 40 levels; smooth=0.5 leaves a third of that in the long run."""
    still = [np.full((48, 64, 3), 90, np.uint8)] * 30
    source = small_videos.make(tmp_path / "a.mp4", still, options={"crf": "0"})
    turns = []

    def infer(picture):
        turns.append(1)
        return np.full_like(picture, 100 + 40 * (len(turns) % 2))

    _, report, _ = stylise(source, infer=infer, stability=True, smooth=0.5)
    found = report.stability
    assert found.unsmoothed == pytest.approx(40)
    assert found.drawings == pytest.approx(40 / 3, abs=1.5)
    assert found.pictures < 0.5
    assert found.pairs == 29


def test_long_videos_are_measured_at_a_few_pairs(tmp_path, stylise, monkeypatch):
    monkeypatch.setattr(stylised_video, "PAIRS", 4)
    _, report, _ = stylise(small_videos.make(tmp_path / "a.mp4"), stability=True)
    assert 2 <= report.stability.pairs <= 4


# Two at once


def test_two_commands_that_write_one_file_each_write_it_whole(tmp_path):
    """The one that ends last replaces the other one's, as with pictures."""
    source, target = small_videos.make(tmp_path / "a.mp4"), tmp_path / "b.mp4"
    second = []

    def infer(picture):
        if not second:
            second.append(stylise_video(source, target, negative, print, crf=10))
            inverse = [255 - each for each in small_videos.pictures()]
            close_to(small_videos.decoded(target), inverse)
        return picture

    stylise_video(source, target, infer, print, crf=10)
    close_to(small_videos.decoded(target), small_videos.pictures())
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.mp4", "b.mp4"]
