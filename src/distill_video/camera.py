"""A camera's frames, the newest one at a time, and where they are shown."""

import sys
import threading
import time
from collections.abc import Generator
from contextlib import closing
from pathlib import Path
from typing import Any

import av
import numpy as np
from PIL import Image

from distill.core.errors import DistillError, extra_package, needed
from distill.core.files import home_path
from distill_video.reader import first_video, open_video, reason_of_ffmpeg, to_rgb, turn_of, turned
from distill_video.videos import BadVideo

PATIENCE = 5.0  # seconds without a frame after which a camera is taken for dead
# What FFmpeg calls cameras here, and one by its number.
SYSTEMS = {"darwin": ("avfoundation", "{}"), "win32": ("dshow", "video={}")}
LINUX = ("v4l2", "/dev/video{}")


class Camera:
    """Iterating gives each newest frame, uint8 (height, width, 3), upright; those that come while
    the last one is worked on are left out, and counted in `left_out`.

    `name` is a number, a device, or a video file, which plays at its own pace. Raises DistillError
    for none, for one that gives no frame for five seconds, and for a device that ends.
    """

    def __init__(self, name: str) -> None:
        self.name, self.left_out = name, 0
        self._is_file = home_path(name).is_file()
        self._container = self._opened()
        self._newest: np.ndarray | None = None
        self._changed, self._end = threading.Condition(), ""
        self._stopped = False

    def _opened(self) -> Any:
        try:
            if self._is_file:
                return open_video(home_path(self.name))
            system, pattern = SYSTEMS.get(sys.platform, LINUX)
            device = pattern.format(self.name) if self.name.isdecimal() else self.name
            return av.open(device, format=system)
        except (BadVideo, av.FFmpegError, ValueError) as error:
            reason = str(error) if isinstance(error, BadVideo) else reason_of_ffmpeg(error)
            there = ", ".join(sorted(map(str, Path("/dev").glob("video*")))) or "none"
            cameras = f"; cameras here: {there}" if sys.platform == "linux" else ""
            raise DistillError(
                f"camera={self.name}: cannot be opened ({reason}){cameras}; name another one, or a "
                "video file"
            ) from None

    def __iter__(self) -> Generator[np.ndarray, None, None]:
        threading.Thread(target=self._read, daemon=True).start()  # a dead device may never return
        try:
            while True:
                with self._changed:
                    ready = self._changed.wait_for(
                        lambda: self._newest is not None or self._end, PATIENCE
                    )
                    if not ready:
                        raise DistillError(
                            f"camera={self.name}: no frame for {PATIENCE:g} seconds; is it in use, "
                            "or unplugged?"
                        )
                    if self._newest is None:
                        break
                    picture, self._newest = self._newest, None
                yield picture
        finally:
            self._stopped = True
        if self._end != "the end of the file":
            raise DistillError(f"camera={self.name}: stopped ({self._end}); is it unplugged?")

    def _read(self) -> None:
        end = "the end of the file" if self._is_file else "no more frames"
        try:
            with closing(self._container):
                start, size = time.perf_counter(), None
                for frame in self._container.decode(first_video(self._container, [])):
                    if self._is_file and frame.time is not None:
                        time.sleep(max(0.0, start + frame.time - time.perf_counter()))
                    size = size or (frame.width, frame.height)
                    picture = turned(to_rgb(frame, size), turn_of(frame))
                    with self._changed:
                        if self._stopped:
                            return
                        self.left_out += self._newest is not None
                        self._newest = picture
                        self._changed.notify()
        except (BadVideo, av.FFmpegError) as error:
            end = str(error) if isinstance(error, BadVideo) else reason_of_ffmpeg(error)
        finally:
            with self._changed:
                self._end = end
                self._changed.notify()


class Window:
    """Shows frames, uint8 (height, width, 3), of one size, by Tk, which comes with Python."""

    def __init__(self, title: str, size: tuple[int, int]) -> None:
        with needed("screen=window: needs Tk", "install python3-tk, or use screen=virtual"):
            import tkinter

            from PIL import ImageTk
        try:
            self._root = tkinter.Tk()
        except tkinter.TclError as error:
            raise DistillError(
                f"screen=window: no display to open it on ({error}); use screen=virtual"
            ) from None
        self._root.title(title)
        self._root.protocol("WM_DELETE_WINDOW", self._closed)
        self._image = ImageTk.PhotoImage("RGB", size)
        tkinter.Label(self._root, image=str(self._image)).pack()
        self._open = True

    def _closed(self) -> None:
        self._open = False

    def show(self, picture: np.ndarray) -> bool:
        """False once it is closed."""
        self._image.paste(Image.fromarray(picture))
        self._root.update()
        return self._open

    def close(self) -> None:
        self._root.destroy()


class VirtualCamera:
    """The same as a camera for other programs, by pyvirtualcam: v4l2loopback's on Linux, else
    OBS's."""

    def __init__(self, title: str, size: tuple[int, int]) -> None:
        package = "pip install 'distill[camera]'"
        pyvirtualcam = extra_package("pyvirtualcam", "screen=virtual", package)
        try:
            self._camera = pyvirtualcam.Camera(*size, fps=30)
        except RuntimeError as error:
            raise DistillError(
                f"screen=virtual: no virtual camera ({' '.join(str(error).split())}); Linux: sudo "
                "modprobe v4l2loopback, Windows and macOS: install OBS"
            ) from None
        print(f"virtual camera: {self._camera.device}")

    def show(self, picture: np.ndarray) -> bool:
        self._camera.send(picture)
        return True

    def close(self) -> None:
        self._camera.close()


Screen = Window | VirtualCamera
SCREENS: dict[str, type[Screen]] = {"window": Window, "virtual": VirtualCamera}
