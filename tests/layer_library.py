"""OpenCL layers of tests: each is one C file beside what xpurt's layers share."""

import subprocess
from pathlib import Path

from xpurt.cpp_extension import include_dir

SHARED = Path(__file__).resolve().parents[1] / "xpurt" / "opencl_layer"


def compiled_layer(source: Path, folder: Path) -> Path:
    """The library that `source` is compiled to, in `folder`."""
    library = folder / f"{source.stem}.so"
    command = [
        *("gcc", "-std=gnu11", "-fPIC", "-shared", "-fvisibility=hidden", "-Wall"),
        "-DCL_TARGET_OPENCL_VERSION=300",
        *(f"-I{SHARED}", f"-I{include_dir('intel-sycl-rt', 'CL/cl_layer.h')}"),
        *(str(source), str(SHARED / "opencl_layer.c"), "-o", str(library)),
    ]
    subprocess.run(command, check=True)
    return library
