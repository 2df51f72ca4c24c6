"""Readers of files from anywhere: pictures, videos, ONNX files, checkpoints, weights, points."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from fuzz_engine import Reader
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from mutations import Step, damage, damaged, edited, edits
from PIL import Image
from tiff_files import tiff

from distill.check import check_report, nnapi_profile, snapml_profile, web_profile
from distill.config import compose, registry
from distill.config.settings.training import Train
from distill.core import onnx_files, sessions
from distill.core.licence_terms import Licence, Terms
from distill.core.state_dicts import load_into
from distill.data import decode, photos
from distill.data.decode import BadPhoto
from distill.data.licence_terms import terms_of
from distill.models import build, checkpoint, network_file
from distill.runs import run_folder
from distill.stylize.onnx_student import OnnxStudent
from distill_formats import coreml_profile
from distill_gan.settings import CycleGANTrain, Pix2PixTrain
from distill_sets.sketches import framing
from distill_video.videos import BadVideo

SIDE = 80  # pixels of a valid picture
TERMS = Terms((Licence.from_text("teacher", "MIT"),)).permitted("train", True).plain()


PLAIN_TIFF = {  # of arguments of `tiff`, and what else they may be
    "order": "<", "photometric": 1, "bits": 8, "sample_format": 1, "extra": (), "planes": False,
    "orientation": 1, "fill": 1, "tile": None, "deflate": False, "pages": 1,
}  # fmt: skip
OTHER_TIFFS: dict[str, Sequence[Any]] = {
    "order": ">", "photometric": (0, 2, 3, 5, 6, 8), "bits": (1, 2, 4, 10, 12, 16, 24, 32),
    "sample_format": (2, 4, 5), "extra": ((0,), (1,), (2,), (0, 0, 0)), "planes": (True,),
    "orientation": (3, 6, 9), "fill": (2,), "tile": (16, 32), "deflate": (True,), "pages": (2,),
}  # fmt: skip


class DamagedFile(Reader):
    """Valid files of one kind, damaged; `read` is given the file."""

    suffixes: tuple[str, ...]

    def valid(self) -> Sequence[bytes]:
        """The files that are damaged, one for each of the suffixes."""
        raise NotImplementedError

    def begin(self) -> None:
        self._valid = self.valid()

    def cases(self) -> SearchStrategy:
        return st.tuples(st.integers(0, len(self.suffixes) - 1), damage())

    def put(self, case: tuple[int, list[Step]], folder: Path) -> None:
        which, steps = case
        self.file(case, folder).write_bytes(damaged(self._valid[which], steps))

    def file(self, case: tuple[int, Any], folder: Path) -> Path:
        return folder / f"case{self.suffixes[case[0]]}"


class Pictures(DamagedFile):
    """What distill.prepare, train, stylize and eval_fid read photos with."""

    name, allowed = "pictures", (BadPhoto,)
    suffixes = (
        *(".jpg", ".jpg", ".png", ".png", ".png", ".webp", ".gif", ".bmp", ".tiff", ".avif"),
        *(".tif", ".tif", ".tif", ".tif"),
    )

    def valid(self) -> Sequence[bytes]:
        rng = np.random.default_rng(0)
        noise = Image.fromarray(rng.integers(0, 255, (6, 6, 4), np.uint8), "RGBA")
        rgba = noise.resize((SIDE, SIDE), Image.Resampling.BICUBIC)
        rgb = rgba.convert("RGB")
        exif = Image.Exif()
        exif[274] = 6
        profile = rgb.info.get("icc_profile") or _profile()
        made = [
            (rgb, "JPEG", {"exif": exif, "icc_profile": profile}),
            (rgb.convert("CMYK"), "JPEG", {"progressive": True}),
            (rgba, "PNG", {"icc_profile": profile}),
            (rgb.quantize(16), "PNG", {}),
            (Image.fromarray(rng.integers(0, 65535, (SIDE, SIDE), np.uint16)), "PNG", {}),
            (rgba, "WEBP", {}),
            (rgb, "GIF", {"save_all": True, "append_images": [rgb.rotate(90)]}),
            (rgb, "BMP", {}),
            (rgb, "TIFF", {"compression": "tiff_lzw"}),
            (rgb, "AVIF", {}),
        ]
        grey = np.asarray(rgb.convert("L"))
        tiffs = [
            tiff(grey.astype(int) * 257, 16, 0),  # white is zero
            tiff(grey.astype(int) * 16, 12, 1, deflate=True),
            tiff(grey.astype(int) * 128, 16, 1, order=">", sample_format=2, tile=32),  # signed
            tiff(np.asarray(rgba), 8, 2, planes=True, extra=(2,), pages=2),
        ]
        return [_saved(*each) for each in made] + tiffs

    def read(self, case: tuple[int, list[Step]], folder: Path) -> None:
        file = self.file(case, folder)
        decode.is_whole(file)
        size = photos.read_photo(file, least=1, alpha=True, enough=32).size
        photos.centre_square(photos.read_photo(file), 32)
        assert max(size) <= photos.MAX_PIXELS


class GreyTiffs(Reader):
    """TIFFs by their tags, some cut short; grey is as bright as TIFF 6.0 says, or refused.

    PhotometricInterpretation 0 has white as 0 (section 3); of signed numbers below 0 is black.
    """

    name, allowed = "tiff", (BadPhoto,)

    def cases(self) -> SearchStrategy:
        others = [
            st.tuples(st.just(key), st.sampled_from(each)) for key, each in OTHER_TIFFS.items()
        ]
        often = [
            ("bits", 16),
            ("bits", 12),
            ("photometric", 0),
            ("sample_format", 2),
            ("order", ">"),
        ]
        changes = st.lists(st.one_of(st.sampled_from(often), *others), max_size=4)
        lost = st.sampled_from([0] * 8 + [1, 200])
        return st.tuples(changes.map(lambda made: PLAIN_TIFF | dict(made)), lost, st.integers(0, 9))

    def put(self, case: tuple[dict[str, Any], int, int], folder: Path) -> None:
        content = tiff(self._levels(case), **case[0])
        (folder / "case.tif").write_bytes(content[: len(content) - case[1]])

    def _levels(self, case: tuple[dict[str, Any], int, int]) -> np.ndarray:
        how, _, seed = case
        bits, signed = how["bits"], how["sample_format"] == 2
        shape = (SIDE, SIDE, 1 + 2 * (how["photometric"] in (2, 6, 8)) + len(how["extra"]))
        return np.random.default_rng(seed).integers(0, 2**bits, shape) - signed * 2 ** (bits - 1)

    def read(self, case: tuple[dict[str, Any], int, int], folder: Path) -> None:
        found = np.asarray(photos.read_photo(folder / "case.tif", least=1), np.float64)
        assert found.shape == (SIDE, SIDE, 3)
        how, lost, _ = case
        grey = how["photometric"] < 2 and how["sample_format"] < 3 and how["bits"] < 24
        if grey and how["orientation"] in (1, 9) and not how["extra"] and not lost:
            white = 2 ** (how["bits"] - (how["sample_format"] == 2)) - 1
            share = self._levels(case).clip(0) / max(white, 1)
            wanted = 255 * (share if how["photometric"] else 1 - share)
            assert np.abs(found - wanted).max() <= 1, "another brightness"


class Videos(DamagedFile):
    """What distill.stylize reads videos with."""

    name, allowed, suffixes = "videos", (BadVideo,), (".mp4", ".mkv", ".webm")

    def valid(self) -> Sequence[bytes]:
        import av

        made = []
        for suffix, codec in zip(self.suffixes, ("libx264", "libx264", "libvpx-vp9"), strict=True):
            path = Path(f"valid{suffix}")
            with av.open(str(path), "w") as container:
                stream = container.add_stream(codec, rate=25)
                stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
                for number in range(6):
                    values = np.full((48, 64, 3), 40 * number, np.uint8)
                    frame = av.VideoFrame.from_ndarray(values, format="rgb24")
                    container.mux(stream.encode(frame))
                container.mux(stream.encode(None))
            made.append(path.read_bytes())
        return made

    def read(self, case: tuple[int, list[Step]], folder: Path) -> None:
        from distill_video.stylised_video import stylise_video

        source = self.file(case, folder)
        target = folder / "out.mp4"
        stylise_video(source, target, lambda frame: 255 - frame, lambda _: None, crf=30)


class OnnxBytes(DamagedFile):
    """distill.check with every profile, and what opens an ONNX file for stylize and lens."""

    name, suffixes = "onnx", (".onnx", ".onnx")

    def valid(self) -> Sequence[bytes]:
        return [_network().SerializeToString(), _student().SerializeToString()]

    def read(self, case: tuple[int, Any], folder: Path) -> None:
        _check_onnx(self.file(case, folder))


class OnnxFields(Reader):
    """The same with graphs that protobuf can read, but whose fields say something odd."""

    name = "onnx-fields"

    def begin(self) -> None:
        self._valid = [_network(), _student()]

    def cases(self) -> SearchStrategy:
        number = st.one_of(
            st.sampled_from((0, 1, -1, 3, 2**31 - 1, 2**40, -(2**40), 7)), st.integers(-99, 999)
        )
        change = st.tuples(st.sampled_from(_FIELDS), st.integers(0, 500), number)
        return st.tuples(st.integers(0, 1), st.lists(change, min_size=1, max_size=3))

    def put(self, case: tuple[int, list[tuple[str, int, int]]], folder: Path) -> None:
        model = onnx.ModelProto()
        model.CopyFrom(self._valid[case[0]])
        for field, which, number in case[1]:
            _change(model, field, which, number)
        (folder / "case.onnx").write_bytes(model.SerializeToString())

    def read(self, case: Any, folder: Path) -> None:
        _check_onnx(folder / "case.onnx")


class Checkpoints(DamagedFile):
    """A run's checkpoint, for export, eval_fid, stylize, lens, benchmark and as a teacher."""

    name, suffixes = "checkpoints", (".ckpt", ".ckpt", ".ckpt")

    def begin(self) -> None:
        self._saved = [_trained(name) for name in ("cyclegan", "pix2pix", "distill")]
        self._valid = [_saved_bytes(each) for each in self._saved]

    def cases(self) -> SearchStrategy:
        # A student takes 40 ms to read, the others 5: most cases are the others'.
        which = st.sampled_from((0, 0, 0, 0, 1, 1, 1, 1, 2))
        return st.tuples(which, st.one_of(damage(), edits()))

    def put(self, case: tuple[int, list], folder: Path) -> None:
        which, changes = case
        if len(changes[0]) == 4:
            content = damaged(self._valid[which], changes)
        else:
            saved = dict(self._saved[which])
            plain = {key: value for key, value in saved.items() if key != "state_dict"}
            found = edited(plain, changes)
            content = _saved_bytes(saved | found if isinstance(found, dict) else found)
        self.file(case, folder).write_bytes(content)

    def read(self, case: tuple[int, Any], folder: Path) -> None:
        file = self.file(case, folder)
        wrong = None
        for read in (run_folder.step_of, checkpoint.load_network, terms_of):
            try:
                read(file)
            except checkpoint.DistillError as error:
                wrong = error
        if wrong:
            raise wrong


