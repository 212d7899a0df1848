"""Build C++ extensions with kernels for xpu.

Such an extension is built with `torch.utils.cpp_extension`. It registers its kernels
with `TORCH_LIBRARY_IMPL(name, XPU, m)`. This module adds the headers `xpurt/queue.h`
(the queue of the current stream) and `xpurt/opencl_kernel.h` (kernels in OpenCL C), and
the paths of SYCL. Any C++ compiler will do.

In a setup.py::

    from torch.utils.cpp_extension import BuildExtension
    from xpurt.cpp_extension import xpu_extension

    setup(
        ext_modules=[xpu_extension("mine", ["mine.cpp"])],
        cmdclass={"build_ext": BuildExtension},
    )

or at run time: `xpurt.cpp_extension.load("mine", ["mine.cpp"])`.
"""

from importlib.metadata import distribution
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from setuptools import Extension

# sycl.hpp and PyTorch's headers require the same C++ standard: no flag is needed.
SYCL_FLAGS = (
    "-DSYCL_DISABLE_FSYCL_SYCLHPP_WARNING",
    "-DCL_TARGET_OPENCL_VERSION=300",
    # Without std::byte sycl.hpp leaves out the headers of inter-process memory, in
    # which GCC 16 finds calls ambiguous.
    "-D_HAS_STD_BYTE=0",
)
_LIBRARIES = ["sycl", "OpenCL"]


def include_dir(package: str, header: str) -> str:
    """The include directory into which `package` installed `header`.

    Raises FileNotFoundError if there is no such header, ModuleNotFoundError if the
    package is not installed.
    """
    for file in distribution(package).files or ():
        if file.as_posix().endswith(f"include/{header}"):
            path = Path(str(file.locate())).resolve()
            return str(path.parents[len(Path(header).parts) - 1])
    raise FileNotFoundError(f"{package} is installed, but has no {header}")


def library_dir(package: str, library: str) -> str:
    """The directory of `library`, a file that `package` installed.

    Raises as `include_dir` does.
    """
    for file in distribution(package).files or ():
        if file.name == library:
            return str(Path(str(file.locate())).resolve().parent)
    raise FileNotFoundError(f"{package} is installed, but has no {library}")


def include_paths() -> list[str]:
    """Directories for the compiler: xpurt's headers, and SYCL's and OpenCL's."""
    return [
        str(Path(__file__).parent / "include"),
        include_dir("intel-sycl-rt", "sycl/sycl.hpp"),
    ]


def library_paths() -> list[str]:
    """Directories for the linker. At run time xpurt has loaded the libraries."""
    return [library_dir("intel-sycl-rt", "libsycl.so")]


def xpu_extension(name: str, sources: list[str], **kwargs: Any) -> "Extension":
    """A `torch.utils.cpp_extension.CppExtension` with the paths, flags and libraries
    that kernels for xpu need.

    kwargs: as CppExtension takes them; its lists of paths, flags and libraries are
        extended.
    """
    from torch.utils import cpp_extension

    make: Any = cpp_extension.CppExtension  # it has no types
    added = {
        "include_dirs": include_paths(),
        "library_dirs": library_paths(),
        "libraries": _LIBRARIES,
        "extra_compile_args": [*SYCL_FLAGS],
    }
    extension: Extension = make(name, sources, **_merged(kwargs, added))
    return extension


def load(name: str, sources: list[str], **kwargs: Any) -> Any:
    """Build and load an extension now, as `torch.utils.cpp_extension.load` does.

    kwargs: as that function takes them; its lists of paths and flags are extended.
    Returns what that function returns.
    """
    from torch.utils import cpp_extension

    added = {
        "extra_include_paths": include_paths(),
        "extra_cflags": [*SYCL_FLAGS],
        "extra_ldflags": [
            *(f"-L{path}" for path in library_paths()),
            *(f"-l{library}" for library in _LIBRARIES),
        ],
    }
    return cpp_extension.load(name, sources, **_merged(kwargs, added))


def _merged(given: dict[str, Any], added: dict[str, list[str]]) -> dict[str, Any]:
    """`given`, with each list of `added` appended to its own list of that name."""
    lists = {key: [*(given.get(key) or ()), *values] for key, values in added.items()}
    return {**given, **lists}
