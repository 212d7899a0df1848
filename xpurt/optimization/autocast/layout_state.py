"""What a thread in blocks of autocast with a layout knows."""

from dataclasses import dataclass, field

from xpurt.optimization.autocast.temporary_layouts import TemporaryLayouts


@dataclass(slots=True)
class LayoutState:
    """enabled: by device type, whether the innermost block has a layout.
    int8: by device type, whether it computes in int8.
    depth: how many blocks with one of these are open.
    block: stands for the outermost block. Replaced, it has weights compared anew.
    temporary: the tensors that are in channels last for a while.
    """

    enabled: dict[str, bool] = field(default_factory=dict)
    int8: dict[str, bool] = field(default_factory=dict)
    depth: int = 0
    block: object = field(default_factory=object)
    temporary: TemporaryLayouts = field(default_factory=TemporaryLayouts)