class Weights(DamagedFile):
    """A teacher's weights, as style.weights=FILE names them."""

    name, suffixes = "weights", (".pt", ".safetensors")

    def valid(self) -> Sequence[bytes]:
        from safetensors.torch import save

        state = {"layer.weight": torch.ones(4, 3), "layer.bias": torch.zeros(4)}
        return [_saved_bytes(state), save(state)]

    def read(self, case: tuple[int, Any], folder: Path) -> None:
        network = torch.nn.Module()
        network.layer = torch.nn.Linear(3, 4)
        load_into(network, self.file(case, folder))


class NetworkFiles(DamagedFile):
    """What distill.export wrote as safetensors, for init, teacher.path, stylize and the page."""

    name, suffixes = "networks", (".safetensors", ".safetensors")

    def begin(self) -> None:
        self._said, self._tensors = [], []
        for saved in map(_trained, ("pix2pix", "distill")):
            settings = registry.settings_of(saved["distill"])
            older = asdict(network_file.description(settings))
            self._said.append(older | ({"terms": TERMS} if self._said else {}))
            network = build.untrained(settings)
            self._tensors.append(network.state_dict())
        self._valid = [self._bytes(which, said) for which, said in enumerate(self._said)]

    def cases(self) -> SearchStrategy:
        return st.tuples(st.integers(0, 1), st.one_of(damage(), edits()))

    def put(self, case: tuple[int, list], folder: Path) -> None:
        which, changes = case
        if len(changes[0]) == 4:
            content = damaged(self._valid[which], changes)
        else:
            content = self._bytes(which, edited(self._said[which], changes))
        self.file(case, folder).write_bytes(content)

    def read(self, case: tuple[int, Any], folder: Path) -> None:
        network_file.read_network_file(self.file(case, folder))
        terms_of(self.file(case, folder)).json()

    def _bytes(self, which: int, said: Any) -> bytes:
        from safetensors.torch import save

        return save(self._tensors[which], {network_file.KEY: json.dumps(said, default=repr)})


