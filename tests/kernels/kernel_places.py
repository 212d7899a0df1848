"""Every physical device behind a mapping, to run the same ops on each."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch

import xpurt
from xpurt import _C
from xpurt.mapping import current_placement


@dataclass(frozen=True)
class Place:
    """One physical device, behind its ordinal."""

    device: torch.device
    kind: str
    name: str
    shared: bool  # other devices are behind the same ordinal

    def __str__(self) -> str:
        return f"{self.device} on the {self.kind}"

    def chosen(self) -> AbstractContextManager[None]:
        """A block whose kernels run here."""
        return xpurt.prefer(self.kind) if self.shared else nullcontext()

    def check(self, op: str) -> None:
        """`op` ran here, and nowhere else, since the report was reset. So did the ops
        that PyTorch runs in place of one that is not counted."""
        report = _C.op_report()
        ran_on = {row[2] for row in report if row[0].split(".")[0] == op}
        ran_on = ran_on or {row[2] for row in report}
        assert ran_on == {self.name}, f"{op} ran on {ran_on}, not {self}"


def places() -> list[Place]:
    """The devices of the mapping in force."""
    return [
        Place(torch.device("xpu", index), each.kind, each.name, len(devices) > 1)
        for index, devices in enumerate(current_placement().ordinals)
        for each in devices
    ]
