"""The server and the Node program of docs/serving.md."""

import asyncio
import importlib.util
import io
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from skimage import data

import distill
from distill.models import zoo

SERVING = Path(__file__).parents[1] / "examples" / "serving"
CLIENTS = 50
httpx = pytest.importorskip("httpx")
pytest.importorskip("fastapi")


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("STUDENT", "comic")
    specification = importlib.util.spec_from_file_location("serving_server", SERVING / "server.py")
    module = importlib.util.module_from_spec(specification)
    monkeypatch.setitem(sys.modules, "serving_server", module)  # FastAPI reads annotations there
    specification.loader.exec_module(module)
    return module


def png(picture, **options):
    encoded = io.BytesIO()
    picture.save(encoded, "PNG", **options)
    return encoded.getvalue()


def replies(app, requests):
    """The replies to all (path, body) at once."""

    async def ask():
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://server") as client:
            return await asyncio.gather(*(client.post(path, content=b) for path, b in requests))

    with ThreadPoolExecutor(1) as thread:  # a browser of other tests has a loop in this one
        return thread.submit(asyncio.run, ask()).result()


def test_fifty_clients_get_what_one_gets(server):
    photos = [Image.fromarray(data.astronaut()[at : at + 96, :128]) for at in range(0, 400, 8)]
    alone = distill.load("comic", device="cpu", threads=1)
    expected = [np.asarray(alone(photo)) for photo in photos]
    got = replies(server.app, [("/stylize", png(photo)) for photo in photos])
    assert len(got) == CLIENTS
    for reply, picture in zip(got, expected, strict=True):
        assert reply.status_code == 200
        assert reply.headers["content-type"] == "image/png"
        np.testing.assert_array_equal(Image.open(io.BytesIO(reply.content)), picture)


def test_what_is_no_picture_is_told_and_the_server_goes_on(server, monkeypatch):
    photo = Image.fromarray(data.astronaut()[:64, :64])
    monkeypatch.setattr(server, "PIXELS", 64 * 64)
    monkeypatch.setattr(server, "BYTES", 50_000)
    requests = {
        "nothing": ("/stylize", b""),
        "text": ("/stylize", b"not a picture"),
        "half": ("/stylize", png(photo)[:900]),
        "pixels": ("/stylize", png(photo.resize((65, 64)))),
        "bytes": ("/stylize", bytes(60_000)),
        "strength": ("/stylize?strength=2", png(photo)),
        "other": ("/stylize", png(Image.new("F", (8, 8)).convert("L"))),
        "weak": ("/stylize?strength=0", png(photo)),
    }
    got = dict(zip(requests, replies(server.app, requests.values()), strict=True))
    assert {name: reply.status_code for name, reply in got.items()} == {
        "nothing": 400,
        "text": 400,
        "half": 400,
        "pixels": 413,
        "bytes": 413,
        "strength": 422,
        "other": 200,
        "weak": 200,
    }
    why = "not a picture that can be read: cannot identify image file"
    assert got["text"].json() == {"detail": why}
    np.testing.assert_array_equal(Image.open(io.BytesIO(got["weak"].content)), photo)


@pytest.mark.slow
def test_node_draws_what_python_draws(tmp_path):
    if shutil.which("node") is None or not (SERVING / "node_modules").is_dir():
        pytest.skip("no Node.js, or no packages: examples/serving/stylize.mjs says which")
    photo = Image.fromarray(data.astronaut()[:203, :300])
    photo.save(tmp_path / "photo.png")
    typed = [SERVING / "stylize.mjs", zoo.find("comic"), tmp_path / "photo.png", tmp_path / "o.png"]
    subprocess.run(["node", *map(str, typed)], check=True)
    with Image.open(tmp_path / "o.png") as drawn:
        output = np.asarray(drawn.convert("RGB"), int)
    expected = np.asarray(distill.load("comic", device="cpu", threads=1)(photo), int)
    assert np.abs(output - expected).max() <= 1