class Cats(DamagedFile):
    """The points beside a photo, NAME.jpg.cat."""

    name, allowed, suffixes = "points", (BadPhoto,), (".jpg.cat",)

    def valid(self) -> Sequence[bytes]:
        return [b"9 20 30 50 30 35 50 10 10 15 5 20 12 50 12 55 5 60 10\n"]

    def read(self, case: tuple[int, Any], folder: Path) -> None:
        framing.read_cat(self.file(case, folder), (SIDE, SIDE))


def _profile() -> bytes:
    from PIL import ImageCms

    return ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()


def _saved(image: Image.Image, kind: str, options: dict[str, Any]) -> bytes:
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    return stream.getvalue()


def _saved_bytes(content: Any) -> bytes:
    stream = io.BytesIO()
    torch.save(content, stream)
    return stream.getvalue()


def _network() -> onnx.ModelProto:
    """A small graph: convolution, activation, upsampling, sigmoid."""
    make, floats = onnx.helper.make_node, onnx.TensorProto.FLOAT
    weight = onnx.numpy_helper.from_array(np.full((3, 3, 3, 3), 0.1, np.float32), "w")
    scales = onnx.numpy_helper.from_array(np.array([1, 1, 2, 2], np.float32), "scales")
    graph = onnx.helper.make_graph(
        [
            make("Conv", ["x", "w"], ["a"], name="conv", pads=[1, 1, 1, 1], strides=[2, 2]),
            make("Relu", ["a"], ["b"], name="relu"),
            make("Resize", ["b", "", "scales"], ["c"], name="up", mode="nearest"),
            make("Sigmoid", ["c"], ["y"], name="end"),
        ],
        "network",
        [onnx.helper.make_tensor_value_info("x", floats, [1, 3, 64, 64])],
        [onnx.helper.make_tensor_value_info("y", floats, [1, 3, 64, 64])],
        [weight, scales],
    )
    opset = onnx.helper.make_opsetid("", 13)
    return onnx.helper.make_model(graph, opset_imports=[opset], ir_version=8)


