"""Feature networks for Fréchet and kernel distances: pictures to vectors, which are kept."""

import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import cached_property
from itertools import pairwise
from typing import Literal, TypeVar

import numpy as np
import pytorch_fid.inception as fid_inception
import torch
import torchvision
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from distill.core import weights as weights_files
from distill.core.errors import DistillError, counted
from distill.core.files import atomic_write, cache_folder
from distill.core.images import IMAGENET_MEAN, IMAGENET_STD
from distill.core.process import with_attribute
from distill.core.progress import track
from distill.core.state_dicts import load_tensors
from distill.core.threads import on_threads
from distill.core.weights import WeightsFile
from distill.metrics.frechet import Kernel, gaussian, polynomial
from distill.metrics.vit import VisionTransformer, of_dinov2

FeatureName = Literal["inception", "mobilenet", "dinov2", "clip", "none"]
Array = NDArray[np.float64]
Item = TypeVar("Item")
Result = TypeVar("Result")

# Pictures that a network takes at a time. A batch of 50 leaves the processor's cache and takes a
# fifth longer a picture. Fixed, so that no setting changes the last digits of a feature.
BATCH = 4

# Of reading, resizing and arithmetic: features kept under another version are computed again.
VERSION = 1

INCEPTION = WeightsFile(
    "pt_inception-2015-12-05-6726825d.pth", fid_inception.FID_WEIGHTS_URL, sha256="6726825d"
)

MOBILENET = WeightsFile(
    "mobilenet_v2_100.safetensors",
    sha256="8da30642b6d52a18d0d1c730e687a108d6d05de902c5def89146122fc16fb5f7",
)

DINOV2 = WeightsFile(
    "dinov2_vitl14_pretrain.pth",
    "https://dl.fbaipublicfiles.com/dinov2/dinov2_vitl14/dinov2_vitl14_pretrain.pth",
    sha256="d5383ea8f4877b2472eb973e0fd72d557c7da5d3611bd527ceeb1d7162cbf428",
)

_CLIP_HASH = "3035c92b350959924f9f00213499208652fc7ea050643e8b385c2dac08641f02"
CLIP = WeightsFile(
    "ViT-L-14-336px.pt",
    f"https://openaipublic.azureedge.net/clip/models/{_CLIP_HASH}/ViT-L-14-336px.pt",
    sha256=_CLIP_HASH,
)


class FeatureNetwork(nn.Module):
    """(N, 3, H, W) RGB in [0, 1] to (N, d) features.

    `title` and `resize` go into every result, `fid` and `kid` name its rows: only Inception's
    distances may be called FID. `kernel` is that of the kernel distance.
    """

    title: str
    fid: str
    kid: str
    resize: str
    kernel: Kernel = staticmethod(polynomial)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of all that makes a feature: the weights, the preprocessing, the device's kind."""
        about = [type(self).__name__, self.resize, str(VERSION), _device().type]
        digest = hashlib.sha256("\n".join(about).encode())
        for name, value in self.state_dict().items():
            digest.update(name.encode() + value.cpu().numpy().tobytes())
        return digest.hexdigest()

    def features(self, batches: Iterable[Tensor], total: int, what: str) -> Array:
        """Features of all batches, (n, d) in float64, with a progress bar over `total` pictures.

        The values are those of float32, the network's precision.
        """
        self.to(_device())

        @torch.inference_mode()
        def values(batch: Tensor) -> Array:
            return self(batch.to(_device())).double().cpu().numpy()

        parts = parallel_map(values, batches)
        return np.concatenate([*track(parts, total, "picture", f"features of {what}", len)])


class Inception(FeatureNetwork):
    """pytorch-fid's Inception with its 2,048 pool features and its own preprocessing."""

    title = "Inception (pytorch-fid, 2,048 features): FID"
    fid, kid = "FID", "KID ×1000"
    resize = "bilinear to 299×299 inside the network, not antialiased, as pytorch-fid does"

    def __init__(self, state: dict[str, Tensor]) -> None:
        super().__init__()

        # pytorch-fid has no way to name a local file: lend it our loader while it builds.
        def load(*_args: object, **_kwargs: object) -> dict[str, Tensor]:
            return state

        with with_attribute([fid_inception], "load_state_dict_from_url", load):
            block = fid_inception.InceptionV3.BLOCK_INDEX_BY_DIM[2048]
            self.net = fid_inception.InceptionV3([block])
        _freeze_and_fold(self)

    def forward(self, pictures: Tensor) -> Tensor:
        return self.net(pictures.contiguous(memory_format=torch.channels_last))[0].flatten(1)


class MobileNet(FeatureNetwork):
    """MobileNetV2 of width 1.0, 1,280 pooled features; a Fréchet distance, but not an FID."""

    title = "MobileNetV2-1.0 (1,280 features): NOT an Inception FID"
    fid, kid = "Fréchet (MobileNetV2)", "KID (MobileNetV2) ×1000"
    resize = "bilinear to 224×224, antialiased"

    def __init__(self, state: dict[str, Tensor]) -> None:
        super().__init__()
        self.net = torchvision.models.mobilenet_v2(weights=None)
        self.net.load_state_dict(state)
        _freeze_and_fold(self)

    def forward(self, pictures: Tensor) -> Tensor:
        x = nn.functional.interpolate(
            pictures * 2 - 1, size=(224, 224), mode="bilinear", antialias=True
        )
        return self.net.features(x.contiguous(memory_format=torch.channels_last)).mean((2, 3))


