"""Weights files: looked for, fetched, verified and loaded, or refused in one line."""

import hashlib
import os
import pickle
import re
import stat
import threading
import urllib.error
import urllib.request
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from distill.core import weights
from distill.core.errors import DistillError
from distill.core.state_dicts import load_into, load_tensors
from distill.core.weights import WeightsFile, find, find_or_none, matches, supplied
from distill.data import faces
from distill.metrics import features, similarity
from distill.models.students import encoder

CONTENT = b"the weights, as published" * 100
SHA256 = hashlib.sha256(CONTENT).hexdigest()
GIT_BLOB = hashlib.sha1(b"blob %d\0" % len(CONTENT) + CONTENT).hexdigest()


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """A cache of the test's own, no folder of weights, no proxy in the way to 127.0.0.1."""
    monkeypatch.setenv("DISTILL_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("DISTILL_WEIGHTS", raising=False)
    monkeypatch.setenv("no_proxy", "*")
    return tmp_path / "cache"


class Replies(BaseHTTPRequestHandler):
    """/whole, /short (fewer bytes than promised), /chunk (ends inside a chunk), else 404.

    /parts takes ranges as servers of weights do, and breaks off after 1000 bytes.
    """

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.server.asked.append(self.path)
        kind = self.path.split("/")[1]
        if kind == "parts":
            self.part()
            return
        self.send_response(200 if kind in ("whole", "short", "chunk") else 404)
        if kind == "chunk":
            self.send_header("Transfer-Encoding", "chunked")
        else:
            self.send_header("Content-Length", str(len(CONTENT)))
        self.send_header("Connection", "close")
        self.end_headers()
        start = b"ffff\r\n" if kind == "chunk" else b""
        self.wfile.write(start + CONTENT[: None if kind == "whole" else 1000])
        self.close_connection = True

    def part(self):
        asked = self.headers.get("Range")
        start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked else 0
        self.server.starts.append(start)
        if start >= len(CONTENT):
            self.send_error(416)
            return
        self.send_response(206 if asked else 200)
        self.send_header("Content-Length", str(len(CONTENT) - start))
        if asked:
            self.send_header("Content-Range", f"bytes {start}-{len(CONTENT) - 1}/{len(CONTENT)}")
        self.end_headers()
        self.wfile.write(CONTENT[start : start + 1000])
        self.close_connection = True

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    with ThreadingHTTPServer(("127.0.0.1", 0), Replies) as running:
        running.asked, running.starts = [], []
        running.url = f"http://127.0.0.1:{running.server_port}"
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def put(path, content=CONTENT):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def said(error):
    return str(error.value)


# Hashes


@pytest.mark.parametrize(
    ("known", "good"),
    [
        ({}, True),
        ({"sha256": SHA256}, True),
        ({"sha256": SHA256.upper()}, True),
        ({"sha256": SHA256[:8]}, True),
        ({"git_blob": GIT_BLOB}, True),
        ({"git_blob": GIT_BLOB.upper()}, True),
        ({"sha256": SHA256, "git_blob": GIT_BLOB}, True),
        ({"sha256": SHA256[::-1]}, False),
        ({"sha256": SHA256[8:16]}, False),
        ({"sha256": SHA256 + "00"}, False),
        ({"git_blob": GIT_BLOB[::-1]}, False),
        ({"sha256": SHA256, "git_blob": GIT_BLOB[::-1]}, False),
        ({"sha256": SHA256[::-1], "git_blob": GIT_BLOB}, False),
    ],
)
def test_a_file_has_to_have_every_hash_that_is_known(tmp_path, known, good):
    assert matches(put(tmp_path / "x"), WeightsFile("x", **known)) is good


# Where a file is looked for


def test_the_order_is_explicit_then_supplied_then_cache_then_download(
    tmp_path, cache, monkeypatch, server
):
    folders = [tmp_path / "none", tmp_path / "one", tmp_path / "two"]
    monkeypatch.setenv("DISTILL_WEIGHTS", os.pathsep.join(map(str, folders)))
    file = WeightsFile("x.pt", f"{server.url}/whole/x.pt", SHA256)
    explicit = put(tmp_path / "mine.pt")
    places = [explicit, put(folders[1] / "x.pt"), put(folders[2] / "x.pt"), put(cache / "x.pt")]

    assert find(file, str(explicit)) == places[0]
    for place in places[1:]:
        assert find(file) == place
        place.unlink()
    assert server.asked == []
    assert find(file) == cache / "x.pt"
    assert server.asked == ["/whole/x.pt"]
    assert (cache / "x.pt").read_bytes() == CONTENT
    find(file)
    assert server.asked == ["/whole/x.pt"]  # once is enough


def test_a_file_address_is_fetched_too(tmp_path, cache):
    source = put(tmp_path / "shared" / "x.pt")
    found = find(WeightsFile("x.pt", source.as_uri(), git_blob=GIT_BLOB))
    assert (found, found.read_bytes()) == (cache / "x.pt", CONTENT)
    assert [path.name for path in cache.iterdir()] == ["x.pt"]


def test_a_downloaded_file_can_be_read_by_others_as_the_umask_says(tmp_path, cache):
    before = os.umask(0o022)
    try:
        find(WeightsFile("x.pt", put(tmp_path / "x.pt").as_uri(), SHA256))
    finally:
        os.umask(before)
    assert stat.S_IMODE((cache / "x.pt").stat().st_mode) == 0o644


def test_supplied_takes_a_home_folder_and_leaves_out_empty_parts(monkeypatch, tmp_path):
    put(tmp_path / "weights" / "x.pt")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path / "weights")
    monkeypatch.setenv("DISTILL_WEIGHTS", os.pathsep)
    assert supplied("x.pt") is None  # an empty part does not mean the current folder
    monkeypatch.setenv("DISTILL_WEIGHTS", os.pathsep + "~/weights")
    assert supplied("x.pt") == tmp_path / "weights" / "x.pt"


