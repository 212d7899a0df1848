"""The user's preference in AUTO's choice."""

from collections.abc import Iterator
from contextlib import contextmanager

from xpurt import _C
from xpurt.arguments import check_type
from xpurt.errors import MappingError
from xpurt.mapping.resolve import Placement
from xpurt.mapping.spec import KINDS


@contextmanager
def preference(kind: str, placement: Placement) -> Iterator[None]:
    """Sets this thread's preferred kind of device; see `xpurt.prefer`."""
    check_type(
        "prefer()", kind, str, "a kind of device", 'Give "CPU", "GPU" or "accelerator".'
    )
    wanted = kind.lower()
    if wanted not in KINDS:
        raise MappingError(
            f'prefer("{kind}"): a kind of device is one of {", ".join(KINDS)}'
        )
    found = {device.kind for devices in placement.ordinals for device in devices}
    if wanted not in found:
        raise MappingError(
            f'prefer("{kind}"): mapping "{placement.mapping}" has devices of kind '
            f"{', '.join(sorted(found))} only. Set a mapping with one of kind {wanted}."
        )
    before = _C.set_preference(wanted)
    try:
        yield
    finally:
        _C.set_preference(before)