class DINOv2(FeatureNetwork):
    """DINOv2's class token, 1,024 features (Stein et al. 2023)."""

    title = "DINOv2 ViT-L/14 (1,024 features): FD-DINOv2, not an Inception FID"
    fid, kid = "FD (DINOv2)", "KD (DINOv2) ×1000"
    resize = "bicubic to 224×224, antialiased"

    def __init__(self, state: dict[str, Tensor]) -> None:
        super().__init__()
        self.net = VisionTransformer(of_dinov2(state))

    def forward(self, pictures: Tensor) -> Tensor:
        return self.net(_normalised(pictures, 224, (IMAGENET_MEAN, IMAGENET_STD)))


class CLIPVision(FeatureNetwork):
    """CLIP's image embedding of length 1, 768 features: by the kernel CMMD (Jayasumana 2024)."""

    title = "CLIP ViT-L/14 at 336 (768 features): CMMD, unbiased; not an Inception FID"
    fid, kid = "Fréchet (CLIP)", "CMMD ×1000"
    resize = "bicubic to 336×336, antialiased"
    kernel = staticmethod(gaussian)

    def __init__(self, state: dict[str, Tensor]) -> None:
        super().__init__()
        visual = {k[7:]: v for k, v in state.items() if k.startswith("visual.")}
        self.net = VisionTransformer(visual)
        self.side = self.net.patch * round((len(visual["positional_embedding"]) - 1) ** 0.5)

    def forward(self, pictures: Tensor) -> Tensor:
        embedding = self.net(_normalised(pictures, self.side, OPENAI))
        return nn.functional.normalize(embedding, dim=1)


OPENAI = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)


def _normalised(pictures: Tensor, side: int, by: tuple[tuple[float, ...], ...]) -> Tensor:
    small = nn.functional.interpolate(
        pictures, size=(side, side), mode="bicubic", antialias=True
    ).clamp(0, 1)
    mean, deviation = (small.new_tensor(each).view(3, 1, 1) for each in by)
    return (small - mean) / deviation


def feature_network(name: FeatureName) -> FeatureNetwork | None:
    """The network by name, None for `none`. Raises DistillError when its weights are missing."""
    if name == "none":
        return None
    known: dict[str, tuple[Callable[[dict[str, Tensor]], FeatureNetwork], WeightsFile]] = {
        "inception": (Inception, INCEPTION),
        "mobilenet": (MobileNet, MOBILENET),
        "dinov2": (DINOv2, DINOV2),
        "clip": (CLIPVision, CLIP),
    }
    network, file = known[name]
    try:
        path = weights_files.find(file)
    except DistillError as error:
        if name == "mobilenet" or weights_files.find_or_none(MOBILENET) is None:
            raise
        other = "MobileNetV2's are available: features=mobilenet, in training distance=mobilenet"
        raise DistillError(f"{error}; {other}") from error
    if name == "clip":  # a TorchScript archive, as OpenAI published it, of a known hash
        return network(torch.jit.load(path, map_location="cpu").state_dict())
    return network(load_tensors(path))


def _freeze_and_fold(network: nn.Module) -> None:
    """Freeze, fold every BatchNorm into the convolution before it, lay channels out last.

    The same function to float precision, a third quicker on a CPU.
    """
    network.requires_grad_(False).eval()
    for module in list(network.modules()):
        for (first, conv), (second, norm) in pairwise(list(module.named_children())):
            if isinstance(conv, nn.Conv2d) and isinstance(norm, nn.BatchNorm2d):
                setattr(module, first, fuse_conv_bn_eval(conv, norm))
                setattr(module, second, nn.Identity().eval())
    network.to(memory_format=torch.channels_last)


def _device() -> torch.device:
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def set_key(network: str, pictures: Iterable[bytes]) -> str:
    """The name of a set's features: a hash of the network's fingerprint and the set's content.

    `pictures` are the bytes of each picture, in order, of files or of pixels.
    """
    digest = hashlib.sha256(network.encode())
    for content in pictures:
        digest.update(len(content).to_bytes(8, "big"))  # so that no two sets join to the same bytes
        digest.update(content)
    return digest.hexdigest()


def cached_features(name: str, what: str, compute: Callable[[], Array]) -> Array:
    """The (n, d) features kept as `name`; without them those of `compute`, which are then kept.

    They are float32 values, so those read back are the same to the last bit. A damaged file counts
    as none; where none can be written, that is said and nothing else.
    """
    path = cache_folder() / "features" / f"{name}.npz"
    with suppress(Exception), np.load(path) as archive:  # no file, or a damaged one
        stored = archive["features"].astype(np.float64)  # reading checks the archive's checksum
        print(f"features of {what}: {counted(len(stored), 'picture')}, kept from an earlier run")
        return stored
    features = compute()
    try:
        with atomic_write(path) as temporary, temporary.open("wb") as stream:
            np.savez(stream, features=features.astype(np.float32))
    except OSError as error:
        print(f"features of {what} are not kept: {error}")
    return features


def parallel_map(work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """The results of `work` in order, by as many threads as torch uses, each item on one of them.

    Threads that share a convolution meet at its end and wait for the slowest. That takes twice as
    long as this where other programs use the cores too; on idle cores both take the same.
    Meanwhile the caller's thread makes the next items, and few of them wait.
    """
    count = torch.get_num_threads()
    waiting: deque[Future[Result]] = deque()
    pool = ThreadPoolExecutor(count, "work", torch.set_num_threads, (1,))
    with on_threads(count), pool:  # a worker's setting reaches parts of the whole process
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) > 2 * count:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
