"""Replays recorded launches on the CPU's OpenCL driver, between guard zones.

Run as a program, with the driver's library, a file of OpenCL C and the files of launches
as arguments; it prints a line of JSON for each launch. A process of its own: a spoilt
program may crash the driver. No part of Oclgrind is used.
"""

import ctypes
import json
import sys
from ctypes import c_size_t, c_void_p
from pathlib import Path

from xpurt.launch_recorder import SIMULATOR
from xpurt.launch_recorder.launches import Argument, Launch, read_launch

sys.path.insert(0, str(SIMULATOR.parent))  # it imports what is beside it
from oclgrind import Refused, Simulator
from results import difference

GUARD = 1 << 16  # bytes before and behind each allocation
# What guards and memory without a value are full of: as floats large, and negative.
FILLS = (0x5A, 0xC3)
# The work-items of a group run from the last to the first. A CPU's driver that does not
# vectorize runs them one by one, from barrier to barrier.
REVERSED = """
static size_t reversed_local_id(uint d) {
  return get_local_size(d) - 1 - get_local_id(d);
}
static size_t reversed_global_id(uint d) {
  return get_global_offset(d) + get_group_id(d) * get_local_size(d) +
         reversed_local_id(d);
}
#define get_local_id(d) reversed_local_id(d)
#define get_global_id(d) reversed_global_id(d)
#line 1
"""


class PlainDevice(Simulator):
    """Takes launches as the simulator does; their allocations lie between guard zones."""

    def outcome(self, program: Path, launch: Launch, fill: int) -> str:
        """In which way the launch is not as recorded; empty if it is."""
        built = self.program(program)
        kernel = c_void_p(self.cl.clCreateKernel(built, launch.kernel.encode(), None))
        guard = bytes([fill]) * GUARD
        starts = [
            each.before if each.is_written else bytes([fill]) * each.size
            for each in launch.allocations
        ]
        memory = [
            ctypes.create_string_buffer(guard + each + guard, 2 * GUARD + len(each))
            for each in starts
        ]
        for index, each in enumerate(launch.arguments):
            self._set(kernel, index, each, memory)
        self._launch(kernel, launch)
        if not all(
            each.raw.startswith(guard) and each.raw.endswith(guard) for each in memory
        ):
            return "it writes outside of its memory"
        ends = [each.raw[GUARD:-GUARD] for each in memory]
        rows = zip(launch.allocations, starts, ends, strict=True)
        same = not any(difference(*row, element="") for row in rows)
        return "" if same else "it writes other bytes"

    def _set(
        self,
        kernel: c_void_p,
        index: int,
        argument: Argument,
        memory: list[ctypes.Array[ctypes.c_char]],
    ) -> None:
        if argument.kind in ("value", "local"):
            value = argument.value if argument.kind == "value" else None
            error = self.cl.clSetKernelArg(
                kernel, index, c_size_t(argument.size), value
            )
        else:
            address = None
            if argument.kind == "memory":
                begin = ctypes.addressof(memory[argument.allocation])
                address = begin + GUARD + argument.offset
            error = self.cl.clSetKernelArgSVMPointer(kernel, index, c_void_p(address))
        if error:
            raise Refused(f"argument {index}: error {error}")


def in_both_orders(program: Path) -> list[Path]:
    options, _, source = program.read_text().partition("\n")
    reverse = program.with_suffix(".reversed.cl")
    reverse.write_text(f"{options}{REVERSED}{source}")
    return [program, reverse]


def main(library: str, program: str, *launches: str) -> None:
    device = PlainDevice(library)
    runs = list(zip(in_both_orders(Path(program)), FILLS, strict=True))
    for path in map(Path, launches):
        launch = read_launch(path)
        print(json.dumps({"begins": path.name}), flush=True)
        outcomes = [device.outcome(each, launch, fill) for each, fill in runs]
        outcome = next(filter(None, outcomes), "")
        print(json.dumps({"launch": path.name, "outcome": outcome}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
