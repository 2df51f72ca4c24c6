"""TFLite, by litert-torch in an environment of its own: it wants another torch than we do."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch

from distill.core.errors import DistillError
from distill.core.files import write_json
from distill.core.licence_terms import NOTE, read_terms
from distill.core.onnx_files import ABOUT
from distill.export.format import ConversionSource, ConvertedFormat, Inference

WORKER = Path(__file__).with_name("tflite_worker.py")
TIMEOUT = 600  # seconds; some 20 are usual


class TfLite(ConvertedFormat):
    """Channels last, as phones have pictures, unless something else is asked for.

    The folded network goes to the other interpreter as a torch.fx graph of plain torch layers, so
    that it needs nothing of ours. `python` is the interpreter; None: this one.
    """

    name = "tflite"
    endings = (".tflite",)
    needs = (
        "it has pins of its own: python -m venv ENV; ENV/bin/pip install litert-torch; then "
        "tflite.python=ENV/bin/python"
    )
    runs_in = "LiteRT"
    default_form = "float_nhwc"
    one_size = True  # one of any is refused by LiteRT's XNNPACK at every size

    def __init__(self, stem: str = "student", python: str | None = None) -> None:
        super().__init__(stem)
        self.python = python

    def convert(self, source: ConversionSource, folder: Path) -> None:
        if self.python is None and find_spec("litert_torch") is None:
            raise DistillError(f"{self.name}: needs litert-torch; {self.needs}")
        python = self.python or sys.executable
        # A path counts from here, not from where it runs; a link stays, as an environment's is one.
        path = os.path.expanduser(python)
        path = os.path.abspath(path) if os.path.dirname(path) else path
        torch.save(torch.fx.symbolic_trace(self.traceable(source)), folder / "network.fx")
        example = self.example(source)
        about = self.about(source.exporter, source.channels)
        terms = read_terms(source.description.terms)
        write_json(
            folder / "job.json",
            {
                "target": self.files[0],
                "shape": list(example.shape),
                "type": str(example.dtype).removeprefix("torch."),
                "metadata": {"licence": terms.line, NOTE: terms.plain(), ABOUT: about},
            },
        )
        command = [path, "-", "network.fx", "job.json"]
        try:
            # As text, not by its path: beside it lie onnx.py and ncnn.py, which it must not see.
            process = subprocess.run(
                command,
                input=WORKER.read_text(),
                cwd=folder,
                capture_output=True,
                text=True,
                timeout=TIMEOUT,
            )
        except OSError as error:
            raise DistillError(
                f"tflite.python={python}: cannot be run ({error.strerror})"
            ) from None
        except subprocess.TimeoutExpired:
            raise DistillError(f"{self.name}: litert-torch took longer than {TIMEOUT} s") from None
        if process.returncode or not (folder / self.files[0]).is_file():
            message = process.stderr.strip() or f"it ended with status {process.returncode}"
            if "No module named 'litert_torch'" in message:
                raise DistillError(f"{self.name}: {python} has no litert-torch; {self.needs}")
            last = [line for line in message.splitlines() if line.strip()][-1:]
            raise DistillError(f"{self.name}: litert-torch failed: {' '.join(last)}")

    def open(self, folder: Path) -> Inference | None:
        try:
            from ai_edge_litert.interpreter import Interpreter
        except ImportError:
            return None
        interpreter = Interpreter(model_path=str(folder / self.files[0]), num_threads=1)
        interpreter.allocate_tensors()
        source, target = (
            details[0]["index"]
            for details in (interpreter.get_input_details(), interpreter.get_output_details())
        )

        def run(photo: np.ndarray) -> np.ndarray:
            interpreter.set_tensor(source, photo)
            interpreter.invoke()
            return np.asarray(interpreter.get_tensor(target))

        return run
