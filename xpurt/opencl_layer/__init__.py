"""What xpurt's OpenCL layers share: their C code, and their place in OPENCL_LAYERS.

The OpenCL loader loads the libraries that ``OPENCL_LAYERS`` names at the first device
query of the process. Each later one in the list is above the ones before it, and sees
what they report. Child processes inherit the list.
"""

import os
import re
from pathlib import Path

LAYERS = "OPENCL_LAYERS"

# The libraries that a device query maps into the process: SYCL's adapters (libsycl and
# libOpenCL alone are no sign of a query), or a vendor's OpenCL driver.
_DRIVER = re.compile(
    r"/lib(ur_adapter_\w+|intelocl|igdrcl|pocl|amdocl64|nvidia-opencl|RusticlOpenCL"
    r"|MesaOpenCL)[-.\w]*\.so"
)


def library_in(folder: Path, name: str, what: str) -> Path:
    """The library `name` that setup.py builds in `folder`. Raises RuntimeError if it was
    not built; `what` names it there."""
    found = sorted(folder.glob(f"{name}*.so"))
    if not found:
        raise RuntimeError(
            f"{what} library was not built: no {name}*.so in {folder}. Install xpurt "
            "again with a C compiler (gcc)."
        )
    return found[0]


def add_above(library: Path) -> None:
    """Makes `library` the topmost layer, unless it is listed already."""
    if not is_listed(library):
        os.environ[LAYERS] = ":".join([*_listed(), str(library)])


def is_listed(library: Path) -> bool:
    """Whether the loader will load `library`, or has loaded it."""
    return str(library) in _listed()


def is_loaded(library: Path) -> bool:
    """Whether `library` is in this process."""
    return str(library.resolve()) in _mapped_files()


def driver_is_loaded() -> bool:
    """Whether devices have been queried in this process. The list of layers is read at
    that time only."""
    return _DRIVER.search(_mapped_files()) is not None


def _listed() -> list[str]:
    return [entry for entry in os.environ.get(LAYERS, "").split(":") if entry]


def _mapped_files() -> str:
    try:
        return Path("/proc/self/maps").read_text()
    except OSError:
        return ""
