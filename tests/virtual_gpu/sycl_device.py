"""A SYCL device through dpctl's C interface, which takes raw addresses.

dpctl's Python queue takes USM objects only, so it cannot do what must be refused. Runs in
child processes of the tests; each call returns whether SYCL took it.
"""

import ctypes
from pathlib import Path

import dpctl
import dpctl.memory
import dpctl.program

FLOAT = 4  # bytes
ADD = """
kernel void add(global const float *a, global float *b, float c) {
  size_t i = get_global_id(0);
  b[i] = a[i] + c;
}
"""

_c = ctypes.CDLL(str(Path(dpctl.__file__).parent / "libDPCTLSyclInterface.so"))
_POINTER = ctypes.c_void_p
_SIZE = ctypes.c_size_t
_signatures = {
    "DPCTLmalloc_device": (_POINTER, [_SIZE, _POINTER]),
    "DPCTLmalloc_shared": (_POINTER, [_SIZE, _POINTER]),
    "DPCTLmalloc_host": (_POINTER, [_SIZE, _POINTER]),
    "DPCTLfree_with_queue": (None, [_POINTER, _POINTER]),
    "DPCTLUSM_GetPointerType": (ctypes.c_int, [_POINTER, _POINTER]),
    "DPCTLQueue_Memcpy": (_POINTER, [_POINTER, _POINTER, _POINTER, _SIZE]),
    "DPCTLQueue_Fill32": (_POINTER, [_POINTER, _POINTER, ctypes.c_uint32, _SIZE]),
    "DPCTLQueue_SubmitRange": (
        _POINTER,
        [
            _POINTER,
            _POINTER,
            _POINTER,
            _POINTER,
            _SIZE,
            _POINTER,
            _SIZE,
            _POINTER,
            _SIZE,
        ],
    ),
    "DPCTLEvent_Wait": (None, [_POINTER]),
    "DPCTLEvent_Delete": (None, [_POINTER]),
}
for _name, (_result, _arguments) in _signatures.items():
    getattr(_c, _name).restype = _result
    getattr(_c, _name).argtypes = _arguments
_FLOAT_ARGUMENT = 8  # DPCTL_FLOAT32_T
_POINTER_ARGUMENT = 10  # DPCTL_VOID_PTR


def done(event: int | None) -> bool:
    if not event:
        return False
    _c.DPCTLEvent_Wait(event)
    _c.DPCTLEvent_Delete(event)
    return True


class Device:
    """A queue of its own context on the device that `selector` names."""

    def __init__(self, selector: str, **options: object) -> None:
        self.device = dpctl.SyclDevice(selector)
        # A list makes a new context; a device alone gets the one that dpctl keeps for it.
        self.context = dpctl.SyclContext([self.device])
        self.queue = dpctl.SyclQueue(self.context, self.device, **options)
        self.ref = self.queue.addressof_ref()

    def allocate(self, count: int, kind: str = "device") -> int | None:
        """An address of `count` floats; None if the device has no room."""
        return getattr(_c, f"DPCTLmalloc_{kind}")(count * FLOAT, self.ref)

    def free(self, address: int) -> None:
        _c.DPCTLfree_with_queue(address, self.ref)

    def kind(self, address: int) -> int:
        return _c.DPCTLUSM_GetPointerType(address, self.context.addressof_ref())

    def copy(self, to: int, source: int, count: int) -> bool:
        return done(_c.DPCTLQueue_Memcpy(self.ref, to, source, count * FLOAT))

    def fill(self, address: int, bits: int, count: int) -> bool:
        return done(_c.DPCTLQueue_Fill32(self.ref, address, bits, count))

    def kernel(self, source: str = ADD, name: str = "add") -> object:
        program = dpctl.program.create_program_from_source(self.queue, source)
        return program.get_sycl_kernel(name)

    def submit(
        self,
        kernel: object,
        a: int,
        b: int,
        c: float,
        count: int,
        after: int | None = None,
    ) -> int | None:
        """Starts add(a, b, c) after an event; its event, or None if it was refused."""
        values = [_POINTER(a), _POINTER(b), ctypes.c_float(c)]
        # A pointer is passed as itself, another argument by its address.
        arguments = (_POINTER * 3)(a, b, ctypes.addressof(values[2]))
        kinds = (ctypes.c_int * 3)(
            _POINTER_ARGUMENT, _POINTER_ARGUMENT, _FLOAT_ARGUMENT
        )
        return _c.DPCTLQueue_SubmitRange(
            kernel.addressof_ref(),
            self.ref,
            arguments,
            kinds,
            3,
            (_SIZE * 3)(count, 1, 1),
            1,
            (_POINTER * 1)(after),
            0 if after is None else 1,
        )

    def run(self, kernel: object, a: int, b: int, c: float, count: int) -> bool:
        return done(self.submit(kernel, a, b, c, count))

    def upload(self, values: list[float]) -> int:
        address = self.allocate(len(values))
        host = (ctypes.c_float * len(values))(*values)
        assert address
        assert self.copy(address, ctypes.addressof(host), len(values))
        return address

    def download(self, address: int, count: int) -> list[float]:
        host = (ctypes.c_float * count)()
        assert self.copy(ctypes.addressof(host), address, count)
        return list(host)
