"""Replays recorded launches on Oclgrind, a simulator of OpenCL devices that finds races,
accesses out of bounds and uses of what was never written (Price and McIntosh-Smith,
"Oclgrind: An Extensible OpenCL Device Simulator", IWOCL 2015).

Run as a program, with Oclgrind's library, its log and the files of launches as arguments;
it prints a line of JSON for each launch. A process of its own: the simulator may crash,
and no other driver shares its libraries.
"""

import ctypes
import json
import re
import sys
from ctypes import byref, c_char_p, c_size_t, c_uint, c_ulong, c_void_p
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xpurt.launch_recorder.launches import Launch, read_launch
else:
    from launches import Launch, read_launch

DEVICE_OF_ANY_TYPE = 0xFFFFFFFF
BUILD_LOG = 0x1183
READ_WRITE, COPY_HOST = 1 << 0, 1 << 5
REGION = 0x1220
# With its optimizations Oclgrind 21.10 meets intrinsics of LLVM that it does not have.
OPTIONS = "-cl-std=CL1.2 -cl-opt-disable"
STANDARD = re.compile(r"-cl-std=\S+")


class Refused(Exception):
    """The simulator can't run this launch."""


class Simulator:
    def __init__(self, library: str) -> None:
        self.cl = ctypes.CDLL(library)
        for name in (
            *("Context", "CommandQueue", "ProgramWithSource", "Kernel"),
            *("Buffer", "SubBuffer"),
        ):
            getattr(self.cl, f"clCreate{name}").restype = c_void_p
        platform, self.device = c_void_p(), c_void_p()
        self.cl.clGetPlatformIDs(1, byref(platform), None)
        types = c_ulong(DEVICE_OF_ANY_TYPE)
        self.cl.clGetDeviceIDs(platform, types, 1, byref(self.device), None)
        self.context = c_void_p(
            self.cl.clCreateContext(None, 1, byref(self.device), None, None, None)
        )
        self.queue = c_void_p(
            self.cl.clCreateCommandQueue(self.context, self.device, c_ulong(0), None)
        )
        self.programs: dict[Path, c_void_p] = {}

    def program(self, path: Path) -> c_void_p:
        if path not in self.programs:
            self.programs[path] = self._built(path)
        return self.programs[path]

    def _built(self, path: Path) -> c_void_p:
        first, _, source = path.read_text().partition("\n")
        options = f"{STANDARD.sub('', first.removeprefix('// '))} {OPTIONS}"
        text = c_char_p(source.encode())
        made = self.cl.clCreateProgramWithSource(
            self.context, 1, byref(text), None, None
        )
        program = c_void_p(made)
        if self.cl.clBuildProgram(
            program, 1, byref(self.device), options.encode(), None, None
        ):
            log = ctypes.create_string_buffer(1 << 14)
            self.cl.clGetProgramBuildInfo(
                program, self.device, BUILD_LOG, c_size_t(len(log)), log, None
            )
            raise Refused(f"does not build: {log.value.decode()[:400]}")
        return program

    def run(self, launch: Launch) -> bool:
        """Whether the memory is as it was after the launch that was recorded."""
        if not launch.program:
            raise Refused("no source: the program was made from a binary")
        if any(each.kind == "outside" for each in launch.arguments):
            raise Refused("an argument points to no allocation")
        if not launch.has_bytes:
            raise Refused("more than 64 MiB")
        program = self.program(launch.path.with_name(f"{launch.program}.cl"))
        kernel = c_void_p(self.cl.clCreateKernel(program, launch.kernel.encode(), None))
        buffers = self._buffers(launch)
        self._set_arguments(kernel, launch, buffers)
        self._launch(kernel, launch)
        return self._is_same(launch, buffers)

    def _buffers(self, launch: Launch) -> list[c_void_p]:
        """Of allocations; what nobody wrote has no value. They are never released: for
        Oclgrind 21.10 a later one at the same address has the values of an earlier one.
        """
        return [
            c_void_p(
                self.cl.clCreateBuffer(
                    self.context,
                    c_ulong(READ_WRITE | (COPY_HOST if each.is_written else 0)),
                    c_size_t(each.size),
                    each.before if each.is_written else None,
                    None,
                )
            )
            for each in launch.allocations
        ]

    def _set_arguments(
        self, kernel: c_void_p, launch: Launch, buffers: list[c_void_p]
    ) -> None:
        for index, each in enumerate(launch.arguments):
            size = c_size_t(each.size)
            value: object = None
            if each.kind == "value":
                value = each.value
            elif each.kind != "local":
                size = c_size_t(ctypes.sizeof(c_void_p))
                value = byref(c_void_p())
            if each.kind == "memory":
                size, value = self._pointer(
                    launch, buffers, each.allocation, each.offset
                )
            if error := self.cl.clSetKernelArg(kernel, index, size, value):
                raise Refused(f"argument {index}: error {error}")

    def _pointer(
        self, launch: Launch, buffers: list[c_void_p], number: int, offset: int
    ) -> tuple[c_size_t, object]:
        """A buffer that begins at the pointer. One of another offset has the same bytes:
        the simulator keeps the parent's."""
        buffer = buffers[number]
        if offset:
            left = launch.allocations[number].size - offset
            region = (c_size_t * 2)(offset, max(left, 1))
            buffer = c_void_p(
                self.cl.clCreateSubBuffer(
                    buffer, c_ulong(READ_WRITE), REGION, region, None
                )
            )
            if not buffer:
                raise Refused(f"no part of a buffer at {offset}")
        return c_size_t(ctypes.sizeof(c_void_p)), byref(buffer)

    def _launch(self, kernel: c_void_p, launch: Launch) -> None:
        dims = len(launch.global_size)
        sizes = [
            (c_size_t * dims)(*each) if each else None
            for each in (launch.offset, launch.global_size, launch.local_size)
        ]
        error = self.cl.clEnqueueNDRangeKernel(
            self.queue, kernel, c_uint(dims), *sizes, 0, None, None
        )
        if error:
            raise Refused(f"launch: error {error}")
        self.cl.clFinish(self.queue)

    def _is_same(self, launch: Launch, buffers: list[c_void_p]) -> bool:
        same = True
        for each, buffer in zip(launch.allocations, buffers, strict=True):
            found = ctypes.create_string_buffer(each.size)
            size = c_size_t(each.size)
            self.cl.clEnqueueReadBuffer(
                self.queue, buffer, 1, c_size_t(0), size, found, 0, None, None
            )
            same &= found.raw == each.after or not each.is_written
        return same


def main(library: str, log: str, *paths: str) -> None:
    simulator = Simulator(library)
    read = 0
    for each in map(Path, paths):
        launch = read_launch(each)
        print(json.dumps({"begins": each.name}), flush=True)
        refusal, is_same = "", False
        try:
            is_same = simulator.run(launch)
        except Refused as error:
            refusal = str(error)
        said = Path(log).read_text(errors="replace") if Path(log).exists() else ""
        result = {
            "launch": each.name,
            "kernel": launch.kernel,
            "refusal": refusal,
            "is_same": is_same,
            "said": said[read:],
        }
        read = len(said)
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
