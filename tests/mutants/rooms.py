"""Where changes are made, and the tests that are to find them. The environment's
MUTANTS_ROOM chooses one: "rows", the default, "layers", "interpreted", which compiles
one file, or "all"."""

import os
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Room:
    """csrc: patterns of sources in C++. texts: of templates in OpenCL C, and of Python
    files with the texts of custom kernels. python: of sources in Python. tests: what runs
    this code; a test elsewhere that finds a mutant is not counted.

    is_sampled: only the changes that are drawn are built, as all would be too many. Then
    a record of the tests is one of that draw."""

    csrc: tuple[str, ...]
    texts: tuple[str, ...]
    tests: tuple[str, ...]
    python: tuple[str, ...] = ()
    is_sampled: bool = False


_TEXTS: Final = (
    "xpurt/kernels/sources/templates/**/*.cl",
    "xpurt/kernels/rows/**/*.py",
)
_TESTS: Final = ("tests/*/*/test_*.py", "tests/*/test_*.py", "tests/test_*.py")
_PYTHON: Final = ("xpurt/**/*.py",)
# All but the library that stands for the extension until xpu is used.
_LINKED: Final = ("xpurt/csrc/[!f]*/**/*.cpp",)

_ROOMS: Final = {
    "rows": Room(
        ("xpurt/csrc/rows/*.cpp", "xpurt/csrc/op/custom_kernel*.cpp"),
        _TEXTS,
        (
            "tests/kernels",
            "tests/fused_ops",
            "tests/native",
            "tests/bad_input/test_arguments.py",
            "tests/bad_input/test_types_and_ranges.py",
            "tests/conformance/test_sampled.py",
            "tests/conformance/test_shapes.py",
            "tests/layouts",
            "tests/robustness",
            "tests/auto",
            "tests/compiler",
            "tests/ecosystem",
        ),
    ),
    "layers": Room(
        (
            "xpurt/csrc/layouts/*.cpp",
            "xpurt/csrc/lazy/*.cpp",
            "xpurt/csrc/lazy/kernels/*.cpp",
            "xpurt/csrc/cpu_tensors/*.cpp",
        ),
        (),
        ("tests/lazy", "tests/optimization", "tests/cpu_kernels", "tests/generated"),
    ),
    "interpreted": Room((), _TEXTS, _TESTS, _PYTHON, is_sampled=True),
    "all": Room(_LINKED, _TEXTS, _TESTS, _PYTHON, is_sampled=True),
}
NAME: Final = os.environ.get("MUTANTS_ROOM", "rows")
ROOM: Final = _ROOMS[NAME]
