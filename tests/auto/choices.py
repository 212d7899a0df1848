"""Made-up costs, by which a test decides where AUTO runs an op."""

import xpurt
from xpurt import _C, mapping
from xpurt.mapping.auto import device_cost


class Choices:
    def __init__(self) -> None:
        (self._devices,) = mapping.current_placement().ordinals
        self.kinds = [device.kind for device in self._devices]

    def cpu(self) -> None:
        self.only("cpu")

    def gpu(self) -> None:
        self.only("gpu")

    def only(self, kind: str) -> None:
        """Ops go to the first device of that kind, if they can."""
        _C.set_device_costs(
            0,
            [(0 if found == kind else 1e9, 1e9, 1e9, 0, 1e9) for found in self.kinds],
        )

    def restore(self) -> None:
        """The shipped costs."""
        _C.set_device_costs(0, [device_cost(device).row() for device in self._devices])


def calls(op: str, kind: str) -> int:
    """The number of kernels of that op on devices of that kind since the last reset."""
    names = {device.name for device in xpurt.physical_devices() if device.kind == kind}
    return sum(
        row.calls
        for row in xpurt.op_report().rows
        if row.op == op and row.device in names
    )
