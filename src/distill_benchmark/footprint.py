"""How much memory a graph needs in ONNX Runtime, measured in a process of its own."""

import subprocess
import sys
import tempfile
from pathlib import Path

import onnx

from distill.core import sessions

RUNS = 3
TIMEOUT = 120  # seconds


def peak_mib(model: onnx.ModelProto, threads: int, provider: str = sessions.CPU) -> float | None:
    """MiB at the most, loading and running, over a process that only has ONNX Runtime loaded.

    None where the system does not tell (Windows), or the process ends badly.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        path.write_bytes(model.SerializeToString())
        command = [sys.executable, "-m", "distill_benchmark.footprint", str(path), str(threads)]
        try:
            process = subprocess.run(
                [*command, provider], capture_output=True, text=True, timeout=TIMEOUT
            )
            return float(process.stdout)
        except (ValueError, subprocess.TimeoutExpired):
            return None


def _peak() -> float:
    """Bytes of memory that this process had at the most.

    On Linux not by getrusage: a process begins there with what its parent had.
    """
    if sys.platform == "linux":
        status = Path("/proc/self/status").read_text()
        return 1024 * float(status.partition("VmHWM:")[2].split()[0])
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # bytes on macOS


def main() -> None:
    path, threads, provider = sys.argv[1:]
    before = _peak()
    run = sessions.sample_call(sessions.open_session(Path(path), int(threads), provider))
    for _ in range(RUNS):
        run()
    print((_peak() - before) / 2**20)


if __name__ == "__main__":
    main()
