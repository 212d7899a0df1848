"""Where changes are made, and the tests that are to find them. The environment's
MUTANTS_ROOM chooses one: "rows", the default, or "layers"."""

import os
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Room:
    """csrc: patterns of sources in C++. texts: of templates in OpenCL C, and of Python
    files with the texts of custom kernels. tests: what runs this code; a test elsewhere
    that finds a mutant is not counted."""

    csrc: tuple[str, ...]
    texts: tuple[str, ...]
    tests: tuple[str, ...]


_ROOMS: Final = {
    "rows": Room(
        ("xpurt/csrc/rows/*.cpp", "xpurt/csrc/op/custom_kernel*.cpp"),
        ("xpurt/kernels/sources/templates/**/*.cl", "xpurt/kernels/rows/**/*.py"),
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
        ("xpurt/csrc/lazy/*.cpp", "xpurt/csrc/cpu_tensors/*.cpp"),
        (),
        ("tests/lazy", "tests/cpu_kernels", "tests/generated"),
    ),
}
NAME: Final = os.environ.get("MUTANTS_ROOM", "rows")
ROOM: Final = _ROOMS[NAME]
