"""Replays recorded launches on Oclgrind, a simulator of OpenCL devices that finds races,
accesses out of bounds and uses of what was never written (Price and McIntosh-Smith,
"Oclgrind: An Extensible OpenCL Device Simulator", IWOCL 2015).

Run as a program, with Oclgrind's library, its log and the files of launches as arguments;
it prints a line of JSON for each launch. A process of its own: the simulator may crash,
and no other driver shares its libraries. It ends before the last launch if the simulator
has found so many errors that it tells no more.
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
    from xpurt.launch_recorder.results import Difference, difference, start_of
else:
    from launches import Launch, read_launch
    from results import Difference, difference, start_of

DEVICE_OF_ANY_TYPE = 0xFFFFFFFF
BUILD_LOG = 0x1183
READ_WRITE, COPY_HOST = 1 << 0, 1 << 5
MAP_READ = 1 << 0
REGION = 0x1220
ARGUMENT_TYPE = 0x1198
TYPEDEF = re.compile(r"\btypedef (\w+) (\w+);")
# With its optimizations Oclgrind 21.10 meets intrinsics of LLVM that it does not have.
OPTIONS = "-cl-std=CL1.2 -cl-opt-disable -cl-kernel-arg-info"
STANDARD = re.compile(r"-cl-std=\S+")


TOO_MANY = "suppressing further errors"


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
        self.cl.clEnqueueMapBuffer.restype = c_void_p
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

    def run(self, launch: Launch) -> Difference:
        """In which way the memory is not as it was after the launch that was recorded."""
        if not launch.program:
            raise Refused("no source: the program was made from a binary")
        if any(each.kind == "outside" for each in launch.arguments):
            raise Refused("an argument points to no allocation")
        if not launch.has_bytes:
            raise Refused("more than 64 MiB")
        program = self.program(launch.path.with_name(f"{launch.program}.cl"))
        kernel = c_void_p(self.cl.clCreateKernel(program, launch.kernel.encode(), None))
        starts = [start_of(each) for each in launch.allocations]
        buffers = self._buffers(launch, starts)
        self._set_arguments(kernel, launch, buffers)
        self._launch(kernel, launch)
        ends = self._bytes(launch, buffers)
        elements = self._elements(kernel, launch)
        rows = zip(launch.allocations, starts, ends, elements, strict=True)
        found = {difference(*row) for row in rows}
        return "other" if "other" in found else "rounded" if "rounded" in found else ""

    def _elements(self, kernel: c_void_p, launch: Launch) -> list[str]:
        """The types that the kernel has for allocations; empty where it has several."""
        found: list[set[str]] = [set() for _ in launch.allocations]
        typedefs = {new: old for old, new in TYPEDEF.findall(self._source(launch))}
        for index, each in enumerate(launch.arguments):
            if each.kind == "memory":
                name = ctypes.create_string_buffer(256)
                self.cl.clGetKernelArgInfo(
                    kernel, index, ARGUMENT_TYPE, c_size_t(len(name)), name, None
                )
                element = name.value.decode().removesuffix("*").strip()
                found[each.allocation].add(typedefs.get(element, element))
        return [each.pop() if len(each) == 1 else "" for each in found]

    def _source(self, launch: Launch) -> str:
        return launch.path.with_name(f"{launch.program}.cl").read_text()

    def _buffers(self, launch: Launch, starts: list[bytes]) -> list[c_void_p]:
        """Of allocations. They are never released: for Oclgrind 21.10 a later one at the
        same address has the values of an earlier one.
        """
        return [
            self._buffer(start, each.is_written)
            for each, start in zip(launch.allocations, starts, strict=True)
        ]

    def _buffer(self, start: bytes, is_written: bool) -> c_void_p:
        flags = c_ulong(READ_WRITE | (COPY_HOST if is_written else 0))
        size, content = c_size_t(len(start)), start if is_written else None
        buffer = c_void_p(
            self.cl.clCreateBuffer(self.context, flags, size, content, None)
        )
        if not is_written:
            # What is written through a map for reading has no value for the simulator.
            begin = self.cl.clEnqueueMapBuffer(
                *(self.queue, buffer, 1, c_ulong(MAP_READ), c_size_t(0), size),
                *(0, None, None, None),
            )
            ctypes.memmove(begin, start, len(start))
            self.cl.clEnqueueUnmapMemObject(
                self.queue, buffer, c_void_p(begin), 0, None, None
            )
        return buffer

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

    def _bytes(self, launch: Launch, buffers: list[c_void_p]) -> list[bytes]:
        found = []
        for each, buffer in zip(launch.allocations, buffers, strict=True):
            into = ctypes.create_string_buffer(each.size)
            size = c_size_t(each.size)
            self.cl.clEnqueueReadBuffer(
                self.queue, buffer, 1, c_size_t(0), size, into, 0, None, None
            )
            found.append(into.raw)
        return found


def main(library: str, log: str, *paths: str) -> None:
    simulator = Simulator(library)
    read = 0
    for each in map(Path, paths):
        launch = read_launch(each)
        print(json.dumps({"begins": each.name}), flush=True)
        refusal, differs = "", ""
        try:
            differs = simulator.run(launch)
        except Refused as error:
            refusal = str(error)
        said = Path(log).read_text(errors="replace") if Path(log).exists() else ""
        result = {
            "launch": each.name,
            "kernel": launch.kernel,
            "refusal": refusal,
            "differs": differs,
            "said": said[read:],
        }
        print(json.dumps(result), flush=True)
        if TOO_MANY in said[read:]:
            break
        read = len(said)


if __name__ == "__main__":
    main(*sys.argv[1:])
