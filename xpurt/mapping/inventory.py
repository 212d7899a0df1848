"""The table of devices: `python -m xpurt devices`, and the head of the demo."""

from collections.abc import Sequence

from xpurt.mapping import (
    PhysicalDevice,
    current_placement,
    physical_devices,
    remarks,
    unusable_devices,
)
from xpurt.text.table import size, table


def devices_table() -> str:
    """Every physical device, with its ordinals in this mapping; then what devices lack,
    and those that can't be used, with the reasons.

    Raises MappingError if the mapping in force finds no device.
    """
    ordinals = current_ordinals()
    rows = [_row(device, ordinals) for device in physical_devices()]
    # Parts of a device are no root devices; their rows come after those.
    rows += [
        _row(device, ordinals)
        for members in ordinals
        for device in members
        if device.parent is not None
    ]
    listed = table(
        (">ordinal", "device", "driver", ">memory", "SYCL filter string", "uuid"), rows
    )
    return "\n".join([listed, *device_notes()])


def device_notes() -> list[str]:
    """A line for each thing that a device lacks, and for each unusable device."""
    notes = [
        f"{device}: {remark}"
        for device in physical_devices()
        for remark in remarks(device)
    ]
    notes += [f"{each} can't be used: {each.reason}" for each in unusable_devices()]
    return ["", *notes] if notes else []


def mapping_table() -> str:
    """The ordinals of the mapping in force, a line per device behind one.

    Raises MappingError if the mapping finds no device.
    """
    return table(
        (">ordinal", "device", "driver", ">memory"),
        (
            (
                f"xpu:{index}",
                device.name,
                device.driver_version,
                size(device.memory_bytes),
            )
            for index, members in enumerate(current_ordinals())
            for device in members
        ),
    )


def current_ordinals() -> Sequence[Sequence[PhysicalDevice]]:
    return current_placement().ordinals


def _row(
    device: PhysicalDevice, ordinals: Sequence[Sequence[PhysicalDevice]]
) -> tuple[str, ...]:
    behind = [f"xpu:{i}" for i, members in enumerate(ordinals) if device in members]
    return (
        ", ".join(behind) or "-",
        device.name,
        f"{device.backend} {device.driver_version}",
        size(device.memory_bytes),
        device.filter_string,
        device.uuid,
    )