def test_an_explicit_file_is_the_users_own_choice_and_its_hash_is_not_checked(tmp_path):
    mine = put(tmp_path / "mine.pt", b"trained at home")
    assert find(WeightsFile("x.pt", None, SHA256), str(mine)) == mine


def test_an_explicit_file_that_is_missing_names_the_setting(tmp_path, server):
    file = WeightsFile("x.pt", f"{server.url}/whole/x.pt")
    with pytest.raises(DistillError) as error:
        find(file, f"{tmp_path}/gone.pt", "style.weights")
    assert said(error) == f"style.weights={tmp_path}/gone.pt: no such file"
    assert server.asked == []


# What goes wrong


def refused(file, cache, words):
    """The line that `find` ends with: it has all that a user without a network needs."""
    with pytest.raises(DistillError, match=words) as error:
        find(file, key="style.weights")
    known = file.sha256 or file.git_blob or "no hash known"
    for part in (file.name, file.url or "URL none", known, "DISTILL_WEIGHTS", str(cache)):
        assert part in said(error)
    assert "style.weights=FILE" in said(error)
    return said(error)


@pytest.mark.parametrize(
    ("known", "words"),
    [
        ({"sha256": "0" * 64}, f"sha256 {'0' * 64}"),
        ({"sha256": "0" * 8}, f"sha256 {'0' * 8}"),
        ({"git_blob": "0" * 40}, f"git blob {'0' * 40}"),
    ],
)
def test_a_download_with_another_hash_is_refused_and_not_kept(server, cache, known, words):
    file = WeightsFile("x.pt", f"{server.url}/whole/x.pt", **known)
    assert words in refused(file, cache, "the download has another hash")
    assert list(cache.iterdir()) == []


@pytest.mark.parametrize("place", ["supplied", "cache"])
def test_a_file_at_hand_with_another_hash_is_refused_and_named(tmp_path, cache, monkeypatch, place):
    monkeypatch.setenv("DISTILL_WEIGHTS", str(tmp_path / "supplied"))
    path = put(tmp_path / place / "x.pt", b"something else")
    file = WeightsFile("x.pt", "http://127.0.0.1:9/x.pt", SHA256)
    refused(file, cache, f"{re.escape(str(path))} has another hash")
    assert path.read_bytes() == b"something else"  # the user's file is not ours to delete


@pytest.mark.parametrize(
    ("route", "reason"),
    [
        ("short", f"cut short: 1000 of {len(CONTENT)} bytes"),
        ("chunk", "IncompleteRead"),
        ("gone", "404"),
    ],
)
def test_a_download_that_fails_says_why_and_leaves_no_file_to_use(server, cache, route, reason):
    file = WeightsFile("x.pt", f"{server.url}/{route}/x.pt", SHA256)
    assert reason in refused(file, cache, "cannot be downloaded")
    assert {path.name for path in cache.iterdir()} <= {".x.pt.part"}
    assert route != "gone" or not list(cache.iterdir())


@pytest.mark.parametrize("url", ["nowhere/x.pt", "ftq://nowhere/x.pt", "file:///no/such/x.pt"])
def test_an_address_that_cannot_be_opened_ends_in_the_same_line(cache, url):
    file = WeightsFile("x.pt", url, SHA256)
    refused(file, cache, "cannot be downloaded")


