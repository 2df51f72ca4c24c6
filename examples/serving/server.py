"""Stylized pictures over HTTP: POST the bytes of a picture, get a PNG.

pip install fastapi uvicorn
STUDENT=comic uvicorn server:app --host 0.0.0.0
curl --data-binary @photo.jpg 'localhost:8000/stylize?strength=0.8' -o stylized.png
"""

import io
import os
from typing import Annotated

from fastapi import Depends, FastAPI, HTTPException, Query, Request, Response
from PIL import Image

import distill

BYTES = 20_000_000  # of a picture's file
PIXELS = 4_000_000  # of a picture

app = FastAPI()
# One for all threads: it takes as many pictures at once as there are cores for, the others wait.
stylize = distill.load(os.environ.get("STUDENT", "comic"), device="cpu", threads=1)


async def content(request: Request) -> bytes:
    """The body, which is not read beyond BYTES."""
    received = bytearray()
    async for chunk in request.stream():
        received += chunk
        if len(received) > BYTES:
            raise HTTPException(413, f"more than {BYTES} bytes")
    return bytes(received)


@app.post("/stylize")
def stylized(
    picture: Annotated[bytes, Depends(content)],
    strength: Annotated[float, Query(ge=0, le=1)] = 1.0,
) -> Response:
    """`def` and not `async def`: FastAPI runs it in a thread, so that the server goes on."""
    try:
        with Image.open(io.BytesIO(picture)) as image:
            if image.width * image.height > PIXELS:
                raise HTTPException(413, f"{image.width}×{image.height}: over {PIXELS} pixels")
            page = stylize(image, strength=strength)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        why = str(error).partition(" <")[0]  # of bytes Pillow names the object that holds them
        raise HTTPException(400, f"not a picture that can be read: {why}") from error
    except distill.DistillError as error:
        raise HTTPException(400, str(error)) from error
    encoded = io.BytesIO()
    page.save(encoded, "PNG", compress_level=1)
    return Response(encoded.getvalue(), media_type="image/png")
