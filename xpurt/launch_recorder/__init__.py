"""Records what a process gives to an OpenCL driver: the sources of programs and their
launches, with the bytes that kernels read and write.

The OpenCL layer (``launch_recorder/layer``) is listed in ``OPENCL_LAYERS`` by who starts
the process that is recorded; it is never on by itself.
"""

from pathlib import Path

from xpurt import opencl_layer
from xpurt.launch_recorder.launches import launches_in, read_launch

__all__ = [
    "LAUNCHES",
    "PROGRAMS",
    "SIMULATOR",
    "launches_in",
    "library_path",
    "read_launch",
]

PROGRAMS = "RECORDED_PROGRAMS"
LAUNCHES = "RECORDED_LAUNCHES"

# A program that replays launches on Oclgrind.
SIMULATOR = Path(__file__).with_name("oclgrind.py")


def library_path() -> Path:
    """The layer's library; raises RuntimeError if it was not built."""
    folder = Path(__file__).parent
    return opencl_layer.library_in(folder, "_launch_recorder", "the launch recorder's")
