"""A product of matrices by oneDNN's C API alone, without PyTorch, its dispatcher or our
queues. The difference is what xpu adds."""

import ctypes
from collections.abc import Callable
from ctypes import byref, c_int, c_int64, c_size_t, c_uint, c_void_p

import torch

LIBRARY = "libdnnl.so.3"

# Numbers from dnnl_types.h.
CPU_ENGINE = 1
IN_ORDER = 1
DATA_TYPES = {torch.float32: 3, torch.bfloat16: 2}
ALLOCATE = c_void_p(-1)
SOURCE, WEIGHTS, RESULT = 1, 33, 17
MAX_RANK = 12


class Failed(Exception):
    """oneDNN is missing, or returned an error; the text says which."""


class _Argument(ctypes.Structure):
    _fields_ = (("number", c_int), ("memory", c_void_p))


class _Library:
    """The C API. Its functions return 0 or the number of an error."""

    def __init__(self) -> None:
        try:
            self._library = ctypes.CDLL(LIBRARY)
        except OSError as error:
            raise Failed(str(error)) from None

    def __call__(self, name: str, *arguments: object) -> None:
        status = getattr(self._library, f"dnnl_{name}")(*arguments)
        if status != 0:
            raise Failed(f"dnnl_{name} returned {status}")

    def made(self, name: str, *arguments: object) -> c_void_p:
        """The object that a function returns through its first argument."""
        handle = c_void_p()
        self(name, byref(handle), *arguments)
        return handle


def product(
    rows: int, inner: int, columns: int, dtype: torch.dtype
) -> Callable[[], None]:
    """A call that multiplies (rows, inner) by (inner, columns), and waits for the result.

    Handles are kept until the process ends. Raises Failed.
    """
    library = _Library()
    engine = library.made("engine_create", c_int(CPU_ENGINE), c_size_t(0))
    stream = library.made("stream_create", engine, c_uint(IN_ORDER))
    shapes = (rows, inner), (inner, columns), (rows, columns)
    layouts = [_layout(library, *shape, dtype) for shape in shapes]
    left, right, result = layouts
    description = library.made(
        "matmul_primitive_desc_create", engine, left, right, None, result, None
    )
    primitive = library.made("primitive_create", description)
    memories = [
        library.made("memory_create", layout, engine, ALLOCATE) for layout in layouts
    ]
    for memory, shape in zip(memories, shapes, strict=True):
        _fill(library, memory, torch.rand(shape).to(dtype))
    arguments = (_Argument * 3)(
        *(
            _Argument(number, memory)
            for number, memory in zip((SOURCE, WEIGHTS, RESULT), memories, strict=True)
        )
    )

    def call() -> None:
        library("primitive_execute", primitive, stream, c_int(3), arguments)
        library("stream_wait", stream)

    return call


def _layout(library: _Library, rows: int, columns: int, dtype: torch.dtype) -> c_void_p:
    return library.made(
        "memory_desc_create_with_strides",
        c_int(2),
        (c_int64 * MAX_RANK)(rows, columns),
        c_int(DATA_TYPES[dtype]),
        (c_int64 * MAX_RANK)(columns, 1),
    )


def _fill(library: _Library, memory: c_void_p, values: torch.Tensor) -> None:
    """Writes `values` to oneDNN's memory: with zeros or denormals, a product could be
    faster or slower than usual."""
    mapped = c_void_p()
    library("memory_map_data", memory, byref(mapped))
    ctypes.memmove(mapped, values.data_ptr(), values.nbytes)
    library("memory_unmap_data", memory, mapped)