def _student() -> onnx.ModelProto:
    """A residual generator of one block, as distill.export writes it."""
    from distill.export.onnx import OnnxExporter
    from distill_gan.generators.resnet import ResNetGenerator

    torch.manual_seed(0)
    return OnnxExporter(size=32, profile="any").export(ResNetGenerator(blocks=1, width=2).eval())


def _check_onnx(file: Path) -> None:
    """All that reads an ONNX file; the first error of ours is raised at the end."""
    for device in (snapml_profile, coreml_profile, nnapi_profile, web_profile):
        profile = device.PROFILE
        found = check_report.check(file, profile)
        check_report.show([found], profile)
        check_report.write([found], profile, str(file.with_suffix(".json")))
    model = onnx_files.load_model(file)
    sessions.sample_call(sessions.open_file(file, 1))
    student = OnnxStudent(model, str(file), 1)
    assert student.channels in (3, 4)


_FIELDS = (
    "attribute-int", "attribute-ints", "attribute-kind", "attribute-drop", "dim", "dim-param",
    "operator", "input", "output", "output-drop", "node-drop", "node-twice", "weight-dim",
    "weight-kind", "weight-short", "opset", "ir", "input-kind", "input-twice", "domain",
    "external", "name", "graph-inside",
)  # fmt: skip


