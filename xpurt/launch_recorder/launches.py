"""Launches as the layer writes them: Note [A recorded launch] in layer/layer.h.

The program that replays them imports this by its path, so it needs nothing of xpurt.
"""

from collections.abc import Hashable, Iterator
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import BinaryIO, Literal

Kind = Literal["value", "local", "null", "memory", "outside"]


@dataclass(slots=True)
class Argument:
    kind: Kind
    size: int = 0  # bytes of a value, or of local memory
    value: bytes = b""
    allocation: int = 0  # its number
    offset: int = 0  # bytes


@dataclass(slots=True)
class Allocation:
    size: int
    is_written: bool  # by anything before the launch
    before: bytes = b""
    after: bytes = b""


@dataclass(slots=True)
class Launch:
    path: Path
    program: str = ""  # empty if it has no source
    kernel: str = ""
    offset: tuple[int, ...] = ()
    global_size: tuple[int, ...] = ()
    local_size: tuple[int, ...] = ()  # empty for the driver's choice
    arguments: list[Argument] = field(default_factory=list)
    allocations: list[Allocation] = field(default_factory=list)

    @property
    def has_bytes(self) -> bool:
        """False for a launch that was too large to be written."""
        return all(len(each.after) == each.size for each in self.allocations)

    @property
    def form(self) -> tuple[Hashable, ...]:
        """Equal for launches that differ in what is in memory alone."""
        return (
            *(self.program, self.kernel),
            *(self.offset, self.global_size, self.local_size),
            tuple(astuple(each) for each in self.arguments),
            tuple((each.size, each.is_written) for each in self.allocations),
        )


def launches_in(folder: Path) -> Iterator[Path]:
    """The files of launches, in the order of the launches of a process."""
    return iter(sorted(folder.glob("*.launch")))


def read_launch(path: Path) -> Launch:
    with path.open("rb") as file:
        return _read(Launch(path), file)


def _read(launch: Launch, file: BinaryIO) -> Launch:
    while (words := file.readline().decode().split()) != ["end"]:
        match words:
            case ["program", *name]:
                launch.program = "".join(name)
            case ["kernel", name]:
                launch.kernel = name
            case ["sizes", dims, *sizes]:
                _read_sizes(launch, int(dims), [int(each) for each in sizes])
            case ["allocation", size, is_written]:
                launch.allocations.append(Allocation(int(size), is_written == "1"))
            case ["value" | "local" as kind, size]:
                launch.arguments.append(Argument(kind, size=int(size)))
            case ["memory", number, offset]:
                where = Argument("memory", allocation=int(number), offset=int(offset))
                launch.arguments.append(where)
            case ["null" | "outside" as kind]:
                launch.arguments.append(Argument(kind))
            case _:
                raise ValueError(f"{launch.path} has no launch: {words}")
    for argument in launch.arguments:
        if argument.kind == "value":
            argument.value = file.read(argument.size)
    for allocation in launch.allocations:
        allocation.before = file.read(allocation.size)
    for allocation in launch.allocations:
        allocation.after = file.read(allocation.size)
    return launch


def _read_sizes(launch: Launch, dims: int, sizes: list[int]) -> None:
    launch.offset = tuple(sizes[:dims])
    launch.global_size = tuple(sizes[3 : 3 + dims])
    launch.local_size = tuple(sizes[6 : 6 + dims]) if sizes[6] else ()
