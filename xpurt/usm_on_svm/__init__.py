"""Switches USM on SVM on: GPUs whose OpenCL driver has no unified shared memory.

xpurt needs unified shared memory (USM). Drivers of several vendors have only shared
virtual memory (SVM). An OpenCL layer (``usm_on_svm/layer``) makes the first from the
second. Platforms that have USM are left alone.

It is on if ``XPURT_USM_ON_SVM`` is, and with the virtual GPU of the mode ``svm``. The
OpenCL loader loads the layer at the first device query, and child processes inherit it.
"""

import os
from pathlib import Path

from xpurt import opencl_layer
from xpurt.config import config, read_config

VARIABLE = "XPURT_USM_ON_SVM"


def library_path() -> Path:
    """The layer's library; raises RuntimeError if it was not built."""
    folder = Path(__file__).parent
    return opencl_layer.library_in(folder, "_usm_on_svm", "the layer USM on SVM's")


def activate() -> None:
    """Adds the layer to this process and its children, before the first device use.

    It is above the layers that are listed now. Raises RuntimeError if SYCL has already
    queried the devices in this process, which it does only once.
    """
    library = library_path()
    if opencl_layer.driver_is_loaded():
        if opencl_layer.is_loaded(library) and _is_on():
            return
        raise RuntimeError(
            "USM on SVM comes too late: SYCL has already looked for devices in this "
            f"process. Start Python with {VARIABLE}=on."
        )
    os.environ[VARIABLE] = "1"
    opencl_layer.add_above(library)


def activate_from_environment() -> None:
    """Activates the layer if ``XPURT_USM_ON_SVM`` or the mode of the virtual GPU
    requires it.

    Raises ConfigError for an invalid value, and RuntimeError as ``activate`` does.
    """
    if config().usm_on_svm or config().virtual_gpu == "svm":
        activate()


def way_out() -> str:
    """What a user can do about a device without USM."""
    if _is_on():
        return (
            f"{VARIABLE} is on, so its driver has no shared virtual memory either: "
            "update the driver, or use another device"
        )
    return (
        f"set {VARIABLE}=on to try it on the shared virtual memory of its driver; one "
        "NVIDIA GPU has run so (docs/supported.md)"
    )


def _is_on() -> bool:
    """As the layer reads the environment. `config()` is older than what `activate`
    writes there."""
    found = read_config(os.environ)
    return found.usm_on_svm or found.virtual_gpu == "svm"
