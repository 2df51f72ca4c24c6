"""What the server of distill.lens refuses, ends and says, byte by byte."""

import re
import socket
import ssl
import time
from http.client import HTTPConnection

import pytest

from distill.config.compose import load
from distill.core.errors import DistillError
from distill_lens import __main__ as lens
from distill_lens import https
from distill_lens.server import POLICY, Handler, Server, added_names, plain_host
from distill_lens.settings import Lens
from support.commands import run
from support.lens_page import say, serving

GET = b"GET / HTTP/1.1\r\n"
LAST = b"Connection: close\r\n\r\n"
HOST = b"Host: localhost\r\n"


def called(server: Server, address: str = "127.0.0.1") -> socket.socket:
    return socket.create_connection((address, server.server_port), timeout=10)


def status(reply: bytes) -> int:
    return int(reply.split(b" ", 2)[1])


@pytest.mark.parametrize(
    "host",
    ["localhost", "LocalHost.", "localhost:8765", "127.0.0.1:1", "[::1]:80", "[0:0::1]"],
)
def test_the_names_of_this_machine_are_answered(page, host):
    with serving(page) as server:
        assert status(say(server, GET + f"Host: {host}\r\n".encode() + LAST)) == 200


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "evil.example:8765", "localhost.evil.example", "192.168.1.7", "[::2]"),
        *("a@localhost", "localhost/", "[localhost]", "", "0.0.0.0"),
    ],
)
@pytest.mark.campaign
def test_a_name_that_was_not_offered_is_refused_in_one_line(page, host):
    with serving(page) as server:
        reply = say(server, GET + f"Host: {host}\r\n".encode() + LAST)
    head, _, body = reply.partition(b"\r\n\r\n")
    assert status(reply) == 421
    assert b"Content-Type: text/plain" in head
    assert body.count(b"\n") == 1
    assert b"not offered" in body


def test_addresses_that_are_printed_and_names_that_are_added_are_answered(page):
    names = ["Tunnel.example"]
    with serving(page, addresses=("192.168.1.7", "fd00::7"), names=names) as server:
        for host in ("192.168.1.7:80", "[fd00:0::7]", "tunnel.example"):
            assert status(say(server, GET + f"Host: {host}\r\n".encode() + LAST)) == 200
        reply = say(server, GET + b"Host: other.example:80\r\n" + LAST)
    assert b"names=[other.example]" in reply


def test_a_machine_that_does_not_know_its_addresses_answers_to_the_one_that_was_called(page):
    asked = GET + b"Host: 127.0.0.2\r\n" + LAST  # this machine too, and not printed
    with serving(page, host="0.0.0.0") as server, called(server, "127.0.0.2") as link:
        assert status(say(server, asked)) == 421
        link.sendall(asked)
        assert status(link.recv(65536)) == 200


def test_an_address_has_many_forms():
    assert plain_host("::ffff:192.168.1.7") == "192.168.1.7"
    assert plain_host("fe80::1%eth0") == "fe80::1"
    assert plain_host("FD00:0:0::7") == "fd00::7"


@pytest.mark.parametrize("names", ["a.example", "[a.example,fd00::7]"])
def test_one_name_or_several_are_set(names):
    added = added_names(load("lens", [f"names={names}"], Lens).names)
    assert added == names.strip("[]").split(",")


@pytest.mark.parametrize("names", ["[https://a.example]", "['a b']", "['']"])
def test_a_name_is_no_address_of_a_page(names):
    with pytest.raises(DistillError, match="names"):
        load("lens", [f"names={names}"], Lens)


@pytest.mark.parametrize(
    ("frames", "allowed"),
    [
        ("[]", "'none'"),
        ("https://my.site.example", "https://my.site.example"),
        ("[https://a.example:8443,http://localhost:3000]", None),
        ("['https://*.a.example','http://[fd00::7]:80']", None),
    ],
)
def test_frames_are_for_whom_the_owner_names(page, frames, allowed):
    named = load("lens", [f"frames={frames}"], Lens).frames
    with serving(page) as strict, serving(page, frames=named) as server:
        before, now = (say(each, GET + HOST + LAST) for each in (strict, server))
    allowed = allowed or " ".join(named)
    assert f"{POLICY}; frame-ancestors {allowed}\r\n".encode() in now
    other = f"frame-ancestors {allowed}".encode()
    clock = re.compile(rb"Date: [^\r]*")  # nothing else changes
    assert clock.sub(b"", now.replace(other, b"frame-ancestors 'none'")) == clock.sub(b"", before)


