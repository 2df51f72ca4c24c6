"""The style pictures of recipe=picture: those named, at the size that they are seen at."""

from pathlib import Path

from PIL import Image
from torch import Tensor

from distill.core.errors import DistillError, counted
from distill.core.files import home_path
from distill.core.images import to_tensor
from distill.data.decode import BadPhoto
from distill.data.photos import MIN_SIDE, centre_square, read_photo
from distill_picture.settings import PictureTrain

SEEN = 512  # pixels of the style picture's short side at picture.scale=1
# By name; drawn by tools/style_pictures.py.
OURS = {path.stem: path for path in Path(__file__).with_name("pictures").glob("*.webp")}
FLAT = 3 / 255  # standard deviation of a picture of one colour


def files_of(settings: PictureTrain) -> list[str]:
    """The files of the style pictures. Raises DistillError for weights of another number."""
    images, weights = settings.style_image, settings.picture.weights
    files = [images] if isinstance(images, str) else images
    if weights and len(weights) != len(files):
        raise DistillError(
            f"picture.weights={weights}: {counted(len(weights), 'number')} for "
            f"{counted(len(files), 'style picture')}; give one each"
        )
    return files


def style_pictures(settings: PictureTrain, verbose: bool = False) -> list[Tensor]:
    """The style pictures (3, H, W) in [0, 1] at the size that they are seen at.

    `verbose`: print that size where it is half or twice the file's. Raises DistillError for one
    that cannot be read, is small, or of one colour.
    """
    pictures, side = [], round(SEEN * settings.picture.scale)
    for file in files_of(settings):
        image = read_style(file, side)
        factor = side / min(image.size)
        width, height = (min(4 * side, round(factor * each)) for each in image.size)
        if verbose and not 0.5 <= factor <= 2:
            of = f"{image.width}×{image.height} pixels"
            print(f"style_image={file}: {of}, seen at {width}×{height}")
        picture = to_tensor(image.resize((width, height), Image.Resampling.LANCZOS))
        if picture.std((1, 2)).max() < FLAT:
            raise DistillError(f"style_image={file}: is of one colour, there is no style to learn")
        pictures.append(picture)
    return pictures


def read_style(file: str, enough: int) -> Image.Image:
    """A style picture. Raises DistillError."""
    path = OURS.get(file) or home_path(file)
    if not path.is_file():
        known = ", ".join(sorted(OURS))
        raise DistillError(f"style_image={file}: no such file; name a picture, or one of {known}")
    try:
        return read_photo(path, MIN_SIDE, enough=enough)
    except BadPhoto as why:
        raise DistillError(f"style_image={file}: {why}; name another picture") from None


def read_square(file: str, side: int) -> Tensor:
    return to_tensor(centre_square(read_style(file, side), side))
