"""Run by the interpreter that has litert-torch: a torch.fx graph to a TFLite file.

    python tflite_worker.py GRAPH TFLITE SIZE

Nothing of distill is imported: it need not be installed there.
"""

from __future__ import annotations

import os
import sys


def main(graph: str, target: str, size: int) -> None:
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
    import litert_torch
    import torch
    from torch.fx.graph_module import reduce_graph_module

    # tflite.py wrote it a moment ago: a graph of torch's own layers, and nothing else is read.
    layers = [part for part in vars(torch.nn).values() if isinstance(part, type)]
    with torch.serialization.safe_globals([*layers, torch.fx.Tracer, reduce_graph_module]):
        network = torch.load(graph, weights_only=True).eval()
    last = litert_torch.to_channel_last_io(network, args=[0], outputs=[0])
    litert_torch.convert(last, (torch.zeros(1, size, size, 3),)).export(target)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
