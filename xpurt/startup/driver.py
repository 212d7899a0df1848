"""Finds the libraries of SYCL, and the OpenCL CPU driver that comes as a wheel.

Nothing here uses a device. The libraries are loaded by path, so that the extension and
SYCL's own parts find each other in any directory that pip has chosen.
"""

import ctypes
import os
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from xpurt import accelerator_layer, usm_on_svm, virtual_gpu
from xpurt.startup import cpu_quota, launch, tbb_threads

TBB = "libtbb.so.12"
# In the order of their dependencies. The first four have no run path to each other, so
# loading libOpenCL or libdnnl by path alone fails.
LIBRARIES = (
    "libintlc.so.5",
    "libimf.so",
    "libsvml.so",
    "libirng.so",
    TBB,
    "libOpenCL.so.1",
    "libsycl.so.9",
    "libdnnl.so.3",
)
CPU_DRIVER = "libintelocl.so"
# The number of threads of the CPU driver; it reads this when it is loaded.
CPU_DRIVER_THREADS = "DPCPP_CPU_NUM_CUS"
# SYCL uses other devices through these. Loading one of them queries no device.
_OTHER_DRIVERS = ("libze_loader.so.1", "libcuda.so.1", "libamdhip64.so")
SYSTEM_ICD_DIRECTORY = Path("/etc/OpenCL/vendors")


@cache
def library_directory() -> Path | None:
    """The directory of the libraries of SYCL's wheels; None if they are missing."""
    candidates = [Path(sys.prefix) / "lib"]
    spec = find_spec("dpctl")
    if spec is not None and spec.origin is not None:
        # <prefix>/lib/python3.x/site-packages/dpctl/__init__.py
        candidates.insert(0, Path(spec.origin).parents[3])
    return next((c for c in candidates if (c / "libsycl.so.9").exists()), None)


def load_libraries() -> list[str]:
    """Loads the libraries that the extension links to; returns the names not found.

    A library that cannot be loaded is left to the extension's own import, whose
    error names it.
    """
    directory = library_directory()
    if directory is None:
        return list(LIBRARIES)
    missing = []
    for name in LIBRARIES:
        try:
            ctypes.CDLL(str(directory / name), mode=ctypes.RTLD_GLOBAL)
        except OSError:
            missing.append(name)
    return missing


def find_cpu_driver() -> Path | None:
    """The OpenCL CPU driver that pip installed beside SYCL, if it is there."""
    directory = library_directory()
    driver = directory / CPU_DRIVER if directory is not None else None
    return driver if driver is not None and driver.exists() else None


def system_has_cpu_driver() -> bool:
    """Whether the system's list of OpenCL drivers has a CPU driver."""
    for icd in SYSTEM_ICD_DIRECTORY.glob("*.icd"):
        if CPU_DRIVER in icd.read_text(errors="replace"):
            return True
    return False


def listed_drivers(
    environment: Mapping[str, str], system: Path
) -> Iterator[tuple[str, str]]:
    """Pairs (source, library) of OpenCL drivers, in the order in which the loader reads.

    system: the folder of the system's list.
    """
    vendors = environment.get("OCL_ICD_VENDORS")
    for icd in sorted((Path(vendors) if vendors else system).glob("*.icd")):
        library = icd.read_text(errors="replace").strip()
        if library:
            yield str(icd), library
    for library in environment.get("OCL_ICD_FILENAMES", "").split(os.pathsep):
        if library:
            yield "OCL_ICD_FILENAMES", library


def may_be_there() -> bool:
    """Whether any driver could be found; True in doubt. Loads none of OpenCL's."""
    listed = os.environ.get("OCL_ICD_FILENAMES")
    if listed is None:
        if find_cpu_driver() is not None:
            return True
    elif any(_may_exist(name) for name in listed.split(":") if name):
        return True
    system = Path(os.environ.get("OCL_ICD_VENDORS") or SYSTEM_ICD_DIRECTORY)
    if system.is_file() or any(system.glob("*.icd")):
        return True
    return any(_can_be_loaded(name) for name in _OTHER_DRIVERS)


def _may_exist(library: str) -> bool:
    """Whether the file exists. True for a bare name: only the loader knows where it
    searches."""
    return "/" not in library or Path(library).exists()


@cache
def _can_be_loaded(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


@cache
def prepare() -> None:
    """Makes the CPU driver visible to SYCL; called before the first device query.

    A driver list that the user set, or a CPU driver of the system, is left alone.
    OCL_ICD_FILENAMES adds to the system's list, so GPU drivers stay visible. The
    virtual GPU is added if XPURT_VIRTUAL_GPU requests it, and USM on SVM, above it, if
    XPURT_USM_ON_SVM does; below both the layer for accelerators, if a driver may have
    some. Raises ConfigError if a request is invalid, and RuntimeError if it is too late.
    In a control group with a
    quota of processor time, the CPU driver starts no more threads than the quota pays
    for, unless DPCPP_CPU_NUM_CUS is set. oneDNN has no more threads than the driver.
    """
    listed = listed_drivers(os.environ, SYSTEM_ICD_DIRECTORY)
    accelerator_layer.activate_from_environment(library for _, library in listed)
    virtual_gpu.activate_from_environment()
    usm_on_svm.activate_from_environment()
    launch.take_processors()
    threads = cpu_quota.threads_within_quota()
    if threads is not None:
        os.environ.setdefault(CPU_DRIVER_THREADS, str(threads))
    _limit_tbb()
    driver = find_cpu_driver()
    if "OCL_ICD_FILENAMES" in os.environ or driver is None:
        return
    if not system_has_cpu_driver():
        os.environ["OCL_ICD_FILENAMES"] = str(driver)


def _limit_tbb() -> None:
    """The driver takes a value that is no number as none, and so does this."""
    threads = os.environ.get(CPU_DRIVER_THREADS, "")
    directory = library_directory()
    if directory is None or not threads.isdecimal() or int(threads) == 0:
        return
    try:
        library = ctypes.CDLL(str(directory / TBB))
    except OSError:
        return  # load_libraries() has reported it
    tbb_threads.limit(library, int(threads))
