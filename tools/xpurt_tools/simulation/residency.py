"""The results that each device holds, and evictions from a full memory."""

from collections import OrderedDict
from collections.abc import Sequence

Piece = tuple[int, int, float]  # the key of a task's result: TaskGraph.piece


class Residency:
    """Copies of results; the least recently used are evicted first. The last copy of a
    result is moved to the host when it is evicted; bringing it back costs as much."""

    def __init__(self, memory_bytes: Sequence[float]) -> None:
        self.memory_bytes = list(memory_bytes)
        self.held: list[OrderedDict[Piece, float]] = [
            OrderedDict() for _ in memory_bytes
        ]
        self.used = [0.0] * len(self.held)
        self.holders: dict[Piece, set[int]] = {}
        self.at_host: dict[Piece, int] = {}  # with the device that evicted it
        self.evictions = 0

    def where(self, piece: Piece) -> list[int]:
        """The devices from which it can be taken."""
        found = self.holders.get(piece)
        if found:
            return sorted(found)
        return [self.at_host[piece]] if piece in self.at_host else []

    def is_on(self, piece: Piece, device: int) -> bool:
        return device in self.holders.get(piece, ())

    def put(self, piece: Piece, device: int, size_bytes: float) -> None:
        """Adds a copy on a device, as the most recently used one."""
        held = self.held[device]
        if piece in held:
            held.move_to_end(piece)
            return
        held[piece] = size_bytes
        self.used[device] += size_bytes
        self.holders.setdefault(piece, set()).add(device)
        while self.used[device] > self.memory_bytes[device] and len(held) > 1:
            leaves = next(iter(held))
            self._drop(leaves, device)
            self.evictions += 1
            if not self.holders[leaves]:
                self.at_host[leaves] = device

    def forget(self, piece: Piece) -> None:
        """Drops all copies of a result that is not needed any more."""
        for device in list(self.holders.pop(piece, ())):
            self.used[device] -= self.held[device].pop(piece)
        self.at_host.pop(piece, None)

    def lose(self, device: int) -> None:
        """Drops all copies on a device that has failed."""
        for piece in list(self.held[device]):
            self._drop(piece, device)

    def _drop(self, piece: Piece, device: int) -> None:
        self.used[device] -= self.held[device].pop(piece)
        self.holders[piece].discard(device)
