"""Run by the interpreter that has litert-torch: a torch.fx graph to a TFLite file with metadata.

    python tflite_worker.py GRAPH SAID

SAID is JSON of tflite.py: the file's name, shape and type of its input, and what the
file says of itself. Nothing of distill is imported: it need not be installed there.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any


def main(graph: str, description: str) -> None:
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
    import litert_torch
    import torch
    from torch.fx.graph_module import reduce_graph_module

    job = json.loads(Path(description).read_text())
    # tflite.py wrote it a moment ago: a graph of torch's own layers, and nothing else is read.
    layers = [part for part in vars(torch.nn).values() if isinstance(part, type)]
    with torch.serialization.safe_globals([*layers, torch.fx.Tracer, reduce_graph_module]):
        network = torch.load(graph, weights_only=True).eval()
    example = torch.zeros(job["shape"], dtype=getattr(torch, job["type"]))
    litert_torch.convert(network, (example,)).export(job["target"])
    add_metadata(Path(job["target"]), job["metadata"])


def add_metadata(path: Path, texts: dict[str, Any]) -> None:
    """Name input and output, write TFLite's own metadata, and each of `texts` as JSON."""
    import flatbuffers
    from ai_edge_litert import schema_py_generated as schema

    model = schema.ModelT.InitFromObj(schema.Model.GetRootAsModel(path.read_bytes(), 0))
    about, terms = texts["distill.about"], texts.pop("licence")
    inside = model.subgraphs[0]
    for end, numbers in (("input", inside.inputs), ("output", inside.outputs)):
        inside.tensors[numbers[0]].name = about[end]["name"]
        for signature in model.signatureDefs or []:
            getattr(signature, f"{end}s")[0].name = about[end]["name"]
    entries = {name: json.dumps(text).encode() for name, text in texts.items()}
    for name, content in {"TFLITE_METADATA": metadata(about, terms), **entries}.items():
        buffer, entry = schema.BufferT(), schema.MetadataT()
        buffer.data, entry.name, entry.buffer = list(content), name, len(model.buffers)
        model.buffers.append(buffer)
        model.metadata = [*(model.metadata or []), entry]
    builder = flatbuffers.Builder()
    builder.Finish(model.Pack(builder), b"TFL3")
    path.write_bytes(builder.Output())


def metadata(about: dict[str, Any], terms: str) -> bytes:
    """ModelMetadata of TFLite's metadata_schema.fbs (M001), whose generated code no package has.

    Fields are numbered in the schema's order.
    """
    import flatbuffers

    builder = flatbuffers.Builder()

    def table(fields: int, *values: tuple[str, int, Any]) -> int:
        builder.StartObject(fields)
        for kind, field, value in values:
            getattr(builder, f"Prepend{kind}Slot")(field, value, 0)
        return builder.EndObject()

    def vector(values: list[Any], kind: str = "UOffsetTRelative") -> int:
        builder.StartVector(4, len(values), 4)
        for value in reversed(values):
            getattr(builder, f"Prepend{kind}")(value)
        return builder.EndVector()

    def tensor(end: dict[str, Any], normalised: bool) -> int:
        white = end["range"][1]
        name = builder.CreateString(end["name"])
        image = table(2, ("Int8", 0, 1))  # ImageProperties, colour space RGB
        content = table(3, ("Uint8", 0, 2), ("UOffsetTRelative", 1, image))
        mean, std = (vector([value], "Float32") for value in (0.0, 255.0 / white))
        options = table(2, ("UOffsetTRelative", 0, mean), ("UOffsetTRelative", 1, std))
        unit = table(2, ("Uint8", 0, 1), ("UOffsetTRelative", 1, options))
        units = vector([unit] if normalised else [])
        most, least = (vector([float(value)], "Float32") for value in (white, 0))
        stats = table(2, ("UOffsetTRelative", 0, most), ("UOffsetTRelative", 1, least))
        parts = {0: name, 3: content, 4: units, 5: stats}
        return table(7, *(("UOffsetTRelative", number, part) for number, part in parts.items()))

    interfaces = [vector([tensor(about[end], end == "input")]) for end in ("input", "output")]
    graph = table(10, *(("UOffsetTRelative", 2 + n, end) for n, end in enumerate(interfaces)))
    words = {
        0: about["style"],
        1: "a photo to its stylised picture",
        2: about["version"],
        4: "distill",
        5: terms,
        7: "1.0.0",
    }
    parts = {number: builder.CreateString(text) for number, text in words.items()}
    parts[3] = vector([graph])
    root = table(8, *(("UOffsetTRelative", number, part) for number, part in parts.items()))
    builder.Finish(root, b"M001")
    return bytes(builder.Output())


if __name__ == "__main__":
    main(*sys.argv[1:3])