def _change(model: onnx.ModelProto, field: str, which: int, number: int) -> None:
    """Set one field of a graph to something odd; nothing where there is no such field."""
    graph = model.graph
    if not graph.node:
        return
    node = graph.node[which % len(graph.node)]
    values = [*graph.input, *graph.output, *graph.value_info]
    value = values[which % len(values)]
    weight = graph.initializer[which % len(graph.initializer)] if graph.initializer else None
    attribute = node.attribute[which % len(node.attribute)] if node.attribute else None
    dims = value.type.tensor_type.shape.dim
    small = number % 2**31 % 60
    if field == "attribute-int" and attribute:
        attribute.i = number
    elif field == "attribute-ints" and attribute:
        attribute.ints[:] = [number] * (which % 6)
    elif field == "attribute-kind" and attribute:
        attribute.type = small % 15
    elif field == "attribute-drop" and attribute:
        del node.attribute[which % len(node.attribute)]
    elif field == "dim" and dims:
        dims[which % len(dims)].dim_value = number
    elif field == "dim-param" and dims:
        dims[which % len(dims)].dim_param = "n" * small
    elif field == "operator":
        node.op_type = ("Add", "Reshape", "", "If", "Constant", "Loop", "Nothing")[small % 7]
    elif field == "input" and node.input:
        node.input[which % len(node.input)] = ("", "none", node.output[0], "x")[small % 4]
    elif field == "output" and node.output:
        node.output[which % len(node.output)] = ("", "x", "y", "w")[small % 4]
    elif field == "output-drop":
        del node.output[:]
    elif field == "node-drop":
        del graph.node[which % len(graph.node)]
    elif field == "node-twice":
        graph.node.add().CopyFrom(node)
    elif field == "weight-dim" and weight:
        weight.dims[:] = [number] * (which % 6)
    elif field == "weight-kind" and weight:
        weight.data_type = small % 25
    elif field == "weight-short" and weight:
        weight.raw_data = weight.raw_data[:small]
    elif field == "opset" and model.opset_import:
        model.opset_import[0].version = number
    elif field == "ir":
        model.ir_version = number
    elif field == "input-kind":
        value.type.tensor_type.elem_type = small % 25
    elif field == "input-twice":
        graph.input.add().CopyFrom(value)
    elif field == "domain":
        node.domain = ("x.y", "ai.onnx", "com.microsoft")[small % 3]
    elif field == "external" and weight:
        weight.data_location = onnx.TensorProto.EXTERNAL
        entry = weight.external_data.add()
        entry.key = ("location", "offset", "length")[small % 3]
        entry.value = ("../up.bin", str(number), "case.onnx", "/dev/zero")[which % 4]
    elif field == "name":
        node.name = value.name = "\n" * small
    elif field == "graph-inside":
        body = onnx.GraphProto()
        body.CopyFrom(graph)
        inner = node.attribute.add()
        inner.name, inner.type = "body", onnx.AttributeProto.GRAPH
        inner.g.CopyFrom(body)


def _trained(recipe: str) -> dict[str, Any]:
    """What a checkpoint of a recipe holds, of the smallest networks."""
    small = {
        "cyclegan": ["generator.build.blocks=1", "generator.build.width=2", "data.root=own"],
        "pix2pix": [
            *("generator.build.encoder=0.05", "generator.build.decoder=0.05"),
            *("data.crop_size=32", "data.root=own"),
        ],
        "distill": ["encoder=mobilenetv2_035", "encoder.weights=none", "decoder=residual"],
    }[recipe]
    schema = {"cyclegan": CycleGANTrain, "pix2pix": Pix2PixTrain, "distill": Train}[recipe]
    settings = compose.load("train", [f"recipe={recipe}", *small], schema)
    found = registry.recipe_named(recipe)
    state = {}
    for prefix in found.networks.values():
        for key, value in build.untrained(settings).state_dict().items():
            state[f"{prefix}.{key}"] = value
    older = {"distill": asdict(settings), "state_dict": state, "global_step": 5, "callbacks": {}}
    return older if recipe == "distill" else older | {"terms": TERMS}


READERS = (
    Pictures,
    GreyTiffs,
    Videos,
    OnnxBytes,
    OnnxFields,
    Checkpoints,
    Weights,
    NetworkFiles,
    Cats,
)
