"""Which device holds which result, and what has to leave where memory is short."""

from collections import OrderedDict
from collections.abc import Sequence

Piece = tuple[int, int, float]  # of a task's result: task, kind of transfer, factor


class Residency:
    """Copies of results; least recently used ones leave first. One that leaves as the
    last of its kind goes to the host, from where it costs as much to come back."""

    def __init__(self, memory_bytes: Sequence[float]) -> None:
        self.memory_bytes = list(memory_bytes)
        self.held: list[OrderedDict[Piece, float]] = [
            OrderedDict() for _ in memory_bytes
        ]
        self.used = [0.0] * len(self.held)
        self.holders: dict[Piece, set[int]] = {}
        self.at_host: dict[Piece, int] = {}  # and the device that it left
        self.evictions = 0

    def where(self, piece: Piece) -> list[int]:
        """Devices that it can be taken from."""
        found = self.holders.get(piece)
        if found:
            return sorted(found)
        return [self.at_host[piece]] if piece in self.at_host else []

    def is_on(self, piece: Piece, device: int) -> bool:
        return device in self.holders.get(piece, ())

    def put(self, piece: Piece, device: int, size_bytes: float) -> None:
        """The device has a copy, the newest in use."""
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
        """Nobody needs it any more."""
        for device in list(self.holders.pop(piece, ())):
            self.used[device] -= self.held[device].pop(piece)
        self.at_host.pop(piece, None)

    def lose(self, device: int) -> None:
        """The device is gone, with all that it held."""
        for piece in list(self.held[device]):
            self._drop(piece, device)

    def _drop(self, piece: Piece, device: int) -> None:
        self.used[device] -= self.held[device].pop(piece)
        self.holders[piece].discard(device)