def test_a_request_names_one_host(page):
    with serving(page) as server:
        assert status(say(server, GET + LAST)) == 400
        assert status(say(server, GET + HOST + HOST + LAST)) == 400
        assert status(say(server, b"GET / HTTP/1.0\r\n\r\n")) == 200  # had no Host yet


@pytest.mark.parametrize(
    "body",
    [
        b"Content-Length: 34\r\n\r\n",
        b"Content-Length: 0\r\nContent-Length: 34\r\n\r\n",
        b"Content-Length: all\r\n\r\n",
        b"Transfer-Encoding: chunked\r\n\r\n22\r\n",
        b"Expect: 100-continue\r\nContent-Length: 34\r\n\r\n",
    ],
)
def test_a_body_is_not_the_next_request(page, body):
    with serving(page) as server:
        reply = say(server, GET + HOST + body + b"GET /none HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert status(reply) == 400
    assert reply.count(b"HTTP/1.1 ") == 1
    assert b"\r\nConnection: close\r\n" in reply


def test_requests_without_a_body_share_a_connection(page):
    with serving(page) as server:
        empty = GET + HOST + b"Content-Length: 0\r\n\r\n"
        reply = say(server, empty + b"HEAD /none HTTP/1.1\r\n" + HOST + LAST)
    assert reply.startswith(b"HTTP/1.1 200 ")
    assert b"HTTP/1.1 404 " in reply


@pytest.mark.parametrize("path", [b"/", b"/none"])
def test_the_server_does_not_tell_what_python_it_runs_on(page, path):
    with serving(page) as server:
        reply = say(server, b"GET " + path + b" HTTP/1.1\r\n" + HOST + LAST)
    assert b"\r\nServer: distill\r\n" in reply
    assert b"python" not in reply.lower()


@pytest.fixture
def hasty(monkeypatch):
    """A request must be there in half a second, while silence between two is taken for longer."""
    monkeypatch.setattr(Handler, "timeout", 60)
    monkeypatch.setattr(Handler, "request_timeout", 0.5, raising=False)


def drip(link: socket.socket) -> None:
    """A byte now and then until the server ends it; fails where it takes them for ten seconds."""
    until = time.monotonic() + 10
    link.settimeout(0.1)
    while time.monotonic() < until:
        try:
            link.sendall(b"a")
            if not link.recv(1000):
                return
        except TimeoutError:
            continue
        except ConnectionError:
            return
    pytest.fail("the connection is still open")


@pytest.mark.parametrize("start", [b"GE", GET + b"Host: local"])
def test_a_request_that_comes_byte_by_byte_is_ended_and_holds_nobody_up(page, hasty, start):
    with serving(page) as server, called(server) as link:
        link.sendall(start)
        assert status(say(server, GET + HOST + LAST)) == 200
        drip(link)


def test_a_handshake_that_never_ends_is_ended(page, hasty):
    pytest.importorskip("cryptography", reason="the extra `lens` is not installed")
    with serving(page, https.context(["127.0.0.1"])) as server, called(server) as link:
        link.sendall(b"\x16\x03\x01\x02\0\x01\0\x01\xfc")  # the start of a ClientHello
        assert link.recv(1000) == b""


def test_a_silent_connection_is_ended_between_requests_too(page, monkeypatch):
    monkeypatch.setattr(Handler, "timeout", 0.5)
    with serving(page) as server:
        link = HTTPConnection("127.0.0.1", server.server_port, timeout=10)
        link.request("GET", "/")
        assert link.getresponse().read()
        assert link.sock.recv(1) == b""
        assert say(server, b"") == b""


@pytest.mark.campaign
def test_a_pause_between_two_requests_is_no_half_request(page, hasty):
    with serving(page) as server:
        link = HTTPConnection("127.0.0.1", server.server_port, timeout=10)
        for _ in range(2):
            link.request("GET", "/")
            assert link.getresponse().read()
            first = link.sock
            time.sleep(0.8)  # longer than a request may take
        assert link.sock is first


def test_a_certificate_covers_the_added_names(page, monkeypatch):
    pytest.importorskip("cryptography", reason="the extra `lens` is not installed")
    asked = []

    def context(names: list[str]) -> ssl.SSLContext:
        asked.extend(names)
        raise KeyboardInterrupt

    monkeypatch.setattr(https, "context", context)
    run(lens, "students=[hayao]", "https=true", "names=[tunnel.example]", "open=false", "port=0")
    assert {"localhost", "127.0.0.1", "tunnel.example"} <= set(asked)
