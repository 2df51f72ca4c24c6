"""MediaPipe's networks as ONNX: by them the page tells people from background, and finds faces;
loss.region.brows has points by them.

    python tools/mediapipe_networks.py people FILE.tflite OUT.onnx    # distill[tflite]
    python tools/mediapipe_networks.py faces FILE.tflite OUT.onnx
    python tools/mediapipe_networks.py brows FILE.data face_landmark.onnx

FILE is, for people, `selfie_segmentation.tflite` of the npm package @mediapipe/selfie_segmentation;
for faces `face_detection_short_range.tflite` of @mediapipe/face_detection; for brows
`face_mesh_solution_packed_assets.data` of @mediapipe/face_mesh 0.4.1657299874 (all Apache-2.0).
"""

from __future__ import annotations

import argparse
from pathlib import Path

from tflite_graph import Conversion, Ends, read

from distill.core.errors import DistillError

# By what the page draws. The face detector was trained on [-1, 1]; here every network takes [0, 1].
ENDS = {
    "people": Ends("selfie_segmentation", "photo", ("people",)),
    "brows": Ends("face_landmark", "photo", ("marks", "score")),
    "faces": Ends("blazeface_short_range", "photo", ("boxes", "scores"), low=-1.0),
}

LANDMARKS = 2495952  # where face_landmark.tflite begins in the package's file of several


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("network", choices=ENDS)
    parser.add_argument("file", type=Path, metavar="FILE.tflite")
    parser.add_argument("out", type=Path, metavar="OUT.onnx")
    given = parser.parse_args()
    try:
        found = read(given.file, LANDMARKS if given.network == "brows" else 0)
        model = Conversion(found, ENDS[given.network]).convert()
        content = model.SerializeToString()
        given.out.write_bytes(content)
    except (OSError, DistillError) as error:
        raise SystemExit(f"{given.file}: {error}") from None
    print(f"{given.out}: {len(content):,} bytes")


if __name__ == "__main__":
    main()
