"""Resolves a request on the devices at hand into a placement. Pure: uses no device."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xpurt.config import LARGEST_MAX_DEVICES
from xpurt.errors import MappingError
from xpurt.mapping.devices import PhysicalDevice
from xpurt.mapping.spec import DeviceFilter, MappingSpec, Partition, parse_filter
from xpurt.mapping.usability import UnusableDevice

Splitter = Callable[[PhysicalDevice, Partition], tuple[PhysicalDevice, ...]]


@dataclass(frozen=True, slots=True)
class Placement:
    """Which physical devices stand behind which ordinal.

    mapping: the request, as ``set_xpu_mapping`` takes it.
    ordinals: the devices of xpu:0, xpu:1, ...; more than one each only under AUTO, and
        if the mapping overflows. The first device of an ordinal is its lead.
    remark: what an error about an ordinal that it does not have adds.
    overflows: each ordinal has a GPU that does the work, and a CPU device as home.
    homes: for each ordinal the position of the device that holds the home copies: the
        first one whose memory the host can access, else the lead.
    """

    mapping: str
    ordinals: tuple[tuple[PhysicalDevice, ...], ...]
    remark: str = ""
    overflows: bool = False

    @property
    def homes(self) -> tuple[int, ...]:
        if self.overflows:
            return tuple(len(devices) - 1 for devices in self.ordinals)
        return tuple(
            next((i for i, d in enumerate(devices) if d.host_accessible), 0)
            for devices in self.ordinals
        )

    def check_index(self, index: int) -> None:
        """Raises MappingError unless xpu:`index` exists."""
        count = len(self.ordinals)
        if not 0 <= index < count:
            there_are = (
                "one device, xpu:0"
                if count == 1
                else f"{count} devices, xpu:0 to xpu:{count - 1}"
            )
            remark = f". {self.remark}" if self.remark else ""
            raise MappingError(
                f'xpu:{index} is out of range: mapping "{self.mapping}" has '
                f"{there_are}{remark}"
            )


def resolve(
    spec: MappingSpec,
    devices: Sequence[PhysicalDevice],
    *,
    split: Splitter,
    max_devices: int,
    unusable: Sequence[UnusableDevice] = (),
) -> Placement:
    """The placement that `spec` requests on these root devices.

    devices: root devices in the order of the ordinals.
    split: makes the parts of a root device; called only if the request has a partition.
    max_devices: the largest number of ordinals, and of devices behind one.
    unusable: devices that no mapping can have; errors give their reasons.

    Raises MappingError if the devices cannot give what is requested.
    """
    if not devices and unusable:
        raise MappingError(
            f"mapping {spec} found no device that can be used. {reasons_of(unusable)}"
        )
    try:
        return _resolve(spec, devices, split, max_devices)
    except MappingError as error:
        if not (reasons := reasons_of(unusable)):
            raise
        raise MappingError(f"{error} {reasons}") from None


def reasons_of(unusable: Sequence[UnusableDevice]) -> str:
    """A sentence for each of these devices."""
    return " ".join(f"{each} can't be used: {each.reason}." for each in unusable)


def _resolve(
    spec: MappingSpec,
    devices: Sequence[PhysicalDevice],
    split: Splitter,
    max_devices: int,
) -> Placement:
    if not devices:
        raise MappingError(
            f"mapping {spec} found no SYCL device at all. The CPU device comes with "
            "the package intel-opencl-rt; `python -m xpurt doctor` says what is "
            "missing."
        )
    requested = _filtered(spec, devices)
    if spec.name == "AUTO":
        chosen = _auto(spec, requested, devices)
    elif spec.name == "explicit":
        chosen = _some(spec, requested, devices)
    else:
        chosen = _of_one_kind(spec, requested, devices)
    if spec.name == "CPU" and not spec.devices:
        # A second CPU device is another driver of the same cores.
        chosen = chosen[:1]
    if spec.partition is not None:
        parts = [part for d in chosen for part in split(d, spec.partition)]
        chosen = tuple(parts)
    if spec.name == "AUTO":
        _check_count(spec, len(chosen), "devices behind xpu:0", max_devices)
        return Placement(spec.mapping, (chosen,))
    if spec.name == "CPU" and len(chosen) != 1:
        raise MappingError(
            f"mapping {spec} gives {len(chosen)} devices, and CPU has xpu:0 alone. "
            'Use "explicit" with the same devices and partition for one ordinal each. '
            "Under torchrun leave both out: each rank gets its part by itself."
        )
    _check_count(spec, len(chosen), "ordinals", max_devices)
    if spec.overflow == "host":
        home = _home(spec, devices)
        pairs = tuple((device, home) for device in chosen)
        return Placement(spec.mapping, pairs, overflows=True)
    return Placement(spec.mapping, tuple((device,) for device in chosen))


def _home(spec: MappingSpec, devices: Sequence[PhysicalDevice]) -> PhysicalDevice:
    """The CPU device whose memory takes what a GPU has no room for."""
    home = next((d for d in devices if d.kind == "cpu" and d.host_accessible), None)
    if home is None:
        raise MappingError(
            f"mapping {spec} wants a CPU device for the host's memory; found "
            f'{_found(devices)}. Install the package intel-opencl-rt, or use "GPU" '
            'with overflow="off".'
        )
    return home


def devices_named(
    filter_string: str, devices: Sequence[PhysicalDevice]
) -> tuple[PhysicalDevice, ...]:
    """The devices that a SYCL filter string names, "gpu" or "opencl:cpu:0".

    Raises MappingError if it is none, or names no device.
    """
    found = tuple(_matches(parse_filter(filter_string), devices))
    if not found:
        raise MappingError(
            f'there is no SYCL device "{filter_string}"; found {_found(devices)}. Name '
            "one of these."
        )
    return found


def _check_count(spec: MappingSpec, count: int, what: str, most: int) -> None:
    if count <= most:
        return
    remedy = (
        f"Set XPURT_MAX_DEVICES={count} before it starts, or take"
        if count <= LARGEST_MAX_DEVICES
        else f"XPURT_MAX_DEVICES is {LARGEST_MAX_DEVICES} at most: take"
    )
    raise MappingError(
        f"mapping {spec} gives {count} {what}; this process takes at most {most}. "
        f"{remedy} fewer devices, or larger parts."
    )


def _filtered(
    spec: MappingSpec, devices: Sequence[PhysicalDevice]
) -> tuple[PhysicalDevice, ...]:
    """The devices of ``devices=``, in its order; without it, all devices but those
    that are left to another device type."""
    if not spec.devices:
        return tuple(device for device in devices if not device.left_to)
    return _pick(spec, spec.devices, devices, devices)


def _auto(
    spec: MappingSpec,
    devices: tuple[PhysicalDevice, ...],
    found: Sequence[PhysicalDevice],
) -> tuple[PhysicalDevice, ...]:
    if spec.include:
        devices = _pick(spec, spec.include, devices, found)
    away = {
        device.filter_string
        for one in spec.exclude
        for device in _matches(one, devices)
    }
    kept = tuple(d for d in devices if d.filter_string not in away)
    return _some(spec, kept, found)


def _some(
    spec: MappingSpec,
    chosen: tuple[PhysicalDevice, ...],
    found: Sequence[PhysicalDevice],
) -> tuple[PhysicalDevice, ...]:
    """These devices. Raises MappingError if there are none."""
    if chosen:
        return chosen
    remedy = "Exclude less." if spec.exclude else "Name one with devices=."
    raise MappingError(
        f"mapping {spec} leaves no device of those found: {_found(found)}. {remedy}"
    )


def _of_one_kind(
    spec: MappingSpec,
    devices: tuple[PhysicalDevice, ...],
    found: Sequence[PhysicalDevice],
) -> tuple[PhysicalDevice, ...]:
    chosen = tuple(d for d in devices if d.kind == spec.name.lower())
    if chosen:
        return chosen
    remedy = (
        'Install a GPU driver, or use "CPU" or "AUTO".'
        if spec.name == "GPU"
        else 'Install the package intel-opencl-rt, or use "GPU" or "AUTO".'
    )
    raise MappingError(
        f"mapping {spec} wants a {spec.name}; found {_found(found)}. {remedy}"
    )


def _pick(
    spec: MappingSpec,
    filters: Sequence[DeviceFilter],
    devices: Sequence[PhysicalDevice],
    found: Sequence[PhysicalDevice],
) -> tuple[PhysicalDevice, ...]:
    """Those of `devices` in the order of the filters, each once.

    Raises MappingError for a filter without a device.
    """
    picked: dict[str, PhysicalDevice] = {}
    for one in filters:
        matches = _matches(one, devices)
        if not matches:
            raise MappingError(
                f'mapping {spec}: there is no device "{one}"; found '
                f"{_found(found)}. Name one of these, or leave it out."
            )
        for device in matches:
            picked.setdefault(device.filter_string, device)
    return tuple(picked.values())


def _matches(
    one: DeviceFilter, devices: Sequence[PhysicalDevice]
) -> list[PhysicalDevice]:
    """The devices that a filter string names.

    The number is SYCL's own if backend and kind are given. Else it counts the devices
    that match the rest, in the order of the ordinals. The filter strings of a device's
    other backends name it, too.
    """
    if one.backend and one.kind and one.number is not None:
        return [d for d in devices if str(one) in (d.filter_string, *d.aliases)]
    matches = [
        d
        for d in devices
        if one.kind in (None, d.kind)
        and (
            one.backend in (None, d.backend)
            or any(alias.startswith(f"{one.backend}:") for alias in d.aliases)
        )
    ]
    if one.number is not None:
        return matches[one.number : one.number + 1]
    return matches


def _found(devices: Sequence[PhysicalDevice]) -> str:
    """The devices, as an error names them."""
    return ", ".join(
        f'{each} (left to "{each.left_to}" unless devices= names it)'
        if each.left_to
        else str(each)
        for each in devices
    )