def test_an_interrupted_download_goes_on(server, cache):
    file = WeightsFile("x.pt", f"{server.url}/parts/x.pt", SHA256)
    for _ in range(len(CONTENT) // 1000):
        with pytest.raises(DistillError, match=f"of {len(CONTENT)} bytes"):
            find(file)
        assert not (cache / "x.pt").exists()
    assert find(file).read_bytes() == CONTENT
    assert server.starts == list(range(0, len(CONTENT), 1000))
    assert [path.name for path in cache.iterdir()] == ["x.pt"]


@pytest.mark.parametrize("left", [CONTENT, b"?" * 500, CONTENT + b"more"])
def test_what_a_download_left_is_checked_as_a_whole(server, cache, left):
    """All of it was there when the process was killed; or another file's beginning; or too much."""
    put(cache / ".x.pt.part", left)
    file = WeightsFile("x.pt", f"{server.url}/parts/x.pt", SHA256)
    if left == CONTENT:
        assert find(file).read_bytes() == CONTENT
        return
    for _ in range(1 + len(CONTENT) // 1000):
        with pytest.raises(DistillError) as error:
            find(file)
        if "has another hash" in str(error.value):
            break
    assert "has another hash" in said(error)
    assert not list(cache.iterdir())  # the next one begins anew


def test_a_server_without_ranges_begins_anew(server, cache):
    put(cache / ".x.pt.part", b"?" * 500)
    assert find(WeightsFile("x.pt", f"{server.url}/whole/x.pt", SHA256)).read_bytes() == CONTENT


PUBLISHED = {
    **{name: getattr(features, name.upper()) for name in ("inception", "dinov2", "clip")},
    "alexnet": similarity.ALEXNET,
    "yunet": faces.YUNET,
    **{file.name: file for file in encoder.FULL_WIDTH if file.url},
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_published_names_and_kinds_of_hash_from_a_server(server, cache, name):
    """A rehearsal: the real name at the end of the address, and a hash as long as the real one."""
    real = PUBLISHED[name]
    assert real.url.rsplit("/", 1)[1] in (
        real.name,
        real.name.removeprefix("pt_inception-2015-12-05-"),
    )
    if real.sha256 and len(real.sha256) < 64:  # torchvision's form: the name ends in it
        assert real.name.endswith(f"-{real.sha256}.pth")
    digest = {"sha256": SHA256[: len(real.sha256)]} if real.sha256 else {"git_blob": GIT_BLOB}
    file = replace(real, url=f"{server.url}/whole/{real.url.rsplit('/', 1)[1]}", **digest)
    assert find(file) == cache / real.name
    assert server.asked == [f"/whole/{real.url.rsplit('/', 1)[1]}"]
    other = {key: value[::-1] for key, value in digest.items()}
    (cache / real.name).unlink()
    with pytest.raises(DistillError, match="the download has another hash"):
        find(replace(file, **other))


def test_a_published_file_without_a_hash_is_never_downloaded(server, cache):
    file = WeightsFile("x.pt", f"{server.url}/whole/x.pt")
    refused(file, cache, "not downloaded, since nothing could check it")
    assert server.asked == []


@pytest.mark.parametrize(("known", "told"), [({}, True), ({"sha256": SHA256}, False)])
def test_one_at_hand_is_told_to_be_unchecked(cache, capsys, known, told):
    put(cache / "x.pt")
    assert find(WeightsFile("x.pt", "http://127.0.0.1:9/x.pt", **known)) == cache / "x.pt"
    printed = capsys.readouterr().out
    assert (f"used unchecked, no expected hash is known; its hash is {SHA256}" in printed) == told


def test_a_file_without_a_public_address_says_so(cache):
    file = WeightsFile("x.pt", None, SHA256)
    refused(file, cache, "no public address is known")


def test_without_a_setting_none_is_offered():
    with pytest.raises(DistillError) as error:
        find(WeightsFile("x.pt"))
    assert "=FILE" not in said(error)


def test_a_host_that_does_not_answer_is_asked_once(monkeypatch, cache, capsys):
    asked = []

    def silent(request, timeout):
        asked.append(request.full_url)
        raise urllib.error.URLError("timed out")

    monkeypatch.setattr(weights, "_silent", {})
    monkeypatch.setattr(urllib.request, "urlopen", silent)
    for name in ("one.pt", "two.pt"):
        with pytest.raises(DistillError, match=rf"weights file {name}: cannot be downloaded"):
            find(WeightsFile(name, f"https://example.org/{name}", SHA256))
    assert asked == ["https://example.org/one.pt"]
    assert "one.pt: not in" in capsys.readouterr().out  # nobody waits without a word


# find_or_none


def test_find_or_none_downloads_only_when_allowed(server, cache):
    file = WeightsFile("x.pt", f"{server.url}/whole/x.pt", SHA256)
    assert find_or_none(file) is None
    assert server.asked == []
    assert find_or_none(file, download=True) == cache / "x.pt"
    assert find_or_none(file) == cache / "x.pt"


def test_find_or_none_takes_the_first_one_at_hand(cache):
    put(cache / "good.pt")
    good = WeightsFile("good.pt", None, SHA256)
    assert find_or_none(WeightsFile("none.pt"), good) == cache / "good.pt"
    assert find_or_none(WeightsFile("none.pt", "file:///nowhere/none.pt"), download=True) is None


def test_find_or_none_does_not_pass_over_a_damaged_file_in_silence(cache):
    put(cache / "bad.pt", b"damaged")
    with pytest.raises(DistillError, match="another hash"):
        find_or_none(WeightsFile("bad.pt", None, SHA256))


# Loading

STATE = {"a.weight": torch.arange(6.0).view(2, 3), "a.bias": torch.tensor([1, 2])}


def save_zip(path):
    torch.save(STATE, path)


def save_legacy(path):
    torch.save(STATE, path, _use_new_zipfile_serialization=False)


def save_nested(path):
    torch.save({"state_dict": STATE, "epoch": 3, "name": "x"}, path)


def save_safetensors(path):
    save_file(STATE, path)


SAVERS = {
    "zip.pt": save_zip,
    "legacy.pt": save_legacy,
    "nested.ckpt": save_nested,
    "plain.safetensors": save_safetensors,
}


@pytest.mark.parametrize("name", SAVERS)
def test_every_kind_of_file_gives_its_tensors(tmp_path, name):
    SAVERS[name](tmp_path / name)
    state = load_tensors(tmp_path / name)
    assert state.keys() == STATE.keys()
    assert all(torch.equal(state[k], STATE[k]) and state[k].dtype == STATE[k].dtype for k in STATE)


class Malicious:
    """Pickled, it makes a folder on being loaded."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return os.mkdir, (self.mark,)


def pickle_alone(value, path):
    path.write_bytes(pickle.dumps(value))


@pytest.mark.parametrize("save", [torch.save, pickle_alone])
@pytest.mark.filterwarnings("ignore:Detected pickle protocol")
def test_a_pickle_that_would_run_code_is_refused_and_not_run(tmp_path, save):
    mark = tmp_path / "it ran"
    save({"a": Malicious(str(mark))}, tmp_path / "x.pt")
    with pytest.raises(DistillError, match="refused, since it could run code") as error:
        load_tensors(tmp_path / "x.pt")
    assert said(error).startswith(f"{tmp_path / 'x.pt'}: ")
    assert not mark.exists()
    # The file is dangerous indeed: the plain loader does run it.
    torch.load(tmp_path / "x.pt", weights_only=False) if save is torch.save else pickle.loads(
        (tmp_path / "x.pt").read_bytes()
    )
    assert mark.is_dir()


@pytest.mark.parametrize("name", SAVERS)
@pytest.mark.filterwarnings("ignore:Detected pickle protocol")
def test_a_file_cut_short_anywhere_is_one_line(tmp_path, name):
    SAVERS[name](tmp_path / name)
    whole = (tmp_path / name).read_bytes()
    for length in range(0, len(whole) - 1, 7):
        (tmp_path / name).write_bytes(whole[:length])
        with pytest.raises(DistillError) as error:
            load_tensors(tmp_path / name)
        assert said(error).startswith(f"{tmp_path / name}: ")


@pytest.mark.parametrize("name", ["x.pt", "x.safetensors"])
@pytest.mark.parametrize("content", [b"<!doctype html><title>404</title>", b"\0" * 99, b"x"])
def test_what_is_no_weights_file_is_one_line(tmp_path, name, content):
    with pytest.raises(DistillError) as error:
        load_tensors(put(tmp_path / name, content))
    assert said(error).startswith(f"{tmp_path / name}: ")


@pytest.mark.parametrize("value", [torch.ones(3), [1, 2], {"a": 3}, {"state_dict": {"a": "b"}}])
def test_a_file_without_names_and_tensors_says_so(tmp_path, value):
    torch.save(value, tmp_path / "x.pt")
    with pytest.raises(DistillError, match="no state dict"):
        load_tensors(tmp_path / "x.pt")


@pytest.mark.parametrize(
    ("other", "count", "first"),
    [
        (nn.Linear(3, 2, bias=False), 1, "bias"),  # missing
        (nn.Linear(4, 2), 1, "weight"),  # of another shape
        (nn.Sequential(nn.Linear(3, 2)), 4, "0.bias"),  # missing and unknown
    ],
)
def test_load_into_says_in_one_line_what_does_not_fit(tmp_path, other, count, first):
    target = nn.Linear(3, 2)
    before = target.weight.clone()
    torch.save(other.state_dict(), tmp_path / "x.pt")
    with pytest.raises(DistillError) as error:
        load_into(target, tmp_path / "x.pt")
    tensors = "1 tensor" if count == 1 else f"{count} tensors"
    assert "does not fit Linear: missing, unknown or of another shape: " in said(error)
    assert said(error).endswith(f": {tensors}, first {first}")
    assert torch.equal(target.weight, before)
